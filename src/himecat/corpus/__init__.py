"""Documents, metadata, the category tree and the labelled examples."""

from himecat.corpus.columns import Corpus, MetadataColumn, Ragged, Supervision, Vocabulary
from himecat.corpus.problems import Problem, Problems
from himecat.corpus.taxonomy import Taxonomy

__all__ = [
    "Corpus",
    "MetadataColumn",
    "Problem",
    "Problems",
    "Ragged",
    "Supervision",
    "Taxonomy",
    "Vocabulary",
]
