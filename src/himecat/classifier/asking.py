"""Which documents to ask a person about: those whose labels teach most."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.runtime.threads import one_blas_thread

FloatArray = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

STRATEGIES = ("default", "cover", "ratio", "random")
"""The orders that `choose` knows; see docs/accuracy.md for what each brings."""

_SPREAD = "spread"
# Documents that are compared with each other: as many may be asked about, as many stand for the whole pile.
_CANDIDATES, _TARGETS = 1500, 4000
# Of one set of candidates no more are taken; beyond so many in all, the order is random.
_PER_SET, _MOST = 500, 2000
# A document that brings less than this share of all the doubt is like one that was asked about.
_NOTHING = 1e-5


@one_blas_thread()
def choose(
    probabilities: npt.NDArray[np.floating],
    vectors: npt.NDArray[np.floating] | None = None,
    *,
    count: int,
    labelled: npt.ArrayLike = (),
    strategy: str = "default",
    seed: int = 0,
    threshold: float | None = None,
) -> Rows:
    """Rows of the documents to ask a person about, the most useful first.

    Parameters
    ----------
    probabilities : array of shape (documents, leaves)
        What `predict_proba` gives.
    vectors : array of shape (documents, dimension), optional
        Unit vectors of the documents, as `transform` gives them. What is empty (zeros), or the same as another
        document, is asked about last.
    count : int
        How many; all that are not labelled where there are fewer.
    labelled : array of int
        Rows of the documents whose labels are known: never asked about.
    strategy : {"default", "cover", "ratio", "random"}
        `cover`: each time the document that brings the most undecided documents nearer to one with a label, or to
        one that is asked about already. `ratio`: those whose second leaf is most nearly as probable as the first.
        `random`: any. `default` is `cover`, and `random` where there are no vectors.
    seed : int
        The same number gives the same rows.
    threshold : float, optional
        Where documents have several categories, each with a probability of its own: how probable one has to be to be
        given. By default each time the document with the most probably wrong decisions is then asked about; those on
        categories that were asked about already count less.

    Examples
    --------
    Two documents are in doubt, and lie together: one of them is enough.

    >>> probabilities = np.array([[1, 0], [0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    >>> vectors = np.array([[1, 0], [0.6, 0.8], [0.6, 0.8], [0, 1]])
    >>> choose(probabilities, vectors, labelled=[0], count=2).tolist()
    [1, 3]

    Of three documents with several categories, two are in doubt about the same one; then the other is asked about.

    >>> probabilities = np.array([[0.9, 0.5, 0, 0], [0.9, 0.45, 0, 0], [0, 0, 0.9, 0.4]])
    >>> choose(probabilities, count=2, threshold=0.5).tolist()
    [0, 2]
    """
    n_documents = len(probabilities)
    known = np.unique(np.asarray(labelled, dtype=np.int64))
    if strategy not in STRATEGIES:
        raise UsageError(f"The strategy {strategy!r} is not known; there are {', '.join(STRATEGIES)}.")
    if count < 0:
        raise UsageError(f"The number of documents to ask about must be at least 0, not {count}.")
    if vectors is not None and len(vectors) != n_documents:
        raise UsageError(f"There are {n_documents} documents, and vectors of {len(vectors)}.")
    if len(known) and not 0 <= known[0] <= known[-1] < n_documents:
        raise UsageError(f"Labelled rows must be among the {n_documents} documents.")
    if strategy == "default":
        strategy = "random" if vectors is None else "cover"
        strategy = strategy if threshold is None else _SPREAD
    if strategy == "cover" and vectors is None:
        raise UsageError("The strategy 'cover' needs the vectors of the documents.")
    rng = np.random.default_rng(seed)
    # In random order, so that nothing depends on where in the pile documents stand.
    pool = rng.permutation(np.setdiff1d(np.arange(n_documents), known))
    last = pool[:0]
    if vectors is not None:
        new = _new(vectors, known, pool)
        pool, last = pool[new], pool[~new]
    if strategy == "ratio":
        pool = pool[np.argsort(-_doubt(probabilities)[pool], kind="stable")]
    elif strategy == "cover" and vectors is not None:
        first = _cover(vectors, _doubt(probabilities), pool, known, min(count, _MOST))
        pool = np.concatenate([first, pool[~np.isin(pool, first)]])
    elif strategy == _SPREAD and threshold is not None:
        first = _spread(probabilities, threshold, pool, min(count, _MOST))
        pool = np.concatenate([first, pool[~np.isin(pool, first)]])
    return np.concatenate([pool, last])[:count]


def _new(vectors: npt.NDArray[np.floating], known: Rows, pool: Rows) -> npt.NDArray[np.bool_]:
    """Which documents of the pool are neither empty nor the same as one that is known or comes before them."""
    # Only digests are kept: vectors are large.
    met = {_digest(vectors[row]) for row in known.tolist()} | {_digest(np.zeros_like(vectors[:1]))}
    found = np.zeros(len(pool), dtype=bool)
    for place, row in enumerate(pool.tolist()):
        digest = _digest(vectors[row])
        found[place] = digest not in met
        met.add(digest)
    return found


def _digest(vector: npt.NDArray[np.floating]) -> bytes:
    # Adding zero makes -0.0 the same as 0.0.
    return hashlib.blake2b((vector + 0.0).tobytes(), digest_size=16).digest()


def _doubt(probabilities: npt.NDArray[np.floating]) -> FloatArray:
    """How probable the second leaf of each document is beside the first: 0 for certain, 1 for a tie."""
    n_documents, n_leaves = probabilities.shape
    found = np.zeros(n_documents, dtype=np.float32)
    for start in range(0, n_documents if n_leaves > 1 else 0, _TARGETS):
        two = np.partition(probabilities[start : start + _TARGETS], n_leaves - 2, axis=1)[:, -2:]
        found[start : start + _TARGETS] = two[:, 0] / np.maximum(two[:, 1], 1e-30)
    return found


def _wrong(probabilities: npt.NDArray[np.floating], threshold: float) -> FloatArray:
    """How probably each decision for or against a category is wrong."""
    return np.where(probabilities >= threshold, 1 - probabilities, probabilities).astype(np.float32)


def _spread(probabilities: npt.NDArray[np.floating], threshold: float, pool: Rows, count: int) -> Rows:
    """Documents with many decisions that are probably wrong, on categories that others were not asked for."""
    parts = [pool[start : start + _TARGETS] for start in range(0, len(pool), _TARGETS)]
    doubt = np.concatenate(
        [pool[:0], *(_wrong(probabilities[part], threshold).sum(axis=1) for part in parts)]
    )
    pool = pool[np.argsort(-doubt, kind="stable")[:_TARGETS]]
    wrong = _wrong(probabilities[pool], threshold)
    asked = np.zeros(probabilities.shape[1], dtype=np.float32)
    left, chosen = np.ones(len(pool), dtype=bool), list[int]()
    while len(chosen) < min(count, len(pool)):
        best = int(np.where(left, wrong @ (1 / (1 + asked)), -1.0).argmax())
        chosen.append(best)
        left[best] = False
        asked += probabilities[pool[best]]
    return pool[chosen]


def _cover(
    vectors: npt.NDArray[np.floating],
    doubt: FloatArray,
    pool: Rows,
    known: Rows,
    count: int,
) -> Rows:
    """Facility location, greedily, over the nearest labelled neighbours of the documents in doubt.

    A sample stands for the whole pile, and candidates come in sets, so that memory is bounded.
    """
    # The pool is in random order; its end, so that candidates do not stand for themselves only.
    targets = pool[-_TARGETS:]
    there, weights = np.asarray(vectors[targets], dtype=np.float32), doubt[targets]
    covered = np.zeros(len(targets), dtype=np.float32)
    for start in range(0, len(known), _CANDIDATES):
        some = np.asarray(vectors[known[start : start + _CANDIDATES]], dtype=np.float32)
        np.maximum(covered, (some @ there.T).max(axis=0), out=covered)
    found = np.zeros(0, dtype=np.int64)
    for start in range(0, len(pool), _CANDIDATES):
        candidates = pool[start : start + _CANDIDATES]
        wanted = min(_PER_SET if len(pool) > _CANDIDATES else _CANDIDATES, count - len(found))
        if wanted < 1:
            break
        nearness = np.asarray(vectors[candidates], dtype=np.float32) @ there.T
        chosen, covered = _greedy(nearness, weights, covered, wanted)
        found = np.concatenate([found, candidates[chosen]])
    return found


def _greedy(
    nearness: FloatArray, weights: FloatArray, covered: FloatArray, count: int
) -> tuple[list[int], FloatArray]:
    """The candidates that cover most together, one after the other, and what is covered then."""

    def gain(some: FloatArray) -> FloatArray:
        more = some - covered
        return np.asarray(np.maximum(more, 0.0, out=more) @ weights, dtype=np.float32)

    chunks = [gain(nearness[start : start + 256]) for start in range(0, len(nearness), 256)]
    gains = np.concatenate([np.zeros(0, dtype=np.float32), *chunks])
    at_turn = np.zeros(len(gains), dtype=np.int64)
    least, chosen = _NOTHING * float(weights.sum()), list[int]()
    while len(chosen) < count and len(gains):
        best = int(gains.argmax())
        if gains[best] <= least:
            break
        # Gains only shrink: who is first with a gain of this turn is first among all.
        if at_turn[best] < len(chosen):
            gains[best] = gain(nearness[best : best + 1])[0]
            at_turn[best] = len(chosen)
            continue
        chosen.append(best)
        covered = np.maximum(covered, nearness[best])
        gains[best] = -1.0
    return chosen, covered
