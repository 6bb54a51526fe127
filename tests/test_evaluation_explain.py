"""What speaks for a label, and in a document."""

from __future__ import annotations

import json

import numpy as np
import pytest

from himecat.evaluation.explain import DocumentExplanation, Evidence, explain_label, explain_row
from himecat.input.builder import read_corpus
from himecat.input.corpus import Corpus, Vocabulary
from himecat.input.taxonomy.tree import Taxonomy
from himecat.views.space import JointSpace

TREE = Taxonomy.from_children({"a": {"x": {}, "y": {}}, "b": {"only": {}}, "c": {}})
WORDS = ("cat", "dog", "car")
AXES = np.eye(len(TREE), dtype=np.float32)


def unit(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    row = np.zeros(len(TREE), dtype=np.float32)
    row[: len(values)] = values
    return row / np.linalg.norm(row)


# Node numbers are axes: ROOT 0, a 1, b 2, c 3, x 4, y 5, only 6.
SPACE = JointSpace(
    taxonomy=TREE,
    labels=AXES,
    words=np.stack([unit(0, 2, 0, 0, 1), unit(0, 0, 3, 0, 0, 1, 1), unit(0, 0, 0, 1)]),
    documents=AXES[:0],
    metadata={"by": np.stack([unit(0, 1, 1), unit(0, 0, 0, 1)])},
    vocabulary=Vocabulary(WORDS, np.ones(3, dtype=np.int64)),
    values={"by": Vocabulary(("ann", "bob"), np.ones(2, dtype=np.int64))},
)


def corpus(text: str, **metadata: str) -> Corpus:
    return read_corpus([{"text": text, **metadata}], metadata=list(metadata)).aligned(
        SPACE.vocabulary, SPACE.values
    )


def test_a_label_is_explained_by_what_lies_nearest() -> None:
    found = explain_label(SPACE, TREE.find("a"), 2)
    assert found.path == ("a",)
    assert [one.name for one in found.words] == ["cat", "dog"]
    assert found.words[0].cosine == pytest.approx(2 / np.sqrt(5))
    assert [one.name for one in found.metadata["by"]] == ["ann", "bob"]
    assert len(found.labels) == 2
    assert "a" not in {one.name for one in found.labels}


def test_neither_a_label_itself_nor_the_root_is_a_neighbour() -> None:
    found = explain_label(SPACE, TREE.find("x"), 5)
    assert {one.name for one in found.labels} == {"a", "b", "c", "a/y", "b/only"}


def test_evidence_weighs_a_label_against_its_siblings() -> None:
    found = explain_row(SPACE, corpus("cat cat dog car", by="ann"), 0, TREE.find("a"))
    # a against the mean of b and c: cat speaks for a, dog for b, car for c, ann half for a and half for b.
    assert [(one.kind, one.name, one.count) for one in found] == [
        ("word", "cat", 2),
        ("metadata:by", "ann", 1),
    ]
    assert found[0].weight == pytest.approx((1 + np.log(2)) * 2 / np.sqrt(5))
    assert found[1].weight == pytest.approx((1 - 0.5) / np.sqrt(2))


def test_an_only_child_is_weighed_by_its_own_direction() -> None:
    (found,) = explain_row(SPACE, corpus("dog cat"), 0, TREE.find("only"))
    assert found.name == "dog"
    assert found.weight == pytest.approx(1 / np.sqrt(11))


def test_what_is_not_known_gives_no_evidence() -> None:
    assert explain_row(SPACE, corpus("unheard of", by="zoe"), 0, TREE.find("a")) == []
    assert explain_row(SPACE, corpus("cat"), 0, 0) == []
    assert len(explain_row(SPACE, corpus("cat", by="ann"), 0, TREE.find("a"), count=1)) == 1


def test_equal_weights_come_by_name() -> None:
    space = JointSpace(TREE, AXES, AXES[[1, 1, 1]], AXES[:0], {}, SPACE.vocabulary, {})
    found = explain_row(space, corpus("dog car cat"), 0, TREE.find("a"))
    assert [one.name for one in found] == ["car", "cat", "dog"]


def test_explanations_are_plain_json() -> None:
    label = json.loads(json.dumps(explain_label(SPACE, TREE.find("x"), 2).as_dict()))
    assert label["path"] == ["a", "x"]
    assert label["words"][0] == {"name": "cat", "cosine": round(1 / 5**0.5, 6)}
    assert set(label["metadata"]) == {"by"}
    evidence = explain_row(SPACE, corpus("cat"), 0, TREE.find("a"))
    document = DocumentExplanation(("a",), (0.5,), evidence).as_dict()
    assert json.loads(json.dumps(document)) == {
        "path": ["a"],
        "confidence": [0.5],
        "evidence": [{"kind": "word", "name": "cat", "count": 1, "weight": round(2 / 5**0.5, 6)}],
    }
    assert Evidence("word", "cat", 1, 0.5).kind == "word"


def test_evidence_for_a_label_that_was_asked_for_names_it() -> None:
    plain = DocumentExplanation(("a",), (0.9,), [], ("b", "only")).as_dict()
    assert (plain["path"], plain["label"]) == (["a"], ["b", "only"])
    assert "label" not in DocumentExplanation(("a",), (0.9,), []).as_dict()
