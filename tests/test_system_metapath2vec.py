"""The system `metapath2vec`: walks along meta-paths of the paper's graph, and skip-gram on them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.systems._graph import Graph, build_graph
from himecat.compare.systems.system import with_metadata_words
from himecat.errors import UsageError
from small_tasks import ODD_TREES, check_on_letters, check_on_odd_tree

pytest.importorskip("torch")

from himecat.compare.systems.metapath2vec import Metapath2vec, Walks, node_vectors, pairs_on

TREE = Taxonomy.from_paths([("arts", "music"), ("arts", "film"), ("sport",)])
MUSIC, SPORT = TREE.find("music"), TREE.find("sport")
DOCUMENTS = [
    {"text": "jazz jazz band", "by": ["ann", "bob"], "tags": ["x"]},
    {"text": "goal", "by": ["ann"]},
    {"text": "..."},
    {"text": "goal match", "tags": ["x"]},
]
FEW: dict[str, Any] = {"beta": 60, "epochs": 20, "rounds": 2, "language_tokens": 3000}
FEWEST: dict[str, Any] = {"beta": 10, "epochs": 2, "rounds": 1, "language_tokens": 1000}


def small_graph() -> Graph:
    corpus = read_corpus(DOCUMENTS, metadata=["by", "tags"])
    return build_graph(corpus, TREE, Supervision(np.array([0, 1]), np.array([MUSIC, SPORT])))


def listed(walks: Walks) -> list[list[int]]:
    return [walk for some in walks for walk in some.tolist()]


def two_circles() -> Graph:
    """Ten documents with words 0 to 3, ten with words 4 to 7."""
    words = np.array([circle * 4 + word for circle in (0, 1) for _ in range(10) for word in range(4)])
    documents = 8 + np.repeat(np.arange(20), 4)
    return Graph(28, 20, {"word": (words, documents)}, np.arange(8, dtype=np.int32))


def test_every_word_of_the_merged_corpus_is_a_node_with_the_documents_it_stands_in() -> None:
    merged = with_metadata_words(read_corpus(DOCUMENTS, metadata=["by", "tags"]))
    graph = small_graph()
    linked = graph.linked()
    assert len(graph.word_nodes) == len(merged.words)
    first_document = graph.n_nodes - graph.n_documents
    for word, node in enumerate(graph.word_nodes.tolist()):
        stands_in = [row for row in range(len(merged)) if word in merged.tokens[row]]
        assert (linked[node] - first_document).tolist() == stands_in


def test_labels_are_linked_to_their_family_and_their_documents() -> None:
    graph = small_graph()
    first_document = graph.n_nodes - graph.n_documents
    assert graph.linked()[MUSIC].tolist() == [TREE.find("arts"), first_document]
    assert graph.linked()[0].tolist() == sorted([TREE.find("arts"), SPORT])


def test_a_word_that_occurs_twice_is_walked_to_twice_as_often_but_is_one_edge() -> None:
    graph = small_graph()
    words = read_corpus(DOCUMENTS).words.index
    jazz, band = graph.word_nodes[words["jazz"]], graph.word_nodes[words["band"]]
    first_document = graph.n_nodes - graph.n_documents
    assert sorted(graph.neighbours("word")[first_document].tolist()) == sorted([jazz, jazz, band])
    children, parents = graph.distinct_edges()
    assert ((children == jazz) & (parents == first_document)).sum() == 1


def test_walks_keep_to_one_meta_path_and_to_its_edges() -> None:
    graph = small_graph()
    first_document = graph.n_nodes - graph.n_documents
    edges = {kind: graph.neighbours(kind) for kind in graph.edges}
    walks = listed(Walks(graph, per_node=3, length=9))
    kinds_seen = set()
    for walk in walks:
        kinds = {
            kind
            for kind, neighbours in edges.items()
            if all(there in neighbours[here] for here, there in pairwise(walk))
        }
        assert len(kinds) == 1
        kinds_seen |= kinds
        if kinds != {"hierarchy"}:
            assert [node >= first_document for node in walk] == [True, False] * 4 + [True]
    assert kinds_seen == set(graph.edges)


def test_walks_start_from_every_label_and_from_every_document_that_has_the_edge() -> None:
    graph = small_graph()
    walks = listed(Walks(graph, per_node=2, length=5))
    # 5 labels, 2 labelled documents, 2 with `by`, 2 with `tags`, 3 with words.
    assert len(walks) == len(Walks(graph, per_node=2, length=5)) == 2 * (5 + 2 + 2 + 2 + 3)
    empty = graph.n_nodes - graph.n_documents + 2
    assert not any(empty in walk for walk in walks)


def test_walks_are_the_same_each_time_and_differ_by_seed() -> None:
    graph = small_graph()
    walks = Walks(graph, per_node=3, length=20, seed=4)
    assert listed(walks) == listed(walks)
    assert walks.visits().sum() == len(walks) * 20
    assert listed(walks) != listed(Walks(graph, per_node=3, length=20, seed=5))


def test_pairs_lie_within_the_window_of_one_walk_and_near_ones_are_more_often() -> None:
    walks = np.arange(2000, dtype=np.int32).reshape(50, 40)
    nodes, others = pairs_on(walks, 4, np.random.default_rng(0))
    assert (nodes // 40 == others // 40).all()
    apart = np.bincount(np.abs(nodes - others))
    assert len(apart) == 5
    assert apart[0] == 0
    # Distances 1 to 4 are reached by 4, 3, 2 and 1 of the 4 possible windows.
    np.testing.assert_allclose(apart[1:] / apart[1], [1.0, 0.75, 0.5, 0.25], atol=0.08)
    assert set(zip(nodes[:3].tolist(), others[:3].tolist(), strict=True)) >= {(0, 1)}


def test_words_of_the_same_documents_come_to_lie_together() -> None:
    vectors = node_vectors(two_circles(), Metapath2vec(dimension=16, walks_per_node=20, walk_rate=0.1))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit[:8] @ unit[:8].T
    within = np.kron(np.eye(2), np.ones((4, 4))).astype(bool)
    assert cosines[within].min() > cosines[~within].max() + 0.3


def test_the_same_seed_gives_the_same_vectors() -> None:
    first, again, other = (
        node_vectors(two_circles(), Metapath2vec(dimension=8, walks_per_node=2), seed=seed)
        for seed in (3, 3, 4)
    )
    assert (first == again).all()
    assert (first != other).any()


def test_a_graph_without_edges_has_no_vectors() -> None:
    nothing = np.zeros(0, dtype=np.int32)
    graph = Graph(3, 2, {"hierarchy": (nothing, nothing), "word": (nothing, nothing)}, nothing)
    assert not node_vectors(graph, Metapath2vec(dimension=4)).any()


def test_a_walk_of_one_node_is_refused() -> None:
    with pytest.raises(UsageError, match="walk_length must be at least 2, not 1"):
        Metapath2vec(walk_length=1)


def test_it_finds_leaves_of_the_sample_corpus() -> None:
    check_on_letters(Metapath2vec(dimension=32, walk_length=40, walk_rate=0.05, **FEW))


@pytest.mark.parametrize(("paths", "labels"), ODD_TREES)
def test_odd_trees_and_empty_documents_are_placed_the_same_each_time(
    paths: list[tuple[str, ...]], labels: dict[int, str]
) -> None:
    check_on_odd_tree(Metapath2vec(dimension=8, walk_length=10, **FEWEST), paths, labels)
