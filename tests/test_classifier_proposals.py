"""Proposals for new categories."""

from __future__ import annotations

import numpy as np

from himecat import Default, HiMeCat
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy
from himecat.teaching.proposing import propose_categories, propose_children
from himecat.teaching.tree_changes import apply

DOCUMENTS = sample_documents(900)


def a_model() -> HiMeCat:
    labels = sample_split(DOCUMENTS)
    bare = [{name: value for name, value in one.items() if name != "labels"} for one in DOCUMENTS]
    method = Default(dimension=50, topics=20)
    return HiMeCat(sample_taxonomy(), list(METADATA), method=method, threads=2).fit(bare, labels)


def test_a_hidden_category_is_proposed_and_can_be_accepted() -> None:
    whole = a_model()
    hidden = next(path for path in whole.paths_ if len(path) > 1)
    model = apply(whole, {"op": "delete", "path": hidden, "labels": "drop"})
    found = propose_categories(model, count=10)
    true = {one["id"] for one in DOCUMENTS if tuple(one["labels"]) == hidden}
    precisions = [len(true & set(one.ids)) / len(one.ids) for one in found]
    best = found[int(np.argmax(precisions))]
    assert max(precisions) >= 0.6
    labelled = {
        one["id"] for one, label in zip(DOCUMENTS, sample_split(DOCUMENTS), strict=True) if label is not None
    }
    kept = model.learned_documents("").supervision
    known = {model.kept_documents().ids[row] for row in kept.rows}
    assert known < labelled
    assert not known & {name for one in found for name in one.ids}
    accepted = apply(model, best.change(name="back"))
    placed = accepted.predict([one for one in DOCUMENTS if one["id"] in true])
    assert np.mean([path.endswith("back") for path in placed]) > 0.5


def test_children_of_a_leaf_are_groups_of_its_documents() -> None:
    model = a_model()
    leaf = model.paths_[int(np.bincount(model.predict_proba(DOCUMENTS).argmax(axis=1)).argmax())]
    children = propose_children(model, list(leaf), 2)
    assert len(children) == 2
    ids = [name for group in children.values() for name in group]
    assert len(ids) == len(set(ids))
    split = apply(model, {"op": "split", "path": leaf, "children": children})
    assert split.taxonomy_.n_leaves == model.taxonomy_.n_leaves + 1
