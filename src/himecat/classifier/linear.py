"""Ridge classifiers on soft labels, and their out-of-fold scores (cross-fitting)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import diags, issparse

from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.sparse import FAST_WIDTH, conjugate_gradients, is_large, product
from himecat.runtime.threads import Run, run_serial

FloatArray = npt.NDArray[np.float32]

_ITERATIONS = 8
# Loops compiled for one classifier serve the others of the same fit, which are at least so many.
_CALLS = 6
# Rows that belong to a group with less than this probability do not train its categories.
_CANDIDATE = 0.01

# With more leaves, the sparse classifier works group by group.
_MANY_LEAVES = 200
# Categories that a dense system is solved for at a time: the solver copies what it is given.
_SOLVED = 8192

Groups = Sequence[npt.NDArray[np.int64]]


class _Piece(NamedTuple):
    """The weights of a few categories: those of the columns with entries, and those that their group shares."""

    chosen: npt.NDArray[np.int64]
    used: npt.NDArray[np.int64]
    solved: FloatArray
    shared: FloatArray | None

    @property
    def place(self) -> slice | npt.NDArray[np.int64]:
        """The categories; neighbours as a slice, which is copied several times faster."""
        first, last = int(self.chosen[0]), int(self.chosen[-1]) + 1
        return slice(first, last) if np.array_equal(self.chosen, np.arange(first, last)) else self.chosen

    def dense(self, n_columns: int) -> FloatArray:
        """The weights of all columns; categories may be padded."""
        width = self.solved.shape[1]
        if self.shared is None:
            found = np.zeros((n_columns, width), dtype=np.float32)
        else:
            found = np.repeat(self.shared[:, None], width, axis=1)
        found[self.used] += self.solved
        return found

    def add_to(self, weights: FloatArray, share: float) -> None:
        """Add a share of these to the weights of all categories."""
        place = self.place
        if self.shared is not None:
            weights[:, place] += np.float32(share) * self.shared[:, None]
        part = self.solved[:, : len(self.chosen)] * np.float32(share)
        if isinstance(place, slice):
            weights[self.used, place] += part
        else:
            weights[np.ix_(self.used, place)] += part


def _is_large(rows: Any, targets: FloatArray) -> bool:
    return issparse(rows) and is_large(rows, targets.shape[1], 2 * _ITERATIONS * _CALLS)


def _pieces(
    rows: Any, targets: FloatArray, weights: FloatArray, penalty: float, groups: Groups, large: bool
) -> Iterator[_Piece]:
    """The weights of a few categories at a time, so that memory does not grow with their number."""
    everything = np.arange(targets.shape[1])
    if not issparse(rows):
        yield _Piece(
            everything, np.arange(rows.shape[1]), _dense_ridge(rows, targets, weights, penalty), None
        )
        return
    if not groups:
        for first, used, solved in _solved(rows, targets, weights, penalty, large):
            yield _Piece(everything[first : first + FAST_WIDTH], used, solved, None)
        return
    # A category's weights are those of its group plus those against the others of the group.
    of_group = np.stack([targets[:, group].sum(axis=1) for group in groups], axis=1)
    between = np.zeros((len(groups), rows.shape[1]), dtype=np.float32)
    for first, used, solved in _solved(rows, of_group, weights, penalty, large):
        last = min(first + FAST_WIDTH, len(groups))
        between[first:last, used] = solved[:, : last - first].T
    for number, group in enumerate(groups):
        # A group of one has no others: its own weights count twice, to be on the same scale.
        candidates = np.flatnonzero(of_group[:, number] > _CANDIDATE) if len(group) > 1 else group[:0]
        if not len(candidates):
            empty = np.zeros((0, len(group)), dtype=np.float32)
            yield _Piece(group, group[:0], empty, 2 * between[number])
            continue
        own = targets[np.ix_(candidates, group)]
        for first, used, solved in _solved(rows[candidates], own, weights[candidates], penalty, large):
            yield _Piece(group[first : first + FAST_WIDTH], used, solved, between[number])


def _dense_ridge(rows: Any, targets: FloatArray, weights: FloatArray, penalty: float) -> FloatArray:
    mean = (weights @ targets) / float(weights.sum())
    weighted = rows * weights[:, None]
    system = weighted.T @ rows + penalty * np.eye(rows.shape[1], dtype=np.float32)
    found = np.empty((rows.shape[1], targets.shape[1]), dtype=np.float32)
    for first in range(0, targets.shape[1], _SOLVED):
        some = slice(first, first + _SOLVED)
        found[:, some] = np.linalg.solve(system, weighted.T @ (targets[:, some] - mean[some]))
    return found


def _solved(
    rows: Any, targets: FloatArray, weights: FloatArray, penalty: float, large: bool
) -> Iterator[tuple[int, npt.NDArray[np.int64], FloatArray]]:
    """The first of a few categories, the columns that have entries, and the weights of these."""
    mean = (weights @ targets) / float(weights.sum())
    # Many columns have no entry: most metadata values are rare.
    used = np.flatnonzero(np.bincount(rows.indices, minlength=rows.shape[1]))
    narrow = rows if len(used) == rows.shape[1] else rows[:, used].tocsr()
    across = (diags(weights) @ narrow).T.tocsr().astype(np.float32)
    for first in range(0, targets.shape[1], FAST_WIDTH):
        chosen = slice(first, first + FAST_WIDTH)
        width = targets[:, chosen].shape[1]
        # The last columns are padded with zeros, which stay zeros.
        centred = np.zeros((len(targets), FAST_WIDTH if large else width), dtype=np.float32)
        np.subtract(targets[:, chosen], mean[chosen], out=centred[:, :width])
        target = product(across, centred, large=large)
        yield (
            first,
            used,
            conjugate_gradients(narrow, across, target, penalty, iterations=_ITERATIONS, large=large),
        )


class OutOfFold(NamedTuple):
    """Scores of documents by classifiers that were not trained on them.

    Attributes
    ----------
    scores : array of shape (documents, categories)
        The documents' scores.
    weights : array of shape (columns, categories)
        The mean of the classifiers' weights, for new documents; empty where it was not wanted.
    """

    scores: FloatArray
    weights: FloatArray


def cross_fit(
    views: Sequence[Any],
    targets: FloatArray,
    weights: FloatArray,
    folds: npt.NDArray[np.integer],
    penalty: float,
    run: Run = run_serial,
    groups: Groups = (),
    *,
    want_weights: bool = True,
) -> list[OutOfFold]:
    """Score every document by ridge classifiers that were not trained on its own soft label.

    Dense rows are solved exactly, sparse ones by a few steps of conjugate gradients, whose early end is a
    penalty of its own.

    Parameters
    ----------
    views : sequence
        The documents as rows of dense or sparse matrices; each gets classifiers of its own.
    folds : array
        The fold of each document; -1 for those whose label is known, which every classifier is trained on.
    run : callable
        Runs the jobs, one for each view and fold, and gives their results in order.
    groups : sequence of arrays, optional
        For very many categories, which ones belong together. On sparse rows the groups are then learned from all
        rows, and the categories of a group from the rows that may belong to it.
    want_weights : bool
        Whether new documents are to be scored later.

    Examples
    --------
    >>> rows = np.repeat(np.eye(2, dtype=np.float32), 4, axis=0)
    >>> targets = np.repeat(np.eye(2, dtype=np.float32), 4, axis=0)
    >>> [found] = cross_fit([rows], targets, np.ones(8, np.float32), np.arange(8) % 2, 0.1)
    >>> found.scores.argmax(axis=1).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    n_folds = int(folds.max(initial=0)) + 1
    known = np.flatnonzero(folds < 0)
    own_rows = [np.flatnonzero(folds == fold) for fold in range(n_folds)]

    def job_of(rows: Any, fold: int) -> Callable[[], tuple[FloatArray, list[_Piece]]]:
        def job() -> tuple[FloatArray, list[_Piece]]:
            # Where there is no other document, its own label is all there is to learn from.
            rest = np.flatnonzero(folds != fold) if len(own_rows[fold]) < len(folds) else own_rows[fold]
            held_out = rows[np.concatenate([own_rows[fold], known])]
            given = (rows[rest], targets[rest], weights[rest], penalty)
            scores = np.empty((held_out.shape[0], targets.shape[1]), dtype=np.float32)
            large, kept = _is_large(rows, targets), []
            for piece in _pieces(*given, groups, large):
                dense = piece.dense(rows.shape[1])
                of_few = product(held_out, dense, large=large) if issparse(rows) else held_out @ dense
                scores[:, piece.place] = of_few[:, : len(piece.chosen)]
                if want_weights:
                    kept.append(piece)
            return scores, kept

        return job

    jobs = [job_of(rows, fold) for rows in views for fold in range(n_folds)]
    results: list[OutOfFold] = []
    # One result after the other: a serial run keeps only one of them in memory.
    done = iter(run(jobs))
    for number in range(len(jobs)):
        scores, pieces = next(done)
        view, fold = divmod(number, n_folds)
        if fold == 0:
            n_columns = views[view].shape[1] if want_weights else 0
            results.append(
                OutOfFold(np.zeros_like(targets), np.zeros((n_columns, targets.shape[1]), dtype=np.float32))
            )
        if want_weights:
            for piece in pieces:
                piece.add_to(results[-1].weights, 1.0 / n_folds)
        del pieces
        own = own_rows[fold]
        results[-1].scores[own] = scores[: len(own)]
        results[-1].scores[known] += scores[len(own) :] / np.float32(n_folds)
    return results


def leaf_groups(taxonomy: Taxonomy, many: int = _MANY_LEAVES) -> tuple[npt.NDArray[np.int64], ...]:
    """The leaves below each of a few nodes, as positions; nothing where leaves are few or the tree is flat.

    The nodes are found from the root down, the largest being replaced by its children, until neither they nor
    the leaves below one of them are many.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([(a, a + b) for a in "abcd" for b in "stuvw"])
    >>> [group.tolist() for group in leaf_groups(tree, many=10)][:2], leaf_groups(tree)
    ([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], ())
    """
    if taxonomy.n_leaves <= many:
        return ()
    size = taxonomy.leaf_counts.tolist()
    nodes, enough = list(taxonomy.children[0]), 2 * float(np.sqrt(taxonomy.n_leaves))
    while len(nodes) < enough:
        # A group that falls into single leaves is none.
        wide = [node for node in nodes if size[node] > max(enough, len(taxonomy.children[node]))]
        if not wide:
            break
        place = nodes.index(max(wide, key=size.__getitem__))
        nodes[place : place + 1] = taxonomy.children[nodes[place]]
    if len(nodes) + max(size[node] for node in nodes) > taxonomy.n_leaves / 2:
        return ()
    return tuple(taxonomy.positions_under(node) for node in nodes)
