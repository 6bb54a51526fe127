"""Figures, one file each; they need matplotlib, the extra `plots`."""
