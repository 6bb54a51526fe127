"""The state of a default classifier as models of formats 2 and 3 kept it, in today's layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.views.base import State

Arrays = Mapping[str, npt.NDArray[Any]]


def upgrade_state(n_words: int, settings: Mapping[str, Any], arrays: Arrays) -> State:
    """Rename what a folder of format 2 or 3 holds; the classifier checks afterwards that the parts fit."""
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
