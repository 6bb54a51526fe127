"""Documents go down the stages of a wide tree: only into those that they may belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import Assignments, node_probabilities
from himecat.classifier.stages import FloatArray, IntArray, Stage, stage_supervision
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy

# A stage is looked at where a document is there with at least this probability, or if no other is more probable; of
# the stages after one, at most so many.
_LEAST, _MOST = 0.02, 4
# Documents that are scored together.
ROWS = 2048

Probabilities = Callable[[int, IntArray], FloatArray]
"""Of the terminals of a stage, for the documents in some rows that are there."""
Run = Callable[[Sequence[Callable[[], Any]]], Sequence[Any]]


class Visit(NamedTuple):
    """Documents in a stage, and the probabilities of its terminals in the whole tree.

    Attributes
    ----------
    stage : int
        The number of the stage.
    rows : array
        The documents, in order.
    reached : array of shape (rows, terminals)
        Probabilities; a row sums up to that of the node where the stage begins.
    """

    stage: int
    rows: IntArray
    reached: FloatArray


class Plan:
    """A tree and its stages, and which stage begins where.

    Examples
    --------
    >>> from himecat.classifier.stages import cut
    >>> whole = Taxonomy.from_paths([(a, a + b) for a in "ab" for b in "xyz"])
    >>> plan = Plan(whole, cut(whole, most=3, few=1))
    >>> plan.after[0].tolist(), plan.stage_of.tolist()
    ([1, 2], [-1, 0, 0, 1, 1, 1, 2, 2, 2])
    """

    def __init__(self, taxonomy: Taxonomy, stages: Sequence[Stage]) -> None:
        self.taxonomy, self.stages = taxonomy, stages
        begins = {int(stage.nodes[0]): number for number, stage in enumerate(stages)}
        self.after = [
            np.array([begins.get(node, -1) for node in stage.terminals.tolist()], dtype=np.int64)
            for stage in stages
        ]
        # A node where a stage begins belongs to the stage above.
        self.stage_of = np.full(len(taxonomy), -1, dtype=np.int64)
        self.place_of = np.zeros(len(taxonomy), dtype=np.int64)
        for number, stage in enumerate(stages):
            self.stage_of[stage.nodes[1:]] = number
            self.place_of[stage.nodes[1:]] = np.arange(1, len(stage.nodes))

    def top(self, supervision: Supervision, n_documents: int) -> tuple[Taxonomy, Supervision]:
        """The tree of the first stage, and the labels in its nodes."""
        first = self.stages[0]
        own = stage_supervision(self.taxonomy, first, supervision, np.arange(n_documents))
        return first.tree, replace(own, nowhere=supervision.nowhere)

    def allowed(self, number: int, known: IntArray) -> npt.NDArray[np.bool_]:
        """Which terminals of a stage lie above or below the node that is known of each document, or are it."""
        tree, ends = self.taxonomy, self.stages[number].terminals
        start, own = tree.first_leaves[ends], tree.first_leaves[known][:, None]
        return np.asarray(
            (start < own + tree.leaf_counts[known][:, None]) & (own < start + tree.leaf_counts[ends])
        )


def walk(
    plan: Plan,
    n_documents: int,
    probabilities: Probabilities,
    run: Run,
    known: IntArray | None = None,
) -> list[Visit]:
    """All stages that documents are looked at in; one stage comes after that above it.

    Parameters
    ----------
    probabilities : callable
        Given the number of a stage and rows, the probabilities of its terminals for the documents that are there.
    run : callable
        Runs jobs that do not depend on each other, and gives their results in order.
    known : array, optional
        For each document the node that it is known to be at or below; 0 where nothing is known.
    """
    found: list[Visit] = []
    waiting = {0: (np.arange(n_documents), np.ones(n_documents, dtype=np.float32))}

    def visit(number: int, rows: IntArray, share: FloatArray) -> Visit:
        reached = probabilities(number, rows)
        if known is not None and known[rows].any():
            reached = given(reached, plan.allowed(number, known[rows]))
        return Visit(number, rows, reached * share[:, None])

    while waiting:
        jobs = [
            partial(visit, number, rows[first : first + ROWS], share[first : first + ROWS])
            for number, (rows, share) in sorted(waiting.items())
            for first in range(0, len(rows), ROWS)
        ]
        done = run(jobs)
        found += done
        waiting = {}
        parts: dict[int, list[tuple[IntArray, FloatArray]]] = {}
        for one in done:
            for number, rows, share in _followed(plan, one):
                parts.setdefault(number, []).append((rows, share))
        for number, some in parts.items():
            rows, share = (np.concatenate(part) for part in zip(*some, strict=True))
            order = np.argsort(rows, kind="stable")
            waiting[number] = rows[order], share[order]
    return found


def given(reached: FloatArray, allowed: npt.NDArray[np.bool_]) -> FloatArray:
    """Probabilities given that a document is at one of the allowed terminals.

    Examples
    --------
    >>> given(np.array([[0.5, 0.3, 0.1]], np.float32), np.array([[False, True, True]])).round(2).tolist()
    [[0.0, 0.75, 0.25]]
    """
    kept = np.where(allowed, reached, np.float32(0))
    total = kept.sum(axis=1, keepdims=True)
    even = allowed / np.maximum(allowed.sum(axis=1, keepdims=True), 1)
    return np.where(total > 0, kept / np.where(total > 0, total, 1), even).astype(np.float32)


def _followed(plan: Plan, visit: Visit) -> Iterator[tuple[int, IntArray, FloatArray]]:
    """The stages after one that its documents go on to."""
    after = plan.after[visit.stage]
    inner = np.flatnonzero(after >= 0)
    if not len(inner) or not len(visit.rows):
        return
    reached = visit.reached[:, inner]
    best = reached.argmax(axis=1)
    wanted = reached >= _LEAST
    if len(inner) > _MOST:
        limit = np.partition(reached, len(inner) - _MOST, axis=1)[:, len(inner) - _MOST]
        wanted &= reached >= limit[:, None]
    places = np.arange(len(reached))
    wanted[places, best] = reached[places, best] > 0
    for column in np.flatnonzero(wanted.any(axis=0)).tolist():
        chosen = np.flatnonzero(wanted[:, column])
        yield int(after[inner[column]]), visit.rows[chosen], reached[chosen, column]


def dense_leaves(plan: Plan, n_documents: int, visits: Sequence[Visit]) -> FloatArray:
    """Probabilities of all leaves; below where a document was not looked at, leaves share alike."""
    tree = plan.taxonomy
    found = np.zeros((n_documents, tree.n_leaves), dtype=np.float32)
    for visit in visits:
        # What a stage below says comes later, and takes the place of equal shares.
        for column, node in enumerate(plan.stages[visit.stage].terminals.tolist()):
            under = tree.positions_under(node)
            found[np.ix_(visit.rows, under)] = (visit.reached[:, column] / np.float32(len(under)))[:, None]
    return found


def place(
    plan: Plan,
    n_documents: int,
    visits: Sequence[Visit],
    min_confidence: float = 0.0,
    *,
    best: int = 0,
    none: FloatArray | None = None,
) -> Assignments:
    """What `assign` does, from the visits in place of the probabilities of all leaves."""
    tree = plan.taxonomy
    leaves, sure = _best_leaves(plan, n_documents, visits, max(1, min(best, tree.n_leaves)))
    ends = leaves[:, 0].copy()
    nodes = [node_probabilities(plan.stages[one.stage].tree, one.reached) for one in visits]
    bound = np.full(n_documents, min_confidence)
    if none is not None and min_confidence > 0:
        bound = np.where(none > 0.5, np.inf, min_confidence / np.maximum(1.0 - none, 0.5))
    below = sure[:, 0] < bound
    if below.any():
        rank = np.zeros(n_documents)
        ends[below] = 0
        for visit, at_node in zip(visits, nodes, strict=True):
            here = np.flatnonzero(below[visit.rows])
            rows, own = visit.rows[here], plan.stages[visit.stage].nodes
            probable = at_node[here, 1:]
            # Depth counts before probability, and the root is always probable enough.
            by_node = np.where(probable >= bound[rows, None], tree.depth_array[own[1:]] + probable / 2, -1.0)
            chosen = by_node.argmax(axis=1)
            reached = by_node[np.arange(len(rows)), chosen]
            better = reached > rank[rows]
            rank[rows[better]], ends[rows[better]] = reached[better], own[1:][chosen[better]]
    path = tree.lineage_rows(ends)
    confidence = np.full(path.shape, np.nan, dtype=np.float32)
    stage_of = np.where(path > 0, plan.stage_of[path], -1)
    for visit, at_node in zip(visits, nodes, strict=True):
        places, levels = np.nonzero(stage_of[visit.rows] == visit.stage)
        rows = visit.rows[places]
        confidence[rows, levels] = at_node[places, plan.place_of[path[rows, levels]]]
    found = Assignments(tree, ends, confidence, none=none)
    if best:
        found = Assignments(tree, ends, confidence, np.where(sure > 0, leaves, 0), sure, none=none)
    return found


def _best_leaves(
    plan: Plan, n_documents: int, visits: Sequence[Visit], count: int
) -> tuple[IntArray, FloatArray]:
    """The most probable leaves of each document and their probabilities, the surest first."""
    leaves = np.zeros((n_documents, count), dtype=np.int64)
    sure = np.full((n_documents, count), -1.0, dtype=np.float32)
    for visit in visits:
        ends = np.flatnonzero(plan.after[visit.stage] < 0)
        if not len(ends) or not len(visit.rows):
            continue
        nodes = plan.stages[visit.stage].terminals[ends]
        reached = visit.reached[:, ends]
        # Of equal leaves the first comes first.
        order = np.argsort(-reached, axis=1, kind="stable")[:, :count] if count > 1 else None
        chosen = reached.argmax(axis=1)[:, None] if order is None else order
        both = np.hstack([sure[visit.rows], np.take_along_axis(reached, chosen, axis=1)])
        names = np.hstack([leaves[visit.rows], nodes[chosen]])
        first = np.argsort(-both, axis=1, kind="stable")[:, :count]
        sure[visit.rows] = np.take_along_axis(both, first, axis=1)
        leaves[visit.rows] = np.take_along_axis(names, first, axis=1)
    return leaves, np.maximum(sure, 0.0)
