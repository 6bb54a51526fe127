"""Other systems, the protocol that compares them, and the figures."""
