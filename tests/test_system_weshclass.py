"""The system `weshclass`: keywords, pseudo documents, a network per inner node, self-training, blocking."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.systems._language_model import learn_language
from himecat.compare.systems._topics import fit_topic, keywords_of_leaves, topic_of
from himecat.compare.systems._wesh_ensemble import Ensemble, LocalClassifier, WeSHClassSettings
from himecat.compare.systems._wesh_selftraining import LevelDescent, blocked, self_train, sharpened
from himecat.compare.systems.system import Task
from himecat.compare.systems.weshclass import (
    WeSHClass,
    make_pseudo_documents,
    skip_gram,
    weshclass_on,
)
from himecat.errors import DataError, UsageError
from himecat.evaluation.metrics import score
from himecat.input.corpus import Corpus, Ragged
from himecat.paper.synthesis import SyntheticDocuments
from himecat.paper.topdown import training_set
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

pytest.importorskip("torch")
pytest.importorskip("gensim")

# Leaves at three depths and a node with one child.
TREE = Taxonomy.from_paths(
    [("arts", "music", "jazz"), ("arts", "music", "opera"), ("arts", "film"), ("sport",), ("trade", "tax")]
)
JAZZ, OPERA, FILM, SPORT, TAX = (TREE.find(name) for name in ("jazz", "opera", "film", "sport", "tax"))
WORD_OF = {JAZZ: "swing", OPERA: "aria", FILM: "screen", SPORT: "goal", TAX: "duty"}
QUICK = WeSHClassSettings(beta=40, length=8, language_tokens=1500, epochs=30, rounds=2, round_steps=3)


def small_task(labelled: dict[int, int] | None = None, tree: Taxonomy = TREE, **more: Any) -> Task:
    """Forty documents, eight of each leaf, the first of each labelled; one more has no words at all."""
    texts = [f"{word} {word} the {word}" for _ in range(8) for word in WORD_OF.values()]
    labels = dict(enumerate(WORD_OF)) if labelled is None else labelled
    known = Supervision(np.array(list(labels)), np.array(list(labels.values())))
    return Task(read_corpus([*texts, "unique"], min_count=2), tree, known, **more)


def vectors_of(corpus: Corpus) -> Any:
    return np.eye(len(corpus.words), dtype=np.float32) * 3


def test_it_finds_leaves_of_the_sample_corpus() -> None:
    documents, tree = sample_documents(330), sample_taxonomy()
    truth = np.array([tree.find(document["labels"]) for document in documents])
    shown = np.array([row for row, path in enumerate(sample_split(documents)) if path is not None])
    corpus = read_corpus(documents, metadata=METADATA)
    system = WeSHClass(
        dimension=30, passes=20, beta=60, length=20, language_tokens=5000, epochs=100, rounds=1, round_steps=5
    )
    found = system.fit_predict(Task(corpus, tree, Supervision(shown, truth[shown]), threads=2))
    hidden = np.setdiff1d(np.arange(len(truth)), shown)
    assert set(found.tolist()) <= set(tree.leaves)
    assert score(tree, truth[hidden], found[hidden]).leaf.micro > 3 / tree.n_leaves


def test_the_same_seed_gives_the_same_leaves_on_any_number_of_threads() -> None:
    unsure = replace(QUICK, epochs=2, rounds=1)
    found = []
    for seed, threads in [(0, 1), (0, 2), (1, 1)]:
        task = small_task(seed=seed, threads=threads)
        found.append(weshclass_on(task, task.corpus, vectors_of(task.corpus), unsure).tolist())
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_leaves_at_any_depth_are_found_from_one_document_each() -> None:
    task = small_task()
    found = weshclass_on(task, task.corpus, vectors_of(task.corpus), QUICK)
    assert found[:40].tolist() == list(WORD_OF) * 8
    assert TREE.is_leaf(int(found[40]))


def test_a_leaf_without_labelled_documents_does_no_harm() -> None:
    labelled = {0: JAZZ, 2: FILM, 3: SPORT}
    task = small_task(labelled)
    found = weshclass_on(task, task.corpus, vectors_of(task.corpus), QUICK)
    assert found[:4][[0, 2, 3]].tolist() == [JAZZ, FILM, SPORT]
    assert set(found.tolist()) <= set(TREE.leaves)


def test_one_leaf_takes_all_documents() -> None:
    tree = Taxonomy.from_paths([("a", "b")])
    task = small_task({0: 2}, tree)
    assert weshclass_on(task, task.corpus, vectors_of(task.corpus), QUICK).tolist() == [2] * 41


def test_words_without_a_vector_are_not_read() -> None:
    task = small_task()
    nothing = weshclass_on(task, task.corpus, np.zeros((len(task.corpus.words), 4), np.float32), QUICK)
    assert len(set(nothing.tolist())) == 1
    vectors = vectors_of(task.corpus)
    vectors[task.corpus.words.index["the"]] = 0
    found = weshclass_on(task, task.corpus, vectors, QUICK)
    assert found[:40].tolist() == list(WORD_OF) * 8


@pytest.mark.parametrize("rows", [3, 99])
def test_vectors_of_other_words_are_refused(rows: int) -> None:
    task = small_task()
    with pytest.raises(UsageError, match="vectors of the shape"):
        weshclass_on(task, task.corpus, np.ones((rows, 4), dtype=np.float32), QUICK)


def test_no_labelled_leaf_is_an_error() -> None:
    task = small_task({0: TREE.find("arts")})
    with pytest.raises(DataError, match="No leaf has a labelled document"):
        weshclass_on(task, task.corpus, vectors_of(task.corpus), QUICK)


@pytest.mark.parametrize(("name", "value"), [("alpha", 1.5), ("gamma", -0.1), ("beta", -1), ("sentence", 0)])
def test_a_parameter_out_of_range_is_an_error(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"{name} must be"):
        WeSHClass(**{name: value})


def test_keywords_are_words_of_one_leaf_and_no_function_words() -> None:
    documents = Ragged.from_lists([[0, 1, 2], [0, 1, 3], [0, 4], [0, 4, 5]])
    names = ["common", "the", "swing", "sax", "aria", "tenor"]
    found = keywords_of_leaves(documents, names, np.arange(4), np.array([JAZZ, JAZZ, OPERA, OPERA]), 2)
    assert sorted(found[JAZZ].tolist()) == [2, 3]
    assert found[OPERA].tolist() == [4, 5]


def test_an_inner_category_has_a_component_for_every_child_with_keywords() -> None:
    keywords = {JAZZ: np.array([0, 1]), FILM: np.array([2]), SPORT: np.array([3])}
    found = [topic_of(TREE, node, keywords, np.eye(4, dtype=np.float32)) for node in TREE]
    topics = {node: topic for node, topic in enumerate(found) if node and topic is not None}
    # `trade`, `tax` and `opera` have no keywords.
    assert sorted(topics) == sorted([TREE.find("arts"), TREE.find("music"), JAZZ, FILM, SPORT])
    assert len(topics[TREE.find("arts")].means) == 2
    assert len(topics[TREE.find("music")].means) == 1


def test_a_keyword_may_move_to_the_component_it_is_close_to() -> None:
    rng = np.random.default_rng(0)
    left, right = np.eye(20)[0], np.eye(20)[1]
    points = np.concatenate([left + 0.1 * rng.normal(size=(9, 20)), right + 0.1 * rng.normal(size=(9, 20))])
    vectors = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    # Word 0 is given to the wrong group.
    topic = fit_topic([np.arange(1, 9), np.array([0, *range(9, 18)])], vectors)
    assert np.allclose(topic.shares, 0.5, atol=0.01)
    assert topic.means[0] @ left > 0.9
    assert topic.means[1] @ right > 0.9


def test_the_language_model_learns_what_follows_and_draws_rare_words() -> None:
    documents = Ragged.from_lists([[0, 1, 2, 3], [2, 3, 0, 1], [0, 1, 0, 1], [2, 3, 2, 3]] * 30)
    vectors = np.eye(6, dtype=np.float32)
    model = learn_language(documents, vectors, tokens=6000)
    texts = model.texts_from(np.array([0, 2] * 50), 2, seed=1)
    assert np.mean(texts[:, 1] == texts[:, 0] + 1) > 0.9
    assert texts.tolist() == model.texts_from(np.array([0, 2] * 50), 2, seed=1).tolist()
    unsure = learn_language(documents, vectors, common_words=2, tokens=0)
    drawn = unsure.texts_from(np.zeros(200, dtype=np.int64), 3, seed=0)
    assert set(drawn.ravel().tolist()) == set(range(6))


@pytest.mark.parametrize("documents", [[], [[]], [[0]], [[0], [0]]])
def test_a_language_model_of_hardly_any_text_still_writes(documents: list[list[int]]) -> None:
    model = learn_language(Ragged.from_lists(documents), np.ones((1, 3), dtype=np.float32), tokens=100)
    assert model.texts_from(np.array([0]), 3, seed=0).tolist() == [[0, 0, 0]]


def test_pseudo_documents_begin_each_sentence_with_a_word_of_their_category() -> None:
    task = small_task()
    corpus = task.corpus
    keywords = {leaf: np.array([corpus.words.index[word]]) for leaf, word in WORD_OF.items()}
    made = make_pseudo_documents(
        task, corpus.tokens, vectors_of(corpus) / 3, keywords, replace(QUICK, sentence=2)
    )
    # Documents have four words on average: two sentences of two.
    assert set(made.of(JAZZ).lengths.tolist()) == {4}
    assert len(made.of(JAZZ)) == 40
    starts = made.of(JAZZ).values.reshape(40, 2, 2)[:, :, 0]
    assert (starts == keywords[JAZZ][0]).mean() > 0.9
    assert not len(made.of(TAX))


def test_labelled_documents_make_up_their_share_of_the_training_texts() -> None:
    task = small_task()
    pseudo = {FILM: np.zeros((50, 1), np.int32), TREE.find("music"): np.ones((50, 1), np.int32)}
    made = SyntheticDocuments.from_matrices(pseudo, len(TREE))
    real = task.corpus.tokens.take(task.leaf_rows)
    texts = training_set(TREE, TREE.find("arts"), real, task.supervision, made, 0.2, smoothing=0.2)
    targets = texts.soft_targets(np.arange(len(texts)))
    # Three labelled documents lie below `arts`; a fifth of a hundred is not reached with six of each.
    assert len(texts) == len(texts.documents) == 100 + 3 * 7
    assert np.allclose(targets.sum(axis=1), 1.0)
    assert np.allclose(np.sort(targets[:100]), [0.1, 0.9])
    children = TREE.children[TREE.find("arts")]
    assert np.allclose(targets[100:].sum(axis=0)[children.index(FILM)], 7)


def two_level_ensemble(task: Task) -> Ensemble:
    local = {node: LocalClassifier() for node in (0, TREE.find("arts"), TREE.find("music"))}
    for node, cnn in local.items():
        cnn.initialise(len(task.corpus.words), len(TREE.children[node]), np.random.default_rng(node))
    return Ensemble(TREE, vectors_of(task.corpus) / 3, local)


def test_a_category_is_as_likely_as_the_choices_on_its_path() -> None:
    task = small_task()
    ensemble = two_level_ensemble(task)
    found = ensemble.probabilities(task.corpus.tokens, np.arange(41))
    assert np.allclose(found[:, list(TREE.leaves)].sum(axis=1), 1.0, atol=1e-5)
    assert np.array_equal(found[:, TAX], found[:, TREE.find("trade")])
    assert np.allclose(found[40, [JAZZ, FILM, SPORT]], [1 / 12, 1 / 6, 1 / 3])
    shallow = ensemble.probabilities(task.corpus.tokens, np.arange(41), level=0)
    assert np.array_equal(shallow[:, [SPORT]], found[:, [SPORT]])
    assert not shallow[:, JAZZ].any()


def test_a_step_of_the_ensemble_follows_the_slope_of_the_divergence() -> None:
    task, level = small_task(), 2
    ensemble = two_level_ensemble(task)
    rows, classes = np.arange(5), ensemble.classes_at(level)
    targets = np.random.default_rng(0).dirichlet(np.ones(len(classes)), 5).astype(np.float32)

    def divergence() -> float:
        found = ensemble.probabilities(task.corpus.tokens, rows)[:, classes].astype(np.float64)
        return float(-(targets * np.log(found)).sum(axis=1).mean())

    weights = ensemble.local[0].network.weights
    before, base = weights.vector.copy(), divergence()
    slopes = []
    bias = len(before) - len(TREE.children[0])
    for at in range(bias, len(before)):
        weights.vector[at] += 0.01
        slopes.append((divergence() - base) / 0.01)
        weights.vector[:] = before
    LevelDescent(ensemble, task.corpus.tokens, level, rate=1.0, momentum=0.0).step(rows, targets)
    assert np.allclose((before - weights.vector)[bias:], slopes, atol=5e-3)


def test_targets_are_sharper_and_rarer_classes_gain() -> None:
    found = np.array([[0.6, 0.4], [0.9, 0.1], [0.9, 0.1]], dtype=np.float32)
    targets = sharpened(found)
    assert np.allclose(targets.sum(axis=1), 1.0)
    assert targets[0, 1] > found[0, 1]
    assert targets[1, 0] > found[1, 0]
    assert np.isfinite(sharpened(np.array([[1.0, 0.0]], dtype=np.float32))).all()


def test_documents_with_a_flat_choice_are_blocked_but_not_at_the_root() -> None:
    found = np.zeros((2, len(TREE)), dtype=np.float32)
    arts, music = TREE.find("arts"), TREE.find("music")
    found[:, [arts, SPORT, TREE.find("trade")]] = [0.4, 0.3, 0.3]
    found[0, [music, FILM]] = [0.21, 0.19]
    found[1, [music, FILM]] = [0.4, 0.0]
    assert blocked(TREE, found, [arts, SPORT, TREE.find("trade")], 0, 0.9).tolist() == [0, 0]
    # The first document's best class is `sport`, a leaf that level 1 has decided on.
    assert blocked(TREE, found, [SPORT, music, FILM, TAX], 1, 0.9).tolist() == [0, 0]
    found[:, SPORT] = 0.1
    found[:, TAX] = 0.1
    assert blocked(TREE, found, [SPORT, music, FILM, TAX], 1, 0.9).tolist() == [arts, 0]


def test_labelled_documents_are_never_blocked_and_blocking_can_be_switched_off() -> None:
    task = small_task()
    unsure = two_level_ensemble(task)
    for classifier in unsure.local.values():
        classifier.network.weights.output[:] = 0.0
    # Jazz documents are surely in `arts`, and nothing is known below.
    arts_first = np.eye(3, dtype=np.float32)[[TREE.children[0].index(TREE.find("arts"))] * 40]
    descent = LevelDescent(unsure, task.corpus.tokens, 0, 0.1, 0.9)
    for _ in range(60):
        descent.step(np.arange(40), arts_first)
    stops = self_train(task, unsure, task.corpus.tokens, replace(QUICK, rounds=0))
    assert not stops[:5].any()
    assert set(stops[5:40].tolist()) == {TREE.find("arts")}
    assert not self_train(task, unsure, task.corpus.tokens, replace(QUICK, rounds=0, block=False)).any()


def test_a_blocked_document_gets_a_leaf_below_the_node_it_was_blocked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = small_task()
    stops = np.zeros(41, dtype=np.int64)
    stops[4] = TREE.find("music")
    monkeypatch.setattr("himecat.compare.systems.weshclass.self_train", lambda *_: stops)
    found = weshclass_on(task, task.corpus, vectors_of(task.corpus), QUICK)
    assert int(found[4]) in (JAZZ, OPERA)
    assert found[:4].tolist() == [JAZZ, OPERA, FILM, SPORT]


def test_self_training_ends_when_no_label_changes() -> None:
    task = small_task()
    ensemble = two_level_ensemble(task)
    before = ensemble.local[0].network.weights.vector.copy()
    self_train(task, ensemble, task.corpus.tokens, replace(QUICK, rounds=9, self_rate=1e-9))
    assert np.allclose(before, ensemble.local[0].network.weights.vector, atol=1e-6)
    taught = two_level_ensemble(task)
    self_train(task, taught, task.corpus.tokens, replace(QUICK, rounds=30, round_steps=30, self_rate=0.1))
    found = taught.probabilities(task.corpus.tokens, np.arange(5))[:, list(TREE.leaves)]
    # The labelled documents alone teach the ensemble what they are.
    assert [TREE.leaves[leaf] for leaf in found.argmax(axis=1)] == list(WORD_OF)


def test_self_training_keeps_matrix_products_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    from threadpoolctl import threadpool_info, threadpool_limits

    seen = []
    step = LevelDescent.step

    def watched(self: LevelDescent, *given: Any) -> None:
        seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        step(self, *given)

    monkeypatch.setattr(LevelDescent, "step", watched)
    task = small_task()
    with threadpool_limits(2):
        self_train(task, two_level_ensemble(task), task.corpus.tokens, QUICK)
    assert set(seen) == {1}


def test_the_language_model_is_on_one_thread_in_a_process_that_has_not_loaded_torch() -> None:
    program = """
import sys
import numpy as np
from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.systems.system import Task
from himecat.compare.systems import weshclass
from himecat.compare.systems._wesh_ensemble import WeSHClassSettings

corpus = read_corpus(["goal match", "law vote"])
tree = Taxonomy.from_paths([("a",), ("b",)])
task = Task(corpus, tree, Supervision(np.array([0, 1]), np.array([1, 2])))
learn = weshclass.learn_language

def watched(*given, **options):
    import torch
    print(torch.get_num_threads())
    return learn(*given, **options)

weshclass.learn_language = watched
assert "torch" not in sys.modules
few = WeSHClassSettings(beta=1, language_tokens=0)
weshclass.make_pseudo_documents(task, corpus.tokens, np.eye(4, dtype="f4"), {1: np.array([0])}, few)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr


def test_skip_gram_vectors_are_the_same_for_the_same_seed() -> None:
    corpus = read_corpus(["red fox runs", "red hen runs", "red fox"])
    first, second, other = (skip_gram(corpus, 2, 8, 5, 2, seed) for seed in (0, 0, 1))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
    assert not first[corpus.words.index["hen"]].any()
    assert not skip_gram(corpus, 9, 8, 5, 2, 0).any()
