"""What a model folder keeps of the default classifier, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.classifier.calibration import Calibration
from himecat.classifier.fit import FusedClassifier
from himecat.classifier.scorer import Scorer
from himecat.input.taxonomy.tree import Taxonomy
from himecat.views.base import DocumentViews
from himecat.views.metadata import ValueTrust

FloatArray = npt.NDArray[np.float32]


def state_of(model: FusedClassifier) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """What a model folder keeps of a classifier, word vectors aside: plain values and arrays."""
    views, scorer = model.views, model.scorer
    arrays: dict[str, npt.NDArray[Any]] = {
        "word_weights": views.weights,
        "word_rarity": views.rarity,
        "centre": views.centre,
        "leaf_directions": scorer.directions,
        "log_prior": scorer.log_prior,
        "text_weights": scorer.text_weights,
        "feature_weights": scorer.feature_weights,
    }
    for name in ("topics", "topic_centre", "encoder_centre"):
        if getattr(views, name) is not None:
            arrays[name] = getattr(views, name)
    for kind, one in views.trust.items():
        for name in ("likeness", "counts", "rows", "sums"):
            arrays[f"trust/{kind}/{name}"] = getattr(one, name)
        arrays[f"trust/{kind}/rarity"] = views.value_rarity[kind]
    settings = {
        "trust": {kind: one.trust for kind, one in views.trust.items()},
        "concentration": scorer.concentration,
        "scales": list(scorer.scales),
        "sharpness": model.calibration.sharpness,
        "bias": list(model.calibration.bias),
        "surest": [list(level) for level in model.calibration.surest],
        "levels": [list(level) for level in model.calibration.levels],
    }
    return settings, arrays


def from_state(
    taxonomy: Taxonomy, words: FloatArray, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> FusedClassifier:
    """Rebuild a classifier from what a model folder kept."""
    trust = {
        kind: ValueTrust(
            float(weight),
            *(arrays[f"trust/{kind}/{name}"] for name in ("likeness", "counts", "rows", "sums")),
        )
        for kind, weight in settings["trust"].items()
    }
    views = DocumentViews(
        words,
        arrays["word_weights"],
        arrays["word_rarity"],
        arrays["centre"],
        trust,
        {kind: arrays[f"trust/{kind}/rarity"] for kind in trust},
        *(arrays.get(name) for name in ("topics", "topic_centre", "encoder_centre")),
    )
    if (views.topics is None) != (views.topic_centre is None):
        raise ValueError("'fused/topics' and 'fused/topic_centre' belong together, and one is missing")
    feature_weights = arrays["feature_weights"]
    views, feature_weights = _shared_values_only(views, feature_weights)
    first, second, third = settings["scales"]
    scorer = Scorer(
        arrays["leaf_directions"],
        arrays["log_prior"],
        settings["concentration"],
        arrays["text_weights"],
        feature_weights,
        (first, second, third),
    )
    _check_shapes(taxonomy, views, scorer)
    levels = tuple((float(exponent), float(slips)) for exponent, slips in settings["levels"])
    if len(levels) != max(1, taxonomy.depth):
        raise ValueError(f"the tree has {taxonomy.depth} levels, and {len(levels)} are calibrated")
    if not np.isfinite([*scorer.scales, scorer.concentration, settings["sharpness"]]).all():
        raise ValueError("a setting of the classifier is not a number")
    bias = tuple(float(one) for one in settings.get("bias", ()))
    if len(bias) not in (0, taxonomy.n_leaves) or not np.isfinite(bias).all():
        raise ValueError(f"'bias' should hold {taxonomy.n_leaves} numbers")
    surest = tuple((float(slope), float(offset)) for slope, offset in settings.get("surest", ()))
    if len(surest) not in (0, len(levels)) or not np.isfinite(surest).all():
        raise ValueError(f"'surest' should hold a slope and an offset for each of {len(levels)} levels")
    calibration = Calibration(float(settings["sharpness"]), levels, bias, surest)
    return FusedClassifier(taxonomy, views, scorer, calibration)


def _shared_values_only(
    views: DocumentViews, feature_weights: FloatArray
) -> tuple[DocumentViews, FloatArray]:
    """Models of format 2 keep weights for all values, also for those that no two documents share."""
    if all(len(views.value_rarity[kind]) == len(one.sums) for kind, one in views.trust.items()):
        return views, feature_weights
    n_words, shared = len(views.words), {kind: one.rows >= 0 for kind, one in views.trust.items()}
    if len(feature_weights):
        kept = np.concatenate([np.ones(n_words, dtype=bool), *shared.values()])
        if len(kept) != len(feature_weights):
            raise ValueError(
                f"'fused/feature_weights' should hold {len(kept)} rows, not {len(feature_weights)}"
            )
        feature_weights = feature_weights[kept]
    rarity = {kind: views.value_rarity[kind][chosen] for kind, chosen in shared.items()}
    return replace(views, value_rarity=rarity), feature_weights


def _check_shapes(taxonomy: Taxonomy, views: DocumentViews, scorer: Scorer) -> None:
    """Make sure that the parts fit each other, and not only once a document is placed."""
    n_words, length = views.words.shape
    n_leaves = taxonomy.n_leaves
    n_features = n_words + sum(len(rarity) for rarity in views.value_rarity.values())
    # Without self-training there are no linear classifiers.
    trained = scorer.text_weights.size > 0 or scorer.feature_weights.size > 0
    expected: dict[str, tuple[npt.NDArray[Any], tuple[int, ...]]] = {
        "word_weights": (views.weights, (n_words,)),
        "word_rarity": (views.rarity, (n_words,)),
        "centre": (views.centre, (length,)),
        "leaf_directions": (scorer.directions, (n_leaves, views.dimension)),
        "log_prior": (scorer.log_prior, (n_leaves,)),
        "text_weights": (scorer.text_weights, (views.dimension, n_leaves) if trained else (0, 0)),
        "feature_weights": (scorer.feature_weights, (n_features, n_leaves) if trained else (0, 0)),
    }
    if views.topics is not None and views.topic_centre is not None:
        expected["topics"] = (views.topics, (n_words, len(views.topic_centre)))
    for kind, one in views.trust.items():
        shared = int((one.rows >= 0).sum())
        # What two of the three agree on.
        n_values = (sorted(map(len, (one.rows, one.likeness, one.counts)))[1],)
        for name in ("rows", "likeness", "counts"):
            expected[f"trust/{kind}/{name}"] = (getattr(one, name), n_values)
        expected[f"trust/{kind}/rarity"] = (views.value_rarity[kind], (shared,))
        expected[f"trust/{kind}/sums"] = (one.sums, (shared, views.dimension))
    for name, (found, shape) in expected.items():
        if found.shape != shape:
            raise ValueError(
                f"'fused/{name}' should hold {' x '.join(map(str, shape))} numbers, not "
                f"{' x '.join(map(str, found.shape))}"
            )
