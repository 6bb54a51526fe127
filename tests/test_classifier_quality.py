"""What a fit says about itself: estimates, confusions and doubtful labels."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Default, HiMeCat
from himecat.classifier.assess import assess
from himecat.classifier.calibration import IDENTITY, Calibration
from himecat.classifier.cross_validation import plan_folds
from himecat.classifier.learned import HeldOut
from himecat.classifier.quality import Quality
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

TREE = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b", "z")])


def fitted(**arguments: Any) -> tuple[HiMeCat, list[Any]]:
    documents = sample_documents()
    labels = sample_split(documents)
    model = HiMeCat(sample_taxonomy(), list(METADATA), **arguments)
    return model.fit(documents, labels), labels


def assessed(sure: float, n_labelled: int = 60, n_documents: int = 500) -> Quality:
    """A classifier that is about so sure of what is right."""
    few = Supervision(np.arange(n_labelled), np.resize(TREE.leaves, n_labelled))
    truth = np.arange(n_documents) % 3
    others = np.log((1 - sure) / 2)
    scores = np.full((n_documents, 3), others, np.float32)
    scores[np.arange(n_documents), truth] = np.log(sure)
    held_out = HeldOut(np.arange(n_labelled), scores[:n_labelled], n_labelled)
    calibration = Calibration(1.0, (IDENTITY, IDENTITY))
    ids = [f"d{row}" for row in range(n_documents)]
    return assess(
        TREE,
        calibration,
        lambda rows: scores[rows],
        n_documents,
        few,
        held_out,
        np.zeros(3, np.float32),
        ids,
    )


def test_the_estimate_is_the_mean_confidence_raised_by_what_held_out_documents_show() -> None:
    leaf = assessed(0.8).levels[1]
    # All held-out documents were right, so that a confidence of .8 is too low: half of the way is gone.
    assert leaf.accuracy == pytest.approx(0.9, abs=1e-3)
    assert leaf.low < leaf.accuracy < leaf.high <= 1


def test_fewer_labels_and_fewer_documents_make_the_interval_wider() -> None:
    widths = [
        one.levels[1].high - one.levels[1].low
        for one in (assessed(0.8, 240), assessed(0.8, 60), assessed(0.8, 24), assessed(0.8, 24, 50))
    ]
    assert widths == sorted(widths)


def test_a_leaf_says_how_many_were_placed_and_nothing_where_none_was() -> None:
    found = assessed(0.8)
    assert sum(one.placed for one in found.leaves) == found.n_looked_at == 440
    # A leaf alone is known less well than all together.
    for one in found.leaves:
        assert one.low is not None
        assert one.high is not None
        assert one.high - one.low > found.levels[1].high - found.levels[1].low
    tree = Taxonomy.from_paths([("a",), ("b",), ("c",)])
    few = Supervision(np.arange(40), np.tile([1, 2], 20))
    scores = np.tile(np.array([[4.0, 0, -9], [0, 4.0, -9]], np.float32), (50, 1))
    held_out = HeldOut(np.arange(40), scores[:40], 40)
    arguments = (few, held_out, np.zeros(3, np.float32), [str(row) for row in range(100)])
    never = assess(tree, Calibration(1.0, (IDENTITY,)), lambda rows: scores[rows], 100, *arguments)
    assert never.leaves[2].precision is None
    assert never.leaves[2].placed == 0
    assert json.loads(json.dumps(never.as_dict())) == never.as_dict()
    assert Quality.from_dict(json.loads(json.dumps(never.as_dict()))) == never


def test_too_few_labels_are_said_to_be_too_few() -> None:
    documents = [{"text": f"{word} {word} thing"} for word in ("red", "old") for _ in range(10)]
    model = HiMeCat(method=Default(min_count=1)).fit(
        documents, ["a"] * 4 + [None] * 6 + ["b"] * 4 + [None] * 6
    )
    found = model.quality_
    assert found is not None
    assert not found.enough
    assert found.levels == ()
    assert "Too few labelled documents (8)" in found.lines()[0]


def test_what_does_not_cross_validate_says_nothing() -> None:
    model, _ = fitted(method=Default(calibrate=False, em_rounds=0, self_training=0))
    assert model.quality_ is None


def test_a_model_keeps_its_quality_and_one_without_loads(tmp_path: Path) -> None:
    model, _ = fitted()
    model.save(tmp_path / "model")
    assert HiMeCat.load(tmp_path / "model").quality_ == model.quality_
    object.__setattr__(model.classifier_, "quality", None)
    model.save(tmp_path / "without")
    assert HiMeCat.load(tmp_path / "without").quality_ is None


def test_swapped_labels_are_named_by_id() -> None:
    documents = sample_documents()
    labels = sample_split(documents)
    labelled = [row for row, label in enumerate(labels) if label is not None]
    rng = np.random.default_rng(0)
    wrong = sorted(rng.choice(labelled, 11, replace=False).tolist())
    for row in wrong:
        labels[row] = next(
            labels[other]
            for other in rng.permutation(labelled)
            if labels[other][0] != documents[row]["labels"][0]
        )
    model = HiMeCat(sample_taxonomy(), list(METADATA), threads=2).fit(documents, labels)
    assert model.quality_ is not None
    found = {one.id: one for one in model.quality_.suspects}
    hits = [documents[row] for row in wrong if documents[row]["id"] in found]
    assert len(hits) >= 0.5 * len(wrong)
    assert len(hits) >= 0.5 * len(found)
    for document in hits:
        one = found[document["id"]]
        assert one.probability > one.of_label
    # Whatever the number of threads.
    alone = HiMeCat(sample_taxonomy(), list(METADATA), threads=1).fit(documents, labels)
    assert alone.quality_ == model.quality_


def test_every_label_is_held_out_once_but_calibration_stops_when_it_has_enough() -> None:
    tree = Taxonomy.from_paths([("a",), ("b",)])
    many = Supervision(np.arange(1000), np.repeat([1, 2], 500))
    plan = plan_folds(tree, many, 5000, Default())
    assert [len(fold) for fold in plan.folds] == [200, 200]
    every = np.concatenate([*plan.folds, *plan.further])
    assert sorted(every.tolist()) == list(range(1000))
    assert plan.n_fits == 1 + 2 * 2 + 3 + 5
    # Beyond some thousand labels the further fits are not worth what they cost.
    lots = replace(many, rows=np.arange(8000), nodes=np.repeat([1, 2], 4000))
    assert plan_folds(tree, lots, 9000, Default()).further == ()


@pytest.mark.real
def test_the_truth_of_a_real_corpus_lies_in_the_intervals(
    shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "benchmarks"))
    benchmark = importlib.import_module("quality")
    found = benchmark.summary(benchmark.measure(shared_data("packages"), range(10, 13)))
    assert found["level 1"]["held"] >= 2 / 3
    assert found["level 2"]["held"] >= 2 / 3
    assert found["level 2"]["width"] < 0.2
    wrong = benchmark.summary(benchmark.measure(shared_data("packages"), range(10, 12), 0.1))["suspects"]
    assert wrong["precision"] >= 0.5
    assert wrong["recall"] >= 0.5
