"""A fitted model as the contents of a model folder, and back; every part knows its own state."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.classifier.protocol import Classifier, Fitted, Round
from himecat.errors import HimecatError, ModelFolderError, UsageError
from himecat.input.problems import Problems
from himecat.input.taxonomy.earlier import with_changes
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tokenizer import Tokenizer, get_tokenizer, tokenizer_from_state
from himecat.methods import METHODS, Method
from himecat.model_folder.files import CORPUS_KEY, damaged, read_model, require_keys, write_model
from himecat.model_folder.kept import KeptCorpus, LearnedFrom, kept_in, packed
from himecat.model_folder.legacy import upgrade
from himecat.runtime.files import MODEL_FILE, WEIGHTS_FILE
from himecat.views.base import BUILT_IN
from himecat.views.space import JointSpace

_KEYS = ("parameters", "method", "tokenizer", "classifier", "history", "taxonomy", "metadata", "vocabulary")
_CLASSIFIER = "classifier/"
_VIEWS = "classifier/views/"


@dataclass(frozen=True)
class SavedModel:
    """What a model folder keeps of a fitted estimator.

    Attributes
    ----------
    arguments : mapping
        Arguments of the constructor, of those kinds that JSON can hold, and the tokenizer.
    method : Default or Paper
        The method with its hyperparameters.
    fitted : Fitted
        What the fit gave; loaded, its space has no documents.
    problems : Problems
        Notes about the folder that it was loaded from.
    learned_from : LearnedFrom or KeptCorpus, optional
        The documents and labels; loaded, only where they are.
    """

    arguments: Mapping[str, Any]
    method: Method
    fitted: Fitted
    problems: Problems = field(default_factory=Problems)
    learned_from: LearnedFrom | KeptCorpus | None = None


def save(model: SavedModel, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a model folder, whole or not at all."""
    space, classifier = model.fitted.space, model.fitted.classifier
    tokenizer = space.vocabulary.tokenizer
    in_space, arrays = space.state()
    settings, own = classifier.state()
    document = {
        "parameters": {name: _plain(value) for name, value in model.arguments.items()},
        "method": {"name": model.method.name, "values": model.method.as_dict()},
        "tokenizer": {"name": tokenizer.name, "state": tokenizer.state()},
        "classifier": {"name": classifier.name, "settings": settings},
        "history": [
            # Not the seconds: the same seed gives the same bytes.
            {"pairs": done.pairs, "objective": dict(done.objective)}
            for done in model.fitted.history
        ],
        **in_space,
    }
    arrays |= {f"{_CLASSIFIER}{key}": value for key, value in own.items()}
    corpus = None
    if model.learned_from is not None:
        corpus = packed(model.learned_from.read(), list(space.values))
    write_model(folder, document, arrays, corpus=corpus, overwrite=overwrite)


def _plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    # A set has no order of its own, and the same model should always give the same bytes.
    return [_plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]


def load(folder: str | os.PathLike[str], arguments: Collection[str]) -> SavedModel:
    """Read a model folder of any format; `arguments` are those that the constructor has."""
    document, arrays = read_model(folder)
    problems = Problems()
    if "digest" not in document:
        problems.note(
            os.path.join(os.fspath(folder), MODEL_FILE),
            f"it is of format {document['version']}, in which changes of this file cannot be noticed: save the model "
            "again to add the digest by which they are.",
        )
    for name, array in arrays.items():
        if _holds_numbers(name) and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise damaged(folder, WEIGHTS_FILE, f"the array {name!r} holds numbers that are not finite")
    try:
        document, arrays = upgrade(document, arrays, folder)
        require_keys(document, _KEYS, folder)
        model = _rebuild(document, arrays, arguments, problems)
        if CORPUS_KEY not in document:
            return model
        space = model.fitted.space
        kept = kept_in(folder, document[CORPUS_KEY], space.vocabulary, space.values, len(space.taxonomy))
        return replace(model, learned_from=kept)
    except _MissingPart as error:
        shown = os.path.join(os.fspath(folder), "")
        raise ModelFolderError(f"{shown} cannot be used: {error}") from None
    except ModelFolderError:
        raise
    except HimecatError as error:
        raise damaged(folder, MODEL_FILE, str(error).rstrip(".")) from error
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
        # A message may run over several lines.
        found = " ".join(str(error).split()) or type(error).__name__
        raise damaged(folder, MODEL_FILE, f"it does not fit {WEIGHTS_FILE}: {found}") from error


def tree_of(folder: str | os.PathLike[str]) -> Taxonomy:
    """The tree of a model folder, which knows what it was before it was changed."""
    document, _ = read_model(folder)
    require_keys(document, ["taxonomy"], folder)
    try:
        kept = document["taxonomy"]
        return with_changes(Taxonomy(kept["names"], kept["parents"]), document.get("tree_changes", ()))
    except (HimecatError, LookupError, TypeError, ValueError) as error:
        raise damaged(folder, MODEL_FILE, str(error).rstrip(".")) from error


def _holds_numbers(name: str) -> bool:
    """Whether all numbers of an array must be finite; views of one's own keep what they like."""
    return not name.startswith(_VIEWS) or name.removeprefix(_VIEWS).split("/")[0] in BUILT_IN


class _MissingPart(Exception):
    """This version, or this program, does not have a part that the model is made of."""


def _rebuild(
    document: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    arguments: Collection[str],
    problems: Problems,
) -> SavedModel:
    given = dict(document["parameters"])
    unknown = given.keys() - {*arguments, "keywords"}
    if unknown:
        raise ValueError(f"there is no argument {min(unknown)!r}")
    method = METHODS[document["method"]["name"]](**document["method"]["values"])
    tokenizer = _tokenizer(document["tokenizer"])
    by_name = get_tokenizer(tokenizer.name).state() == tokenizer.state()
    given["tokenizer"] = tokenizer.name if by_name else tokenizer
    space = JointSpace.from_state(document, arrays, tokenizer)
    history = [Round(done["pairs"], done["objective"], 0.0) for done in document["history"]]
    fitted = Fitted(space, _classifier(document["classifier"], space, arrays), history)
    return SavedModel(given, method, fitted, problems)


def _tokenizer(kept: Mapping[str, Any]) -> Tokenizer:
    try:
        return tokenizer_from_state(kept["name"], kept["state"])
    except UsageError as error:
        raise _MissingPart(error) from None


def _classifier(
    kept: Mapping[str, Any], space: JointSpace, arrays: Mapping[str, npt.NDArray[Any]]
) -> Classifier:
    own = {
        key.removeprefix(_CLASSIFIER): value for key, value in arrays.items() if key.startswith(_CLASSIFIER)
    }
    kind: type[Classifier]
    if kept["name"] == "default":
        from himecat.classifier.fit import DefaultClassifier as kind
    elif kept["name"] == "regrouped":
        from himecat.classifier.regrouped import RegroupedClassifier as kind
    elif kept["name"] == "several":
        from himecat.classifier.several import SeveralClassifier as kind
    elif kept["name"] == "staged":
        from himecat.classifier.staged import StagedClassifier as kind
    elif kept["name"] == "top-down":
        from himecat.paper.topdown import TopDownClassifier as kind
    else:
        raise _MissingPart(
            f"This himecat does not have the classifier {kept['name']!r}: pip install -U himecat."
        )
    try:
        return kind.from_state(space, kept["settings"], own)
    except UsageError as error:
        raise _MissingPart(error) from None
