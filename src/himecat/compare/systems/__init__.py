"""The systems of a comparison, one file each."""
