"""A view from outside the package: docs/views.md, run as it stands, and what happens around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from himecat import Default, HiMeCat, Paper, View
from himecat.errors import HimecatError
from himecat.views import base

PAGE = (Path(__file__).parents[1] / "docs" / "views.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The names that the page's code defines."""
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as registry, pytest.MonkeyPatch.context() as patch:
        # Other tests must not find these views.
        registry.setattr(base, "_registered", dict(base._registered))
        patch.chdir(tmp_path_factory.mktemp("page"))
        for block in CODE:
            exec(block, names)
        names["folder"] = Path("model").resolve()
        patch.undo()
        yield names


def test_it_takes_less_than_30_lines() -> None:
    assert CODE[0].strip().count("\n") < 30


def test_it_decides_where_texts_cannot(page: dict[str, Any]) -> None:
    documents, labels = page["documents"], page["labels"]
    truth = [("cats",) if n % 2 else ("dogs",) for n in range(40)]
    assert page["model"].predict(documents, as_tuples=True) == truth
    without = HiMeCat(method=Default(min_count=1)).fit(documents, labels).predict(documents, as_tuples=True)
    assert np.mean([found == right for found, right in zip(without[20:], truth[20:], strict=True)]) < 0.8


def test_it_is_kept_with_the_model(page: dict[str, Any]) -> None:
    again = HiMeCat.load(page["folder"])
    documents = page["documents"]
    expected = page["model"].predict_proba(documents)
    assert again.predict_proba(documents).tobytes() == expected.tobytes()
    # A document that is not in the table is placed by its words alone.
    assert again.predict_proba([{"id": "new", "text": "report"}]).shape == (1, 2)
    # Loaded, it can be fitted again, from what the folder keeps too.
    assert again.fit(documents, page["labels"]).predict_proba(documents).tobytes() == expected.tobytes()
    again = HiMeCat.load(page["folder"])
    again.correct({documents[0]["id"]: page["labels"][0]})
    assert again.predict_proba(documents).tobytes() == expected.tobytes()


def test_it_may_take_part_in_explanations(page: dict[str, Any]) -> None:
    class Explained(page["VectorTable"]):  # type: ignore[misc]
        def explain(self, corpus: Any, row: int, direction: Any) -> Any:
            vector = self.vectors[self.ids.index(corpus.ids[row])]
            return [(f"axis {axis}", 1, float(vector[axis] * direction[axis])) for axis in range(3)]

    documents, labels = page["documents"], page["labels"]
    table = Explained([one["id"] for one in documents], page["vectors"])
    model = HiMeCat(views=[table], method=Default(min_count=1)).fit(documents, labels)
    best = [one.evidence[0] for one in model.explain(documents=documents[-2:])]
    assert [(one.kind, one.name) for one in best] == [("table", "axis 1"), ("table", "axis 0")]


class Tagged(View):
    """One feature: whether the id ends with an even number."""

    name = "tagged"
    n_features = 1

    def features(self, batch: base.Batch) -> Any:
        even = [[int(name[-1]) % 2 == 0] for name in batch.corpus.ids]
        return csr_matrix(np.array(even, dtype=np.float32))


def test_a_view_of_features_alone(page: dict[str, Any]) -> None:
    documents, labels = page["documents"], page["labels"]
    model = HiMeCat(views=[Tagged()], method=Default(min_count=1)).fit(documents, labels)
    assert model.predict(documents[-2:], as_tuples=True) == [("dogs",), ("cats",)]
    assert model.classifier_.views.n_features == model.classifier_.scorer.feature_weights.shape[0]

    class Wrong(Tagged):
        n_features = 2

    with pytest.raises(HimecatError, match="gave 40 x 1 features for 40 documents, and its n_features is 2"):
        HiMeCat(views=[Wrong()], method=Default(min_count=1)).fit(documents, labels)


def test_a_clone_has_the_same_views(page: dict[str, Any]) -> None:
    clone = pytest.importorskip("sklearn.base").clone
    documents, labels = page["documents"], page["labels"]
    again = clone(page["model"]).fit(documents, labels)
    assert again.predict_proba(documents).tobytes() == page["model"].predict_proba(documents).tobytes()


def test_a_model_needs_its_class(page: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(base._registered, "table")
    with pytest.raises(
        HimecatError,
        match=r"cannot be used: There is no view 'table': register its class with himecat\.register_view",
    ):
        HiMeCat.load(page["folder"])


def test_the_weight_is_kept(page: dict[str, Any], tmp_path: Path) -> None:
    documents, labels = page["documents"], page["labels"]
    table = page["VectorTable"]([one["id"] for one in documents], page["vectors"], weight=0.25)
    model = HiMeCat(views=[table], method=Default(min_count=1, learn_weights=False)).fit(documents, labels)
    assert model.classifier_.views.weights["table"] == 0.25
    model.save(tmp_path / "model")
    found = HiMeCat.load(tmp_path / "model").predict_proba(documents)
    assert found.tobytes() == model.predict_proba(documents).tobytes()
    assert found.tobytes() != page["model"].predict_proba(documents).tobytes()


def test_a_view_of_a_raw_field(page: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    documents = [
        {"id": str(n), "text": "a photo", "image": (rng.random((4, 3)) * [1, n % 2, 1 - n % 2]).tolist()}
        for n in range(40)
    ]
    labels = ["green" if n % 2 else "blue" for n in range(20)] + [None] * 20
    model = HiMeCat(views=[page["Brightness"]()], method=Default(min_count=1)).fit(documents, labels)
    assert model.predict(documents[20:], as_tuples=True) == [
        ("green",) if n % 2 else ("blue",) for n in range(20, 40)
    ]
    model.save(tmp_path / "model")
    again = HiMeCat.load(tmp_path / "model")
    assert again.predict_proba(documents).tobytes() == model.predict_proba(documents).tobytes()


class Neighbours(View):
    """Draws every document towards the one before it."""

    name = "neighbours"
    smooths = True

    def see(self, batch: base.Batch) -> Any:
        assert batch.directions is not None
        return 0.5 * np.roll(batch.directions, 1, axis=0)


def test_a_view_that_smooths(page: dict[str, Any]) -> None:
    documents, labels = page["documents"], page["labels"]
    model = HiMeCat(views=[Neighbours()], method=Default(min_count=1)).fit(documents, labels)
    seen = model.classifier_.views.see(model.encode(documents))
    assert np.abs(seen.smoothed - seen.text).max() > 0.01


def test_a_view_has_a_name_of_its_own(page: dict[str, Any]) -> None:
    class Words(Neighbours):
        name = "words"

    class Slashed(Neighbours):
        name = "a/b"

    for view, said in ((Words(), "two views of the name 'words'"), (Slashed(), "cannot have the name 'a/b'")):
        with pytest.raises(HimecatError, match=said):
            HiMeCat(views=[view], method=Default(min_count=1)).fit(page["documents"], page["labels"])


def test_the_mean_row_keeps_its_place(page: dict[str, Any], tmp_path: Path) -> None:
    class Centred(Tagged):
        name = "centred"

        def state(self) -> Any:
            return {}, {"centre": np.zeros(1)}

    model = HiMeCat(views=[Centred()], method=Default(min_count=1)).fit(page["documents"], page["labels"])
    with pytest.raises(HimecatError, match="must not name an array 'centre'"):
        model.save(tmp_path / "model")


def test_the_papers_classifiers_cannot_use_views(page: dict[str, Any]) -> None:
    with pytest.raises(HimecatError, match="cannot use views: leave them out"):
        HiMeCat(views=[Neighbours()], method=Paper()).fit(page["documents"], page["labels"])
