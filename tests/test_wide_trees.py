"""A wide tree from door to door, made of a small one: more than three leaves are many here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Default, HiMeCat, Taxonomy
from himecat.classifier import stages
from himecat.classifier.calibration import Calibration
from himecat.classifier.staged import StagedClassifier
from himecat.errors import DataError, ModelFolderError, UsageError
from himecat.runtime import memory
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy
from himecat.teaching.proposing import propose_categories

TREE = sample_taxonomy()
METHOD = Default(dimension=30, topics=10, contexts=500)


@pytest.fixture(autouse=True)
def small_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "MANY_LEAVES", 3)
    monkeypatch.setattr(stages, "MOST_TERMINALS", 4)
    monkeypatch.setattr(stages, "FEW_LEAVES", 1)


def letters(count: int = 330) -> tuple[list[dict[str, Any]], list[Any]]:
    documents = sample_documents(count)
    return documents, sample_split(documents)


def fitted(documents: Any, labels: Any, **options: Any) -> HiMeCat:
    given: dict[str, Any] = {"taxonomy": TREE, "metadata": METADATA, "method": METHOD, "threads": 1}
    return HiMeCat(**given | options).fit(documents, labels)


@pytest.fixture(scope="module")
def model() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("MANY_LEAVES", 3), ("MOST_TERMINALS", 4), ("FEW_LEAVES", 1)):
            patch.setattr(stages, name, value)
        yield fitted(*letters())


def test_a_wide_tree_is_fitted_in_stages(model: HiMeCat) -> None:
    assert isinstance(model.classifier_, StagedClassifier)
    assert len(model.classifier_.stages) > 3
    documents, labels = letters()
    rest = [row for row, label in enumerate(labels) if label is None]
    found = model.predict([documents[row] for row in rest])
    right = np.mean([one == "/".join(documents[row]["labels"]) for one, row in zip(found, rest, strict=True)])
    assert right > 0.6


def test_probabilities_and_placement_agree(model: HiMeCat) -> None:
    documents, _ = letters(60)
    dense = model.predict_proba(documents)
    assert dense.shape == (60, TREE.n_leaves)
    np.testing.assert_allclose(dense.sum(axis=1), 1.0, atol=1e-5)
    placed = model.assign(documents)
    assert placed.nodes.tolist() == [TREE.leaves[leaf] for leaf in dense.argmax(axis=1)]
    levels = placed.confidence
    assert np.nanmax(np.diff(levels, axis=1)) <= 1e-6
    assert placed.none is not None
    # Few are sure enough for this; the others end higher up.
    model.min_confidence = 0.95
    try:
        careful = model.assign(documents)
    finally:
        model.min_confidence = 0.0
    assert (TREE.depth_array[careful.nodes] <= TREE.depth_array[placed.nodes]).all()
    assert (careful.nodes != placed.nodes).any()
    ends = [careful.confidences(row)[-1] for row in range(60) if careful.nodes[row]]
    assert min(ends) >= 0.95 * 0.5


def test_a_table_keeps_labels_and_tells_alternatives(model: HiMeCat) -> None:
    documents = letters(30)[0][:20]
    for document in documents[10:]:
        del document["labels"]
    table = model.predict_frame(documents, top=2)
    rows = table.to_dict("records")
    for row, document in zip(rows[:10], documents, strict=False):
        assert row["path"] == "/".join(document["labels"])
        assert row["confidence"] == 1.0
    assert all(row["alternative1"] != row["path"] for row in rows)


def test_no_array_is_as_wide_as_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    plain = Calibration.probabilities

    def spied(self: Calibration, taxonomy: Taxonomy, scores: Any) -> Any:
        widths.append(scores.shape[1])
        return plain(self, taxonomy, scores)

    monkeypatch.setattr(Calibration, "probabilities", spied)
    documents, labels = letters(200)
    found = fitted(documents, labels, allow_empty_leaves=True)
    found.predict(documents)
    most = max(4, *(len(TREE.children[node]) for node in TREE.inner))
    assert widths
    assert max(widths) <= most < TREE.n_leaves
    # Only features that the documents of a stage have.
    first, *others = found.classifier_.stages
    assert all(len(one.narrowed.features) < len(first.narrowed.features) for one in others)


def test_the_same_bytes_for_any_number_of_threads(model: HiMeCat, tmp_path: Path) -> None:
    again = fitted(*letters(), threads=3)
    model.save(tmp_path / "one")
    again.save(tmp_path / "three")
    for name in ("weights.safetensors", "model.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "three" / name).read_bytes()
    documents, _ = letters(100)
    assert again.predict_proba(documents).tobytes() == model.predict_proba(documents).tobytes()


def test_there_and_back(model: HiMeCat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model.save(tmp_path / "model")
    # The folder says where the stages are, whatever a tree would be cut into now.
    monkeypatch.setattr(stages, "MANY_LEAVES", 10**6)
    again = HiMeCat.load(tmp_path / "model")
    documents, _ = letters(50)
    assert again.predict_proba(documents).tobytes() == model.predict_proba(documents).tobytes()
    assert again.quality_ == model.quality_
    assert again.predict(documents).tolist() == model.predict(documents).tolist()


@pytest.mark.parametrize("what", ["nodes", "columns", "stages"])
def test_a_folder_whose_stages_do_not_fit(model: HiMeCat, tmp_path: Path, what: str) -> None:
    space = model.space_
    settings, arrays = model.classifier_.state()
    if what == "nodes":
        arrays["stages/1/nodes"] = arrays["stages/1/nodes"] + 1
    elif what == "columns":
        arrays["stages/1/columns/features"] = arrays["stages/1/columns/features"] + 10**6
    else:
        settings = settings | {"stages": settings["stages"][:-1]}
    with pytest.raises(ValueError, match=r"stage|columns|tree"):
        StagedClassifier.from_state(space, settings, arrays)


def test_it_says_how_good_it_is(model: HiMeCat) -> None:
    found = model.quality_
    assert found is not None
    assert found.enough
    assert len(found.levels) == TREE.depth
    assert [one.path for one in found.leaves] == [TREE.path(leaf) for leaf in TREE.leaves]
    assert all(0 <= one.low <= one.accuracy <= one.high <= 1 for one in found.levels)
    assert found.lines()


def test_a_wrong_label_is_suspected() -> None:
    documents, labels = letters()
    shown = [row for row, label in enumerate(labels) if label is not None]
    right = labels[shown[0]]
    wrong = next(labels[row] for row in shown if labels[row][0] != right[0])
    labels[shown[0]] = wrong
    found = fitted(documents, labels).quality_
    assert found is not None
    suspects = {one.id: one for one in found.suspects}
    name = str(documents[shown[0]].get("id", shown[0]))
    assert name in suspects
    # By the path in the whole tree.
    assert TREE.walk(suspects[name].suggested) is not None
    assert TREE.walk(suspects[name].label) is not None


def test_explained_reviewed_corrected_and_changed(tmp_path: Path) -> None:
    documents, labels = letters()
    for document in documents:
        del document["labels"]
    found = fitted(documents, labels)
    leaf = TREE.leaves[0]
    assert found.explain("/".join(TREE.path(leaf))).words
    assert found.explain(documents=documents[:2])[0].path
    rows = found.review(documents, count=4)
    assert len(rows) == 4
    assert len(rows[0]["suggestion1"]) >= 1
    told = found.correct({rows[0]["id"]: rows[0]["suggestion1"]})
    assert "1 confirm" in told.said
    assert isinstance(found.classifier_, StagedClassifier)
    name = TREE.path(leaf)
    before = found.predict(documents[:30]).tolist()
    plan = found.change_tree({"op": "rename", "path": list(name), "name": "renamed"})
    assert not plan.needs_refit
    renamed = ["/".join((*name[:-1], "renamed")) if one == "/".join(name) else one for one in before]
    assert found.predict(documents[:30]).tolist() == renamed
    plan = found.change_tree({"op": "add", "parent": [], "name": "lost property", "keywords": ["lost"]})
    assert plan.needs_refit
    assert isinstance(found.classifier_, StagedClassifier)
    assert found.taxonomy_.n_leaves == TREE.n_leaves + 1
    with pytest.raises(UsageError, match="cannot be proposed"):
        propose_categories(found)


def test_all_leaves_at_once_are_refused_beyond_memory(
    model: HiMeCat, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, _ = letters(30)
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(DataError, match=r"all .* leaves for 30 documents at once need"):
        model.predict_proba(documents)


def test_leaves_without_labels_and_stages_without_documents() -> None:
    paths = [(a, a + b) for a in ("red", "blue", "green") for b in ("fox", "car", "sky")]
    tree = Taxonomy.from_paths([*paths, ("empty", "emptyone"), ("empty", "emptytwo")])
    texts = [f"{a} {a}{b} {b} thing" for a, b in ((p[0], p[1][len(p[0]) :]) for p in paths)] * 6
    labels: list[Any] = [None] * len(texts)
    for row, path in enumerate(paths):
        labels[row] = path
    found = HiMeCat(
        taxonomy=tree, method=Default(min_count=1, dimension=10), allow_empty_leaves=True, threads=1
    ).fit(texts, labels)
    assert isinstance(found.classifier_, StagedClassifier)
    assert any(one.scorer is None for one in found.classifier_.stages)
    placed = found.predict(texts, as_tuples=True)
    assert np.mean([one[0] == path[0] for one, path in zip(placed, paths * 6, strict=True)]) > 0.8
    np.testing.assert_allclose(found.predict_proba(texts[:4]).sum(axis=1), 1.0, atol=1e-5)


def test_names_alone_and_chains() -> None:
    tree = Taxonomy.from_paths(
        [("animals", "wild", "fox"), ("animals", "wild", "bear"), ("things", "moving", "fast", "car")]
        + [("things", "food", name) for name in ("bread", "milk", "apple")]
        + [("weather", "rain"), ("weather", "snow")]
    )
    words = {"fox": "den", "bear": "honey", "car": "wheel", "bread": "oven", "milk": "cow", "apple": "tree"}
    words |= {"rain": "cloud", "snow": "ice"}
    names = [tree.names[leaf] for leaf in tree.leaves]
    texts = [f"{name} {words[name]} {name}" for name in names] * 8
    found = HiMeCat(
        taxonomy=tree,
        keywords={"/".join(tree.path(leaf)): [tree.names[leaf]] for leaf in tree.leaves},
        method=Default(min_count=1, dimension=10),
        allow_empty_leaves=True,
        threads=1,
    ).fit(texts, [None] * len(texts))
    assert isinstance(found.classifier_, StagedClassifier)
    placed = [path[-1] for path in found.predict(texts[: len(names)], as_tuples=True)]
    assert np.mean([one == name for one, name in zip(placed, names, strict=True)]) > 0.7


def test_a_damaged_stage_is_one_sentence(model: HiMeCat, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    kept = json.loads(file.read_text())
    kept["classifier"]["settings"]["stages"].pop()
    file.write_text(json.dumps(kept))
    with pytest.raises(ModelFolderError):
        HiMeCat.load(tmp_path / "model")


def test_a_folder_of_this_version_stays_readable() -> None:
    """`model-staged` was written when wide trees came to be cut into stages."""
    fixtures = Path(__file__).parent / "fixtures"
    expected = json.loads((fixtures / "model-staged-expected.json").read_text())
    model = HiMeCat.load(fixtures / "model-staged")
    assert isinstance(model.classifier_, StagedClassifier)
    assert any(one.parts.any() for one in model.classifier_.stages)
    placed = model.assign(expected["texts"])
    assert ["/".join(path) for path in placed] == expected["paths"]
    for row, sure in enumerate(expected["confidence"]):
        assert placed.confidences(row) == pytest.approx(sure, abs=1e-4)
