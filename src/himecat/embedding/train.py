"""Joint representation learning: one unit vector per label, metadata value, document and word.

Documents are shuffled into blocks small enough for the cache and dealt to a fixed number of shards. A shard
trains its blocks on its own copy of the anchors (labels, metadata values, words); after each pass the copies
are merged. Threads only decide how many shards run at once, so the result depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.embedding import _kernels
from himecat.relations import Relations

FloatArray = npt.NDArray[np.float32]

# Rows are padded to a multiple of this many floats so that every row starts on a SIMD boundary.
LANE = 8


@dataclass(frozen=True)
class TrainingSettings:
    """What joint representation learning is told.

    Examples
    --------
    >>> TrainingSettings(dimension=10).margins["word"]
    0.2
    """

    dimension: int = 100
    samples: int = 200_000_000
    negatives: int = 5
    margins: Mapping[str, float] | None = None
    rate: float = 0.04
    final_rate: float = 1e-4
    scaled_steps: bool = True
    shards: int = 4
    block_documents: int = 1500
    seed: int = 0
