"""How much memory a fit takes, and how many documents fit into a given one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from himecat.classifier.cross_validation import MAX_UNLABELLED
from himecat.classifier.stages import MANY_LEAVES, MOST_TERMINALS
from himecat.methods import Default
from himecat.runtime.memory import memory_budget
from himecat.runtime.threads import spare_memory, usable_threads

# Bytes per document and leaf that a fit holds, and those that each of its threads adds.
_CELL, _CELL_OF_THREAD = 28, 4
# As measured: bytes of the program itself, of a document's words while vectors are learned, and of its features.
_PROGRAM, _TEXT, _DOCUMENT = 380 << 20, 8_300, 7_000
# Leaves where the tree is not known yet; documents that are always learned from.
_USUAL_LEAVES, _FEWEST = 200, 5_000


def memory_of_fit(
    n_documents: int,
    n_labelled: int,
    n_leaves: int,
    *,
    dimension: int,
    n_features: int,
    threads: int,
    n_fits: int = 1,
) -> int:
    """About how many bytes are held at once beside the documents, as measured.

    Parameters
    ----------
    n_fits : int
        How often the classifier is trained in all, `Plan.n_fits`.

    Examples
    --------
    >>> options = {"dimension": 350, "n_features": 4_000, "threads": 2, "n_fits": 2}
    >>> [round(memory_of_fit(*sizes, **options) / 1e6) for sizes in ((10_000, 4_000, 2_000), (20_000, 10_000, 5_000))]
    [838, 3896]
    """
    # Scores and posteriors: of all documents in the last fit, whose folds are learned on several threads; of a sample
    # in those of cross-validation, of which each thread has one.
    at_once = min(threads, n_fits - 1)
    of_documents = (_CELL + _CELL_OF_THREAD * threads) * n_documents
    of_samples = (_CELL + _CELL_OF_THREAD) * at_once * min(n_documents, MAX_UNLABELLED + n_labelled)
    of_leaves = 4 * (dimension * (6 + threads) + n_features * (1 + threads))
    return n_leaves * (max(of_documents, of_samples) + of_leaves)


def random_stream(seed: int, step: int) -> int:
    """The seed of one step of a fit, independent of those of the others.

    Examples
    --------
    >>> random_stream(0, 1) != random_stream(0, 2)
    True
    """
    return int(np.random.SeedSequence([seed, step]).generate_state(1)[0])


@dataclass(frozen=True)
class RoomWithin:
    """How many documents can be learned from in so many bytes; see `himecat.input.sampling.Room`.

    Examples
    --------
    >>> room = RoomWithin(1 << 30, dimension=400, threads=2)
    >>> room.texts(), room.documents(100, 60_000, 80_000), RoomWithin(0, 400, 2).documents(None, 10, 10)
    (129..., 20..., 5000)
    """

    memory: int
    dimension: int
    threads: int

    def texts(self) -> int:
        """Those that words are learned from."""
        return max(_FEWEST, self.memory // _TEXT)

    def documents(self, n_leaves: int | None, n_words: int, n_values: int) -> int:
        """Those that the classifier is learned from."""
        # Of a wide tree, the terminals of a stage.
        leaves = _USUAL_LEAVES if n_leaves is None else MOST_TERMINALS if n_leaves > MANY_LEAVES else n_leaves
        of_words = 4 * (
            self.dimension * (n_words + n_values) + (n_words + n_values) * leaves * (1 + self.threads)
        )
        each = _DOCUMENT + 8 * self.dimension + (_CELL + _CELL_OF_THREAD * self.threads) * leaves
        return max(_FEWEST, (self.memory - _PROGRAM - of_words) // each)


def room_for(method: Default, memory: int | str | None, threads: int | None) -> RoomWithin:
    """The room of a fit that may take so much memory; half of what is there by default.

    Examples
    --------
    >>> room_for(Default(), None, 2).memory > 0
    True
    """
    if memory is not None:
        spare_memory()
    return RoomWithin(memory_budget(memory), method.dimension + method.topics, usable_threads(threads))
