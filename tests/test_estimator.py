"""The estimator from raw input to paths, with small settings."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn import clone
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import estimator_checks

from estimators import estimator
from himecat import Default, HiMeCat, Paper, Taxonomy, read_corpus
from himecat.classifier.assignments import node_probabilities
from himecat.errors import DataError, UsageError
from himecat.evaluation.explain import LabelExplanation
from himecat.input.corpus import Ragged, Supervision
from himecat.input.problems import Problems
from himecat.methods import hyperparameters, resolve_method
from himecat.paper.flat_classifier import TrainingSet
from himecat.paper.logistic import mean_vectors
from himecat.paper.registry import register_classifier
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

TOPICS = {"x": ("a", "x"), "y": ("a", "y"), "z": ("b", "z")}
TREE = {"a": {"x": None, "y": None}, "b": {"z": None}}
# The default way, in few dimensions.
DEFAULT: dict[str, Any] = {"min_count": 2, "dimension": 16, "threads": 1}
# The paper's way, with a fraction of its training.
SMALL: dict[str, Any] = {
    "min_count": 2,
    "dimension": 16,
    "space": "sampled",
    "classifier": "kim-cnn",
    "samples": 300_000,
    "rate": 0.04,
    "beta": 20,
    "neighbours": 8,
    "concentration": 150,
    "epochs": 8,
    "batch_size": 16,
    "min_steps": 0,
    "filter_maps": 6,
    "threads": 1,
}
# The paper's way without the network.
LOGISTIC = SMALL | {"classifier": "mean-logistic", "samples": 60_000}

Documents = list[dict[str, Any]]


def topic_documents(n: int = 90, seed: int = 0) -> Documents:
    """Documents of three topics in turn, with their true labels; authors and tags are missing here and there."""
    rng = np.random.default_rng(seed)
    documents: Documents = []
    for row in range(n):
        topic = list(TOPICS)[row % 3]
        words = [
            f"{topic}{rng.integers(8)}" if rng.random() < 0.7 else f"any{rng.integers(20)}" for _ in range(9)
        ]
        document: dict[str, Any] = {"id": f"d{row}", "text": " ".join(words), "labels": list(TOPICS[topic])}
        document["by"] = [f"{topic}-author{rng.integers(4)}"] if rng.random() < 0.8 else []
        document["tags"] = [f"{topic}-tag"] if rng.random() < 0.5 else []
        documents.append(document)
    return documents


def partly_labelled(documents: Documents, n: int = 15) -> Documents:
    """The same documents, of which only the first n show their labels."""
    return [
        document | {"labels": document["labels"] if row < n else []} for row, document in enumerate(documents)
    ]


def small(**options: Any) -> HiMeCat:
    return estimator(**({"taxonomy": TREE, "metadata": ["by", "tags"]} | SMALL | options))


def quick(**options: Any) -> HiMeCat:
    return estimator(**({"taxonomy": TREE, "metadata": ["by", "tags"]} | DEFAULT | options))


@pytest.fixture(scope="module")
def by_default() -> HiMeCat:
    return quick().fit(partly_labelled(topic_documents()))


@pytest.fixture(scope="module")
def by_the_paper() -> HiMeCat:
    return small().fit(partly_labelled(topic_documents()))


@pytest.fixture(params=["by_default", "by_the_paper"])
def fitted(request: pytest.FixtureRequest) -> HiMeCat:
    """A fitted model, whichever way it was fitted; read it only."""
    model: HiMeCat = request.getfixturevalue(request.param)
    return model


NEW = topic_documents(60, seed=7)


# -- what it learns ------------------------------------------------------------------------------------


def test_new_documents_find_their_way(fitted: HiMeCat) -> None:
    found = fitted.predict(NEW, as_tuples=True)
    assert sum(path == tuple(document["labels"]) for path, document in zip(found, NEW, strict=True)) >= 58
    assert fitted.score(NEW, [document["labels"] for document in NEW]) >= 0.96


def test_an_uneven_tree_of_three_levels_is_learned() -> None:
    """The paper's way on the sample corpus: leaves at every level, a name at two places, metadata with gaps."""
    documents, tree = sample_documents(300), sample_taxonomy()
    labels = sample_split(documents, per_leaf=4)
    model = estimator(tree, METADATA, **(SMALL | {"samples": 1_500_000, "beta": 40}))
    model.fit(documents, labels)
    hidden = [row for row, path in enumerate(labels) if path is None]
    placed = model.assign([documents[row] for row in hidden])
    assert {tree.depths[node] for node in placed.nodes} == {1, 2, 3}
    hits = [placed.path(place) == tuple(documents[row]["labels"]) for place, row in enumerate(hidden)]
    # Chance is 1 in 22; this is a fraction of the usual training.
    assert np.mean(hits) > 0.3


def test_the_attributes_of_a_fitted_model(fitted: HiMeCat) -> None:
    assert fitted.paths_ == list(TOPICS.values())
    assert fitted.taxonomy_ == Taxonomy.from_children({"a": {"x": {}, "y": {}}, "b": {"z": {}}})
    assert fitted.space_.documents.shape == (90, 16)
    assert set(fitted.space_.metadata) == {"by", "tags"}
    assert fitted.method_ == resolve_method(fitted.method)
    assert [str(problem) for problem in fitted.problems_] == []


def test_the_history_is_that_of_the_sampled_space(by_default: HiMeCat, by_the_paper: HiMeCat) -> None:
    # The other space is found in closed form: there is no course to tell of.
    assert by_default.history_ == []
    history = by_the_paper.history_
    assert history[0].objective["word"] < history[-1].objective["word"]


# -- the forms of input --------------------------------------------------------------------------------


def as_lines(documents: Documents, file: Path) -> Path:
    text = "".join(json.dumps(document) + "\n" for document in documents)
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(text.encode()))
    else:
        file.write_text(text)
    return file


def test_every_form_of_input_gives_the_same_model(tmp_path: Path) -> None:
    documents = partly_labelled(topic_documents())
    bare = [{key: value for key, value in document.items() if key != "labels"} for document in documents]
    labels = [document["labels"] or None for document in documents]
    tree_file = tmp_path / "tree.yaml"
    tree_file.write_text("a: [x, y]\nb: [z]\n")
    corpus = read_corpus(documents, metadata=["by", "tags"], min_count=2)
    tree = Taxonomy.from_paths(TOPICS.values())
    supervision = Supervision(
        np.arange(15), np.array([tree.find(document["labels"]) for document in documents[:15]])
    )
    table = pd.DataFrame(documents)
    fits: dict[str, tuple[Any, Any, Any]] = {
        "dicts": (documents, None, TREE),
        "dicts and paths": (bare, labels, tree),
        "dicts and joined paths": (bare, ["/".join(path) if path else None for path in labels], tree),
        "dicts and leaf names": (bare, [path[-1] if path else None for path in labels], tree),
        "dicts with other labels": ([d | {"labels": "x"} for d in bare], labels, tree),
        "data frame": (table, None, str(tree_file)),
        "data frame and series": (
            table.drop(columns="labels"),
            pd.Series(labels, index=range(90, 0, -1)),
            tree_file,
        ),
        "corpus and supervision": (corpus, supervision, tree),
        "corpus and labels": (corpus, labels, tree),
        "lines": (as_lines(documents, tmp_path / "d.jsonl"), None, tree),
        "packed lines": (str(as_lines(documents, tmp_path / "d.jsonl.gz")), None, tree),
        "generator": ((document for document in documents), None, tree),
    }
    expected = None
    for name, (X, y, taxonomy) in fits.items():
        model = quick(taxonomy=taxonomy).fit(X, y)
        found = model.predict_proba(NEW).tobytes() + model.transform(NEW).tobytes()
        expected = expected or found
        assert found == expected, name


def test_new_documents_may_come_in_every_form(fitted: HiMeCat, tmp_path: Path) -> None:
    expected = fitted.predict_proba(NEW).tobytes()
    forms = [
        pd.DataFrame(NEW),
        as_lines(NEW, tmp_path / "new.jsonl"),
        read_corpus(NEW, metadata=["tags", "by"]),
        (document for document in NEW),
    ]
    for form in forms:
        assert fitted.predict_proba(form).tobytes() == expected
    texts = [document["text"] for document in NEW]
    assert fitted.predict_proba(texts).shape == (60, 3)


def test_plain_texts_are_enough() -> None:
    documents = topic_documents()
    texts = [document["text"] for document in documents]
    labels = [document["labels"][-1] if row < 15 else None for row, document in enumerate(documents)]
    model = quick(metadata=[]).fit(texts, labels)
    assert model.space_.metadata == {}
    assert [str(note) for note in model.problems_] == ["No metadata fields were named: text alone is used."]
    found = model.predict([document["text"] for document in NEW], as_tuples=True)
    assert np.mean([path == tuple(d["labels"]) for path, d in zip(found, NEW, strict=True)]) > 0.9


@pytest.mark.parametrize(
    "nothing", [None, float("nan"), np.float32("nan"), "", "  ", [], (), pd.NA, np.array([])]
)
def test_what_stands_for_no_label(nothing: Any) -> None:
    documents = topic_documents(30)
    expected = quick().fit(documents, [d["labels"] if row < 15 else None for row, d in enumerate(documents)])
    model = quick().fit(documents, [d["labels"] if row < 15 else nothing for row, d in enumerate(documents)])
    assert model.predict_proba(NEW).tobytes() == expected.predict_proba(NEW).tobytes()


def test_missing_labels_in_a_data_frame() -> None:
    table = pd.DataFrame(topic_documents(30))
    table["labels"] = ["/".join(path) for path in table["labels"]]
    table.loc[15:, "labels"] = float("nan")
    expected = quick().fit(table)
    typed = table.astype({"labels": "string"})
    assert typed["labels"].isna().any()
    for X, y in ((typed, None), (table, table["labels"]), (typed, typed["labels"])):
        assert quick().fit(X, y).predict_proba(NEW).tobytes() == expected.predict_proba(NEW).tobytes()


def test_the_fields_can_have_other_names() -> None:
    documents = [
        {
            "key": d["id"],
            "title": d["text"][:10],
            "body": d["text"][10:],
            "where": d["labels"],
            "who": d["by"],
        }
        for d in partly_labelled(topic_documents(30))
    ]
    model = quick(metadata=["who"], text=["title", "body"], label_field="where", id_field="key").fit(
        documents
    )
    assert set(model.space_.metadata) == {"who"}
    assert len(model.predict(documents, as_tuples=True)) == 30


def test_without_a_tree_the_labels_span_it() -> None:
    documents = partly_labelled(topic_documents(30))
    model = quick(taxonomy=None).fit(documents)
    assert sorted(model.paths_) == sorted(TOPICS.values())


def test_documents_may_be_labelled_at_an_inner_node() -> None:
    documents = topic_documents(60)
    labels: list[Any] = [d["labels"] if row < 15 else None for row, d in enumerate(documents)]
    expected = quick().fit(documents, labels).predict_proba(NEW)
    for row in range(15, 60, 3):
        labels[row] = "a"
    model = quick().fit(documents, labels)
    assert np.abs(model.predict_proba(NEW) - expected).max() > 1e-3


# -- documents never seen ------------------------------------------------------------------------------


def test_what_is_not_known_is_left_out(fitted: HiMeCat) -> None:
    known = [{"text": "x1 x2 any3", "by": "x-author1"}]
    more = [
        {
            "text": "x1 brandnew x2 Unheard any3",
            "by": ["x-author1", "stranger"],
            "tags": "new-tag",
            "other": 5,
        }
    ]
    assert fitted.predict_proba(known).tobytes() == fitted.predict_proba(more).tobytes()
    assert fitted.transform(known).tobytes() == fitted.transform(more).tobytes()


@pytest.mark.parametrize("classifier", ["kim-cnn", "mean-logistic"])
def test_a_document_without_known_words_is_shared_equally(by_the_paper: HiMeCat, classifier: str) -> None:
    """The classifiers at the inner nodes know no frequencies."""
    model = by_the_paper
    if classifier != "kim-cnn":
        model = small(classifier=classifier, samples=5_000).fit(partly_labelled(topic_documents(30)))
    found = model.predict_proba([{"text": "nothing known here"}, {"text": "x1"}])
    # Equally at every choice: a or b, then x or y.
    np.testing.assert_allclose(found[0], [0.25, 0.25, 0.5])
    assert found[1] != pytest.approx([0.25, 0.25, 0.5])
    assert np.count_nonzero(model.transform([{"text": "nothing known here"}])) == 0


def test_a_document_without_known_words_goes_by_the_frequencies_of_the_leaves() -> None:
    """By default they are learned: of all documents six in ten are about z here."""
    documents = [d for row, d in enumerate(topic_documents(180)) if row < 15 or row % 3 == 2 or row % 4 == 0]
    model = quick().fit(partly_labelled(documents))
    found = model.predict_proba([{"text": "nothing known here"}, {"text": "x1 x2 x3"}])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
    assert found[0].argmax() == model.paths_.index(("b", "z"))
    assert found[0].min() > 0.02
    assert found[1].argmax() == model.paths_.index(("a", "x"))
    assert np.count_nonzero(model.transform([{"text": "nothing known here"}])) == 0
    even = quick(learn_prior=False).fit(partly_labelled(documents))
    np.testing.assert_allclose(even.predict_proba(["nothing known here"]), 1 / 3, atol=0.05)


def test_only_the_first_words_of_a_document_are_read() -> None:
    model = quick(max_tokens=4).fit(partly_labelled(topic_documents(30)))
    found = model.predict_proba(["x1 x2 any1 x3", "x1 x2 any1 x3 z1 z2 z3 z4 z5 z6"])
    assert found[0].tobytes() == found[1].tobytes()


def test_no_documents_give_no_paths(fitted: HiMeCat) -> None:
    assert fitted.predict([], as_tuples=True) == []
    assert fitted.predict_proba([]).shape == (0, 3)
    assert fitted.transform([]).shape == (0, 16)


def test_probabilities_agree_with_the_paths(fitted: HiMeCat) -> None:
    leaves = fitted.predict_proba(NEW)
    assert leaves.dtype == np.float32
    np.testing.assert_allclose(leaves.sum(axis=1), 1.0, atol=1e-6)
    placed = fitted.assign(NEW)
    assert (
        fitted.predict(NEW, as_tuples=True)
        == list(placed)
        == [fitted.paths_[best] for best in leaves.argmax(axis=1)]
    )
    nodes = node_probabilities(fitted.taxonomy_, leaves)
    for row in range(len(NEW)):
        lineage = list(fitted.taxonomy_.lineages[placed.nodes[row]])
        assert placed.confidence[row].tolist() == nodes[row, lineage].tolist()
        assert placed.confidences(row)[-1] == pytest.approx(leaves[row].max(), abs=1e-6)


def test_low_confidence_stops_the_walk(by_the_paper: HiMeCat) -> None:
    unsure = [{"text": "nothing known here"}, {"text": "x1 x2 x3 x4 x5"}]
    careful = copy(by_the_paper)
    assert by_the_paper.predict(unsure, as_tuples=True)[0] in {("a", "x"), ("b", "z")}
    assert careful.set_params(min_confidence=0.5).predict(unsure[:1], as_tuples=True) == [("b", "z")]
    assert careful.set_params(min_confidence=0.6).predict(unsure, as_tuples=True) == [(), ("a", "x")]
    placed = careful.assign(unsure)
    assert placed.reached_leaf.tolist() == [False, True]
    with pytest.raises(UsageError, match="min_confidence must be at least 0 and at most 1, not 2"):
        careful.set_params(min_confidence=2).predict(unsure, as_tuples=True)


def test_low_confidence_stops_the_walk_by_default() -> None:
    rng = np.random.default_rng(0)
    # Of x and y as much: surely below a, but at neither. The model has met some such documents: to one that has not,
    # they belong nowhere.
    mixed = [
        " ".join([*(f"x{n}" for n in one[:4]), *(f"y{n}" for n in one[4:])])
        for one in rng.integers(8, size=(10, 8))
    ]
    met: Documents = [{"id": f"m{row}", "text": text} for row, text in enumerate(mixed)]
    by_default = quick().fit([*partly_labelled(topic_documents()), *met])
    unsure = [{"text": "nothing known here"}, {"text": "x1 y1 x2 y2 x3 y3"}, {"text": "x1 x2 x3 x4 x5"}]
    probable = node_probabilities(by_default.taxonomy_, by_default.predict_proba(unsure))
    careful = copy(by_default).set_params(min_confidence=0.7)
    assert probable[1, by_default.taxonomy_.find("a")] > 0.7
    assert careful.predict(unsure, as_tuples=True) == [(), ("a",), ("a", "x")]


def test_documents_are_placed_batch_by_batch(fitted: HiMeCat) -> None:
    problems = Problems()
    batches = list(fitted.iter_assignments(NEW, problems, batch_size=7))
    assert [len(origins) for origins, _, _ in batches] == [7] * 8 + [4]
    assert [origin.id for origins, _, _ in batches for origin in origins] == [d["id"] for d in NEW]
    assert [path for _, _, placed in batches for path in placed] == fitted.predict(NEW, as_tuples=True)
    np.testing.assert_allclose(
        np.concatenate([placed.confidence for _, _, placed in batches]),
        fitted.assign(NEW).confidence,
        atol=1e-6,
    )


def test_nothing_is_placed_after_an_error_unless_bad_ones_are_skipped() -> None:
    model = quick().fit(partly_labelled(topic_documents(30)))
    bad = [*NEW[:3], {"text": 7}, *NEW[4:6]]
    with pytest.raises(DataError, match=r"document 3: .*'text' holds the number 7"):
        model.predict(bad, as_tuples=True)
    problems = Problems()
    assert sum(len(placed) for _, _, placed in model.iter_assignments(bad, problems, batch_size=2)) == 2
    assert problems.has_errors
    model.set_params(skip_bad=True)
    problems = Problems()
    batches = list(model.iter_assignments(bad, problems, batch_size=2))
    usable = [origin.usable for origins, _, _ in batches for origin in origins]
    assert usable == [True, True, True, False, True, True]
    assert [bool(path) for _, _, placed in batches for path in placed] == usable
    assert [bool(found.path) for found in model.explain(documents=bad)] == usable
    placed = model.assign(bad)
    assert [bool(path) for path in placed] == usable
    assert np.isnan(placed.confidence[3]).all()
    assert not np.isnan(placed.confidence[[0, 1, 2, 4, 5], 0]).any()


# -- vectors, explanations, examples -------------------------------------------------------------------


def test_documents_become_unit_vectors(fitted: HiMeCat) -> None:
    found = fitted.transform(NEW)
    assert (found.shape, found.dtype) == ((60, 16), np.float32)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-6)
    topics = np.arange(60) % 3
    cosines = found @ found.T
    same = topics[:, None] == topics[None, :]
    assert cosines[same].mean() > cosines[~same].mean() + 0.3


def test_fit_transform_is_fit_and_transform() -> None:
    documents = partly_labelled(topic_documents(30))
    assert quick().fit_transform(documents).tobytes() == quick().fit(documents).transform(documents).tobytes()


def test_a_label_is_explained(fitted: HiMeCat) -> None:
    found = fitted.explain("x", top=3)
    assert isinstance(found, LabelExplanation)
    assert found.path == ("a", "x")
    assert {one.name[0] for one in found.words} == {"x"}
    assert len(found.words) == 3
    assert found.metadata["tags"][0].name == "x-tag"
    assert fitted.explain(["b", "z"]) == fitted.explain("b/z")
    with pytest.raises(DataError, match="unknown label 'w'"):
        fitted.explain("w")
    with pytest.raises(UsageError, match="explain needs a label, documents, or both"):
        fitted.explain()


def test_documents_are_explained(fitted: HiMeCat) -> None:
    documents = [{"text": "x1 x1 any3 y2", "by": "x-author1"}, {"text": "z3"}, {"text": "unknown"}]
    found = fitted.explain(documents=documents)
    assert isinstance(found, list)
    assert [one.path for one in found] == fitted.predict(documents, as_tuples=True)
    assert found[0].evidence[0].name in {"x1", "x-author1"}
    assert "y2" not in {evidence.name for evidence in found[0].evidence}
    assert found[2].evidence == []
    for_y = fitted.explain("y", documents=documents, top=1)
    assert isinstance(for_y, list)
    assert for_y[0].evidence[0].name == "y2"
    assert len(for_y[0].evidence) == 1


def test_training_documents_are_shown(fitted: HiMeCat) -> None:
    found = fitted.synthesize("z", 6)
    assert len(found) == 6
    vocabulary = set(fitted.space_.vocabulary.names)
    assert all(set(words) <= vocabulary for words in found)
    mostly_z = np.mean([word.startswith("z") for words in found for word in words])
    assert mostly_z > 0.6
    assert fitted.synthesize("z", 6) == found
    assert fitted.synthesize("z", 6, seed=5) != found
    assert fitted.synthesize("z", 0) == []
    both = fitted.synthesize("a", 4)
    topics = [
        "x" if sum(w[0] == "x" for w in words) > sum(w[0] == "y" for w in words) else "y" for words in both
    ]
    assert sorted(topics) == ["x", "x", "y", "y"]
    with pytest.raises(UsageError, match="count must be at least 0, not -1"):
        fitted.synthesize("z", -1)
    with pytest.raises(UsageError, match="seed must be at least 0, not -3"):
        fitted.synthesize("z", 1, seed=-3)


# -- determinism and switches --------------------------------------------------------------------------


def everything(model: HiMeCat) -> bytes:
    return model.predict_proba(NEW).tobytes() + model.transform(NEW).tobytes() + model.space_.labels.tobytes()


WAYS = {"default": DEFAULT, "paper": SMALL | {"samples": 40_000, "epochs": 3}}


@pytest.mark.parametrize("way", WAYS)
def test_threads_change_nothing(way: str) -> None:
    """With so many documents there are two shards; the inner nodes, or the folds, are trained at the same time."""
    documents = partly_labelled(topic_documents(600), 30)
    one, two, as_many_as_there_are = (
        quick(**(WAYS[way] | {"threads": threads})).fit(documents) for threads in (1, 2, None)
    )
    assert everything(one) == everything(two) == everything(as_many_as_there_are)


@pytest.mark.parametrize("way", WAYS)
def test_the_seed_decides(way: str) -> None:
    documents = partly_labelled(topic_documents(60))
    one, same, other = (quick(**WAYS[way], random_state=seed).fit(documents) for seed in (3, 3, 4))
    assert everything(one) == everything(same) != everything(other)


# Each in the way of fitting that it belongs to.
PAPER_CHANGES: list[dict[str, Any]] = [
    {"use_hierarchy": False},
    {"use_metadata": False},
    {"ignore_metadata": ["tags"]},
    {"margin_hierarchy": 0.5},
    {"margin_metadata": 0.5},
    {"margin_words": 0.5},
    {"negatives": 2},
    {"rate": 0.01},
    {"scaled_steps": False},
    {"beta": 3},
    {"concentration": 10.0},
    {"neighbours": 3},
    {"real_share": 2.0},
    {"min_count": 4},
    {"max_tokens": 4},
    {"epochs": 2},
    {"batch_size": 9},
    {"min_steps": 40},
    {"epoch_documents": 100},
    {"learning_rate": 0.01},
    {"momentum": 0.1},
    {"filter_widths": (1, 2)},
    {"filter_maps": 3},
    {"hidden": 5},
    {"dimension": 12},
    {"samples": 8_000},
    {"space": "spectral"},
    {"classifier": "mean-logistic"},
    {"classifier": "mixture"},
]
DEFAULT_CHANGES: list[dict[str, Any]] = [
    {"use_hierarchy": False},
    {"use_metadata": False},
    {"ignore_metadata": ["tags"]},
    {"min_count": 4},
    {"max_tokens": 4},
    {"dimension": 12},
    {"contexts": 20},
    {"topics": 0},
    {"ngrams": False},
    {"votes": False},
    {"weigh_words": False},
    {"first_words": False},
    {"learn_weights": False},
    {"learn_trust": False},
    {"use_names": False},
    {"leaf_concentration": 5.0},
    {"em_rounds": 0},
    {"learn_prior": False},
    {"self_training": 1},
    {"calibrate": False},
]


@pytest.mark.parametrize(
    ("way", "change"),
    [("paper", change) for change in PAPER_CHANGES] + [("default", change) for change in DEFAULT_CHANGES],
    ids=lambda part: part if isinstance(part, str) else next(iter(part)),
)
def test_every_hyperparameter_reaches_its_room(way: str, change: dict[str, Any]) -> None:
    # The last word of a leaf's name is one that its documents use, so that names have something to say.
    documents = [
        d | {"text": f"{d['text']} {d['labels'][-1]}"} if row % 2 else d
        for row, d in enumerate(topic_documents(45))
    ]
    documents = partly_labelled(documents, 24)
    if "first_words" in change:
        # Long texts, and many, whose beginning says more than the rest.
        rng, everything = np.random.default_rng(0), " ".join(d["text"] for d in documents).split()[:40]
        documents = [
            d
            | {
                "text": " ".join([d["text"], *rng.choice([*d["text"].split() * 3, *everything], 60)]),
                "id": f"{turn}-{row}",
            }
            for turn in range(3)
            for row, d in enumerate(documents)
        ]
    options = DEFAULT if way == "default" else SMALL | {"samples": 4_000, "epochs": 1}
    if "learn_prior" in change:
        # By cross-validation so few documents say too little about the prior.
        options = options | {"calibrate": False}
    assert not np.array_equal(_predicted(documents, options | change), _predicted(documents, options))


def test_no_hyperparameter_was_forgotten() -> None:
    for kind, changes in ((Paper, PAPER_CHANGES), (Default, DEFAULT_CHANGES)):
        assert set(hyperparameters(kind)) <= {name for change in changes for name in change}


def _predicted(documents: Documents, options: dict[str, Any]) -> npt.NDArray[np.float32]:
    return quick(**options).fit(documents).predict_proba(NEW)


def test_a_type_that_is_ignored_has_no_vectors() -> None:
    documents = partly_labelled(topic_documents(45))
    ignoring = quick(ignore_metadata=["tags"]).fit(documents)
    assert set(ignoring.space_.metadata) == {"by"}
    # As if the field had not been named.
    assert everything(ignoring) == everything(quick(metadata=["by"]).fit(documents))
    bare = quick(use_metadata=False).fit(documents)
    assert bare.space_.metadata == {}
    assert everything(bare) == everything(quick(metadata=[]).fit(documents))


def test_without_synthetic_documents_the_real_ones_are_enough() -> None:
    documents = partly_labelled(topic_documents(60))
    model = small(beta=0, epochs=20).fit(documents)
    found = model.predict(NEW, as_tuples=True)
    assert np.mean([path == tuple(d["labels"]) for path, d in zip(found, NEW, strict=True)]) > 0.8


def test_a_leaf_without_labelled_documents_can_be_allowed() -> None:
    documents = topic_documents(45)
    labels = [d["labels"] if row < 15 and d["labels"][-1] != "y" else None for row, d in enumerate(documents)]
    with pytest.raises(DataError, match=r"One leaf has no labelled document: a/y\. Label some, or allow it"):
        quick().fit(documents, labels)
    for options in (DEFAULT, LOGISTIC | {"beta": 0}, LOGISTIC):
        model = quick(allow_empty_leaves=True, **options).fit(documents, labels)
        assert (
            "One leaf has no labelled document and is learned from its name and the tree alone: a/y."
            in map(str, model.problems_)
        )
        assert model.predict_proba(NEW).shape == (60, 3)


# -- what cannot work is said --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"min_confidence": 1.5}, "min_confidence must be at least 0 and at most 1, not 1.5."),
        ({"random_state": -1}, "random_state must be a whole number of at least 0, not -1."),
        ({"random_state": None}, "random_state must be a whole number of at least 0, not None."),
        ({"threads": 0}, "threads must be a whole number of at least 1, not 0."),
        ({"method": None, "preset": "best"}, "There is no preset 'best'; known are default, paper."),
        ({"method": "best"}, "There is no method 'best'; known are default, paper."),
        ({"method": 3}, "method must be 'default', 'paper', Default(...) or Paper(...), not 3."),
        (
            {"method": Default(em_rounds=3), "preset": "paper"},
            "preset='paper' and method=Default(em_rounds=3) are two methods: leave the preset out.",
        ),
        ({"metadata": "by"}, "metadata must be a list of field names: ['by']."),
        ({"ignore_metadata": "by"}, "ignore_metadata must be a list of field names: ['by']."),
        (
            {"ignore_metadata": ["venue"]},
            "ignore_metadata names 'venue', which is not among the metadata fields.",
        ),
        ({"text": []}, "Name at least one text field."),
    ],
)
@pytest.mark.parametrize("step", ["check", "fit"])
def test_an_option_that_cannot_work_is_named(step: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        getattr(quick().set_params(**options), step)(partly_labelled(topic_documents(30)))
    assert str(caught.value) == sentence


def test_an_unknown_classifier_is_named_before_training() -> None:
    with pytest.raises(UsageError, match="There is no classifier 'forest'"):
        quick(classifier="forest", space="sampled", samples=10**12).fit(partly_labelled(topic_documents(30)))


def test_documents_that_cannot_work_are_explained() -> None:
    documents = topic_documents(30)
    with pytest.raises(DataError, match="no document has the field 'labels'"):
        quick().fit([d | {"labels": None} for d in documents])
    with pytest.raises(DataError, match="There is no document to work with"):
        quick().fit([])
    with pytest.raises(DataError, match=r"No word occurs 1000 times .*lower min_count"):
        quick(min_count=1000).fit(documents)
    with pytest.raises(DataError, match="document 4: unknown label 'w'"):
        quick().fit(documents, ["x"] * 4 + ["w"] + ["y"] * 25)
    with pytest.raises(DataError, match="the tree: there is only one leaf, x"):
        quick(taxonomy=Taxonomy.from_paths([("x",)])).fit(documents, ["x"] * 30)
    with pytest.raises(DataError, match="No leaf has a labelled document"):
        quick(allow_empty_leaves=True).fit(documents, ["a"] * 30)
    with pytest.raises(UsageError, match="There are 30 documents but 29 labels"):
        quick().fit(documents, ["x"] * 29)
    rare = [{"text": f"only{row}", "labels": path} for row, path in enumerate(TOPICS.values())]
    with pytest.raises(DataError, match="No labelled document has a word that occurs often enough"):
        quick().fit([*rare, *[d | {"labels": None} for d in documents]])


def test_a_labelled_document_without_known_words_is_mentioned() -> None:
    documents = [*partly_labelled(topic_documents(30)), {"id": "odd", "text": "unique", "labels": "x"}]
    model = quick().fit(documents)
    assert "One labelled document has no word that occurs often enough to learn from." in map(
        str, model.problems_
    )


def test_a_supervision_must_fit_the_corpus_and_the_tree() -> None:
    corpus = read_corpus(topic_documents(30), metadata=["by", "tags"])
    rows, nodes = np.arange(3), np.array([3, 4, 5])
    with pytest.raises(UsageError, match="pass the taxonomy too"):
        quick(taxonomy=None).fit(corpus, Supervision(rows, nodes))
    with pytest.raises(UsageError, match="names the document 30, but they go from 0 to 29"):
        quick().fit(corpus, Supervision(rows + 28, nodes))
    with pytest.raises(UsageError, match="names the node 6, but they go from 1 to 5"):
        quick().fit(corpus, Supervision(rows, nodes + 1))
    with pytest.raises(UsageError, match="names 3 documents but 2 nodes"):
        quick().fit(corpus, Supervision(rows, nodes[:2]))


def test_bad_documents_can_be_skipped_and_labels_stay_in_step() -> None:
    documents = partly_labelled(topic_documents(45))
    labels = [document["labels"] for document in documents]
    expected = quick().fit(documents)
    bad = [{"id": "b1", "text": 5}, *documents[:10], {"id": "b2", "text": " "}, *documents[10:]]
    with pytest.raises(DataError, match=r"document 0: (.|\n)*document 11: the text is empty"):
        quick().fit(bad)
    in_step = [["b", "z"], *labels[:10], None, *labels[10:]]
    for y in (None, in_step):
        model = quick(skip_bad=True).fit(bad, y)
        assert everything(model) == everything(expected)
        assert [problem.severity for problem in model.problems_] == ["warning", "warning"]


# -- scikit-learn --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_valid_tag_types,
        estimator_checks.check_mixin_order,
        estimator_checks.check_estimators_unfitted,
        estimator_checks.check_transformers_unfitted,
    ],
    ids=lambda check: check.__name__,
)
def test_scikit_learns_own_checks(check: Callable[[str, HiMeCat], None]) -> None:
    check("HiMeCat", HiMeCat())


def test_fitting_leaves_the_parameters_alone() -> None:
    model = quick(ignore_metadata=["tags"])
    before = model.get_params()
    fitted = model.fit(partly_labelled(topic_documents(30)))
    assert fitted is model
    assert model.get_params() == before
    assert everything(clone(model).fit(partly_labelled(topic_documents(30)))) == everything(model)
    assert is_classifier(model)


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.predict(["a"], as_tuples=True),
        lambda model: model.predict_proba(["a"]),
        lambda model: model.assign(["a"]),
        lambda model: model.transform(["a"]),
        lambda model: model.encode(["a"]),
        lambda model: model.score(["a"], ["x"]),
        lambda model: model.explain("x"),
        lambda model: model.synthesize("x"),
        lambda model: model.save("nowhere"),
        lambda model: next(model.iter_assignments(["a"], Problems())),
    ],
)
def test_nothing_works_before_fit(use: Callable[[HiMeCat], object]) -> None:
    with pytest.raises(NotFittedError):
        use(HiMeCat())


def test_it_stands_in_a_pipeline() -> None:
    documents = partly_labelled(topic_documents(60))
    alone = Pipeline([("place", quick())]).fit(documents)
    assert alone.predict(NEW, as_tuples=True) == quick().fit(documents).predict(NEW, as_tuples=True)
    alone.set_params(place__method__em_rounds=7)
    assert alone.get_params()["place__method__em_rounds"] == 7
    # As a transformer: the vectors feed another classifier.
    everywhere = topic_documents(60)
    topics = [document["labels"][-1] for document in everywhere]
    chain = make_pipeline(quick(), LogisticRegression()).fit(everywhere, topics)
    assert chain.score(NEW, [document["labels"][-1] for document in NEW]) > 0.9


def test_a_grid_search_goes_over_hyperparameters_of_the_method() -> None:
    documents = topic_documents(45)
    labels = ["/".join(document["labels"]) for document in documents]
    for method, grid in (
        (None, {"method__em_rounds": [0, 1]}),
        ("paper", {"method__beta": [0, 5]}),
        (Default(dimension=8), {"method": [Default(dimension=8), Default(dimension=12)]}),
    ):
        model = HiMeCat(TREE, ["by"], method=method, threads=1)
        if method == "paper":
            model.set_params(method__classifier="mean-logistic", method__samples=5_000, method__min_count=2)
        found = GridSearchCV(model, grid, cv=3, refit=True, error_score="raise").fit(documents, labels)
        assert found.best_score_ > 0.5
        name, values = next(iter(grid.items()))
        assert found.best_params_[name] in values
        assert found.best_estimator_.get_params()[name] == found.best_params_[name]
        assert found.best_estimator_.method_ == found.best_estimator_.method


def test_the_hyperparameters_of_the_method_are_parameters() -> None:
    assert HiMeCat().get_params()["method__em_rounds"] == 2
    assert HiMeCat().get_params(deep=False).keys() == HiMeCat.argument_defaults().keys()
    assert HiMeCat(preset="paper").get_params()["method__beta"] == 500
    assert "method__beta" not in HiMeCat().get_params()
    model = HiMeCat(method="paper").set_params(method__beta=7, threads=1)
    assert (model.method, model.threads) == (Paper(beta=7), 1)
    assert HiMeCat(preset="paper").set_params(method__beta=7).method == Paper(beta=7)
    assert HiMeCat().set_params(method="paper", method__beta=7).method == Paper(beta=7)
    assert repr(model) == "HiMeCat(method=Paper(beta=7), threads=1)"
    assert repr(clone(model)) == repr(model)
    with pytest.raises(
        UsageError, match="The method 'default' has no hyperparameter 'beta'; it is one of the method 'paper'"
    ):
        HiMeCat().set_params(method__beta=7)
    with pytest.raises(UsageError, match="em_rounds must be at least 0, not -1"):
        HiMeCat().set_params(method__em_rounds=-1)


def test_a_hyperparameter_in_the_wrong_place_is_told_its_own() -> None:
    options: dict[str, Any] = {"em_rounds": 3}
    with pytest.raises(TypeError, match=r"since 0\.3 write method=Default\(em_rounds=\.\.\.\)"):
        HiMeCat(**options)
    with pytest.raises(ValueError, match=r"set_params\(method__beta=\.\.\.\)"):
        HiMeCat().set_params(beta=3)
    options = {"metadatas": []}
    with pytest.raises(TypeError, match="HiMeCat has no parameter 'metadatas'; it has taxonomy, metadata,"):
        HiMeCat(**options)


# -- plug-ins ------------------------------------------------------------------------------------------


class NearestCentroid:
    """The child whose mean training vector is nearest: what a user might plug in."""

    name = "nearest-centroid"

    def __init__(self, sharpness: float = 10.0) -> None:
        self.sharpness = sharpness
        self.centroids = np.zeros((0, 0), dtype=np.float32)

    def fit(
        self,
        training: TrainingSet,
        words: npt.NDArray[np.float32],
        *,
        seed: int,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        vectors = mean_vectors(training.documents, words)
        self.centroids = np.stack(
            [vectors[training.targets == position].mean(axis=0) for position in range(training.n_classes)]
        )

    def predict_proba(self, documents: Ragged, words: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        scores = self.sharpness * mean_vectors(documents, words) @ self.centroids.T
        odds = np.exp(scores)
        return np.asarray(odds / odds.sum(axis=1, keepdims=True), dtype=np.float32)

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        return {"sharpness": self.sharpness}, {"centroids": self.centroids}

    @classmethod
    def from_state(
        cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> NearestCentroid:
        made = cls(**settings)
        made.centroids = arrays["centroids"]
        return made


def test_another_classifier_can_be_plugged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("himecat.paper.registry._registered", {})
    register_classifier(NearestCentroid)
    model = quick(classifier="nearest-centroid", space="spectral").fit(partly_labelled(topic_documents()))
    assert all(isinstance(flat, NearestCentroid) for flat in model.classifier_.walk.classifiers.values())
    assert model.score(NEW, [document["labels"] for document in NEW]) > 0.9
    model.save(tmp_path / "model")
    loaded = HiMeCat.load(tmp_path / "model")
    assert everything(loaded) == everything(model)
    monkeypatch.setattr("himecat.paper.registry._registered", {})
    with pytest.raises(
        DataError,
        match=r"model/ cannot be used: There is no classifier 'nearest-centroid'.*register_classifier",
    ):
        HiMeCat.load(tmp_path / "model")


def test_the_score_counts_labelled_documents_only(fitted: HiMeCat) -> None:
    labels: list[Any] = [document["labels"] for document in NEW]
    some = [label if row % 2 else None for row, label in enumerate(labels)]
    odd = fitted.score(NEW[1::2], labels[1::2])
    assert fitted.score(NEW, some) == pytest.approx(odd)
    with pytest.raises(DataError, match="No document has a label to score"):
        fitted.score(NEW, [None] * len(NEW))
    with pytest.raises(UsageError, match=f"There are {len(NEW)} documents but 1 labels"):
        fitted.score(NEW, labels[:1])


def test_labels_of_other_libraries() -> None:
    texts, labels = ["red fox", "old car", "a fox", "the car"], ["animals", "things", None, None]
    expected = HiMeCat(method=Default(min_count=1)).fit(texts, labels).predict(texts, as_tuples=True)
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    times = pandas.Series(["animals", "things", pandas.NaT, pandas.NaT], dtype=object)
    lists = polars.Series([["animals"], ["things"], None, None])
    for given in (pandas.Series(labels), times, pyarrow.array(labels), polars.Series(labels), lists):
        assert (
            HiMeCat(method=Default(min_count=1)).fit(texts, given).predict(texts, as_tuples=True) == expected
        )
    with pytest.raises(UsageError, match="The labels are a table: pass one of its columns"):
        HiMeCat(method=Default(min_count=1)).fit(texts, pandas.DataFrame({"a": labels, "b": labels}))


def test_a_category_that_nothing_tells_apart_has_no_words_to_draw() -> None:
    model = HiMeCat(method=Default(min_count=1)).fit(["a goal", "a goal"], ["s", "p"])
    with pytest.raises(DataError, match="Nothing in the documents tells s from the other categories"):
        model.synthesize("s")


def test_a_loaded_model_is_fitted_again_as_it_was(tmp_path: Path) -> None:
    documents = [{"text": "red fox"}, {"text": "old car"}, {"text": "a fox"}, {"text": "the car"}]
    labels = ["animals/wild", None, None, None]
    model = HiMeCat(
        {"animals": ["wild"], "things": ["cars", "empty"]},
        keywords={"things/cars": "car, old wheel"},
        allow_empty_leaves=True,
        method=Default(min_count=1),
    ).fit(documents, labels)
    assert model.keywords_ == {"things/cars": ["car", "old", "wheel"]}
    model.save(tmp_path / "model")
    loaded = HiMeCat.load(tmp_path / "model")
    assert loaded.keywords == model.keywords_
    again = loaded.fit(documents, labels)
    assert (again.predict_proba(documents) == model.predict_proba(documents)).all()
    again.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.json").read_bytes() == (
        tmp_path / "model" / "model.json"
    ).read_bytes()
