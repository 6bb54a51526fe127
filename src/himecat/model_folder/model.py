"""A fitted estimator as the contents of a model folder, and back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from himecat.classifier.fit import DefaultClassifier
from himecat.classifier.protocol import Round
from himecat.classifier.state import upgrade_state
from himecat.errors import HimecatError, ModelFolderError, UsageError
from himecat.input.corpus import Vocabulary
from himecat.input.problems import Problems
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tokenizer import UNICODE, Tokenizer, get_tokenizer, tokenizer_from_state
from himecat.methods import old_settings
from himecat.model_folder.layout import MODEL_FILE, WEIGHTS_FILE, damaged, require_keys
from himecat.model_folder.legacy import method_of
from himecat.model_folder.reader import read_model
from himecat.model_folder.writer import write_model
from himecat.paper.flat_classifier import FlatClassifier
from himecat.paper.registry import BUILT_IN, classifier_class, restore_classifier
from himecat.paper.topdown import TopDownClassifier
from himecat.views.base import view_class
from himecat.views.space import JointSpace

if TYPE_CHECKING:
    from himecat.estimator import HiMeCat

# Constructor arguments that are kept with a model; the tree is kept on its own.
_KEPT = (
    "metadata",
    "ignore_metadata",
    "text",
    "label_field",
    "id_field",
    "encoder",
    "preset",
    "min_confidence",
    "random_state",
    "allow_empty_leaves",
)
_KEYS = (
    "parameters",
    "settings",
    "tokenizer",
    "taxonomy",
    "classifiers",
    "history",
    "metadata",
    "vocabulary",
)


def save(model: HiMeCat, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fitted estimator."""
    space = model.space_
    tokenizer = space.vocabulary.tokenizer
    arrays: dict[str, npt.NDArray[Any]] = {
        "labels": space.labels,
        "words": space.words,
        "word_counts": space.vocabulary.counts,
    }
    for kind, vectors in space.metadata.items():
        arrays[f"metadata/{kind}"] = vectors
        arrays[f"metadata_counts/{kind}"] = space.values[kind].counts
    classifiers = []
    fused: dict[str, Any] | None = None
    at_nodes: Mapping[int, FlatClassifier] = {}
    if isinstance(model.classifier_, DefaultClassifier):
        fused, own = model.classifier_.state()
        arrays.update({f"fused/{key}": value for key, value in own.items()})
    else:
        at_nodes = model.classifier_.classifiers
    for node, classifier in at_nodes.items():
        settings, weights = classifier.state()
        classifiers.append(
            {"node": node, "name": classifier.name, "settings": settings, "arrays": sorted(weights)}
        )
        arrays.update({f"classifier/{node}/{key}": value for key, value in weights.items()})
    document = {
        "parameters": {name: _plain(getattr(model, name)) for name in _KEPT} | {"keywords": model.keywords_},
        "settings": old_settings(model.method_).as_dict(),
        "tokenizer": {"name": tokenizer.name, "state": tokenizer.state()},
        "taxonomy": {"names": list(space.taxonomy.names), "parents": list(space.taxonomy.parents)},
        "classifiers": classifiers,
        **({} if fused is None else {"fused": fused}),
        "history": [
            # Not the seconds: the same seed gives the same bytes.
            {"pairs": done.pairs, "objective": dict(done.objective)}
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
    # A set has no order of its own, and the same model should always give the same bytes.
    items = sorted(value) if isinstance(value, (set, frozenset)) else value
    return [_plain(item) for item in items]


def load(kind: type[HiMeCat], folder: str | os.PathLike[str]) -> HiMeCat:
    """Read a fitted estimator."""
    document, arrays = read_model(folder)
    require_keys(document, _KEYS, folder)
    try:
        _check_known(document, folder)
        return _rebuild(kind, document, arrays)
    except ModelFolderError:
        raise
    except HimecatError as error:
        raise damaged(folder, MODEL_FILE, str(error).rstrip(".")) from error
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
        # A message may run over several lines.
        found = " ".join(str(error).split()) or type(error).__name__
        raise damaged(folder, MODEL_FILE, f"it does not fit {WEIGHTS_FILE}: {found}") from error


def _check_known(document: dict[str, Any], folder: str | os.PathLike[str]) -> None:
    """Make sure that this version and this program have the parts that the model is made of."""
    shown = os.path.join(os.fspath(folder), "")
    try:
        _tokenizer(document)
    except UsageError as error:
        raise ModelFolderError(f"{shown} cannot be used: {error}") from None
    for name in sorted({one["name"] for one in document["classifiers"]}):
        try:
            classifier_class(name)
        except UsageError as error:
            if name in BUILT_IN:
                raise ModelFolderError(f"{shown} cannot be used: {error}") from None
            raise ModelFolderError(
                f"{shown} needs the classifier {name!r}: register it with "
                "himecat.paper.registry.register_classifier before loading."
            ) from None
    for name in document.get("fused", {}).get("views", {}):
        try:
            view_class(name)
        except UsageError:
            raise ModelFolderError(
                f"{shown} needs the view {name!r}: register its class with himecat.register_view before loading."
            ) from None


def _tokenizer(document: dict[str, Any]) -> Tokenizer:
    kept = document["tokenizer"]
    # Older models name the rules of the only tokenizer there was.
    if isinstance(kept, str):
        kept = {"name": UNICODE.name, "state": {"rules": kept}}
    return tokenizer_from_state(kept["name"], kept["state"])


def _rebuild(kind: type[HiMeCat], document: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> HiMeCat:
    tree = document["taxonomy"]
    taxonomy = Taxonomy(tree["names"], tree["parents"])
    # With all values in place, a loaded model that is fitted again is fitted as it was.
    method = method_of(document["settings"])
    given = {name: value for name, value in document["parameters"].items() if name != "preset"}
    tokenizer = _tokenizer(document)
    by_name = get_tokenizer(tokenizer.name).state() == tokenizer.state()
    model = kind(
        taxonomy=taxonomy, method=method, tokenizer=tokenizer.name if by_name else tokenizer, **given
    )
    model.method_ = method
    model.problems_ = Problems()
    model.keywords_ = model.keywords
    space = _space(taxonomy, document, arrays)
    history = [Round(done["pairs"], done["objective"], 0.0) for done in document["history"]]
    if "fused" in document:
        own = {key.removeprefix("fused/"): value for key, value in arrays.items() if key.startswith("fused/")}
        settings = document["fused"]
        if "trust" in settings:
            settings, own = upgrade_state(len(space.words), settings, own)
        classifier = DefaultClassifier.from_state(space, settings, own)
        model.views = classifier.own_views
        model._take(space, classifier, history)
        return model
    classifiers = {
        int(one["node"]): restore_classifier(
            one["name"],
            one["settings"],
            {key: arrays[f"classifier/{one['node']}/{key}"] for key in one["arrays"]},
        )
        for one in document["classifiers"]
    }
    _check_classifiers(taxonomy, classifiers)
    model._take(space, TopDownClassifier(taxonomy, classifiers), history)
    return model


def _space(taxonomy: Taxonomy, document: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> JointSpace:
    dimension = arrays["words"].shape[1]

    def vectors(array: str, count: int) -> npt.NDArray[np.float32]:
        found = arrays[array]
        if found.shape != (count, dimension) or found.dtype != np.float32:
            raise ValueError(
                f"{array!r} should hold {count} x {dimension} float32, not "
                f"{' x '.join(map(str, found.shape))} {found.dtype}"
            )
        return found

    def vocabulary(names: list[str], counts: str, tokenizer: Tokenizer = UNICODE) -> Vocabulary:
        if arrays[counts].shape != (len(names),):
            raise ValueError(f"{counts!r} should hold {len(names)} numbers, not {arrays[counts].size}")
        return Vocabulary(tuple(names), arrays[counts], tokenizer)

    metadata: dict[str, list[str]] = document["metadata"]
    return JointSpace(
        taxonomy=taxonomy,
        labels=vectors("labels", len(taxonomy)),
        words=vectors("words", len(document["vocabulary"])),
        documents=np.zeros((0, dimension), dtype=np.float32),
        metadata={value: vectors(f"metadata/{value}", len(names)) for value, names in metadata.items()},
        vocabulary=vocabulary(document["vocabulary"], "word_counts", _tokenizer(document)),
        values={value: vocabulary(names, f"metadata_counts/{value}") for value, names in metadata.items()},
    )


def _check_classifiers(taxonomy: Taxonomy, classifiers: dict[int, FlatClassifier]) -> None:
    choosing = {node: len(taxonomy.children[node]) for node in taxonomy.inner}
    choosing = {node: count for node, count in choosing.items() if count > 1}
    if set(choosing) != set(classifiers):
        raise ValueError("the classifiers do not stand at the nodes of the tree that need one")
    for node, count in choosing.items():
        # A plug-in need not say how many classes it has; it is then checked when it is used.
        if getattr(classifiers[node], "n_classes", count) != count:
            raise ValueError(f"the classifier at {taxonomy.title(node)!r} is not made for {count} children")
