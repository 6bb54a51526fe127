"""Confidence against truth: the same numbers as a slow and plain count."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from himecat.classifier.assignments import Assignments, assign
from himecat.errors import DataError, UsageError
from himecat.evaluation.reliability import (
    area_under_risk_coverage,
    calibration_error,
    level_calibration,
    level_verdicts,
    risk_coverage,
    threshold_for_precision,
)
from himecat.input.taxonomy.tree import Taxonomy

TREE = Taxonomy.from_children(
    {"science": {"physics": {"optics": {}, "sound": {}}, "biology": {}}, "arts": {"music": {}}, "law": {}}
)

# Few distinct values, so that many documents share one, and values on the borders of bins.
confidences = st.one_of(
    st.sampled_from([0.0, 0.2, 1 / 3, 0.4, 0.5, 0.6, 2 / 3, 0.8, 1.0]), st.floats(0.0, 1.0, width=32)
)
judged = st.lists(st.tuples(confidences, st.booleans()), min_size=1, max_size=40)
Judged = list[tuple[float, bool]]


def apart(documents: Judged) -> tuple[list[float], list[bool]]:
    return [sure for sure, _ in documents], [right for _, right in documents]


class TestCalibrationError:
    @given(judged, st.integers(1, 20))
    def test_it_is_the_plain_count(self, documents: Judged, bins: int) -> None:
        inside: dict[int, Judged] = {}
        for sure, right in documents:
            inside.setdefault(min(int(sure * bins), bins - 1), []).append((sure, right))
        expected = 0.0
        for group in inside.values():
            mean = math.fsum(sure for sure, _ in group) / len(group)
            share = sum(right for _, right in group) / len(group)
            expected += len(group) / len(documents) * abs(mean - share)
        assert calibration_error(*apart(documents), bins=bins) == pytest.approx(expected, abs=1e-9)

    @given(judged, st.randoms(use_true_random=False))
    def test_the_order_does_not_matter_and_it_lies_between_0_and_1(
        self, documents: Judged, random: object
    ) -> None:
        found = calibration_error(*apart(documents))
        assert 0 <= found <= 1
        shuffled = list(documents)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        assert calibration_error(*apart(shuffled)) == pytest.approx(found, abs=1e-9)

    @given(judged)
    def test_halved_bins_never_show_less(self, documents: Judged) -> None:
        # Splitting a bin cannot make errors cancel that did not cancel before.
        assert (
            calibration_error(*apart(documents), bins=2)
            <= calibration_error(*apart(documents), bins=4) + 1e-9
        )

    def test_confidence_that_keeps_its_word_and_confidence_that_does_not(self) -> None:
        rng = np.random.default_rng(0)
        sure = rng.random(50_000)
        right = rng.random(50_000) < sure
        assert calibration_error(sure, right) < 0.01
        assert calibration_error(np.sqrt(sure), right) == pytest.approx(2 / 3 - 1 / 2, abs=0.01)

    def test_probabilities_that_miss_1_by_rounding(self) -> None:
        almost = np.array([1.0000001, 1.0], dtype=np.float32)
        assert calibration_error(almost, [True, True]) == 0


class TestLevels:
    @given(
        st.lists(st.tuples(st.sampled_from(range(len(TREE))), st.sampled_from(range(len(TREE)))), max_size=30)
    )
    def test_verdicts_are_the_plain_ones(self, pairs: list[tuple[int, int]]) -> None:
        told, right = level_verdicts(TREE, [true for true, _ in pairs], [node for _, node in pairs])
        assert told.shape == right.shape == (len(pairs), TREE.depth)
        for row, (true, node) in enumerate(pairs):
            known, path = TREE.path(true), TREE.path(node)
            for level in range(TREE.depth):
                reaches = len(path) > level and (len(known) > level or TREE.is_leaf(true))
                assert told[row, level] == reaches
                assert right[row, level] == (reaches and known[: level + 1] == path[: level + 1])

    def test_whether_an_unknown_level_counts_does_not_depend_on_the_outcome(self) -> None:
        science, optics, music = 1, TREE.find("optics"), TREE.find("music")
        told, right = level_verdicts(TREE, [science, science], [optics, music])
        assert told.tolist() == [[True, False, False]] * 2
        assert right[:, 0].tolist() == [True, False]

    def test_a_path_below_a_true_leaf_is_wrong_there(self) -> None:
        told, right = level_verdicts(TREE, [TREE.find("law")], [TREE.find("optics")])
        assert told.all()
        assert not right.any()

    @given(
        st.lists(
            st.tuples(
                st.lists(st.integers(0, 9), min_size=TREE.n_leaves, max_size=TREE.n_leaves),
                st.sampled_from(range(1, len(TREE))),
            ),
            min_size=1,
            max_size=20,
        ),
        st.sampled_from([0.0, 0.3, 0.6, 0.99]),
    )
    def test_each_level_is_the_error_of_its_own_documents(
        self, documents: list[tuple[list[int], int]], min_confidence: float
    ) -> None:
        weights = np.array([weight for weight, _ in documents], dtype=np.float32) + 0.1
        placed = assign(TREE, weights / weights.sum(axis=1, keepdims=True), min_confidence)
        truth = [node for _, node in documents]
        expected = []
        for level in range(TREE.depth):
            sure, right = [], []
            for row, true in enumerate(truth):
                known, path = TREE.path(true), placed.path(row)
                if len(path) > level and (len(known) > level or TREE.is_leaf(true)):
                    sure.append(float(placed.confidence[row, level]))
                    right.append(known[: level + 1] == path[: level + 1])
            expected.append(calibration_error(sure, right) if sure else float("nan"))
        assert level_calibration(TREE, truth, placed) == pytest.approx(expected, nan_ok=True)

    def test_nothing_placed(self) -> None:
        nowhere = Assignments(TREE, np.zeros(2, dtype=np.int64), np.full((2, 3), np.nan, dtype=np.float32))
        assert np.isnan(level_calibration(TREE, [1, 2], nowhere)).all()


def by_hand(documents: Judged) -> list[tuple[float, int, int]]:
    """Threshold, documents placed and wrong ones among them, from the highest threshold on."""
    found = []
    for threshold in sorted({sure for sure, _ in documents}, reverse=True):
        placed = [right for sure, right in documents if sure >= threshold]
        found.append((threshold, len(placed), placed.count(False)))
    return found


class TestRiskAndCoverage:
    @given(judged)
    def test_it_is_the_plain_count(self, documents: Judged) -> None:
        coverage, risk = risk_coverage(*apart(documents))
        expected = by_hand(documents)
        assert coverage.tolist() == pytest.approx([placed / len(documents) for _, placed, _ in expected])
        assert risk.tolist() == pytest.approx([wrong / placed for _, placed, wrong in expected])

    @given(judged)
    def test_coverage_rises_to_all_and_the_last_risk_is_that_of_all(self, documents: Judged) -> None:
        coverage, risk = risk_coverage(*apart(documents))
        assert (np.diff(coverage) > 0).all()
        assert coverage[-1] == 1
        assert risk[-1] == pytest.approx(1 - np.mean(apart(documents)[1]))

    @given(judged)
    def test_only_the_order_of_the_confidences_matters(self, documents: Judged) -> None:
        sure, right = apart(documents)
        ranks = np.searchsorted(np.unique(sure), sure)
        for one, other in zip(risk_coverage(sure, right), risk_coverage(ranks, right), strict=True):
            assert one.tolist() == other.tolist()

    @given(judged)
    def test_the_area_is_the_mean_over_the_documents(self, documents: Judged) -> None:
        risk_at = {threshold: Fraction(wrong, placed) for threshold, placed, wrong in by_hand(documents)}
        mean = sum((risk_at[sure] for sure, _ in documents), Fraction(0)) / len(documents)
        assert area_under_risk_coverage(*apart(documents)) == pytest.approx(float(mean))

    @given(st.lists(st.booleans(), min_size=1, max_size=30))
    def test_no_order_is_better_than_the_right_ones_first(self, right: list[bool]) -> None:
        falling = np.linspace(1, 0, len(right))
        best = area_under_risk_coverage(falling, sorted(right, reverse=True))
        worst = area_under_risk_coverage(falling, sorted(right))
        assert best - 1e-12 <= area_under_risk_coverage(falling, right) <= worst + 1e-12


class TestThreshold:
    @given(judged, st.floats(0, 1))
    def test_it_is_the_smallest_that_delivers(self, documents: Judged, precision: float) -> None:
        found = threshold_for_precision(*apart(documents), precision)
        delivering = [
            threshold
            for threshold, placed, wrong in by_hand(documents)
            if (placed - wrong) / placed >= precision
        ]
        assert found == min(delivering, default=None)

    def test_it_works_as_min_confidence(self) -> None:
        rng = np.random.default_rng(1)
        tree = Taxonomy.from_paths([("a",), ("b",)])
        share = rng.random(400).astype(np.float32)
        leaves = np.stack([share, 1 - share], axis=1)
        truth = np.where(rng.random(400) < share, 1, 2)
        placed = assign(tree, leaves)
        threshold = threshold_for_precision(placed.confidence[:, 0], placed.nodes == truth, 0.9)
        assert threshold is not None
        kept = assign(tree, leaves, threshold).nodes
        assert np.mean(kept[kept > 0] == truth[kept > 0]) >= 0.9
        assert (kept > 0).sum() > 50

    def test_out_of_reach(self) -> None:
        assert threshold_for_precision([0.9, 0.1], [False, True], 0.6) is None
        assert threshold_for_precision([0.9, 0.1], [False, True], 0.5) == 0.1


class TestRefused:
    def test_sentences(self) -> None:
        with pytest.raises(DataError, match="no document to judge"):
            risk_coverage([], [])
        with pytest.raises(UsageError, match="flat lists of the same length"):
            calibration_error([0.5], [True, False])
        with pytest.raises(UsageError, match=r"confidence\[1\] is nan: leave out documents"):
            area_under_risk_coverage([0.5, float("nan")], [True, False])
        with pytest.raises(UsageError, match=r"confidence\[0\] is 1\.5: it must lie between 0 and 1"):
            calibration_error([1.5], [True])
        with pytest.raises(UsageError, match="bins must be at least 1"):
            calibration_error([0.5], [True], bins=0)
        with pytest.raises(UsageError, match="precision must lie between 0 and 1"):
            threshold_for_precision([0.5], [True], 90)
        with pytest.raises(UsageError, match="1 true categories but 2 assigned"):
            level_verdicts(TREE, [1], [1, 1])
        with pytest.raises(UsageError, match=r"nodes\[0\] is 99, but"):
            level_verdicts(TREE, [1], [99])
