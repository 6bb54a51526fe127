"""MetaCat: its generative process as a network, the embedding of such a network, and the system as a whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.systems._hin import Edges, embed_network
from himecat.compare.systems.metacat import WINDOW, MetaCat, generative_network
from himecat.compare.systems.system import Task
from himecat.errors import DataError, UsageError
from himecat.input.builder import load_corpus
from himecat.input.corpus import Corpus, Ragged, Vocabulary
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.kernels.network_embedding import train_edges

ROW = ("one", "two", "three", "four", "five", "six", "seven", "eight")
# Enough to learn something from a small corpus, and no more.
SMALL = MetaCat(dimension=24, samples=1_000_000, beta=40, epochs=40)


def without_words(corpus: Corpus) -> Corpus:
    empty = Ragged.from_lists([[]] * len(corpus))
    return replace(corpus, words=Vocabulary((), np.zeros(0, np.int64)), tokens=empty)


@pytest.fixture(scope="module")
def letters_task(letters: Path) -> tuple[Task, np.ndarray]:
    dataset = open_dataset(letters)
    loaded = load_corpus(dataset.documents, Fields(metadata=dataset.metadata), min_count=5, max_tokens=300)
    truth = true_nodes(dataset, loaded)
    return Task(loaded.corpus, dataset.taxonomy, draw(dataset, truth, 0)), truth


def test_it_beats_chance_on_letters_and_names_leaves_and_does_not_depend_on_threads(
    letters_task: tuple[Task, np.ndarray],
) -> None:
    task, truth = letters_task
    found = SMALL.fit_predict(task)
    assert set(found.tolist()) <= set(task.taxonomy.leaves)
    test = np.setdiff1d(np.arange(len(truth)), task.supervision.rows)
    assert np.mean(found[test] == truth[test]) > 5 / task.taxonomy.n_leaves
    again = SMALL.fit_predict(Task(task.corpus, task.taxonomy, task.supervision, threads=2))
    assert found.tolist() == again.tolist()


def test_edges_run_along_the_arrows_of_the_generative_process() -> None:
    documents = [
        {"text": " ".join(ROW), "by": ["ann", "bob"], "tags": ["x"]},
        {"text": "three four", "by": ["ann"], "tags": ["x", "y"]},
        {"text": "rare", "by": [], "tags": []},
        {"text": " ".join(ROW), "by": [], "tags": []},
    ]
    corpus = read_corpus(documents, metadata=["by", "tags"], min_count=2)
    network = generative_network(corpus, np.array([1]), np.array([0]), 1, local=("tags",))
    names = (
        [("document", number) for number in range(4)]
        + [("class", 0)]
        + [("global", name) for name in corpus.metadata["by"].vocabulary.names]
        + [("word", name) for name in corpus.words.names]
        + [("local", name) for name in corpus.metadata["tags"].vocabulary.names]
        + [("context", name) for name in corpus.words.names]
    )
    assert sum(network.sizes) == len(names)
    edges = network.draw(20_000, np.random.default_rng(0))
    seen = {
        (names[source], names[target])
        for source, target in zip(edges.sources.tolist(), edges.targets.tolist(), strict=True)
    }
    assert {edge for edge in seen if edge[0][0] == "class"} == {(("class", 0), ("document", 1))}
    assert {edge for edge in seen if edge[0][0] == "global"} == {
        (("global", "ann"), ("document", 0)),
        (("global", "bob"), ("document", 0)),
        (("global", "ann"), ("document", 1)),
    }
    assert {target for source, target in seen if source == ("document", 1)} == {
        ("word", "three"),
        ("word", "four"),
        ("local", "x"),
        ("local", "y"),
    }
    # The kind of a target says which nodes stand against it.
    kinds = {"document": 0, "word": 3, "local": 4, "context": 5}
    assert [kinds[names[target][0]] for target in edges.targets.tolist()] == edges.kinds.tolist()
    contexts = {(one[1], other[1]) for one, other in seen if other[0] == "context"}
    assert {abs(ROW.index(one) - ROW.index(other)) for one, other in contexts} == set(range(1, WINDOW + 1))


def test_a_class_counts_as_much_as_the_words_of_a_document() -> None:
    corpus = read_corpus(["one two three four", "three four"])
    network = generative_network(corpus, np.array([0]), np.array([0]), 1, local=())
    of_class, of_global, of_words, of_local, _ = network.weights
    assert of_class == of_words / 2
    assert of_global == of_local == 0


def test_the_kernel_does_what_plain_numpy_does() -> None:
    rng = np.random.default_rng(3)
    vectors = (rng.random((6, 8), dtype=np.float32) - 0.5) * 2
    expected = vectors.astype(np.float64)
    sources, targets = np.array([0, 1, 0], np.int32), np.array([3, 4, 3], np.int32)
    # Only one node to draw, so that what is drawn is known.
    tables = np.full((1, 16), 5, dtype=np.int32)
    kinds, room = np.zeros(3, np.int8), np.zeros(8, np.float32)
    train_edges(vectors, sources, targets, kinds, tables, room, 2, 0.3, 0.0, np.uint64(1))
    for edge, (u, v) in enumerate(zip(sources, targets, strict=True)):
        rate, moved = 0.3 * (1 - edge / 3), np.zeros(8)
        for node, wanted in ((v, 1.0), (5, 0.0), (5, 0.0)):
            step = rate * (wanted - 1 / (1 + np.exp(-expected[u] @ expected[node])))
            moved += step * expected[node]
            expected[node] = expected[node] + step * expected[u]
        expected[u] += moved
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_kinds_without_nodes_and_networks_without_edges_are_no_trouble() -> None:
    links = Edges.between(np.array([0, 1]), np.array([2, 3]), 2)
    found = embed_network(
        lambda count, rng: Edges.mixed([links] * (count // 2), rng),
        [np.ones(2, np.int64), np.zeros(0, np.int64), np.ones(2, np.int64)],
        samples=20_000,
        dimension=5,
    )
    assert found[0] @ found[2] > found[0] @ found[3]
    nothing = without_words(read_corpus(["one", "two"]))
    network = generative_network(nothing, np.array([0]), np.array([0]), 0, local=())
    assert len(network.draw(10, np.random.default_rng(0))) == 0


def same_text_other_tags() -> Task:
    documents = [{"text": "one same text", "tags": ["xy"[number % 2]]} for number in range(40)]
    tree = Taxonomy.from_paths([("a",), ("b",)])
    corpus = read_corpus(documents, metadata="tags")
    return Task(corpus, tree, Supervision(np.arange(6), np.arange(6) % 2 + 1))


def test_local_metadata_is_read_by_the_classifier_and_global_metadata_is_not() -> None:
    task = same_text_other_tags()
    few = MetaCat(dimension=16, samples=200_000, beta=20, epochs=60)
    assert few.fit_predict(task).tolist() == [1, 2] * 20
    other = replace(few, local=()).fit_predict(task)
    assert len(set(other.tolist())) == 1


def test_odd_trees_and_documents() -> None:
    few = MetaCat(dimension=8, samples=5_000, beta=3, epochs=2)
    corpus = read_corpus(["red fox", "rare", "blue car", "red car", "red sea car"], min_count=2)
    assert not corpus.tokens.lengths.all()
    ragged = Taxonomy.from_paths([("a", "only"), ("b", "c", "d"), ("b", "c", "e"), ("f",)])
    only, d, inner = ragged.find("only"), ragged.find("d"), ragged.find("c")
    task = Task(corpus, ragged, Supervision(np.array([0, 2, 3]), np.array([only, d, inner])))
    # Leaves without labelled documents are not classes.
    assert set(few.fit_predict(task).tolist()) <= {only, d}
    one = Taxonomy.from_paths([("a",)])
    assert few.fit_predict(Task(corpus, one, Supervision(np.array([0]), np.array([1])))).tolist() == [1] * 5
    blank = without_words(corpus)
    found = few.fit_predict(Task(blank, ragged, Supervision(np.array([0, 1]), np.array([only, d]))))
    assert set(found.tolist()) <= {only, d}
    with pytest.raises(DataError, match="No leaf has a labelled document"):
        few.fit_predict(Task(corpus, ragged, Supervision(np.array([0]), np.array([inner]))))


def test_a_parameter_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="beta must be at least 0, not -1"):
        MetaCat(beta=-1)
    with pytest.raises(UsageError, match="local must be a list of metadata types, not the text 'tags'"):
        MetaCat(local="tags")  # type: ignore[arg-type]
