"""The published method, section by section."""
