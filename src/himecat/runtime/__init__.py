"""Threads, files, progress, sparse products and small solvers."""
