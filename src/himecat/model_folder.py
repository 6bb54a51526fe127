"""A fitted estimator as the contents of a model folder, and back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from himecat.classify import TopDownClassifier, restore_classifier
from himecat.corpus import Problems, Taxonomy, Vocabulary
from himecat.corpus.tokenizer import TOKENIZER_NAME
from himecat.embedding import JointSpace, Round
from himecat.errors import HimecatError, ModelFolderError
from himecat.parameters import Settings
from himecat.persistence import read_model, write_model

if TYPE_CHECKING:
    from himecat.estimator import HiMeCat

# Constructor arguments that are kept with a model; the tree is kept on its own.
_KEPT = (
    "metadata",
    "ignore_metadata",
    "text",
    "label_field",
    "id_field",
    "preset",
    "min_confidence",
    "random_state",
)


def save(model: HiMeCat, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fitted estimator."""
    space = model.space_
    arrays: dict[str, npt.NDArray[Any]] = {
        "labels": space.labels,
        "words": space.words,
        "word_counts": space.vocabulary.counts,
    }
    for kind, vectors in space.metadata.items():
        arrays[f"metadata/{kind}"] = vectors
        arrays[f"metadata_counts/{kind}"] = space.values[kind].counts
    classifiers = []
    for node, classifier in model.classifier_.classifiers.items():
        settings, weights = classifier.state()
        classifiers.append(
            {"node": node, "name": classifier.name, "settings": settings, "arrays": sorted(weights)}
        )
        arrays.update({f"classifier/{node}/{key}": value for key, value in weights.items()})
    document = {
        "parameters": {name: _plain(getattr(model, name)) for name in _KEPT},
        "settings": model.settings_.as_dict(),
        "tokenizer": TOKENIZER_NAME,
        "taxonomy": {"names": list(space.taxonomy.names), "parents": list(space.taxonomy.parents)},
        "classifiers": classifiers,
        "history": [
            {"pairs": done.pairs, "objective": dict(done.objective), "seconds": round(done.seconds, 3)}
            for done in model.history_
        ],
        "metadata": {kind: list(values.names) for kind, values in space.values.items()},
        "vocabulary": list(space.vocabulary.names),
    }
    write_model(folder, document, arrays, overwrite=overwrite)


def _plain(value: Any) -> Any:
    if isinstance(value, (str, bool)) or value is None:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (int, float)):
        return value
    return [_plain(item) for item in value]


def load(kind: type[HiMeCat], folder: str | os.PathLike[str]) -> HiMeCat:
    """Read a fitted estimator."""
    document, arrays = read_model(folder)
    try:
        return _rebuild(kind, document, arrays)
    except HimecatError as error:
        raise ModelFolderError(f"{os.fspath(folder)} is damaged: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFolderError(
            f"{os.fspath(folder)} is damaged: model.json and weights.safetensors do not fit together "
            f"({type(error).__name__}: {error}). Fit the model again."
        ) from error


def _rebuild(kind: type[HiMeCat], document: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> HiMeCat:
    if document["tokenizer"] != TOKENIZER_NAME:
        raise ModelFolderError(
            f"it needs the tokenizer {document['tokenizer']!r}, which this version does not have."
        )
    tree = document["taxonomy"]
    taxonomy = Taxonomy(tree["names"], tree["parents"])
    settings = Settings(
        **{**document["settings"], "filter_widths": tuple(document["settings"]["filter_widths"])}
    )
    model = kind(taxonomy=taxonomy, **document["parameters"])
    model.settings_ = settings
    model.problems_ = Problems()
    words = arrays["words"]
    names = document["vocabulary"]
    if len(names) != len(words) or len(arrays["labels"]) != len(taxonomy):
        raise ValueError("the numbers of names and vectors differ")
    space = JointSpace(
        taxonomy=taxonomy,
        labels=arrays["labels"],
        words=words,
        documents=np.zeros((0, words.shape[1]), dtype=np.float32),
        metadata={value: arrays[f"metadata/{value}"] for value in document["metadata"]},
        vocabulary=Vocabulary(tuple(names), arrays["word_counts"]),
        values={
            value: Vocabulary(tuple(listed), arrays[f"metadata_counts/{value}"])
            for value, listed in document["metadata"].items()
        },
    )
    classifiers = {
        int(one["node"]): restore_classifier(
            one["name"],
            one["settings"],
            {key: arrays[f"classifier/{one['node']}/{key}"] for key in one["arrays"]},
        )
        for one in document["classifiers"]
    }
    history = [Round(done["pairs"], done["objective"], done["seconds"]) for done in document["history"]]
    model._take(space, TopDownClassifier(taxonomy, classifiers), history)
    return model
