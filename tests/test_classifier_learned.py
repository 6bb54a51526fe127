"""The first level's part of the label prior, learned once more from final scores."""

from __future__ import annotations

import numpy as np
import pytest

from himecat.classifier.calibration import IDENTITY, Calibration
from himecat.classifier.label_prior import first_level, refine_log_prior
from himecat.classifier.learned import Learned
from himecat.classifier.locate import Correction
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.softmax import softmax

TREE = Taxonomy.from_paths([("a", one) for one in "uvw"] + [("b", one) for one in "xyz"])
GROUPS = np.array([0, 0, 0, 1, 1, 1])
# Leaves of 'a' and 'b' with four documents of 'a' for one of 'b'; within 'a' the prior is skewed, and known.
SHARES = np.array([0.4, 0.2, 0.2, 0.08, 0.06, 0.06])
KNOWN = np.array([0.25, 0.125, 0.125, 0.2, 0.15, 0.15])


def doubtful_scores(n: int, rng: np.random.Generator) -> np.ndarray:
    """Log-likelihoods of documents, whose leaves can hardly be told apart, and the first level by and large."""
    leaves = rng.choice(len(SHARES), n, p=SHARES)
    means = np.eye(6)[leaves] * 0.5 + np.eye(2)[GROUPS[leaves]] @ np.repeat(np.eye(2), 3, axis=1) * 0.6
    # Unit noise: a score of the mean's own products is the exact log-likelihood.
    seen = means + rng.normal(size=(n, 6))
    centres = np.eye(6) * 0.5 + np.eye(2)[GROUPS] @ np.repeat(np.eye(2), 3, axis=1) * 0.6
    return seen @ centres.T - (centres**2).sum(axis=1) / 2


def test_shares_of_the_first_level_are_those_of_the_documents() -> None:
    likelihood = doubtful_scores(20_000, np.random.default_rng(0))
    before = np.log(KNOWN).astype(np.float32)
    posterior = softmax(likelihood + before)
    found = softmax(refine_log_prior(before, posterior, GROUPS)[None])[0]
    # Adding up probabilities alone stops on the way from .5 to .8.
    assert posterior[:, :3].sum() / len(posterior) < 0.75
    assert found[:3].sum() == pytest.approx(0.8, abs=0.02)
    for group in (slice(0, 3), slice(3, 6)):
        within = KNOWN[group] / KNOWN[group].sum()
        np.testing.assert_allclose(found[group] / found[group].sum(), within, rtol=1e-4)


def test_without_documents_nothing_changes() -> None:
    before = np.log(KNOWN).astype(np.float32)
    found = refine_log_prior(before, np.zeros((0, 6)), GROUPS)
    np.testing.assert_allclose(found, before - before.mean(), atol=1e-6)


def test_leaves_of_the_first_level_are_one_category() -> None:
    paths = [("a", "s"), ("a", "t"), ("a", "u", "deep"), ("a", "u", "deeper"), ("b",), ("c",), ("d",)]
    tree = Taxonomy.from_paths(paths)
    found = first_level(tree)
    assert found is not None
    of_title = {tree.title(leaf): int(group) for leaf, group in zip(tree.leaves, found, strict=True)}
    assert len({of_title[name] for name in "bcd"}) == 1
    assert len({group for title, group in of_title.items() if title.startswith("a/")}) == 1
    assert of_title["b"] != of_title["a/s"]
    # Nearly flat: five categories of two leaves are hardly better known than their leaves.
    assert first_level(Taxonomy.from_paths([(one, one + end) for one in "abcde" for end in "12"])) is None
    assert first_level(Taxonomy.from_paths([("only", one) for one in "abc"])) is None


def learned(log_prior: np.ndarray | None, evenness: float = 0.0) -> Learned:
    parts: tuple[tuple[float, ...], ...] = ((1.0, evenness), (), tuple(np.log(KNOWN).tolist()))
    calibration = Calibration(1.0, (IDENTITY, IDENTITY), mixture=parts)
    return Learned(Correction(log_prior=log_prior, evenness=evenness), {}, False, calibration, None)


def test_what_is_learned_goes_into_the_correction_and_into_the_model() -> None:
    before = np.log(KNOWN).astype(np.float32)
    scores = (doubtful_scores(3_000, np.random.default_rng(1)) + before).astype(np.float32)
    few = Supervision(np.arange(6), np.array(TREE.leaves))
    seen: list[np.ndarray] = []

    def scores_of(rows: np.ndarray) -> np.ndarray:
        seen.append(rows)
        return scores[rows]

    found = learned(before).refined(TREE, scores_of, few, len(scores), seed=0)
    assert found is not None
    assert found.correction.log_prior is not None
    assert not np.isin(few.rows, seen[0]).any()
    assert softmax(found.correction.log_prior[None])[0, :3].sum() > 0.75
    assert found.calibration.mixture[2] == tuple(found.correction.log_prior.tolist())
    half = learned(before, evenness=0.5).refined(TREE, scores_of, few, len(scores), seed=0)
    assert half is not None
    assert half.correction.log_prior is not None
    moved = found.correction.log_prior - before
    np.testing.assert_allclose(half.correction.log_prior - before, moved / 2, atol=1e-5)


@pytest.mark.parametrize(
    ("log_prior", "evenness"),
    [(None, 0.0), (np.zeros(6, np.float32), 0.0), (np.log(KNOWN).astype(np.float32), 1.0)],
    ids=["not estimated", "nothing believed", "even"],
)
def test_where_the_prior_is_not_skewed_nothing_is_fitted_again(
    log_prior: np.ndarray | None, evenness: float
) -> None:
    few = Supervision(np.arange(6), np.array(TREE.leaves))
    scores = doubtful_scores(50, np.random.default_rng(2)).astype(np.float32)
    assert learned(log_prior, evenness).refined(TREE, lambda rows: scores[rows], few, 50, seed=0) is None
