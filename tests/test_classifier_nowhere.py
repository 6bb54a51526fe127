"""Documents that belong to none of the categories."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from himecat import Default, HiMeCat, Taxonomy
from himecat.classifier.assignments import assign
from himecat.errors import DataError
from himecat.input.corpus import Supervision

TREE = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
SURE = np.array([[0.05, 0.8, 0.15]], dtype=np.float32)


def pile(seed: int = 0) -> list[dict[str, str]]:
    """Documents of three kinds; of the third, none has a label."""
    rng = np.random.default_rng(seed)
    documents = []
    for kind in ("sea", "law", "tea"):
        for row in range(40):
            words = [f"{kind}{word}" for word in rng.integers(15, size=8)] + [
                f"common{word}" for word in rng.integers(10, size=4)
            ]
            one = {"id": f"{kind}{row}", "text": " ".join(words)}
            if row < 12 and kind != "tea":
                one["labels"] = kind
            documents.append(one)
    return documents


def test_a_path_goes_as_far_as_confidence_times_the_rest_carries() -> None:
    def path(none: float, bound: float) -> tuple[str, ...]:
        return assign(TREE, SURE, bound, none=np.array([none], dtype=np.float32)).path(0)

    whole = assign(TREE, SURE).path(0)
    assert path(0.9, 0.0) == whole
    assert path(0.1, 0.7) == whole
    assert len(path(0.2, 0.65)) < 2
    assert path(0.6, 0.01) == ()


def test_a_document_labelled_none_is_placed_nowhere() -> None:
    known = Supervision(np.zeros(0, np.int64), np.zeros(0, np.int64), nowhere=np.array([0]))
    found = assign(TREE, SURE, known=known, none=np.array([0.1], dtype=np.float32))
    assert found.path(0) == ()
    assert found.none is not None
    assert found.none[0] == 1.0
    assert found.labelled is not None
    assert found.labelled[0]


def test_strange_documents_and_lacking_categories_stand_out_and_a_folder_keeps_it(tmp_path: Path) -> None:
    documents = pile()
    model = HiMeCat(method=Default(min_count=1), threads=1).fit(documents)
    none = model.assign([one["text"] for one in documents]).none
    assert none is not None
    assert none[80:].mean() > 2 * none[:80].mean()
    odd = model.assign(["nothing here was ever seen before"]).none
    assert odd is not None
    assert odd[0] > none[:80].mean()
    model.save(tmp_path / "model")
    again = HiMeCat.load(tmp_path / "model")
    assert np.array_equal(again.assign([one["text"] for one in documents]).none, none)
    assert "none" in model.predict_frame(documents[:2])


def test_documents_labelled_none_teach() -> None:
    documents = pile()
    before = HiMeCat(method=Default(min_count=1), threads=1).fit(documents)
    for one in documents[80:86]:
        one["labels"] = "none"
    after = HiMeCat(method=Default(min_count=1), threads=1).fit(documents)
    assert after.classes_.tolist() == before.classes_.tolist()
    texts = [one["text"] for one in documents]
    old, new = before.assign(texts).none, after.assign(texts).none
    assert old is not None
    assert new is not None
    assert new[86:].mean() > max(0.5, old[86:].mean())
    assert new[:80].mean() < 0.3


def test_a_category_named_none_is_refused() -> None:
    with pytest.raises(DataError, match="the tree has a category 'none'"):
        HiMeCat(taxonomy={"a": None, "none": None}, method=Default(min_count=1)).fit(
            ["a goal", "a law"], ["a", "none"]
        )


@pytest.mark.real
def test_a_category_that_the_tree_lacks_is_told_on_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "benchmarks"))
    importlib.import_module("nowhere").measure("packages", 0, 6, None)
    first = capsys.readouterr().out.splitlines()[0]
    assert float(first.split("AUROC ")[1].split()[0]) > 0.9
