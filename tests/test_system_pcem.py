"""The system `pcem`: path-cost-sensitive naive Bayes with EM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import logsumexp

from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.systems import pcem
from himecat.compare.systems.pcem import PathModel, Pcem, learn_paths, path_scores, word_counts
from himecat.compare.systems.system import Task
from himecat.errors import DataError, UsageError
from himecat.evaluation.metrics import score
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

TREE = Taxonomy.from_paths(
    [("arts", "music", "jazz"), ("arts", "music", "opera"), ("arts", "film"), ("sport",), ("trade", "tax")]
)
JAZZ, OPERA, FILM, SPORT, TAX = (TREE.find(name) for name in ("jazz", "opera", "film", "sport", "tax"))
MUSIC = TREE.find("music")
LEAVES = np.array([JAZZ, OPERA, FILM, SPORT, TAX])


def task_of(texts: list[Any], labels: dict[int, int], tree: Taxonomy = TREE, metadata: Any = ()) -> Task:
    rows, nodes = np.array(list(labels)), np.array(list(labels.values()))
    return Task(read_corpus(texts, metadata=metadata), tree, Supervision(rows, nodes))


@pytest.fixture(scope="module")
def sample() -> tuple[Task, Any, Any]:
    documents, tree = sample_documents(700), sample_taxonomy()
    truth = np.array([tree.find(document["labels"]) for document in documents])
    shown = np.array([row for row, path in enumerate(sample_split(documents)) if path is not None])
    task = Task(read_corpus(documents, metadata=METADATA), tree, Supervision(shown, truth[shown]))
    return task, truth, np.setdiff1d(np.arange(len(truth)), shown)


@pytest.mark.parametrize("system", [Pcem(), Pcem(score_unlabelled=True), Pcem(rounds=0)])
def test_it_finds_the_leaves_of_the_sample_corpus(sample: tuple[Task, Any, Any], system: Pcem) -> None:
    task, truth, hidden = sample
    found = system.fit_predict(task)
    scores = score(task.taxonomy, truth[hidden], found[hidden])
    assert set(found.tolist()) <= set(task.taxonomy.leaves)
    assert scores.leaf.micro > 5 / task.taxonomy.n_leaves
    assert scores.overall.micro > scores.leaf.micro
    assert found.tolist() == system.fit_predict(task).tolist()


def test_the_score_of_a_path_is_the_levels_it_shares() -> None:
    scores = path_scores(TREE, LEAVES, LEAVES)
    assert scores.tolist() == [
        [3, 2, 1, 0, 0],
        [2, 3, 1, 0, 0],
        [1, 1, 3, 0, 0],
        [0, 0, 0, 3, 0],
        [0, 0, 0, 0, 3],
    ]


def test_deeper_levels_can_weigh_more() -> None:
    scores = path_scores(TREE, np.array([JAZZ, JAZZ, MUSIC]), LEAVES, level_weight=2.0)
    assert scores.tolist() == [[7, 3, 1, 0, 0], [7, 3, 1, 0, 0], [3, 3, 1, 0, 0]]


def test_a_label_of_the_root_tells_nothing() -> None:
    texts = ["goal match", "tax law", "goal", "law"]
    assert path_scores(TREE, np.array([0]), LEAVES).tolist() == [[0, 0, 0, 0, 0]]
    found = Pcem().fit_predict(task_of(texts, {0: SPORT, 1: TAX, 2: 0}))
    assert found.tolist() == [SPORT, TAX, SPORT, TAX]


def test_related_leaves_share_words() -> None:
    # "concert" is known from opera only; it speaks for jazz more than for film, and more for film than for sport.
    texts = ["saxophone", "aria concert", "camera", "goal"]
    task = task_of(texts, {0: JAZZ, 1: OPERA, 2: FILM, 3: SPORT})
    leaves = LEAVES[:4]
    counts = word_counts(task.corpus, task.supervision)
    paths = learn_paths(counts, path_scores(TREE, leaves, leaves), counts[:0], rounds=0)
    concert = np.flatnonzero(counts[1].toarray()[0])
    jazz, opera, film, sport = paths.word[concert[0]]
    assert opera > jazz > film > sport


def test_unlabelled_documents_teach_words_through_what_stands_beside_them() -> None:
    labels = {0: SPORT, 1: SPORT, 2: TAX, 3: TAX}
    known = ["goal match", "goal keeper", "law court", "law judge"]
    unlabelled = ["goal judge keeper match"] * 6 + ["law court"] * 6
    texts = [*known, *unlabelled, "judge"]
    # Among the labelled documents "judge" is a word of tax; the unlabelled ones use it of sport.
    assert Pcem(rounds=0).fit_predict(task_of(texts, labels))[-1] == TAX
    assert Pcem().fit_predict(task_of(texts, labels))[-1] == SPORT


def test_em_raises_the_likelihood_and_gives_probabilities() -> None:
    rng = np.random.default_rng(0)
    labelled, scores = csr_matrix(rng.poisson(1.0, (6, 12)).astype(float)), np.eye(3)[[0, 1, 2, 0, 1, 2]]
    unlabelled = csr_matrix(rng.poisson(1.0, (40, 12)).astype(float))

    def likelihood(model: PathModel) -> float:
        known = (model.log_joint(labelled) * scores).sum()
        # What add-one smoothing stands for: a prior that EM raises together with the likelihood.
        prior = model.word.sum() + model.path.sum()
        return float(known + logsumexp(model.log_joint(unlabelled), axis=1).sum() + prior)

    models = [learn_paths(labelled, scores, unlabelled, rounds=n, tolerance=0.0) for n in range(6)]
    values = [likelihood(model) for model in models]
    assert values[0] < values[1] < values[5]
    assert (np.diff(values) >= -1e-9).all()
    assert np.exp(models[-1].path).sum() == pytest.approx(1.0)
    assert np.exp(models[-1].word).sum(axis=0) == pytest.approx(np.ones(3))


def test_em_ends_when_little_is_gained() -> None:
    rng = np.random.default_rng(1)
    labelled, unlabelled = (csr_matrix(rng.poisson(1.0, (n, 9)).astype(float)) for n in (2, 30))
    calls: list[int] = []
    learn_paths(labelled, np.eye(2), unlabelled, tolerance=1e-3, advance=lambda: calls.append(1))
    assert 1 <= len(calls) < 50


@pytest.mark.parametrize("spread", [None, np.array([[2.0, 1.0], [1.0, 2.0]])])
def test_the_size_of_a_batch_does_not_matter(monkeypatch: pytest.MonkeyPatch, spread: Any) -> None:
    rng = np.random.default_rng(2)
    labelled, unlabelled = (csr_matrix(rng.poisson(1.0, (n, 9)).astype(float)) for n in (2, 30))
    whole = learn_paths(labelled, np.eye(2), unlabelled, spread=spread, rounds=3)
    monkeypatch.setattr(pcem, "_BATCH", 7)
    parts = learn_paths(labelled, np.eye(2), unlabelled, spread=spread, rounds=3)
    np.testing.assert_allclose(whole.word, parts.word)
    np.testing.assert_allclose(whole.path, parts.path)


def test_words_are_those_of_the_labelled_documents_without_stop_words_and_numbers() -> None:
    texts = [{"text": "the goal of 2019", "tags": ["the", "7"]}, {"text": "goal keeper", "tags": ["other"]}]
    counts = word_counts(
        read_corpus(texts, metadata="tags"), Supervision(np.array([0]), np.array([SPORT]))
    ).toarray()
    assert counts.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_metadata_alone_can_tell_documents_apart() -> None:
    texts = [{"text": "one same text", "tags": [tag]} for tag in ("a", "b", "a", "b")]
    found = Pcem().fit_predict(task_of(texts, {0: FILM, 1: SPORT}, metadata="tags"))
    assert found.tolist() == [FILM, SPORT, FILM, SPORT]


def test_a_leaf_without_labelled_documents_is_never_chosen() -> None:
    texts = ["goal", "camera", "violin violin", *["unheard of"] * 5]
    found = Pcem().fit_predict(task_of(texts, {0: SPORT, 1: FILM, 2: MUSIC}))
    assert set(found.tolist()) <= {SPORT, FILM}
    # Music speaks for film, its sibling, and not for sport.
    assert found[2] == FILM
    with pytest.raises(DataError, match="No leaf has a labelled document"):
        Pcem().fit_predict(task_of(texts, {0: MUSIC}))


def test_small_and_odd_trees_and_documents_without_words() -> None:
    one = Taxonomy.from_paths([("only",)])
    assert Pcem().fit_predict(task_of(["x y", "?!"], {0: 1}, one)).tolist() == [1, 1]
    chain = Taxonomy.from_paths([("a", "b", "c")])
    assert Pcem().fit_predict(task_of(["goal", "film"], {0: 3}, chain)).tolist() == [3, 3]
    for system in (Pcem(), Pcem(score_unlabelled=True)):
        assert set(system.fit_predict(task_of(["?", "!", "..."], {0: SPORT, 1: FILM})).tolist()) <= {
            SPORT,
            FILM,
        }
    everything = task_of(["goal", "film"], {0: SPORT, 1: FILM})
    assert Pcem().fit_predict(everything).tolist() == [SPORT, FILM]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"smoothing": 0.0}, "smoothing must be above 0, not 0"),
        ({"level_weight": -1.0}, "level_weight must be above 0"),
        ({"rounds": -1}, "rounds must be at least 0, not -1"),
    ],
)
def test_parameters_that_make_no_sense_are_told(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Pcem(**given)
