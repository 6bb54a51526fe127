"""Synthetic training documents drawn from the joint space."""

from himecat.synthesis.generate import SyntheticDocuments, nearest_words, synthesize
from himecat.synthesis.vmf import estimate_concentration, sample_vmf

__all__ = ["SyntheticDocuments", "estimate_concentration", "nearest_words", "sample_vmf", "synthesize"]
