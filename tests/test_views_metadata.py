"""What metadata values are worth: against the same sums done one by one, and where they are worth nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from himecat import Corpus, read_corpus
from himecat.input.corpus import Ragged
from himecat.sample import METADATA, sample_documents
from himecat.views.combined import learn_views
from himecat.views.matrices import unit
from himecat.views.metadata import MetadataView, ValueStatistics, learn_statistics
from himecat.views.words import WordsView

FloatArray = npt.NDArray[np.float32]


def clouds(
    n: int = 120, n_clouds: int = 4, dimension: int = 12, seed: int = 0
) -> tuple[FloatArray, list[int]]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_clouds, dimension))
    member = rng.integers(n_clouds, size=n)
    return unit(centres[member] + 1.2 * rng.normal(size=(n, dimension))), member.tolist()


def predict(one: ValueStatistics, values: Ragged, own: FloatArray | None = None) -> FloatArray:
    return one.predict(one.incidence(values), own=own)


def run_serial(
    trust: ValueStatistics, values: list[list[int]], own: FloatArray | None, directions: FloatArray
) -> FloatArray:
    """The prediction for each document from the documents that share its values, leaving itself out."""
    found = np.zeros_like(directions)
    for row, carried in enumerate(values):
        total, weight = np.zeros(directions.shape[1]), 0.0
        for value in set(carried):
            sharing = [other for other, c in enumerate(values) if value in c]
            if len(sharing) < 2:
                continue
            used = [other for other in sharing if own is None or other != row]
            n, correlation = len(used), float(trust.correlation[trust.rows[value]])
            factor = correlation / (1 + (n - 1) * correlation)
            explained = min(n * correlation * factor, 0.999)
            gain = explained / (1 - explained)
            total += gain * factor * directions[used].sum(axis=0)
            weight += gain
        if weight:
            found[row] = total / weight
    return found


@pytest.mark.parametrize("left_out", [True, False])
def test_each_document_is_left_out_of_what_its_values_say(left_out: bool) -> None:
    directions, member = clouds()
    rng = np.random.default_rng(1)
    # Values that several, two and one document carry; some documents carry two, or the same one twice.
    values = [[m, m] if row % 5 == 0 else [m, 4 + int(rng.integers(60))] for row, m in enumerate(member)]
    values[3] = []
    ragged = Ragged.from_lists(values)
    by_type, _ = learn_statistics({"team": (ragged, 64)}, directions)
    own = directions if left_out else None
    found = predict(by_type["team"], ragged, own)
    np.testing.assert_allclose(found, run_serial(by_type["team"], values, own, directions), atol=2e-5)
    assert not found[3].any()


def test_a_documents_own_direction_does_not_speak_for_it() -> None:
    directions, member = clouds()
    columns = {"team": (Ragged.from_lists([[m] for m in member]), 4)}
    by_type, _ = learn_statistics(columns, directions)
    before = predict(by_type["team"], columns["team"][0], directions)
    moved = directions.copy()
    moved[7] = -moved[7]
    sums = by_type["team"].sums.copy()
    sums[by_type["team"].rows[member[7]]] += moved[7] - directions[7]
    same = replace(by_type["team"], weight=1.0, sums=sums)
    after = predict(same, columns["team"][0], moved)
    np.testing.assert_allclose(after[7], before[7], atol=1e-5)
    assert np.abs(after - before).max() > 1e-3


def test_correlation_is_the_mean_cosine_of_those_that_share_a_value() -> None:
    directions, member = clouds(n=800)
    by_type, _ = learn_statistics({"team": (Ragged.from_lists([[m] for m in member]), 4)}, directions)
    for value in range(4):
        own = directions[np.array(member) == value]
        cosines = (own @ own.T)[~np.eye(len(own), dtype=bool)]
        assert by_type["team"].correlation[value] == pytest.approx(cosines.mean(), abs=0.01)


def test_values_of_one_document_are_ignored() -> None:
    directions, _ = clouds(n=30)
    each_its_own = Ragged.from_lists([[row] for row in range(30)])
    by_type, expected = learn_statistics({"id": (each_its_own, 30)}, directions)
    assert by_type["id"].weight == 0
    assert (by_type["id"].rows == -1).all()
    assert by_type["id"].sums.shape == (0, 12)
    assert not expected.any()
    assert not predict(by_type["id"], each_its_own).any()


def test_an_informative_type_gets_more_than_a_noisy_one() -> None:
    directions, member = clouds(n=400)
    rng = np.random.default_rng(3)
    noisy = [[m if rng.random() < 0.4 else int(rng.integers(4))] for m in member]
    random = [[int(rng.integers(4))] for _ in member]
    by_type, _ = learn_statistics(
        {
            "team": (Ragged.from_lists([[m] for m in member]), 4),
            "noisy": (Ragged.from_lists(noisy), 4),
            "random": (Ragged.from_lists(random), 4),
        },
        directions,
    )
    assert by_type["team"].weight > 0.8
    assert (by_type["team"].correlation > by_type["noisy"].correlation).all()
    assert by_type["noisy"].weight < by_type["team"].weight
    assert by_type["random"].weight == 0


def test_trust_can_be_left_unlearned() -> None:
    directions, _ = clouds()
    year = Ragged.from_lists([[row % 5] for row in range(120)])
    by_type, expected = learn_statistics({"year": (year, 5)}, directions, learn_weights=False)
    assert by_type["year"].weight == 1
    np.testing.assert_allclose(expected, predict(by_type["year"], year, directions))


def test_no_types_at_all() -> None:
    directions, _ = clouds(n=5)
    by_type, expected = learn_statistics({}, directions)
    assert by_type == {}
    assert not expected.any()


@pytest.fixture(scope="module")
def letters() -> tuple[Corpus, FloatArray]:
    corpus = read_corpus(sample_documents(), metadata=METADATA, min_count=2)
    _, seen = learn_views([WordsView(metadata=METADATA), MetadataView(METADATA)], corpus)
    return corpus, seen.text


@pytest.mark.parametrize("n_years", [3, 8, 40, 300])
def test_a_random_year_is_not_trusted(letters: tuple[Corpus, FloatArray], n_years: int) -> None:
    corpus, directions = letters
    columns = {kind: (one.values, len(one.vocabulary)) for kind, one in corpus.metadata.items()}
    without, _ = learn_statistics(columns, directions)
    for seed in range(5):
        years = np.random.default_rng(seed).integers(n_years, size=(len(corpus), 1)).tolist()
        found, _ = learn_statistics(columns | {"year": (Ragged.from_lists(years), n_years)}, directions)
        assert found["year"].weight < 0.05
        for kind in METADATA:
            assert found[kind].weight == pytest.approx(without[kind].weight, abs=0.02)
            assert found[kind].weight > 0.5
