"""Plain twins of the compiled loops: slow and obvious, what the tests compare them with."""
