"""How much each view and each opinion counts, learned from labelled documents that it did not know."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.solvers import minimize_lbfgs
from himecat.views.matrices import FloatArray, unit

Exact = npt.NDArray[np.float64]

# With fewer documents nothing is learned.
_FEWEST = 20
# Strength of the Gaussian prior on the logarithm of each weight, in documents: of opinions, which all learn from the
# same posterior, and of views.
_PRIOR, _VIEW_PRIOR = 40.0, 3.0
# That of opinions that may be worth nothing or everything, and of those that do not see a view which others see.
_FREE_PRIOR, _LOOSE_PRIOR = 2.0, 10.0
# Log-likelihood that such an opinion may seem to cost: less is chance.
_TOLERATED = 1.0
# That of the overall scale, which is all but free.
_SCALE_PRIOR = 0.5
# No weight is more than exp(this) times its usual value, or less than its inverse.
_FARTHEST = 3.0
# Documents x leaves that weights are learned from at the most.
_MOST_CELLS = 2_000_000
# Concentration at which cosines of usual views start.
_CONCENTRATION = 8.0


def stack(
    opinions: Mapping[str, FloatArray],
    leaves: npt.NDArray[np.integer],
    usual: Mapping[str, float],
    free: Collection[str] = (),
    loose: Collection[str] = (),
) -> dict[str, float]:
    """The weights under which the right leaves of held-out documents are most probable, by maximum a posteriori.

    Parameters
    ----------
    opinions : mapping of str to array
        Scores of the documents at all leaves, by opinion.
    leaves : array
        Positions of their true leaves.
    usual : mapping of str to float
        The weights that the prior is centred at.
    free, loose : collections of str
        Opinions whose prior is weak, and weaker than usual.

    Examples
    --------
    >>> truth = np.tile([0, 1], 500)
    >>> right = np.eye(2, dtype=np.float32)[truth]
    >>> noise = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
    >>> found = stack({"good": right, "bad": noise}, truth, {"good": 1.0, "bad": 1.0})
    >>> found["good"] > 3 * found["bad"]
    True
    """
    names = [name for name in opinions if usual.get(name, 0.0) > 0]
    if len(leaves) < _FEWEST:
        return {name: usual.get(name, 0.0) for name in opinions}
    n_leaves = next(iter(opinions.values())).shape[1]
    # Any of them will do: the order is that of the folds, which are random.
    some = slice(max(_FEWEST, _MOST_CELLS // n_leaves))
    leaves = np.asarray(leaves)[some]
    parts = np.stack([opinions[name][some] for name in names]).astype(np.float64)
    centre = np.log([usual[name] for name in names])
    strength = np.array(
        [_FREE_PRIOR if name in free else _LOOSE_PRIOR if name in loose else _PRIOR for name in names]
    )
    logs = _most_probable(parts, leaves, centre, strength)
    found = dict(zip(names, np.exp(logs).tolist(), strict=True))
    return {name: float(found.get(name, 0.0)) for name in opinions}


def stack_or_drop(
    opinions: Mapping[str, FloatArray],
    leaves: npt.NDArray[np.integer],
    usual: Mapping[str, float],
    free: Collection[str],
    loose: Collection[str] = (),
) -> tuple[dict[str, float], float]:
    """Weights as `stack` learns them, 0 for free opinions that make the right leaves less probable.

    Returns
    -------
    weights, gained
        The weights, and by how much the free opinions together raise the log-likelihood.

    Examples
    --------
    >>> truth = np.tile([0, 1], 50)
    >>> right = np.eye(2, dtype=np.float32)[truth]
    >>> noise = np.random.default_rng(0).normal(size=(3, 100, 2)).astype(np.float32)
    >>> opinions = {"text": right + noise[0], "good": right + noise[1], "bad": 50 * noise[2]}
    >>> found, gained = stack_or_drop(opinions, truth, dict.fromkeys(opinions, 1.0), ("good", "bad"))
    >>> found["good"] > 0.5, found["bad"], gained > 0
    (True, 0.0, True)
    """

    def fitted(names: Collection[str]) -> tuple[dict[str, float], float]:
        some = {name: part for name, part in opinions.items() if name in names}
        weights = stack(some, leaves, usual, free, loose)
        return weights, log_likelihood(some, leaves, weights)

    everything = list(opinions)
    weights, reached = fitted(everything)
    wanted = [name for name in everything if name in free]
    kept = [one for one in wanted if reached - fitted([n for n in everything if n != one])[1] > -_TOLERATED]
    plain = [name for name in everything if name not in free]
    if len(kept) < len(wanted):
        weights, reached = fitted([*plain, *kept])
    gained = reached - fitted(plain)[1] if kept else 0.0
    return {name: weights.get(name, 0.0) for name in everything}, gained


def log_likelihood(
    opinions: Mapping[str, FloatArray], leaves: npt.NDArray[np.integer], weights: Mapping[str, float]
) -> float:
    """Logarithm of the probability of the true leaves under a weighted sum of opinions.

    Examples
    --------
    >>> log_likelihood({"one": np.zeros((3, 2), np.float32)}, np.array([0, 1, 1]), {"one": 1.0})
    -2.07...
    """
    total = sum(weights[name] * part.astype(np.float64) for name, part in opinions.items())
    total -= np.logaddexp.reduce(total, axis=1, keepdims=True)
    return float(total[np.arange(len(leaves)), leaves].sum())


def _most_probable(
    parts: Exact, leaves: npt.NDArray[np.integer], centre: Exact, strength: Exact | float
) -> Exact:
    """Logarithms of the weights; the first number that is learned is a common scale."""
    rows = np.arange(len(leaves))
    chosen = parts[:, rows, leaves]

    def loss(point: Exact) -> tuple[float, Exact]:
        shift, away = point[0], point[1:]
        weights = np.exp(np.clip(centre + shift + away, -20.0, 20.0))
        total = np.tensordot(weights, parts, 1)
        total -= total.max(axis=1, keepdims=True)
        np.exp(total, out=total)
        total /= total.sum(axis=1, keepdims=True)
        value = -float(np.log(np.maximum(total[rows, leaves], 1e-300)).sum())
        value += (float((strength * away) @ away) + _SCALE_PRIOR * float(shift) ** 2) / 2
        by_weight = np.array([np.vdot(total, part) for part in parts]) - chosen.sum(axis=1)
        slope = by_weight * weights
        return value, np.concatenate([[slope.sum() + _SCALE_PRIOR * shift], slope + strength * away])

    found = minimize_lbfgs(loss, np.zeros(len(centre) + 1), tolerance=1e-4)
    return np.asarray(centre + found[0] + np.clip(found[1:], -_FARTHEST, _FARTHEST))


def view_weights(
    taxonomy: Taxonomy,
    supervision: Supervision,
    parts: Mapping[str, FloatArray],
    usual: Mapping[str, float],
    fixed: Sequence[str] = ("words", "topics"),
) -> dict[str, float]:
    """The lengths of the views' parts in a direction, by how well each tells labelled documents apart.

    A labelled document is compared, view by view, with the mean of the other documents of each leaf. The views in
    `fixed` keep their lengths relative to each other.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> few = Supervision(np.arange(40), np.repeat([1, 2], 20))
    >>> good = np.repeat(np.eye(2, dtype=np.float32), 20, axis=0)
    >>> noise = unit(np.random.default_rng(0).normal(size=(40, 2)))
    >>> found = view_weights(tree, few, {"words": good, "own": noise}, {"words": 1.0, "own": 1.0})
    >>> found["words"], found["own"] < 0.7
    (1.0, True)
    """
    free = [name for name in parts if name not in fixed]
    leaves = taxonomy.leaf_position[supervision.nodes]
    counts = np.bincount(leaves[leaves >= 0], minlength=taxonomy.n_leaves)
    # A leaf's only document has no others to be compared with.
    known = np.flatnonzero((leaves >= 0) & (counts[leaves] > 1))
    if not free or len(known) < _FEWEST:
        return dict(usual)
    rows, leaves = supervision.rows[known], leaves[known]
    used, leaves = np.unique(leaves, return_inverse=True)
    cosines = []
    for name in parts:
        own = parts[name][rows]
        sums = np.zeros((len(used), own.shape[1]), dtype=np.float32)
        np.add.at(sums, leaves, own)
        found = own @ unit(sums).T
        others = unit(sums[leaves] - own)
        found[np.arange(len(rows)), leaves] = np.einsum("ij,ij->i", others, own)
        cosines.append(found * np.float32(_CONCENTRATION * usual[name] ** 2))
    held = [place for place, name in enumerate(parts) if name in fixed]
    together = [sum(cosines[place] for place in held)] if held else []
    stacked = np.stack([*together, *(cosines[place] for place in range(len(cosines)) if place not in held)])
    logs = _most_probable(stacked.astype(np.float64), leaves, np.zeros(len(stacked)), _VIEW_PRIOR)
    relative = logs - logs[0]
    lengths = dict(usual)
    for name, one in zip(free, relative[len(together) :].tolist(), strict=True):
        lengths[name] = float(usual[name] * np.exp(one / 2))
    return lengths


def told(weights: Mapping[str, float]) -> str:
    """Weights in words.

    Examples
    --------
    >>> told({"mixture": 1.0, "text": 0.25})
    'mixture 1.00, text 0.25'
    """
    return ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items())
