"""Makes up the letters to a town's service desk that are the sample corpus of himecat."""

from sample_letters.generator import make_letters

__all__ = ["make_letters"]
