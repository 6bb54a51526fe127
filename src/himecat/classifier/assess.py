"""How good a fit probably is.

What is known of the accuracy comes from labelled documents that were held out in turn. The calibration has learned
from them how sure the classifier may be, so that its mean confidence in the unlabelled documents is an estimate of its
accuracy there; how many documents were held out says how far that estimate can be off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import assign, rows_at_once
from himecat.classifier.calibration import Calibration
from himecat.classifier.learned import HeldOut
from himecat.classifier.quality import Confusion, LeafQuality, LevelQuality, Quality, Suspect
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy

FloatArray = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

MAX_PILE = 12_000
"""Unlabelled documents that are looked at; a larger pile is sampled."""
# Where fewer documents are unlabelled, the labelled ones stand for them.
_SMALL_PILE = 20
# Quantile of the normal distribution: intervals hold the truth with a probability of 90 %.
_WIDTH = 1.645
# However many documents are held out, what they say about the pile is no better than what so many would: they were
# chosen by a person, leaf by leaf, and the classifiers that they test had fewer labels. This and the next three were
# chosen on some draws of four corpora; benchmarks/quality.py shows how they hold on other draws.
_MOST_STRENGTH = 300.0
# As many held-out documents would tell as much about one leaf as the calibration of all leaves does; a leaf with hardly
# any label of its own is known less well.
_LEAF_STRENGTH, _WITHOUT_LABELS = 7, 2
# Documents of the overall precision that are added to those of a leaf.
_SHRINKAGE = 5.0
# How much the confusions of held-out documents count beside those that probabilities of the pile expect.
_HELD_OUT_SHARE = 0.1
# Most pairs that are named, and leaves that a document is thought to be confused with.
_MOST_PAIRS, _ALTERNATIVES = 20, 5
# A label is in doubt where another leaf is so much more probable, as a logarithm: to a classifier that did not know it
# and, with this weight, to the one that learned from it.
_DOUBT, _FINAL_WEIGHT = 3.0, 0.3


def assess(
    taxonomy: Taxonomy,
    calibration: Calibration,
    scores: Callable[[Positions], FloatArray],
    n_documents: int,
    supervision: Supervision,
    held_out: HeldOut,
    log_prior: FloatArray,
    ids: Sequence[str],
    seed: int = 0,
) -> Quality:
    """Estimate how good a fit is.

    Parameters
    ----------
    scores : callable
        The leaf scores of the final classifier for rows of documents.
    held_out : HeldOut
        Labelled documents with the scores of classifiers that did not know their labels.
    log_prior : array
        Logarithms of the label prior.
    ids : sequence of str
        The ids of all documents.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> few = Supervision(np.arange(40), np.tile([1, 2], 20))
    >>> sure = np.tile(np.array([[4.0, 0.0], [0.0, 4.0]], np.float32), (20, 1))
    >>> sure[0] = [0.0, 4.0]
    >>> found = assess(tree, Calibration(1.0, ((1.0, 0.0),)), lambda rows: sure[rows % 40], 100, few,
    ...                HeldOut(np.arange(40), sure, 40), np.zeros(2, np.float32), [str(i) for i in range(100)])
    >>> found.levels[0].low < found.levels[0].accuracy < found.levels[0].high
    True
    >>> [(one.id, one.label, one.suggested) for one in found.suspects]
    [('0', ('a',), ('b',))]
    """
    leaves = taxonomy.leaf_position[supervision.nodes]
    pile = pile_rows(supervision, n_documents, seed)
    size = rows_at_once(len(taxonomy), 2048)
    parts = [
        _look_at(taxonomy, calibration.probabilities(taxonomy, scores(pile[first : first + size])))
        for first in range(0, len(pile), size)
    ]
    looked = Looked(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    found = judge(taxonomy, calibration, scores, supervision, held_out, log_prior, ids)
    return summed_up(taxonomy, looked, leaves, found, found.reached)


class Looked(NamedTuple):
    """What the final classifier says of a pile.

    Attributes
    ----------
    chosen : array
        The position of each document's leaf.
    confidence : array of shape (documents, depth)
        The probability of its path at each level.
    sure : array
        That of the leaf.
    others, shares : arrays of shape (documents, n)
        Positions of other leaves, and their probabilities; 0 for the chosen one.
    """

    chosen: Positions
    confidence: FloatArray
    sure: FloatArray
    others: Positions
    shares: FloatArray


class Judged(NamedTuple):
    """What the labelled documents that were held out say.

    Attributes
    ----------
    rows : array
        The documents.
    chosen, truth : arrays
        Positions of the leaves that they were given while their labels were not known, and of their own.
    reached : list of float
        The share of right categories at each level.
    strength : float
        As good as how many documents those of the calibration are, because some count more than others.
    suspects : tuple of Suspect
        Labels in doubt, the most doubtful first.
    """

    rows: Positions
    chosen: Positions
    truth: Positions
    reached: list[float]
    strength: float
    suspects: tuple[Suspect, ...]


def pile_rows(supervision: Supervision, n_documents: int, seed: int = 0) -> Positions:
    """The unlabelled documents to look at; the labelled ones where hardly any is unlabelled."""
    pile = np.setdiff1d(np.arange(n_documents), supervision.rows)
    if len(pile) > MAX_PILE:
        pile = np.sort(np.random.default_rng(seed).choice(pile, MAX_PILE, replace=False))
    return pile if len(pile) >= _SMALL_PILE else np.unique(supervision.rows)


def judge(
    taxonomy: Taxonomy,
    calibration: Calibration,
    scores: Callable[[Positions], FloatArray],
    supervision: Supervision,
    held_out: HeldOut,
    log_prior: FloatArray,
    ids: Sequence[str],
) -> Judged:
    """Compare held-out documents with their labels; the parameters are those of `assess`."""
    rows = supervision.rows[held_out.positions]
    own, final = (calibration.probabilities(taxonomy, one) for one in (held_out.scores, scores(rows)))
    truth = taxonomy.leaf_position[supervision.nodes[held_out.positions]]
    # Held-out documents count by the prior of their leaves, which makes them as good as fewer documents.
    weights = np.exp(log_prior.astype(np.float64))[truth] / np.bincount(truth)[truth]
    learned = weights[: held_out.n_calibrating]
    return Judged(
        rows,
        own.argmax(axis=1),
        truth,
        _held_out_accuracy(taxonomy, held_out.scores.argmax(axis=1), truth, weights),
        float(learned.sum() ** 2 / (learned**2).sum()),
        _suspects(taxonomy, own, final, truth, [ids[row] for row in rows.tolist()]),
    )


def summed_up(
    taxonomy: Taxonomy,
    looked: Looked,
    leaves: Positions,
    judged: Judged,
    reached: Sequence[float],
) -> Quality:
    """The estimate, from what is said of a pile and of held-out documents.

    Parameters
    ----------
    leaves : array
        The position of each label's leaf; -1 for an inner category.
    reached : sequence of float
        The held-out accuracy at each level of this tree.
    """
    return Quality(
        len(leaves),
        len(judged.rows),
        len(looked.chosen),
        _levels(looked.confidence, reached, judged.strength),
        _leaves(
            taxonomy,
            looked.chosen,
            looked.sure,
            np.bincount(leaves[leaves >= 0], minlength=taxonomy.n_leaves),
        ),
        _confusions(taxonomy, looked.chosen, looked.others, looked.shares, judged.chosen, judged.truth),
        judged.suspects,
    )


def _look_at(taxonomy: Taxonomy, probabilities: FloatArray) -> Looked:
    """The leaf of each document, its confidence per level and at the leaf, other leaves and their probabilities."""
    chosen = probabilities.argmax(axis=1)
    count = min(_ALTERNATIVES + 1, probabilities.shape[1])
    others = np.argpartition(-probabilities, count - 1, axis=1)[:, :count]
    # The chosen leaf is no alternative to itself.
    shares = np.where(others == chosen[:, None], 0.0, np.take_along_axis(probabilities, others, axis=1))
    return Looked(
        chosen, assign(taxonomy, probabilities).confidence, probabilities.max(axis=1), others, shares
    )


def _interval(share: float, variance: float) -> tuple[float, float, float]:
    """A share and its interval, which stays between 0 and 1: it is taken on the scale of log-odds."""
    inside = min(max(share, 0.005), 0.995)
    spread = _WIDTH * float(np.sqrt(variance)) / (inside * (1 - inside))
    odds = float(np.log(inside / (1 - inside)))
    low, high = (1 / (1 + float(np.exp(-(odds + sign * spread)))) for sign in (-1, 1))
    return round(share, 4), round(low, 4), round(high, 4)


def _levels(confidence: FloatArray, held_out: Sequence[float], strength: float) -> tuple[LevelQuality, ...]:
    """From the mean confidence of the pile, and the accuracy of classifiers that had fewer labels."""
    found = []
    for level, (column, reached) in enumerate(zip(confidence.T, held_out, strict=True), start=1):
        sure = column[np.isfinite(column)].astype(np.float64)
        if len(sure):
            mean = float(sure.mean())
            # Fewer labels should do worse: where they did better, the confidence is too low, and in doubt.
            missed = max(0.0, reached - mean) / 2
            mean += missed
            variance = mean * (1 - mean) * (1 / strength + 1 / _MOST_STRENGTH + 1 / len(sure)) + missed**2
            found.append(LevelQuality(level, *_interval(mean, variance)))
    return tuple(found)


def _held_out_accuracy(
    taxonomy: Taxonomy, chosen: Positions, truth: Positions, weights: npt.NDArray[np.float64]
) -> list[float]:
    """The weighted share of right categories at each level; 0 where no document reaches it."""
    ends = np.array(taxonomy.leaves)
    given, known = taxonomy.lineage_rows(ends[chosen]), taxonomy.lineage_rows(ends[truth])
    reached = (given > 0) * weights[:, None]
    right = (reached * (given == known)).sum(axis=0)
    found: list[float] = (right / np.maximum(reached.sum(axis=0), 1e-300)).tolist()
    return found


def _leaves(
    taxonomy: Taxonomy, chosen: Positions, sure: FloatArray, labelled: npt.NDArray[np.integer]
) -> tuple[LeafQuality, ...]:
    overall = float(sure.mean(dtype=np.float64))
    placed = np.bincount(chosen, minlength=taxonomy.n_leaves).tolist()
    sums = np.bincount(chosen, sure, taxonomy.n_leaves).tolist()
    found = []
    for position, leaf in enumerate(taxonomy.leaves):
        estimate: tuple[float | None, float | None, float | None] = (None, None, None)
        if (count := placed[position]) > 0:
            mean = (sums[position] + _SHRINKAGE * overall) / (count + _SHRINKAGE)
            strength = min(_LEAF_STRENGTH, _WITHOUT_LABELS + int(labelled[position]))
            mean, low, high = _interval(mean, mean * (1 - mean) * (1 / strength + 1 / count))
            # Of so few documents only whole ones can be right.
            estimate = mean, round(np.floor(low * count) / count, 4), round(np.ceil(high * count) / count, 4)
        found.append(LeafQuality(taxonomy.path(leaf), int(labelled[position]), count, *estimate))
    return tuple(found)


def _confusions(
    taxonomy: Taxonomy,
    chosen: Positions,
    others: Positions,
    shares: FloatArray,
    held_out: Positions,
    truth: Positions,
) -> tuple[Confusion, ...]:
    """Pairs of leaves by how many documents of the pile are probably in the other one."""
    n_leaves = taxonomy.n_leaves
    width = others.shape[1]
    first = np.concatenate([np.repeat(chosen, width), held_out])
    second = np.concatenate([others.ravel(), truth])
    # A held-out document stands for many of the pile.
    each = _HELD_OUT_SHARE * len(chosen) / max(len(truth), 1)
    weights = np.concatenate([shares.ravel(), np.where(held_out == truth, 0.0, each)])
    codes, places = np.unique(
        np.minimum(first, second) * n_leaves + np.maximum(first, second), return_inverse=True
    )
    documents = np.bincount(places, weights, len(codes))
    order = np.argsort(-documents, kind="stable")[:_MOST_PAIRS]
    ends = taxonomy.leaves
    return tuple(
        Confusion(taxonomy.path(ends[one]), taxonomy.path(ends[other]), round(float(documents[place]), 1))
        for place, (one, other) in ((place, divmod(int(codes[place]), n_leaves)) for place in order.tolist())
        if documents[place] >= 0.5
    )


def _suspects(
    taxonomy: Taxonomy, held_out: FloatArray, final: FloatArray, truth: Positions, ids: Sequence[str]
) -> tuple[Suspect, ...]:
    rows = np.arange(len(truth))
    logs = np.log(np.maximum(held_out, 1e-30)) + _FINAL_WEIGHT * np.log(np.maximum(final, 1e-30))
    best = logs.argmax(axis=1)
    doubt = logs[rows, best] - logs[rows, truth]
    ends = taxonomy.leaves
    return tuple(
        Suspect(
            ids[row],
            taxonomy.path(ends[int(truth[row])]),
            taxonomy.path(ends[int(best[row])]),
            round(float(held_out[row, best[row]]), 4),
            round(float(held_out[row, truth[row]]), 4),
        )
        for row in np.argsort(-doubt, kind="stable").tolist()
        if doubt[row] > _DOUBT
    )
