"""The default from raw letters to paths: what people will ask of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from estimators import estimator
from himecat import HiMeCat, Paper
from himecat.compare.systems.system import Task
from himecat.compare.systems.tfidf_svm import TfidfSvm
from himecat.input.builder import load_corpus
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.input.unicode_words import tokenize
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

TREE = sample_taxonomy()
DOCUMENTS = sample_documents()
TRUTH = [tuple(document["labels"]) for document in DOCUMENTS]
LABELS = sample_split(DOCUMENTS)
TEST = np.array([label is None for label in LABELS])

Paths = list[tuple[str, ...]]


def fit(labels: list[Any], documents: list[dict[str, Any]] | None = None, **options: Any) -> HiMeCat:
    return estimator(TREE, METADATA, **options).fit(DOCUMENTS if documents is None else documents, labels)


def right(found: Paths) -> npt.NDArray[np.bool_]:
    return np.array([path == truth for path, truth in zip(found, TRUTH, strict=True)])


@pytest.fixture(scope="module")
def model() -> HiMeCat:
    return fit(LABELS)


@pytest.fixture(scope="module")
def found(model: HiMeCat) -> npt.NDArray[np.bool_]:
    return right(model.predict(DOCUMENTS, as_tuples=True))


def distinctive(count: int, only: tuple[str, ...] | None = None) -> dict[str, list[str]]:
    """A few words of every leaf that its letters use oftener than others, as a clerk might name them."""
    everywhere = Counter(word for document in DOCUMENTS for word in set(tokenize(document["text"])))
    words: dict[str, list[str]] = {}
    for leaf in TREE.leaves:
        path = TREE.path(leaf)
        own = Counter(
            word
            for document, truth in zip(DOCUMENTS, TRUTH, strict=True)
            if truth == path
            for word in set(tokenize(document["text"]))
        )
        best = sorted(own, key=lambda word: (-(own[word] ** 2) / everywhere[word], word))
        if only is None or path == only:
            words["/".join(path)] = best[:count]
    return words


def test_most_letters_find_their_leaf(found: npt.NDArray[np.bool_]) -> None:
    assert found[TEST].mean() > 0.85


def test_what_it_is_sure_of_is_right(model: HiMeCat, found: npt.NDArray[np.bool_]) -> None:
    surest = model.predict_proba(DOCUMENTS).max(axis=1)
    sure = TEST & (surest >= 0.9)
    assert sure.sum() > 0.3 * TEST.sum()
    assert found[sure].mean() > 0.87
    careful = HiMeCat(TREE, METADATA, min_confidence=0.9).fit(DOCUMENTS, LABELS).assign(DOCUMENTS)
    assert careful.none is not None
    # A leaf is as probable as its share of what does not belong nowhere.
    assert (careful.reached_leaf == (surest * (1 - careful.none) >= 0.9)).mean() > 0.999
    # Where the walk stopped early, it stopped at a place above the right leaf as often as it should.
    above = [path == truth[: len(path)] for path, truth in zip(careful, TRUTH, strict=True)]
    assert np.mean(np.array(above)[TEST]) > 0.9


def test_probabilities_are_about_right(model: HiMeCat, found: npt.NDArray[np.bool_]) -> None:
    surest = model.predict_proba(DOCUMENTS).max(axis=1)
    assert surest[TEST].mean() == pytest.approx(found[TEST].mean(), abs=0.06)


@pytest.mark.parametrize("uneven", [(1, 15), (15, 1), (1, 50), (50, 1)])
def test_uneven_labels(uneven: tuple[int, int], found: npt.NDArray[np.bool_]) -> None:
    """One leaf with a single labelled letter, another with many: the one does not swallow the other."""
    sizes = Counter(TRUTH)
    first, second = (path for path, _ in sizes.most_common(2))
    wanted = {first: uneven[0], second: uneven[1]}
    labels: list[Any] = []
    given: Counter[tuple[str, ...]] = Counter()
    for truth, label in zip(TRUTH, LABELS, strict=True):
        use = given[truth] < wanted[truth] if truth in wanted else label is not None
        given[truth] += use
        labels.append(truth if use else None)
    assert (given[first], given[second]) == uneven
    placed = fit(labels).predict(DOCUMENTS, as_tuples=True)
    hits = right(placed)
    rest = np.array([label is None for label in labels])
    assert hits[rest].mean() > found[TEST].mean() - 0.05
    poor, rich = (first, second) if uneven[0] == 1 else (second, first)
    swallowed = [path == rich for path, truth in zip(placed, TRUTH, strict=True) if truth == poor]
    assert np.mean(swallowed) < 0.1
    # Nor does it grow at the cost of all others.
    assert sum(path == rich for path in placed) < 1.25 * sizes[rich]
    for path in (first, second):
        own = np.array([truth == path for truth in TRUTH]) & rest
        assert hits[own].mean() > 0.6


def test_one_label_per_leaf() -> None:
    labels = sample_split(DOCUMENTS, per_leaf=1)
    rest = np.array([label is None for label in labels])
    assert right(fit(labels).predict(DOCUMENTS, as_tuples=True))[rest].mean() > 0.7


@pytest.mark.parametrize("use_names", [True, False])
def test_keywords_alone(use_names: bool) -> None:
    model = fit([None] * len(DOCUMENTS), keywords=distinctive(3), use_names=use_names)
    assert right(model.predict(DOCUMENTS, as_tuples=True)).mean() > 0.6


def test_a_leaf_with_keywords_alone() -> None:
    path = Counter(TRUTH).most_common(1)[0][0]
    keywords = distinctive(4, path)
    labels = [None if truth == path else label for truth, label in zip(TRUTH, LABELS, strict=True)]
    model = fit(labels, keywords=keywords, use_names=False)
    hits = right(model.predict(DOCUMENTS, as_tuples=True))
    own = np.array([truth == path for truth in TRUTH])
    assert hits[own].mean() > 0.6
    assert model.predict([" ".join(keywords["/".join(path)])], as_tuples=True) == [path]


def test_new_letters_are_placed_as_well_as_those_that_were_there(found: npt.NDArray[np.bool_]) -> None:
    new = np.random.default_rng(0).permutation(np.flatnonzero(TEST))[: len(DOCUMENTS) // 5]
    kept = np.setdiff1d(np.arange(len(DOCUMENTS)), new)
    model = fit([LABELS[row] for row in kept], [DOCUMENTS[row] for row in kept])
    placed = model.predict([DOCUMENTS[row] for row in new], as_tuples=True)
    hits = np.mean([path == TRUTH[row] for path, row in zip(placed, new, strict=True)])
    assert hits > found[new].mean() - 0.03


@pytest.mark.parametrize("n_years", [8, 300])
def test_metadata_that_say_nothing_cost_nothing(n_years: int, found: npt.NDArray[np.bool_]) -> None:
    rng = np.random.default_rng(5)
    documents = [document | {"year": str(rng.integers(n_years))} for document in DOCUMENTS]
    model = HiMeCat(TREE, [*METADATA, "year"]).fit(documents, LABELS)
    weights = model.classifier_.views["metadata"].weights
    assert weights["year"] == 0
    assert all(weights[kind] > 0.5 for kind in METADATA)
    assert right(model.predict(documents, as_tuples=True))[TEST].mean() > found[TEST].mean() - 0.01


def test_metadata_that_say_something_help() -> None:
    bare = fit(LABELS, use_metadata=False)
    with_them = fit(LABELS)
    assert (
        right(with_them.predict(DOCUMENTS, as_tuples=True))[TEST].mean()
        >= right(bare.predict(DOCUMENTS, as_tuples=True))[TEST].mean() - 0.005
    )
    weights = with_them.classifier_.views["metadata"].weights
    assert set(weights) == set(METADATA)
    assert min(weights.values()) > 0.3


def test_the_papers_way_is_still_there() -> None:
    from himecat.paper.kimcnn import KimCNN

    documents = DOCUMENTS[:300]
    labels = sample_split(documents, per_leaf=3)
    model = HiMeCat(
        TREE, METADATA, method=Paper(min_count=2, samples=400_000, dimension=16, beta=20, epochs=2)
    ).fit(documents, labels)
    assert (model.method_.space, model.method_.classifier) == ("sampled", "kim-cnn")
    assert model.method_.neighbours == 50
    assert all(isinstance(one, KimCNN) for one in model.classifier_.walk.classifiers.values())
    assert model.history_
    np.testing.assert_allclose(model.predict_proba(documents).sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.real
@pytest.mark.parametrize(("corpus", "lead"), [("packages", 0.08), ("reviews", 0.2)])
def test_better_than_words_and_a_support_vector_machine(
    shared_data: Callable[[str], Path], corpus: str, lead: float
) -> None:
    dataset = open_dataset(shared_data(corpus))
    fields = Fields(metadata=tuple(dataset.metadata))
    loaded = load_corpus(dataset.documents, fields, min_count=2)
    truth = true_nodes(dataset, loaded)
    labelled = draw(dataset, truth, 0, 5)
    test = np.setdiff1d(np.arange(len(truth)), labelled.rows)
    ours = HiMeCat(dataset.taxonomy, dataset.metadata).fit(loaded.corpus, labelled).assign(loaded.corpus)
    peer = TfidfSvm().fit_predict(Task(loaded.corpus, dataset.taxonomy, labelled))
    assert np.mean(ours.nodes[test] == truth[test]) > np.mean(peer[test] == truth[test]) + lead
    surest = np.argsort(-ours.confidence[test].min(axis=1))[: len(test) // 4]
    assert np.mean(ours.nodes[test][surest] == truth[test][surest]) > 0.8
