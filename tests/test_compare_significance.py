"""Paired tests: right where they can tell, silent where they cannot."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_rel, wilcoxon

from himecat.compare.protocol.run import Run
from himecat.compare.protocol.significance import compare_runs, paired_test, stars
from himecat.errors import UsageError

OURS = [0.71, 0.69, 0.72, 0.70, 0.73]


def run(draw: int, micro: float, seed: int = 0, failure: str = "") -> Run:
    scores = {} if failure else {"micro": micro, "macro": micro / 2}
    return Run("letters", "a", "A", {}, draw, seed, scores, scores, failure=failure)


def test_p_values_are_those_of_scipy() -> None:
    theirs = [0.66, 0.68, 0.65, 0.69, 0.68]
    found = paired_test(OURS, theirs)
    assert found.t_test == pytest.approx(ttest_rel(theirs, OURS).pvalue)
    assert found.wilcoxon == pytest.approx(wilcoxon(theirs, OURS).pvalue)
    assert found.difference == pytest.approx(np.mean(theirs) - np.mean(OURS))
    assert found.stars == "*"
    assert not found.better


def test_a_system_that_beats_ours_has_stars_too() -> None:
    found = paired_test(OURS, [0.81, 0.80, 0.81, 0.82, 0.83])
    assert found.stars == "**"
    assert found.better


def test_five_pairs_are_never_enough_for_wilcoxon() -> None:
    assert paired_test(OURS, [0.1, 0.2, 0.15, 0.11, 0.18]).wilcoxon == pytest.approx(0.0625)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([], []),
        ([0.7], [0.1]),
        (OURS, OURS),
        ([0.7, 0.7, 0.7], [0.1, 0.1, 0.1]),
        # The same difference but for rounding.
        ([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]),
    ],
)
def test_what_cannot_be_tested_has_no_star_and_no_warning(ours: list[float], theirs: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = paired_test(ours, theirs)
    assert found.stars == ""
    assert math.isnan(found.t_test)
    assert math.isnan(found.wilcoxon)
    assert found.pairs == len(ours)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.2, 0.5, 1.0]), st.sampled_from([0.0, 0.1, 0.3, 1.0])), max_size=16
    )
)
def test_ties_and_zeros_never_warn(pairs: list[tuple[float, float]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = paired_test([ours for ours, _ in pairs], [theirs for _, theirs in pairs])
    for p_value in (found.t_test, found.wilcoxon):
        assert math.isnan(p_value) or 0 <= p_value <= 1


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(UsageError, match="5 and 1"):
        paired_test(OURS, [0.5])


def test_the_bounds_of_the_stars() -> None:
    assert [stars(p) for p in (0.0, 0.00999, 0.01, 0.0499, 0.05, 1.0)] == ["**", "**", "*", "*", "", ""]


def test_runs_are_paired_by_draw_and_seed_whatever_their_order() -> None:
    ours = [run(draw, score) for draw, score in enumerate(OURS)]
    theirs = [run(draw, score - 0.1 - 0.001 * draw) for draw, score in enumerate(OURS)]
    found = compare_runs(ours, theirs[::-1], "leaf", "micro")
    assert found.pairs == 5
    assert found.stars == "**"
    assert found.difference == pytest.approx(-0.102)
    assert compare_runs(ours, theirs, "overall", "macro").difference == pytest.approx(-0.051)


def test_failed_runs_and_draws_of_one_system_only_have_no_pair() -> None:
    ours = [run(0, 0.7), run(1, 0.6, failure="no memory"), run(2, 0.8), run(3, 0.8)]
    theirs = [run(0, 0.5), run(1, 0.5), run(2, 0.5, failure="no time"), run(4, 0.5)]
    assert compare_runs(ours, theirs, "leaf", "micro").pairs == 1


def test_repeating_a_system_without_randomness_makes_nothing_significant() -> None:
    draws = [(0.71, 0.69), (0.68, 0.64)]
    ours = [run(draw, mine, seed) for draw, (mine, _) in enumerate(draws) for seed in range(10)]
    theirs = [run(draw, their, seed) for draw, (_, their) in enumerate(draws) for seed in range(10)]
    found = compare_runs(ours, theirs, "leaf", "micro")
    assert found.pairs == 2
    assert found.stars == ""


def test_seeds_that_hardly_matter_make_nothing_significant_either() -> None:
    draws = [(0.71, 0.69), (0.68, 0.64)]
    ours = [run(draw, mine + seed / 2000, seed) for draw, (mine, _) in enumerate(draws) for seed in range(5)]
    theirs = [run(draw, their, seed) for draw, (_, their) in enumerate(draws) for seed in range(5)]
    found = compare_runs(ours, theirs, "leaf", "micro")
    assert found.pairs == 2
    assert found.difference == pytest.approx(-0.031)
    assert found.stars == ""


def test_the_seeds_of_a_single_draw_are_the_pairs() -> None:
    ours = [run(0, 0.7 + seed / 100, seed) for seed in range(3)]
    theirs = [run(0, 0.5, seed) for seed in range(3)]
    assert compare_runs(ours, theirs, "leaf", "micro").pairs == 3
