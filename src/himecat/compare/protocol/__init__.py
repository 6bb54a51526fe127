"""Draws, runs, cache, scores, significance and tables."""
