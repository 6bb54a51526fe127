"""Changes of a fitted model's tree: what is said, what is kept, and how old labels are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Default, HiMeCat, Paper
from himecat.errors import DataError, UsageError
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy
from himecat.teaching.tree_changes import apply, plan

DOCUMENTS = sample_documents(330)
LABELS = sample_split(DOCUMENTS)


@pytest.fixture(scope="module")
def model() -> HiMeCat:
    method = Default(dimension=16, topics=4, em_rounds=1)
    fitted = HiMeCat(sample_taxonomy(), list(METADATA), method=method, threads=2)
    return fitted.fit([{k: v for k, v in one.items() if k != "labels"} for one in DOCUMENTS], LABELS)


def probabilities(model: HiMeCat) -> dict[str, np.ndarray]:
    return dict(zip(model.classes_.tolist(), model.predict_proba(DOCUMENTS).T, strict=True))


def unlabelled_ids(count: int, start: int = 0) -> list[str]:
    free = [one["id"] for one, label in zip(DOCUMENTS, LABELS, strict=True) if label is None]
    return free[start : start + count]


def test_the_model_that_is_given_stays_as_it_is(model: HiMeCat) -> None:
    before = model.classes_.tolist()
    changed = apply(model, {"op": "rename", "path": "waste", "name": "rubbish"})
    assert model.classes_.tolist() == before != changed.classes_.tolist()


def test_a_renamed_category_keeps_its_probabilities_and_its_old_name(model: HiMeCat, tmp_path: Path) -> None:
    leaf = model.paths_[0]
    changed = apply(model, {"op": "rename", "path": leaf, "name": "anew"})
    new = "/".join((*leaf[:-1], "anew"))
    before, after = probabilities(model), probabilities(changed)
    assert before.keys() - after.keys() == {"/".join(leaf)}
    assert after[new].tobytes() == before["/".join(leaf)].tobytes()
    changed.save(tmp_path / "model")
    again = HiMeCat.load(tmp_path / "model")
    for one in (changed, again):
        assert one.taxonomy_.title(one.node_of("/".join(leaf))) == new
        assert one.taxonomy_.title(one.node_of(list(leaf))) == new
    assert again.predict_proba(DOCUMENTS).tobytes() == changed.predict_proba(DOCUMENTS).tobytes()


def test_a_moved_category_keeps_the_probability_of_every_leaf(model: HiMeCat, tmp_path: Path) -> None:
    tree = model.taxonomy_
    leaf = next(
        leaf for leaf in tree.leaves if tree.depths[leaf] > 1 and tree.names.count(tree.names[leaf]) == 1
    )
    other = next(top for top in tree.children[0] if top != tree.lineages[leaf][0])
    found = plan(model, {"op": "move", "path": tree.path(leaf), "to": tree.path(other)})
    assert not found.needs_refit
    changed = apply(model, found)
    new = f"{tree.title(other)}/{tree.names[leaf]}"
    before, after = probabilities(model), probabilities(changed)
    np.testing.assert_array_equal(after.pop(new), before.pop(tree.title(leaf)))
    assert {name: column.tobytes() for name, column in before.items()} == {
        name: column.tobytes() for name, column in after.items()
    }
    assert changed.taxonomy_.title(changed.node_of(tree.title(leaf))) == new
    changed.save(tmp_path / "model")
    again = HiMeCat.load(tmp_path / "model")
    assert again.predict_proba(DOCUMENTS).tobytes() == changed.predict_proba(DOCUMENTS).tobytes()
    assert again.explain(new) is not None
    # A second change, and a fit through both.
    twice = apply(again, {"op": "rename", "path": new, "name": "again"})
    corrected = twice.correct({unlabelled_ids(1)[0]: tree.title(leaf)})
    assert corrected.n_labelled == sum(label is not None for label in LABELS) + 1


def test_merged_leaves_add_up_their_probabilities(model: HiMeCat) -> None:
    tree = model.taxonomy_
    one, other = next(group for group in map(tree.children.__getitem__, tree.inner) if len(group) > 1)[:2]
    if not (tree.is_leaf(one) and tree.is_leaf(other)):
        one, other = tree.leaves[:2]
    found = plan(model, {"op": "merge", "path": tree.path(one), "into": tree.path(other), "name": "both"})
    assert not found.needs_refit
    assert "added up" in found.said[0]
    changed = apply(model, found)
    before, after = probabilities(model), probabilities(changed)
    merged = changed.taxonomy_.title(changed.node_of(tree.title(one)))
    assert merged.endswith("both")
    np.testing.assert_allclose(after[merged], before[tree.title(one)] + before[tree.title(other)], atol=1e-6)
    kept = changed.learned_documents("").supervision
    labelled = model.learned_documents("").supervision
    assert len(kept) == len(labelled)
    both = np.isin(labelled.nodes, [one, other]).sum()
    assert (kept.nodes == changed.node_of(merged)).sum() == both


def test_an_added_category_learns_from_its_examples(model: HiMeCat, tmp_path: Path) -> None:
    ids = unlabelled_ids(6)
    change = {"op": "add", "name": "things", "documents": ids, "keywords": ["lamp"]}
    found = plan(model, change)
    assert found.needs_refit
    assert "things is new, with 6 examples and 1 keyword." in found.said
    changed = apply(model, found)
    kept = changed.learned_documents("")
    node = changed.node_of("things")
    assert {kept.corpus.ids[row] for row in kept.supervision.rows[kept.supervision.nodes == node]} == set(ids)
    assert changed.keywords_ == {"things": ["lamp"]}
    assert probabilities(changed)["things"].max() > 0.3
    # As sure, on the whole, as what it was carried over from.
    assert changed.quality_ is not None
    assert changed.quality_.levels == ()
    whole = model.plan_tree(change)
    assert whole.said == found.said
    changed.save(tmp_path / "model")
    assert (
        HiMeCat.load(tmp_path / "model").predict(DOCUMENTS[:5]).tolist()
        == changed.predict(DOCUMENTS[:5]).tolist()
    )


def test_examples_may_come_from_other_documents(model: HiMeCat) -> None:
    more = [{"id": f"new{n}", "text": "a broken street lamp in the dark"} for n in range(5)]
    ids = [one["id"] for one in more]
    with pytest.raises(DataError, match="no document 'new0' among those kept"):
        model.plan_tree({"op": "add", "name": "lamps", "documents": ids})
    changed = apply(model, model.plan_tree({"op": "add", "name": "lamps", "documents": ids}, more))
    assert len(changed.kept_documents()) == len(DOCUMENTS) + 5


def test_a_split_leaf_keeps_its_labels_as_a_whole(model: HiMeCat) -> None:
    leaf = model.paths_[0]
    children = {"one": unlabelled_ids(3), "two": unlabelled_ids(3, 3)}
    changed = apply(model, {"op": "split", "path": leaf, "children": children})
    tree = changed.taxonomy_
    node = changed.node_of(list(leaf))
    assert [tree.names[child] for child in tree.children[node]] == ["one", "two"]
    kept = changed.learned_documents("").supervision
    assert (kept.nodes == node).sum() == (
        model.learned_documents("").supervision.nodes == model.node_of(list(leaf))
    ).sum()


def test_labels_of_a_deleted_category_go_up_or_are_dropped(model: HiMeCat) -> None:
    tree = model.taxonomy_
    leaf = next(
        leaf for leaf in tree.leaves if tree.depths[leaf] > 1 and len(tree.children[tree.parents[leaf]]) > 2
    )
    parent = tree.title(tree.parents[leaf])
    n_labels = int((model.learned_documents("").supervision.nodes == leaf).sum())
    assert n_labels
    up = apply(model, {"op": "delete", "path": tree.path(leaf)})
    assert up.taxonomy_.title(up.node_of(tree.title(leaf))) == parent
    assert len(up.learned_documents("").supervision) == len(model.learned_documents("").supervision)
    gone = apply(model, {"op": "delete", "path": tree.path(leaf), "labels": "drop"})
    assert (
        len(gone.learned_documents("").supervision) == len(model.learned_documents("").supervision) - n_labels
    )
    with pytest.raises(DataError, match="was deleted from the tree"):
        gone.node_of(list(tree.path(leaf)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"op": "swap"}, "no change 'swap'"),
        ({"op": "rename", "path": "waste"}, "needs 'name'"),
        ({"op": "rename", "path": "waste", "name": " "}, "needs a name"),
        ({"op": "rename", "path": "waste", "name": "none"}, "belong to no category"),
        ({"op": "rename", "path": "waste", "name": "streets"}, "already: merge them"),
        ({"op": "move", "path": "waste", "to": []}, "there already"),
        ({"op": "merge", "path": "waste", "into": "waste"}, "with itself"),
        ({"op": "split", "path": "waste", "children": {"a": ["1"]}}, "has categories below it"),
        ({"op": "delete", "path": "waste", "labels": "keep"}, "'parent' or 'drop'"),
        ({"op": "add", "name": "x", "colour": "red"}, "has no 'colour'"),
    ],
)
def test_what_cannot_be_done_is_said(model: HiMeCat, change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        model.plan_tree(change)


def test_without_the_documents_names_can_still_be_changed(model: HiMeCat, tmp_path: Path) -> None:
    model.save(tmp_path / "model", corpus=False)
    bare = HiMeCat.load(tmp_path / "model")
    assert bare.change_tree({"op": "rename", "path": "waste", "name": "rubbish"}).needs_refit is False
    with pytest.raises(UsageError, match="does not keep the documents"):
        bare.plan_tree({"op": "add", "name": "more", "keywords": ["x"]})


def test_a_plan_belongs_to_its_tree(model: HiMeCat) -> None:
    found = model.plan_tree({"op": "rename", "path": "waste", "name": "rubbish"})
    changed = apply(model, {"op": "rename", "path": "waste", "name": "refuse"})
    with pytest.raises(UsageError, match="another tree"):
        changed.change_tree(found)


def test_sets_of_paths_move_with_their_categories() -> None:
    texts = [
        f"{a} {b}" for a in ("fox den", "car wheel", "sky rain") for b in ("red", "old", "blue", "new")
    ] * 3
    labels: list[Any] = [None] * len(texts)
    for row, label in enumerate(
        [[["a", "x"], ["b"]], [["a", "x"]], [["a", "y"]], [["b"]], [["a", "y"], ["b"]]]
    ):
        labels[row * 3] = label
    several = HiMeCat(method=Default(min_count=1, dimension=8, topics=0), several=True, threads=1).fit(
        texts, labels
    )
    moved = apply(several, {"op": "move", "path": ["a", "x"], "to": ["b"]})
    before, after = (
        dict(zip(one.classes_.tolist(), one.predict_proba(texts).T, strict=True)) for one in (several, moved)
    )
    # What was above others as a leaf becomes an inner category, so this is a fit; a mere renaming is none.
    assert set(after) >= {"a/y", "b/x"}
    named = apply(several, {"op": "rename", "path": ["a", "x"], "name": "z"})
    again = dict(zip(named.classes_.tolist(), named.predict_proba(texts).T, strict=True))
    np.testing.assert_array_equal(again["a/z"], before["a/x"])


def test_the_published_method_is_fitted_again_where_more_than_names_change() -> None:
    method = Paper(space="spectral", classifier="mean-logistic", dimension=8, min_count=1, beta=5)
    model = HiMeCat({"a": ["x", "y"], "b": None}, method=method, threads=1)
    model.fit(["fox den", "car wheel", "blue sky", "fox", "car", "sky"], ["x", "y", "b", None, None, None])
    renamed = apply(model, {"op": "rename", "path": "x", "name": "z"})
    np.testing.assert_array_equal(renamed.predict_proba(["fox"]), model.predict_proba(["fox"]))
    assert model.plan_tree({"op": "move", "path": "x", "to": ""}).needs_refit
