"""Joint representation learning on the unit sphere."""

from himecat.embedding.space import JointSpace, Neighbour, space_from
from himecat.embedding.train import Round, Trained, count_steps, default_samples, learn_vectors

__all__ = [
    "JointSpace",
    "Neighbour",
    "Round",
    "Trained",
    "count_steps",
    "default_samples",
    "learn_vectors",
    "space_from",
]
