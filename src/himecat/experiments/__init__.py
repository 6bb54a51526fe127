"""Protocols that fit and score many times."""

from himecat.experiments.evaluate import DrawResult, evaluate, spread, summarise

__all__ = ["DrawResult", "evaluate", "spread", "summarise"]
