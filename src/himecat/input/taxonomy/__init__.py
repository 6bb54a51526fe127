"""The category tree and the formats it is read from."""
