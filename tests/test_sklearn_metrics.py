"""What `predict` gives goes into scikit-learn's own metrics and cross-validation as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from himecat import Default, HiMeCat, Taxonomy

WORDS = {
    "sport/football": "goal striker match",
    "sport/tennis": "serve set grass",
    "politics": "law budget vote",
}
LABELS = [path for path in WORDS for _ in range(6)]
TEXTS = [f"{WORDS[path]} number {n}" for n, path in enumerate(LABELS)]


def quick(**options: Any) -> HiMeCat:
    return HiMeCat(method=Default(min_count=1, dimension=8, topics=0, calibrate=False), threads=1, **options)


FORMS = {
    "texts": TEXTS,
    "dicts": [{"text": text} for text in TEXTS],
    "frame": pd.DataFrame({"text": TEXTS}),
}


@pytest.mark.parametrize("form", list(FORMS))
def test_cross_validation_and_reports_take_documents_and_labels(form: str) -> None:
    from sklearn.metrics import classification_report, confusion_matrix
    from sklearn.model_selection import cross_val_predict, cross_val_score

    documents = FORMS[form]
    assert cross_val_score(quick(), documents, LABELS, scoring="f1_macro", cv=2).tolist() == [1.0, 1.0]
    found = cross_val_predict(quick(), documents, np.array(LABELS), cv=2)
    assert found.tolist() == LABELS
    report = classification_report(LABELS, found, output_dict=True)
    assert report["sport/tennis"]["support"] == 6
    model = quick().fit(documents, LABELS)
    assert confusion_matrix(LABELS, model.predict(documents), labels=model.classes_).trace() == len(LABELS)


def test_the_confusion_matrix_can_be_drawn() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    from sklearn.metrics import ConfusionMatrixDisplay

    found = quick().fit(TEXTS, LABELS).predict(TEXTS)
    drawn = ConfusionMatrixDisplay.from_predictions(LABELS, found)
    assert drawn.confusion_matrix.shape == (3, 3)


def test_strings_and_tuples_are_the_same_paths() -> None:
    model = quick().fit(TEXTS, LABELS)
    found = model.predict(TEXTS)
    assert (found.shape, found.dtype) == ((18,), np.dtype(object))
    assert found.tolist() == ["/".join(path) for path in model.predict(TEXTS, as_tuples=True)]
    assert model.classes_.tolist() == ["/".join(path) for path in model.paths_]
    assert model.classes_[model.predict_proba(TEXTS).argmax(axis=1)].tolist() == found.tolist()
    model.separator_ = ">"
    assert model.predict(TEXTS[:1]).tolist() == ["sport > football"]
    assert model.set_params(min_confidence=1.0).predict(["unknown"]).tolist() == [""]


def test_names_with_a_slash_stay_apart() -> None:
    tree = Taxonomy.from_paths([("net", "ip/v4"), ("net/ip", "v4"), ("TCP/IP", "old")])
    titles = [tree.spelled(leaf) for leaf in tree.leaves]
    # Only where two would read the same is anything marked.
    assert sorted(titles) == ["TCP/IP/old", "net/ip\\/v4", "net\\/ip/v4"]
    assert [tree.find(title) for title in titles] == list(tree.leaves)
    words = dict(zip(titles, WORDS.values(), strict=True))
    labels = [title for title in titles for _ in range(4)]
    texts = [f"{words[title]} {n}" for n, title in enumerate(labels)]
    model = quick(taxonomy=tree).fit(texts, labels)
    assert model.predict(texts).tolist() == labels
    assert model.score(texts, labels) == 1.0
