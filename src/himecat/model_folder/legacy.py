"""Model folders of formats 1 to 3, rewritten into the shape of format 4."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.methods import MIXTURE, Default, Method, Paper, hyperparameters
from himecat.model_folder.files import Arrays, require_keys

_KEYS = (
    "parameters", "settings", "tokenizer", "taxonomy", "classifiers", "history", "metadata", "vocabulary",
)  # fmt: skip
_FUSED = "fused/"


def upgrade(
    document: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], folder: str | os.PathLike[str]
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """What a folder of an older format holds, as format 4 has it; a newer one as it is."""
    if document["version"] > 3:
        return document, arrays
    require_keys(document, _KEYS, folder)
    method = method_of(document["settings"])
    name, settings = "top-down", {"nodes": document["classifiers"]}
    if "fused" in document:
        # The arrays of flat classifiers already have the names of today.
        own = {key.removeprefix(_FUSED): value for key, value in arrays.items() if key.startswith(_FUSED)}
        name, (settings, own) = "default", _default_state(len(arrays["words"]), document["fused"], own)
        arrays = arrays | {f"classifier/{key}": value for key, value in own.items()}
    return {
        **document,
        "parameters": {name: value for name, value in document["parameters"].items() if name != "preset"},
        "method": {"name": method.name, "values": method.as_dict()},
        # There was one tokenizer, and the folder names its rules.
        "tokenizer": {"name": "unicode", "state": {"rules": document["tokenizer"]}},
        "classifier": {"name": name, "settings": settings},
    }, arrays


def method_of(settings: Mapping[str, Any]) -> Method:
    """The method with the hyperparameters that formats 1 to 3 keep in one list for both methods.

    Examples
    --------
    >>> method_of({"space": "spectral", "classifier": "mixture", "em_rounds": 3, "topics": 100, "beta": 5})
    Default(em_rounds=3)
    """
    unknown = settings.keys() - {*hyperparameters(Default), *hyperparameters(Paper)}
    if unknown:
        raise ValueError(f"unknown setting {min(unknown)!r}")
    # Models of the first release know of no other space; nor do those of the second know topics.
    known = {"space": "sampled", "topics": 0, **settings}
    kind = Default if (known["space"], known["classifier"]) == ("spectral", MIXTURE) else Paper
    return kind(**{name: known[name] for name in hyperparameters(kind) if name in known})


def _default_state(
    n_words: int, settings: Mapping[str, Any], arrays: Arrays
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The state of a default classifier of format 2 or 3; the classifier checks afterwards that the parts fit."""
    kinds = settings["trust"]
    views: dict[str, Any] = {"words": {"weight": 1.0, "settings": {}}}
    found = {
        "views/words/weights": arrays["word_weights"],
        "views/words/idf": arrays["word_rarity"],
        "views/words/centre": arrays["centre"],
        "scorer/directions": arrays["leaf_directions"],
        "scorer/feature_weights": _of_shared_values(n_words, kinds, arrays),
        **{f"scorer/{name}": arrays[name] for name in ("log_prior", "text_weights")},
    }
    if "topics" in arrays or "topic_centre" in arrays:
        views["topics"] = {"weight": 0.5, "settings": {}}
        found["views/topics/vectors"] = arrays["topics"]
        found["views/topics/centre"] = arrays["topic_centre"]
        found["views/topics/idf"] = arrays["word_rarity"]
    if "encoder_centre" in arrays:
        views["encoder"] = {"weight": 2.0, "settings": {}}
        found["views/encoder/centre"] = arrays["encoder_centre"]
    views["metadata"] = {"weight": None, "settings": {"weights": dict(kinds)}}
    for kind in kinds:
        old, new = f"trust/{kind}", f"views/metadata/{kind}"
        shared = arrays[f"{old}/rows"] >= 0
        for name, was in (("correlation", "likeness"), ("counts", "counts")):
            found[f"{new}/{name}"] = arrays[f"{old}/{was}"][shared]
        idf = arrays[f"{old}/rarity"]
        # Models of format 2 also kept values that no two documents share.
        found[f"{new}/idf"] = idf[shared] if len(idf) == len(shared) else idf
        found[f"{new}/rows"], found[f"{new}/sums"] = arrays[f"{old}/rows"], arrays[f"{old}/sums"]
    calibration = {
        "inverse_temperature": settings["sharpness"],
        "levels": settings["levels"],
        "bias": settings.get("bias", ()),
        "paths": settings.get("surest", ()),
    }
    scorer = {name: settings[name] for name in ("concentration", "scales")}
    return {"views": views, "scorer": scorer, "calibration": calibration}, found


def _of_shared_values(n_words: int, kinds: Mapping[str, Any], arrays: Arrays) -> npt.NDArray[Any]:
    """The weights of the features without those of values that no two documents share."""
    weights = arrays["feature_weights"]
    shared = [arrays[f"trust/{kind}/rows"] >= 0 for kind in kinds]
    kept = np.concatenate([np.ones(n_words, dtype=bool), *shared])
    all_kept = all(
        len(arrays[f"trust/{kind}/rarity"]) == one.sum() for kind, one in zip(kinds, shared, strict=True)
    )
    return weights if all_kept or len(weights) != len(kept) else weights[kept]
