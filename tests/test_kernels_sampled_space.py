"""The numba kernels against their plain twins."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from himecat.kernels import kimcnn as cnn_kernels
from himecat.kernels import sampled_space as _kernels
from oracles import sampled_space as oracle

Float32 = npt.NDArray[np.float32]

few = settings(max_examples=100, deadline=None, derandomize=True)
sizes = st.integers(1, 6)
seeds = st.integers(0, 2**32 - 1)


def unit_rows(rng: np.random.Generator, n: int, p: int) -> Float32:
    rows = rng.standard_normal((n, p))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def kernel_update(
    anchors: Float32,
    a: int,
    targets: Float32,
    t: int,
    negatives: list[int],
    margin: float,
    rate: float,
    scaled: bool,
) -> float:
    gradient = np.empty(anchors.shape[1], np.float32)
    drawn = np.array(negatives, dtype=np.int64)
    return float(
        _kernels.update_pair(
            anchors, a, targets, t, drawn, len(drawn), np.float32(margin), np.float32(rate), scaled, gradient
        )
    )


# -- one pair ------------------------------------------------------------------------------------------


@few
@given(
    p=st.integers(2, 40),
    n_anchors=sizes,
    n_targets=st.integers(2, 6),
    n_negatives=st.integers(1, 8),
    margin=st.floats(0.05, 2.0),
    rate=st.floats(0.001, 1.0),
    scaled=st.booleans(),
    seed=seeds,
)
def test_an_update_is_the_one_of_the_twin(
    p: int,
    n_anchors: int,
    n_targets: int,
    n_negatives: int,
    margin: float,
    rate: float,
    scaled: bool,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    anchors, targets = unit_rows(rng, n_anchors, p), unit_rows(rng, n_targets, p)
    a, t = int(rng.integers(n_anchors)), int(rng.integers(n_targets))
    # A negative may be drawn twice: it then moves twice.
    negatives = [(t + 1 + int(i)) % n_targets for i in rng.integers(n_targets - 1, size=n_negatives)]
    plain_anchors, plain_targets = anchors.astype(np.float64), targets.astype(np.float64)
    expected = oracle.update_pair(plain_anchors, a, plain_targets, t, negatives, margin, rate, scaled)
    found = kernel_update(anchors, a, targets, t, negatives, margin, rate, scaled)
    assert found == pytest.approx(expected, abs=3e-6)
    np.testing.assert_allclose(anchors, plain_anchors, atol=5e-6)
    np.testing.assert_allclose(targets, plain_targets, atol=5e-6)


@few
@given(
    p=st.sampled_from([8, 16, 24, 104]),
    n_targets=st.integers(6, 9),
    margin=st.floats(0.05, 2.0),
    rate=st.floats(0.001, 1.0),
    scaled=st.booleans(),
    likeness=st.sampled_from([0.0, 1.0, 3.0]),
    seed=seeds,
)
def test_an_update_of_five_negatives_is_the_one_of_the_twin(
    p: int, n_targets: int, margin: float, rate: float, scaled: bool, likeness: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    # With some likeness the cosines are far from 0: some negatives are in place and others are not.
    rows = rng.standard_normal((n_targets + 3, p)) + likeness * rng.standard_normal(p)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    anchors, targets = rows[:3].copy(), rows[3:].copy()
    a, (t, *negatives) = int(rng.integers(3)), rng.permutation(n_targets)[:6].tolist()
    plain_anchors, plain_targets = anchors.astype(np.float64), targets.astype(np.float64)
    gaps = plain_anchors[a] @ plain_targets[t] - plain_targets[negatives] @ plain_anchors[a] - margin
    # At the kink of the hinge, rounding decides.
    assume(np.abs(gaps).min() > 1e-5)
    expected = oracle.update_pair(plain_anchors, a, plain_targets, t, negatives, margin, rate, scaled)
    size = p * 4
    found = _kernels.update_five(
        anchors.ctypes.data + a * size,
        *(targets.ctypes.data + row * size for row in (t, *negatives)),
        p,
        np.float32(margin),
        np.float32(rate),
        scaled,
    )
    assert found == pytest.approx(expected, abs=3e-6)
    np.testing.assert_allclose(anchors, plain_anchors, atol=5e-6)
    np.testing.assert_allclose(targets, plain_targets, atol=5e-6)


def test_an_update_of_two_labels_works_in_one_array() -> None:
    rng = np.random.default_rng(0)
    labels = unit_rows(rng, 5, 8)
    plain = labels.astype(np.float64)
    expected = oracle.update_pair(plain, 1, plain, 0, [2, 3, 4], 2.0, 0.1, True)
    assert kernel_update(labels, 1, labels, 0, [2, 3, 4], 2.0, 0.1, True) == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(labels, plain, atol=1e-6)


def test_a_pair_in_place_moves_nothing() -> None:
    anchors, targets = np.eye(3, dtype=np.float32)[:1], np.eye(3, dtype=np.float32)
    before = targets.copy()
    assert kernel_update(anchors, 0, targets, 0, [1, 2], 0.2, 0.5, True) == 0.0
    assert np.array_equal(targets, before)
    assert np.array_equal(anchors, before[:1])


@pytest.mark.parametrize("scaled", [True, False])
def test_a_length_that_is_off_is_put_right(scaled: bool) -> None:
    """Else rounding errors would grow: a push magnifies what is left of them."""
    anchors = np.eye(4, dtype=np.float32)[:1]
    targets = unit_rows(np.random.default_rng(0), 3, 4)
    # The positive is farthest from the anchor, so that both negatives move.
    targets[:, 0] = [-0.5, 0.4, 0.6]
    targets *= np.float32(1.01) / np.linalg.norm(targets, axis=1, keepdims=True)
    kernel_update(anchors, 0, targets, 0, [1, 2], 0.2, 0.05, scaled)
    np.testing.assert_allclose(np.linalg.norm(targets.astype(np.float64), axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(anchors.astype(np.float64), axis=1), 1.0, atol=1e-6)


def test_scaled_steps_follow_the_cosines() -> None:
    """By hand: f = 0, h = 0.6; the positive is pulled by 1 - f, the negative pushed by 2h."""
    anchors = np.array([[1.0, 0.0]])
    targets = np.array([[0.0, 1.0], [0.6, 0.8]])
    assert oracle.update_pair(anchors, 0, targets, 0, [1], 0.2, 0.1, True) == pytest.approx(-0.8)
    pulled = np.array([0.1 * 1.0, 1.0])
    np.testing.assert_allclose(targets[0], pulled / np.linalg.norm(pulled))
    tangent = np.array([-1.0, 0.0]) + 0.6 * np.array([0.6, 0.8])
    pushed = np.array([0.6, 0.8]) + 0.1 * 1.2 * tangent
    np.testing.assert_allclose(targets[1], pushed / np.linalg.norm(pushed))
    # The anchor's gradient is (1 - (f - h)) (target - negative) = 1.6 (-0.6, 0.2), of which the second part is tangent.
    moved = np.array([1.0, 0.1 * 1.6 * 0.2])
    np.testing.assert_allclose(anchors[0], moved / np.linalg.norm(moved))


# -- the gradient --------------------------------------------------------------------------------------


@few
@given(p=st.integers(2, 12), n_negatives=st.integers(1, 6), margin=st.floats(0.05, 2.0), seed=seeds)
def test_the_gradient_is_that_of_finite_differences(
    p: int, n_negatives: int, margin: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    anchor, target, *negatives = unit_rows(rng, 2 + n_negatives, p).astype(np.float64)
    place = np.concatenate([anchor, target, *negatives])
    gaps = anchor @ target - np.array(negatives) @ anchor - margin
    # At the kink of the hinge there is no gradient.
    assume(np.abs(gaps).min() > 1e-3)

    def objective(flat: npt.NDArray[np.float64]) -> float:
        rows = flat.reshape(-1, p)
        return oracle.pair_objective(rows[0], rows[1], rows[2:], margin)

    step = 1e-6
    slopes = np.array(
        [
            (objective(place + step * axis) - objective(place - step * axis)) / (2 * step)
            for axis in np.eye(len(place))
        ]
    )
    of_anchor, of_target, of_negatives = oracle.pair_gradient(anchor, target, np.array(negatives), margin)
    found = np.concatenate([of_anchor, of_target, of_negatives.reshape(-1)])
    np.testing.assert_allclose(found, slopes, atol=1e-7)


@few
@given(
    p=st.integers(2, 12),
    n_negatives=st.integers(1, 6),
    margin=st.floats(0.05, 2.0),
    rate=st.floats(0.001, 1.0),
    seed=seeds,
)
def test_an_unscaled_update_is_the_riemannian_step(
    p: int, n_negatives: int, margin: float, rate: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    anchors = unit_rows(rng, 1, p).astype(np.float64)
    targets = unit_rows(rng, 1 + n_negatives, p).astype(np.float64)
    of_anchor, of_target, of_negatives = oracle.pair_gradient(anchors[0], targets[0], targets[1:], margin)
    old = np.vstack([anchors, targets])
    euclidean = np.vstack([of_anchor, of_target, of_negatives])
    # (I - x x') g, a step, and back to length 1.
    riemannian = euclidean - old * (old * euclidean).sum(axis=1, keepdims=True)
    moved = old + rate * riemannian
    expected = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    oracle.update_pair(anchors, 0, targets, 0, [*range(1, n_negatives + 1)], margin, rate, False)
    np.testing.assert_allclose(np.vstack([anchors, targets]), expected, atol=1e-12)


def test_a_small_step_raises_the_objective() -> None:
    rng = np.random.default_rng(1)
    for scaled in (False, True):
        anchors, targets = unit_rows(rng, 1, 10), unit_rows(rng, 6, 10)
        values = [
            kernel_update(anchors, 0, targets, 0, [1, 2, 3, 4, 5], 0.5, 0.02, scaled) for _ in range(50)
        ]
        assert values[0] < -0.1
        assert values[-1] == 0.0
        assert all(later >= earlier for earlier, later in pairwise(values))


# -- a block -------------------------------------------------------------------------------------------


def test_the_random_numbers_are_splitmix64() -> None:
    rng = oracle.SplitMix(0)
    # The high halves of the first outputs for seed 0 as published with the algorithm.
    assert [rng.below(2**32) for _ in range(3)] == [0xE220A839, 0x6E789E6A, 0x06C45D18]


def random_block(
    rng: np.random.Generator, p: int, n_labels: int, n_words: int, n_documents: int, counts: list[int]
) -> tuple[Float32, Float32, npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Vectors and, for each relation, as many random pairs as `counts` says."""
    anchors = unit_rows(rng, n_labels + n_words, p)
    block = unit_rows(rng, n_documents, p)
    total = sum(counts)
    pair_anchor = rng.integers(n_labels + n_words, size=total).astype(np.int32)
    pair_document = rng.integers(n_documents, size=total).astype(np.int32)
    return anchors, block, pair_anchor, pair_document, np.cumsum([0, *counts])


@few
@given(
    p=st.integers(2, 20) | st.sampled_from([8, 16, 24]),
    n_labels=st.integers(1, 6) | st.just(30),
    n_words=sizes,
    n_documents=sizes | st.just(30),
    counts=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    with_hierarchy=st.booleans(),
    n_negatives=st.integers(1, 6) | st.just(5),
    margin=st.floats(0.05, 1.0),
    scaled=st.booleans(),
    seed=seeds,
)
def test_a_block_is_trained_as_by_the_twin(
    p: int,
    n_labels: int,
    n_words: int,
    n_documents: int,
    counts: list[int],
    with_hierarchy: bool,
    n_negatives: int,
    margin: float,
    scaled: bool,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    anchors, block, pair_anchor, pair_document, starts = random_block(
        rng, p, n_labels, n_words, n_documents, counts
    )
    children = np.arange(1, n_labels, dtype=np.int32)
    parents = np.array([rng.integers(child) for child in children], dtype=np.int32)
    table = rng.integers(n_documents, size=max(7, n_documents)).astype(np.int32)
    margins = np.linspace(margin, margin / 2, len(counts) + 1).astype(np.float32)
    totals, plain_totals = np.zeros((len(counts) + 1, 2)), np.zeros((len(counts) + 1, 2))
    plain_anchors, plain_block = anchors.astype(np.float64), block.astype(np.float64)
    # More steps than are drawn at once.
    rate, rate_drop, n_steps = 0.1, 0.004, 20
    oracle.train_block(
        plain_anchors,
        plain_block,
        pair_anchor.tolist(),
        pair_document.tolist(),
        starts.tolist(),
        children.tolist(),
        parents.tolist(),
        n_labels,
        with_hierarchy,
        table.tolist(),
        margins.tolist(),
        n_negatives,
        rate,
        rate_drop,
        n_steps,
        seed,
        scaled,
        plain_totals,
    )
    _kernels.train_block(
        anchors, block, pair_anchor, pair_document, starts, children, parents, n_labels, with_hierarchy, table,
        margins, n_negatives, rate, rate_drop, n_steps, np.uint64(seed), scaled, totals,
    )  # fmt: skip
    np.testing.assert_array_equal(totals[:, 1], plain_totals[:, 1])
    np.testing.assert_allclose(totals[:, 0], plain_totals[:, 0], atol=2e-4)
    np.testing.assert_allclose(anchors, plain_anchors, atol=5e-5)
    np.testing.assert_allclose(block, plain_block, atol=5e-5)
    assert (totals[:-1, 1] <= n_steps * (np.array(counts) > 0)).all()
    assert totals[-1, 1] == 0 or with_hierarchy


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(("p", "n_documents", "n_words"), [(16, 50, 100), (8, 3, 5), (2, 30, 5)])
def test_vectors_stay_on_the_sphere(p: int, n_documents: int, n_words: int, scaled: bool) -> None:
    """Rounding errors must not add up: a document is moved hundreds of thousands of times here."""
    rng = np.random.default_rng(0)
    n_labels = 10
    anchors, block, pair_anchor, pair_document, starts = random_block(
        rng, p, n_labels, n_words, n_documents, [n_documents, 20 * n_documents]
    )
    children = np.arange(1, n_labels, dtype=np.int32)
    table = np.arange(n_documents, dtype=np.int32)
    totals = np.zeros((3, 2))
    _kernels.train_block(
        anchors, block, pair_anchor, pair_document, starts, children, (children - 1) // np.int32(3), n_labels,
        True, table, np.full(3, 0.2, np.float32), 5, 0.04, 0.0, 50_000, np.uint64(3), scaled, totals,
    )  # fmt: skip
    assert (totals[:, 1] > 40_000).all()
    for rows in (anchors, block):
        np.testing.assert_allclose(np.linalg.norm(rows.astype(np.float64), axis=1), 1.0, atol=1e-6)


@few
@given(n_copies=st.integers(1, 4), n_rows=sizes, p=st.integers(2, 20), seed=seeds)
def test_copies_are_merged_as_by_the_twin(n_copies: int, n_rows: int, p: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    anchors = unit_rows(rng, n_rows, p)
    copies = np.stack([unit_rows(rng, n_rows, p) for _ in range(n_copies)])
    copies = anchors + np.float32(0.2) * (copies - anchors)
    expected = oracle.merge_rows(anchors.astype(np.float64), copies.astype(np.float64))
    before = anchors.copy()
    _kernels.merge_rows(anchors, copies, 1, n_rows)
    np.testing.assert_array_equal(anchors[:1], before[:1])
    _kernels.merge_rows(anchors, copies, 0, 1)
    np.testing.assert_allclose(anchors, expected, atol=5e-6)


# -- the maximum over time -----------------------------------------------------------------------------


def column_of(widths: list[int], maps: int, width: int, offset: int, m: int) -> int:
    """Where the table keeps the product with slice `offset` of filter `m` of a width."""
    before = sum(maps * sum(w > o for w in widths) for o in range(offset))
    return before + maps * sum(w > offset for w in widths if w < width) + m


def brute_force(
    document: list[int], table: Float32, widths: list[int], maps: int
) -> tuple[list[float], list[list[float]]]:
    """The best response of every filter, and all of its responses."""
    best, responses = [], []
    for width in widths:
        for m in range(maps):
            starts = range(max(len(document) - width, 0) + 1)
            sums = [
                sum(
                    float(table[word, column_of(widths, maps, width, offset, m)])
                    for offset, word in enumerate(document[start : start + width])
                )
                for start in starts
            ]
            responses.append(sums)
            best.append(max(sums) if document else 0.0)
    return best, responses


@few
@given(
    widths=st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True).map(sorted),
    maps=st.sampled_from([1, 3, 8, 11, 20, 26]),
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    n_words=st.integers(1, 5),
    shift=st.sampled_from([0.0, -5.0]),
    seed=seeds,
)
def test_the_maximum_is_taken_over_every_window_of_the_document(
    widths: list[int], maps: int, lengths: list[int], n_words: int, shift: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    # With a shift all responses are negative: padding, which adds nothing, would win if it took part.
    table = (rng.standard_normal((n_words, maps * sum(widths))) + shift).astype(np.float32)
    documents = [rng.integers(n_words, size=length).tolist() for length in lengths]
    words = np.array([word for document in documents for word in document], dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    features = np.empty((len(documents), len(widths) * maps), dtype=np.float32)
    positions = np.empty(features.shape, dtype=np.int32)
    cnn_kernels.max_over_time(words, offsets, table, np.array(widths), maps, features, positions)
    for d, document in enumerate(documents):
        best, responses = brute_force(document, table, widths, maps)
        np.testing.assert_allclose(features[d], best, atol=1e-4)
        for m, position in enumerate(positions[d].tolist()):
            if document:
                assert responses[m][position] == pytest.approx(best[m], abs=1e-4)
            else:
                assert position == -1


def test_the_last_window_counts() -> None:
    table = np.zeros((3, 2), dtype=np.float32)
    table[1, 0], table[2, 1] = 1.0, 1.0
    features, positions = np.empty((1, 1), np.float32), np.empty((1, 1), np.int32)
    words, offsets = np.array([0, 0, 0, 1, 2], dtype=np.int32), np.array([0, 5])
    cnn_kernels.max_over_time(words, offsets, table, np.array([2]), 1, features, positions)
    assert (features[0, 0], positions[0, 0]) == (2.0, 3)


@few
@given(
    widths=st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True).map(sorted),
    lengths=st.lists(st.integers(0, 7), min_size=1, max_size=5),
    n_words=st.sampled_from([4, 8, 13, 40]),
    seed=seeds,
)
def test_the_gradient_reaches_what_the_maximum_was_summed_from(
    widths: list[int], lengths: list[int], n_words: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    maps = 2
    words = rng.integers(n_words, size=sum(lengths)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    shape = (len(lengths), len(widths) * maps)
    weight = rng.standard_normal(shape).astype(np.float32)
    table = rng.standard_normal((n_words, maps * sum(widths))).astype(np.float32)

    def forward(values: Float32) -> tuple[Float32, npt.NDArray[np.int32]]:
        features, positions = np.empty(shape, np.float32), np.empty(shape, np.int32)
        cnn_kernels.max_over_time(words, offsets, values, np.array(widths), maps, features, positions)
        return features, positions

    features, positions = forward(table)
    # With one word vector per word, each with a place of its own, the filter slices are the table.
    own_place = np.eye(n_words, dtype=np.float32)
    by_column = np.empty(table.shape[::-1], dtype=np.float32)
    cnn_kernels.filter_gradient(
        words, offsets, positions, weight, np.array(widths), maps, own_place, by_column
    )
    gradient = by_column.T
    # Where the same windows win, features are linear in the table: the gradient says how they change.
    change = rng.standard_normal(table.shape).astype(np.float32) * np.float32(1e-3)
    changed, others = forward(table + change)
    assume(np.array_equal(positions, others))
    np.testing.assert_allclose(
        ((changed - features) * weight).sum(), (gradient * change).sum(), atol=2e-5, rtol=1e-3
    )
