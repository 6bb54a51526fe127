"""How probable it is that a document belongs to none of the categories.

Two things speak for it. The document is *strange*: nothing among the documents of the fit is like it. Or the tree
*lacks* its category: documents like it are many, and no labelled document explains them. Both are read off a sample of
the documents of the fit, the references, and turned into probabilities by leaving out categories of the user's own
tree in turn. Documents labelled `none` are a third sign: how like them a document is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.unexplained import Pile, Positions, Seeds, neighbours
from himecat.input.corpus import Corpus, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.solvers import minimize_lbfgs, sigmoid
from himecat.views.base import State
from himecat.views.combined import Views
from himecat.views.matrices import check_shapes

FloatArray = npt.NDArray[np.float32]

# References beside the labelled documents, and of those the most that are kept.
_REFERENCES, _MOST_LABELLED = 3_000, 2_000
# Of its neighbours, those whose similarity says whether a document is strange.
_NEAREST = 5
# Categories of the first level, and leaves, that are left out in turn, and the share of the other labels held out.
_LEFT_OUT, _HELD_OUT = 6, 0.2
# Cells of references x leaves per round beyond which there are fewer rounds.
_CELLS = 6_000_000
# With fewer labelled documents nothing is left out.
_FEWEST = 20
# Slope and offset where nothing can be left out, and the strength of the prior at them in documents.
_SLOPES = {"lacking": (1.0, -1.0), "strange": (1.5, -2.0), "taught": (1.5, -1.5)}
_PRIOR = 10.0
# Bounds of the share of documents that belong nowhere, for each sign.
_SHARES = {"lacking": (0.02, 0.5), "strange": (0.02, 0.02), "taught": (0.02, 0.5)}


class _Sign(NamedTuple):
    """From a sign to a probability: mean and deviation among the references, slope and offset."""

    mean: float
    deviation: float
    slope: float
    offset: float

    def probability(self, found: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        return sigmoid((found.astype(np.float64) - self.mean) / self.deviation * self.slope + self.offset)


@dataclass(frozen=True)
class Nowhere:
    """What a model knows of documents that belong to none of its categories.

    Attributes
    ----------
    references : array of shape (references, dimension)
        Smoothed directions of documents of the fit.
    values : array of shape (references, 1 or 2)
        How badly labelled documents explain each, and how like those labelled `none` it is, where there are any.
    signs : mapping of str to (float, float, float, float)
        For each sign mean, deviation, slope and offset.

    Examples
    --------
    >>> from himecat.views.matrices import unit
    >>> known = np.eye(2, dtype=np.float32)
    >>> model = Nowhere(known, np.zeros((2, 1), np.float32), {"strange": _Sign(-1.0, 0.1, 1.0, -2.0)})
    >>> model.probabilities(unit(np.array([[1.0, 0.1], [-1.0, -1.0]])), np.ones(2)).round(2).tolist()
    [0.1..., 1.0]
    """

    references: FloatArray
    values: FloatArray
    signs: Mapping[str, _Sign]

    def probabilities(self, directions: FloatArray, familiar: npt.NDArray[np.floating]) -> FloatArray:
        """The probability of belonging nowhere, given smoothed directions and the share of familiar words."""
        near, similar = neighbours(directions, self.references)
        signs = {"strange": _strange(similar, familiar)}
        signs |= zip(("lacking", "taught"), self.values[near].mean(axis=1).T, strict=False)
        inside = np.ones(len(directions))
        for name, sign in self.signs.items():
            inside *= 1 - sign.probability(signs[name])
        return np.asarray(1 - inside, dtype=np.float32)

    def state(self) -> State:
        """What a model folder keeps; references in half precision, which they were rounded to."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "references": self.references.astype(np.float16),
            "values": self.values,
        }
        return {name: list(sign) for name, sign in self.signs.items()}, arrays

    @classmethod
    def from_state(
        cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], dimension: int
    ) -> Self:
        """The same again; raises a ValueError where parts do not fit."""
        signs = {name: _Sign(*map(float, sign)) for name, sign in settings.items()}
        values = arrays["values"]
        if not np.isfinite(list(signs.values())).all() or not {*signs} <= {*_SLOPES}:
            raise ValueError("'nowhere' holds what is not a number")
        shape = (len(values), dimension)
        check_shapes({"nowhere/references": (arrays["references"], shape)})
        if values.ndim != 2 or values.shape[1] < len(signs) - 1:
            raise ValueError("'nowhere' has not a value for each reference")
        return cls(arrays["references"].astype(np.float32), values, signs)


def familiarity(views: Views, corpus: Corpus) -> FloatArray:
    """How much of each document is in known words, where unknown ones weigh as much as the rarest known.

    It counts as far as words make up the directions: an encoder reads words that the vocabulary does not have.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> from himecat.views.combined import learn_views
    >>> from himecat.views.metadata import MetadataView
    >>> from himecat.views.words import WordsView
    >>> corpus = read_corpus(["a red fox", "a red hen", "red a"], min_count=2)
    >>> views, _ = learn_views([WordsView(dimension=2), MetadataView()], corpus)
    >>> familiarity(views, corpus).round(2).tolist()
    [0.81..., 0.81..., 1.0]
    """
    idf = np.asarray(views["words"].idf, dtype=np.float64)
    found = np.ones(len(corpus))
    if corpus.unknown is None or not len(idf):
        return found.astype(np.float32)
    known = np.bincount(corpus.tokens.row_of_value, (idf**2)[corpus.tokens.values], minlength=len(corpus))
    total = known + corpus.unknown * idf.max() ** 2
    np.sqrt(known / np.maximum(total, 1e-9), out=found, where=total > 0)
    lengths = {name: weight**2 for name, weight in views.weights.items()}
    share = sum(lengths.get(name, 0.0) for name in ("words", "topics")) / max(sum(lengths.values()), 1e-9)
    return np.asarray(1 - share * (1 - found), dtype=np.float32)


def learn_nowhere(
    taxonomy: Taxonomy,
    directions: FloatArray,
    familiar: FloatArray,
    supervision: Supervision,
    seeds: Seeds,
    *,
    seed: int = 0,
) -> Nowhere | None:
    """Learn from the documents of a fit; None where none of them has a label.

    Parameters
    ----------
    directions : array
        Smoothed directions of all documents.
    familiar : array
        What `familiarity` gives for them.
    seeds : tuple of array
        Summed directions of the leaves' names and keywords, and how many documents they count as.

    Examples
    --------
    >>> from himecat.views.matrices import unit
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> rows = unit(np.array([[1, 0.1, 0]] * 30 + [[0.1, 1, 0]] * 30 + [[0, 0.1, 1]] * 30))
    >>> few = Supervision(np.array([0, 30]), np.array([1, 2]))
    >>> none = np.zeros((2, 3), np.float32), np.zeros(2, np.float32)
    >>> found = learn_nowhere(tree, rows, np.ones(90, np.float32), few, none)
    >>> odd, usual = found.probabilities(unit(np.array([[0.0, 0, 1], [1, 0, 0]])), np.ones(2)).tolist()
    >>> odd > usual
    True
    """
    rng = np.random.default_rng([seed, 5])
    leaf_of = taxonomy.leaf_position[supervision.nodes]
    labelled = supervision.rows[leaf_of >= 0]
    leaves = leaf_of[leaf_of >= 0]
    if not len(labelled):
        return None
    if len(labelled) > _MOST_LABELLED:
        some = np.sort(rng.choice(len(labelled), _MOST_LABELLED, replace=False))
        labelled, leaves = labelled[some], leaves[some]
    taught = np.setdiff1d(supervision.nowhere, labelled)
    others = np.setdiff1d(np.arange(len(directions)), np.concatenate([labelled, taught]))
    if len(others) > _REFERENCES:
        others = np.sort(rng.choice(others, _REFERENCES, replace=False))
    rows = np.concatenate([labelled, taught, others])
    # Rounded as a model folder keeps them.
    references = directions[rows].astype(np.float16).astype(np.float32)
    pile = Pile(references, leaves, seeds)
    everything = np.arange(len(labelled))
    parts = pile.unexplained(everything, np.arange(taxonomy.n_leaves))
    scale = 1 / np.maximum(pile.averaged(parts).std(axis=0), 1e-6)
    values = [parts @ scale]
    signs = {"lacking": pile.averaged(values[0]), "strange": _strange(pile.similar, familiar[rows])}
    examples = _simulated(taxonomy, pile, signs["strange"], scale, rng)
    if len(taught):
        at = np.arange(len(labelled), len(labelled) + len(taught))
        values.append(pile.likeness(at))
        signs["taught"] = pile.averaged(values[1])
        examples["taught"] = _Examples(signs["taught"][everything], signs["taught"][at], pile.sizes())
    found = {}
    for name, sign in signs.items():
        mean, deviation = float(sign.mean()), max(float(sign.std()), 1e-6)
        given = examples[name]
        slope, offset = _platt(
            (given.inside - mean) / deviation,
            (given.outside - mean) / deviation,
            given.weights,
            *_SLOPES[name],
        )
        even = _Sign(mean, deviation, slope, offset)
        share = _share(even, given, sign[len(labelled) :], *_SHARES[name])
        found[name] = even._replace(offset=offset + float(np.log(share / (1 - share))))
    return Nowhere(references, np.stack(values, axis=1).astype(np.float32), found)


class _Examples(NamedTuple):
    """A sign's values among documents inside and outside the tree, and how much each of the first counts."""

    inside: FloatArray
    outside: FloatArray
    weights: FloatArray


def _simulated(
    taxonomy: Taxonomy, pile: Pile, strange: FloatArray, scale: FloatArray, rng: np.random.Generator
) -> dict[str, _Examples]:
    """For each sign its values among labelled documents inside the tree, and outside a tree made smaller."""
    sizes = pile.sizes()
    leaves, everything = pile.leaves, np.arange(len(pile.leaves))
    inside: list[FloatArray] = []
    weights: list[FloatArray] = []
    outside: list[FloatArray] = []
    outside_strange: list[FloatArray] = []
    for gone in _left_out(taxonomy, leaves, len(pile.references), rng):
        away = np.isin(leaves, gone)
        held = ~away & (rng.random(len(leaves)) < _HELD_OUT)
        kept = np.setdiff1d(np.arange(taxonomy.n_leaves), gone)
        found = pile.averaged(pile.unexplained(np.flatnonzero(~away & ~held), kept) @ scale)
        inside.append(found[everything[held]])
        weights.append(sizes[held])
        outside.append(found[everything[away]])
        # Strange are documents of a category none of whose documents is in the pile.
        rest = pile.references[~np.isin(pile.placed, gone)]
        if len(rest) > _NEAREST:
            _, similar = neighbours(pile.references[everything[away]], rest)
            outside_strange.append(_strange(similar, np.ones(int(away.sum()))))
    none = np.zeros(0, dtype=np.float32)
    return {
        "lacking": _Examples(*(np.concatenate([none, *parts]) for parts in (inside, outside, weights))),
        "strange": _Examples(strange[: len(leaves)], np.concatenate([none, *outside_strange]), sizes),
    }


def _left_out(
    taxonomy: Taxonomy, leaves: Positions, n_references: int, rng: np.random.Generator
) -> Iterator[Positions]:
    """The leaves of categories to leave out in turn, of the first level and at the bottom."""
    present = np.unique(leaves)
    if len(leaves) < _FEWEST or len(present) < 3:
        return
    most = max(1, min(_LEFT_OUT, _CELLS // max(1, n_references * taxonomy.n_leaves)))
    first = [np.intersect1d(taxonomy.positions_under(node), present) for node in taxonomy.children[0]]
    wide = [one for one in first if 1 < len(one) <= len(present) - 2]
    for groups in (wide, [present[place : place + 1] for place in range(len(present))]):
        for place in np.sort(rng.permutation(len(groups))[:most]).tolist():
            yield groups[place]


def _strange(similar: FloatArray, familiar: npt.NDArray[np.floating]) -> FloatArray:
    return np.asarray(-familiar * similar[:, :_NEAREST].mean(axis=1), dtype=np.float32)


def _platt(
    inside: FloatArray, outside: FloatArray, counted: FloatArray, slope: float, offset: float
) -> tuple[float, float]:
    """Slope and offset of the log-odds of being outside, where both are equally frequent."""
    if not len(inside) or not len(outside):
        return slope, offset
    values = np.concatenate([inside, outside]).astype(np.float64)
    target = np.repeat([0.0, 1.0], [len(inside), len(outside)])
    half = min(len(inside), len(outside))
    weights = half * np.concatenate([counted / counted.sum(), np.full(len(outside), 1 / len(outside))])

    def loss(point: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        steep, away = float(np.exp(point[0])), point - [np.log(slope), offset]
        logits = steep * values + point[1]
        off = weights * (sigmoid(logits) - target)
        total = (weights * (np.logaddexp(0, logits) - target * logits)).sum() + _PRIOR * (away**2).sum() / 2
        return float(total), np.array([steep * (off @ values), off.sum()]) + _PRIOR * away

    found = minimize_lbfgs(loss, [float(np.log(slope)), offset], tolerance=1e-6)
    return float(np.exp(np.clip(found[0], -3, 3))), float(found[1])


def _share(even: _Sign, given: _Examples, sign: FloatArray, least: float, most: float) -> float:
    """The share of unlabelled documents outside: what they have more of the sign than those inside (adjusted count)."""
    if not len(given.inside) or not len(given.outside) or not len(sign):
        return least
    inside = float(np.average(even.probability(given.inside), weights=given.weights))
    outside, among = (float(even.probability(one).mean()) for one in (given.outside, sign))
    return float(np.clip((among - inside) / max(outside - inside, 0.1), least, most))
