"""Hugging Face datasets as documents; nothing is fetched."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from himecat import Default, HiMeCat
from himecat.errors import UsageError
from himecat.input.formats import iter_records
from himecat.input.problems import Problems

datasets = pytest.importorskip("datasets")

NAMES = ["arts/opera", "arts/dance", "sport"]
TEXTS = [
    "the tenor sang an aria in the opera house",
    "the ballet dancer turned on the stage floor",
    "a late goal decided the football match today",
]


def dataset(count: int = 24, labelled: int = 12) -> Any:
    classes = datasets.ClassLabel(names=NAMES)
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "text": datasets.Value("string"),
            "label": classes,
            "tags": datasets.List(datasets.ClassLabel(names=["old", "new"])),
        }
    )
    return datasets.Dataset.from_dict(
        {
            "id": [f"d{number}" for number in range(count)],
            "text": [f"{TEXTS[number % 3]} {number}" for number in range(count)],
            "label": [number % 3 if number < labelled else -1 for number in range(count)],
            "tags": [[number % 2] for number in range(count)],
        },
        features=features,
    )


def estimator(**more: Any) -> HiMeCat:
    return HiMeCat(metadata=["tags"], method=Default(dimension=8, topics=2), threads=1, **more)


@pytest.fixture(scope="module")
def fitted() -> HiMeCat:
    return estimator(label_field="label").fit(dataset())


def test_classes_have_their_names(fitted: HiMeCat) -> None:
    assert sorted(fitted.classes_) == sorted(NAMES)
    assert sorted(fitted.space_.values["tags"].names) == ["new", "old"]
    records = [record.fields for record in iter_records(dataset(2, 1), Problems())]
    assert records == [
        {"id": "d0", "text": f"{TEXTS[0]} 0", "label": "arts/opera", "tags": ["old"]},
        {"id": "d1", "text": f"{TEXTS[1]} 1", "tags": ["new"]},
    ]


def test_it_is_the_model_of_the_same_documents(fitted: HiMeCat) -> None:
    plain = [record.fields for record in iter_records(dataset(), Problems())]
    assert (
        estimator(label_field="label").fit(plain).predict_proba(plain).tolist()
        == fitted.predict_proba(dataset()).tolist()
    )
    columns = {name: [one.get(name) for one in plain] for name in ("id", "text", "label", "tags")}
    assert fitted.predict(columns).tolist() == fitted.predict(dataset()).tolist()


def test_labels_as_a_column(fitted: HiMeCat) -> None:
    given = dataset()
    found = estimator().fit(given.remove_columns("label"), given["label"])
    assert found.predict(given).tolist() == fitted.predict(given).tolist()
    assert fitted.score(given, given["label"]) == 1.0


def test_a_part_of_a_dataset_in_another_order(fitted: HiMeCat) -> None:
    part = dataset().select([20, 1, 5])
    assert [*fitted.predict(part)] == ["sport", "arts/dance", "sport"]
    formatted = part.with_format("numpy")
    assert [*fitted.predict(formatted)] == ["sport", "arts/dance", "sport"]
    assert [*fitted.predict(part.to_iterable_dataset())] == ["sport", "arts/dance", "sport"]


def test_predict_frame_gives_a_dataset(fitted: HiMeCat) -> None:
    part = dataset().select([20, 1])
    found = fitted.predict_frame(part, top=1)
    assert isinstance(found, datasets.Dataset)
    assert found.column_names[:6] == [*part.column_names, "path", "level1"]
    assert found["path"][:] == ["sport", "arts/dance"]
    assert found["labelled"][:] == [False, True]
    assert found["level2"][:] == [None, "dance"]
    assert found.features["label"].names == NAMES


def test_review(fitted: HiMeCat) -> None:
    rows = fitted.review(dataset(), count=2)
    assert len(rows) == 2
    assert set(rows[0]["tags"]) <= {"old", "new"}


def test_several_splits_are_refused_by_name(fitted: HiMeCat) -> None:
    both = datasets.DatasetDict(train=dataset(), test=dataset(3))
    for use in (estimator().fit, estimator().check, fitted.predict, fitted.predict_frame):
        with pytest.raises(UsageError) as refused:
            use(both)
        assert str(refused.value) == (
            "This is a DatasetDict with the splits 'train', 'test': pass one of them, such as documents['train']."
        )


def test_it_is_not_imported() -> None:
    import subprocess

    code = (
        "import sys, himecat; from himecat.input import formats, labels; sys.exit('datasets' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
