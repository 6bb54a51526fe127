"""Drawing document vectors and words: the sampler is tested against the distribution it should have."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive
from scipy.stats import chi2, chisquare

from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.synthesis import SyntheticDocuments, nearest_words, synthesize
from himecat.paper.vmf import estimate_concentration, sample_vmf

Float32 = npt.NDArray[np.float32]

few = settings(max_examples=40, deadline=None, derandomize=True)
# Draws are fixed by their seed; a right sampler would fail one of these bounds about once in 10,000 seeds.
SURE = 1e-4
N = 20_000


def unit_rows(n: int, p: int, seed: int = 0) -> Float32:
    rows = np.random.default_rng(seed).standard_normal((n, p))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def mean_cosine(p: int, kappa: float) -> float:
    """The Bessel ratio I_{p/2}(kappa) / I_{p/2-1}(kappa): the mean resultant length of a vMF."""
    return float(ive(p / 2, kappa) / ive(p / 2 - 1, kappa))


# -- von Mises-Fisher ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "kappa"), [(2, 3.0), (3, 5.0), (3, 0.5), (10, 20.0), (100, 150.0), (100, 2000.0)]
)
def test_draws_lie_around_the_mean_as_the_distribution_says(p: int, kappa: float) -> None:
    mean = unit_rows(1, p, seed=p)[0].astype(np.float64)
    draws = sample_vmf(mean, kappa, N, np.random.default_rng(1)).astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(draws, axis=1), 1.0, atol=1e-5)
    cosines = draws @ mean
    ratio = mean_cosine(p, kappa)
    variance = 1 - ratio**2 - (p - 1) / kappa * ratio
    # Five standard errors, of the mean and (for tails no heavier than normal ones) of the variance.
    assert abs(cosines.mean() - ratio) < 5 * np.sqrt(variance / N)
    assert abs(cosines.var() / variance - 1) < 5 * np.sqrt(8 / N)
    resultant = draws.mean(axis=0)
    assert np.linalg.norm(resultant) == pytest.approx(ratio, abs=5 * np.sqrt(variance / N) + 1e-3)
    assert resultant @ mean / np.linalg.norm(resultant) > 0.999


@pytest.mark.parametrize(("p", "kappa"), [(3, 5.0), (10, 20.0), (100, 150.0)])
def test_no_direction_around_the_mean_is_preferred(p: int, kappa: float) -> None:
    mean = unit_rows(1, p, seed=p)[0].astype(np.float64)
    draws = sample_vmf(mean, kappa, N, np.random.default_rng(2)).astype(np.float64)
    # Coordinates in the tangent space of the mean, scaled to length 1: uniform on a sphere of p - 1 dimensions.
    basis = np.linalg.qr(np.column_stack([mean, np.eye(p)[:, : p - 1]]))[0][:, 1:]
    tangent = draws @ basis
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    assert N * (p - 1) * (tangent.mean(axis=0) ** 2).sum() < chi2.isf(SURE, p - 1)
    second = tangent.T @ tangent / N * (p - 1)
    worst = np.abs(second - np.eye(p - 1)).max()
    assert worst < 6 * np.sqrt(2 / N)


@pytest.mark.parametrize("p", [3, 10, 100])
def test_without_concentration_the_draws_are_uniform(p: int) -> None:
    draws = sample_vmf(np.eye(p)[0], 1e-6, N, np.random.default_rng(3)).astype(np.float64)
    assert N * p * (draws.mean(axis=0) ** 2).sum() < chi2.isf(SURE, p)
    # The cosine with the mean direction is as often above 0 as below, and as spread as any coordinate.
    assert abs((draws[:, 0] > 0).mean() - 0.5) < 4 / np.sqrt(4 * N)
    assert draws[:, 0].var() == pytest.approx(1 / p, rel=0.05)


@pytest.mark.parametrize("p", [2, 3, 16, 300])
def test_extreme_concentrations_and_sizes(p: int) -> None:
    mean = 7 * np.eye(p)[1]
    close = sample_vmf(mean, 1e6, 20, np.random.default_rng(0))
    assert close.dtype == np.float32
    assert (close[:, 1] > 0.999).all()
    assert sample_vmf(mean, 10.0, 1, np.random.default_rng(0)).shape == (1, p)
    assert sample_vmf(mean, 10.0, 0, np.random.default_rng(0)).shape == (0, p)


def test_draws_depend_on_the_generator_alone() -> None:
    one, same, other = (sample_vmf(np.eye(5)[0], 9.0, 8, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one.tobytes() == same.tobytes() != other.tobytes()


@pytest.mark.parametrize(("p", "kappa"), [(3, 5.0), (10, 20.0), (100, 150.0), (100, 1000.0)])
def test_the_concentration_is_found_again(p: int, kappa: float) -> None:
    draws = sample_vmf(unit_rows(1, p)[0], kappa, N, np.random.default_rng(4))
    assert estimate_concentration(draws) == pytest.approx(kappa, rel=0.06)


def test_the_concentration_of_equal_vectors_is_large_and_finite() -> None:
    assert 1e6 < estimate_concentration(np.tile(np.eye(4)[0], (3, 1))) < np.inf
    assert estimate_concentration(np.array([[1.0, 0.0], [-1.0, 0.0]])) == 0.0


# -- neighbourhoods ------------------------------------------------------------------------------------


@few
@given(
    n_words=st.integers(1, 30),
    n_vectors=st.integers(0, 9),
    count=st.integers(1, 40),
    seed=st.integers(0, 999),
)
def test_the_nearest_words_are_found(n_words: int, n_vectors: int, count: int, seed: int) -> None:
    vectors, words = unit_rows(n_vectors, 6, seed), unit_rows(n_words, 6, seed + 1)
    ids, cosines = nearest_words(vectors, words, count)
    expected = np.argsort(-(vectors @ words.T), axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_allclose(cosines, np.take_along_axis(vectors @ words.T, expected, axis=1), atol=1e-6)


def test_equally_near_words_come_by_their_number() -> None:
    words = np.tile(np.eye(2, dtype=np.float32), (4, 1))
    ids, _ = nearest_words(np.eye(2, dtype=np.float32), words, 4)
    assert ids.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_many_vectors_are_compared_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, words = unit_rows(23, 5), unit_rows(40, 5, 1)
    whole = nearest_words(vectors, words, 6)
    monkeypatch.setattr("himecat.paper.synthesis._CHUNK", 4)
    parts = nearest_words(vectors, words, 6)
    assert np.array_equal(whole[0], parts[0])


# -- documents -----------------------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> Taxonomy:
    """Ragged trees with one-child nodes."""
    parents = [-1, 0]
    for _ in range(draw(st.integers(0, 12))):
        parents.append(draw(st.integers(0, len(parents) - 1)))
    nested: list[dict[str, Any]] = [{} for _ in parents]
    for node, parent in enumerate(parents[1:], start=1):
        nested[parent][f"n{node}"] = nested[node]
    return Taxonomy.from_children(nested[0])


def made_for(tree: Taxonomy, beta: int, seed: int = 0, **options: Any) -> SyntheticDocuments:
    labels, words = unit_rows(len(tree), 6, seed), unit_rows(25, 6, seed + 1)
    return synthesize(tree, labels, words, beta=beta, seed=seed, **({"length": 4, "neighbours": 5} | options))


def check_members(tree: Taxonomy, made: SyntheticDocuments, beta: int) -> None:
    """Beta documents for each category; those of an inner one come evenly from its children."""
    assert set(made.members) == set(range(1, len(tree)))
    assert len(made.documents) == beta * tree.n_leaves
    for node, rows in made.members.items():
        assert len(rows) == len(set(rows.tolist())) == beta
        children = tree.children[node]
        if not children:
            continue
        shares = [len(np.intersect1d(rows, made.members[child])) for child in children]
        assert sum(shares) == beta
        assert set(shares) <= {beta // len(children), -(-beta // len(children))}
        leaves = np.concatenate([made.members[leaf] for leaf in tree.leaves_under(node)])
        assert np.isin(rows, leaves).all()
    leaf_rows = np.concatenate([made.members[leaf] for leaf in tree.leaves])
    assert sorted(leaf_rows.tolist()) == list(range(len(made.documents)))


@few
@given(tree=trees(), beta=st.integers(0, 13), seed=st.integers(0, 999))
def test_every_category_gets_exactly_beta_documents(tree: Taxonomy, beta: int, seed: int) -> None:
    made = made_for(tree, beta, seed)
    check_members(tree, made, beta)
    assert (made.documents.lengths == 4).all()
    for node in range(1, len(tree)):
        assert len(made.of(node)) == beta


@pytest.mark.parametrize("beta", [0, 1, 2, 10, 11])
def test_more_children_than_documents(beta: int) -> None:
    tree = Taxonomy.from_children({"a": {f"c{i}": {} for i in range(7)}, "b": {"only": {"end": {}}}})
    check_members(tree, made_for(tree, beta), beta)


def test_the_child_that_gives_one_more_is_drawn() -> None:
    tree = Taxonomy.from_children({"a": {f"c{i}": {} for i in range(4)}})
    givers = {int(made_for(tree, 1, seed).members[1][0]) for seed in range(40)}
    assert givers == {0, 1, 2, 3}


def test_an_inner_category_takes_a_random_part_of_its_children() -> None:
    tree = Taxonomy.from_children({"a": {"x": {}, "y": {}}})
    rows = made_for(tree, 40).members[1]
    assert not np.array_equal(np.sort(rows), np.concatenate([np.arange(20), np.arange(40, 60)]))
    assert not np.array_equal(rows, made_for(tree, 40, seed=1).members[1])


def test_words_come_from_the_neighbourhood_of_the_document() -> None:
    """With a vMF of almost no spread the document vector is the label's, and its neighbours are known."""
    tree = Taxonomy.from_children({"a": {}, "b": {}})
    labels, words = unit_rows(3, 6), unit_rows(50, 6, 1)
    made = synthesize(tree, labels, words, beta=30, length=40, concentration=1e6, neighbours=4)
    for leaf in tree.leaves:
        near, _ = nearest_words(labels[leaf : leaf + 1], words, 6)
        found = set(made.of(leaf).values.tolist())
        # Six, not four: the vector is not quite the label's, so that the last neighbours may change places.
        assert found <= set(near[0].tolist())
        assert set(near[0, :3].tolist()) <= found


def test_no_document_uses_more_words_than_it_has_neighbours() -> None:
    tree = Taxonomy.from_children({"a": {}, "b": {}})
    made = made_for(tree, 50, length=200, concentration=5.0, neighbours=3)
    distinct = [len(set(made.documents[row].tolist())) for row in range(len(made.documents))]
    assert set(distinct) == {3}
    # Every document has a vector of its own, so that together they use more.
    assert len(set(made.of(1).values.tolist())) > 6


def test_leaves_do_not_share_their_chance() -> None:
    tree = Taxonomy.from_children({"a": {}, "b": {}})
    labels = np.tile(unit_rows(1, 6), (3, 1))
    made = synthesize(tree, labels, unit_rows(25, 6, 1), beta=10, length=20, concentration=20.0)
    assert not np.array_equal(made.of(1).values, made.of(2).values)


def test_words_are_drawn_by_the_softmax_of_their_dot_products() -> None:
    tree = Taxonomy.from_children({"a": {}, "b": {}})
    labels = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0]], dtype=np.float32)
    angles = np.array([0.2, -0.9, 1.4, 2.0, 2.8])
    words = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    made = synthesize(tree, labels, words, beta=100, length=400, concentration=1e6, neighbours=4)
    counts = np.bincount(made.of(1).values, minlength=5)
    assert counts[4] == 0
    odds = np.exp(words[:4, 0].astype(np.float64))
    _, probability = chisquare(counts[:4], odds / odds.sum() * counts.sum())
    assert probability > SURE


def test_a_neighbourhood_larger_than_the_vocabulary_is_the_vocabulary() -> None:
    tree = Taxonomy.from_children({"a": {}, "b": {}})
    made = made_for(tree, 20, length=300, neighbours=1000)
    assert set(made.documents.values.tolist()) == set(range(25))


def test_the_documents_of_a_leaf_differ() -> None:
    tree = Taxonomy.from_children({"a": {}, "b": {}})
    made = made_for(tree, 20, length=30, concentration=20.0)
    assert len({made.documents[row].tobytes() for row in range(40)}) == 40


def test_threads_change_nothing_and_the_seed_everything() -> None:
    tree = Taxonomy.from_children({"a": {f"c{i}": {} for i in range(5)}, "b": {"x": {}, "y": {}}, "c": {}})
    told: list[int] = []
    one = made_for(tree, 21, threads=1, advance=told.append)
    two = made_for(tree, 21, threads=2)
    labels, words = unit_rows(len(tree), 6, 0), unit_rows(25, 6, 1)
    other = synthesize(tree, labels, words, beta=21, length=4, neighbours=5, seed=9)
    assert one.documents.values.tobytes() == two.documents.values.tobytes()
    assert all(np.array_equal(one.members[node], two.members[node]) for node in one.members)
    assert one.documents.values.tobytes() != other.documents.values.tobytes()
    assert sum(told) == tree.n_leaves


def test_a_document_has_at_least_one_word() -> None:
    made = made_for(Taxonomy.from_children({"a": {}, "b": {}}), 3, length=0)
    assert made.documents.lengths.tolist() == [1] * 6


def test_without_words_there_are_no_documents() -> None:
    tree = Taxonomy.from_children({"a": {}, "b": {}})
    made = synthesize(tree, unit_rows(3, 4), np.zeros((0, 4), dtype=np.float32), beta=5)
    assert len(made.of(1)) == len(made.documents) == 0


def test_a_label_without_a_direction_gives_any() -> None:
    from himecat.paper.vmf import sample_vmf

    draws = sample_vmf(np.zeros(4, dtype=np.float32), 100.0, 2_000, np.random.default_rng(0))
    assert np.allclose(np.linalg.norm(draws, axis=1), 1, atol=1e-5)
    assert np.abs(draws.mean(axis=0)).max() < 0.05
