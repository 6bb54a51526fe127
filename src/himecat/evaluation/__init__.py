"""Metrics, calibration error, explanations and the report."""
