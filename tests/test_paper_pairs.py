"""The pairs of the generative story."""

from __future__ import annotations

import numpy as np
import pytest

from himecat.input.builder import read_corpus
from himecat.input.corpus import Corpus, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.pairs import Relations, relate

TREE = Taxonomy.from_children({"a": {"x": {}, "y": {}}, "b": {}})
DOCUMENTS = [
    {"text": "red fox red", "by": ["ann", "bob"], "tags": "wild"},
    {"text": "blue car", "tags": ["wheels", "fast"]},
    {"text": "once", "by": "bob"},
]


@pytest.fixture
def corpus() -> Corpus:
    # "once" is dropped: the last document has no words.
    corpus = read_corpus(DOCUMENTS[:2], metadata=["by", "tags"])
    return read_corpus(DOCUMENTS, metadata=["by", "tags"]).aligned(
        corpus.words, {kind: column.vocabulary for kind, column in corpus.metadata.items()}
    )


def labelled(*pairs: tuple[int, str]) -> Supervision:
    return Supervision(np.array([row for row, _ in pairs]), np.array([TREE.find(name) for _, name in pairs]))


def named_pairs(found: Relations, corpus: Corpus) -> dict[str, list[list[str]]]:
    """The pairs with the anchors' names, which shows that the numbering is the one that was announced."""
    names = {found.anchor_start["label"] + node: TREE.title(node) for node in TREE}
    for kind, column in corpus.metadata.items():
        start = found.anchor_start.get(f"metadata:{kind}")
        if start is not None:
            names |= {start + i: f"{kind}={value}" for i, value in enumerate(column.vocabulary.names)}
    names |= {found.anchor_start["word"] + i: word for i, word in enumerate(corpus.words.names)}
    assert sorted(names) == list(range(found.n_anchors))
    return {
        name: [[names[anchor] for anchor in pairs[row].tolist()] for row in range(len(pairs))]
        for name, pairs in zip(found.names, found.pairs, strict=True)
    }


def test_every_pair_is_there_once(corpus: Corpus) -> None:
    found = relate(corpus, TREE, labelled((0, "x"), (2, "b")))
    assert named_pairs(found, corpus) == {
        "label": [["a/x"], [], ["b"]],
        "metadata:by": [["by=ann", "by=bob"], [], ["by=bob"]],
        "metadata:tags": [["tags=wild"], ["tags=wheels", "tags=fast"], []],
        "word": [["red", "fox", "red"], ["blue", "car"], []],
    }
    assert (found.n_documents, found.n_labels) == (3, len(TREE))
    edges = {
        (TREE.title(child), TREE.title(parent))
        for child, parent in zip(found.children, found.parents, strict=True)
    }
    assert edges == {("a", "ROOT"), ("b", "ROOT"), ("a/x", "a"), ("a/y", "a")}


def test_a_document_may_be_labelled_at_an_inner_node_and_twice(corpus: Corpus) -> None:
    found = relate(corpus, TREE, labelled((1, "a"), (1, "b")))
    assert named_pairs(found, corpus)["label"] == [[], ["a", "b"], []]


def test_without_hierarchy_no_labels_are_paired(corpus: Corpus) -> None:
    found = relate(corpus, TREE, labelled((0, "x")), hierarchy=False)
    assert len(found.children) == len(found.parents) == 0
    whole = relate(corpus, TREE, labelled((0, "x")))
    assert named_pairs(found, corpus) == named_pairs(whole, corpus)


def test_metadata_can_be_left_out_whole_or_by_type(corpus: Corpus) -> None:
    none = relate(corpus, TREE, labelled((0, "x")), metadata=[])
    assert none.names == ("label", "word")
    assert none.n_anchors == len(TREE) + len(corpus.words)
    one = relate(corpus, TREE, labelled((0, "x")), metadata={"tags"})
    assert one.names == ("label", "metadata:tags", "word")
    assert one.n_anchors == none.n_anchors + len(corpus.metadata["tags"].vocabulary)
    assert "by=ann" not in str(named_pairs(one, corpus))


def test_the_corpus_is_left_as_it_was(corpus: Corpus) -> None:
    before = corpus.tokens.values.copy()
    relate(corpus, TREE, labelled((0, "x")))
    assert np.array_equal(corpus.tokens.values, before)


def test_no_labels_at_all_are_no_pairs(corpus: Corpus) -> None:
    found = relate(corpus, TREE, Supervision(np.zeros(0, int), np.zeros(0, int)))
    assert len(found.pairs[0].values) == 0
    assert len(found.pairs[0]) == 3
