"""Hyperparameters: their ranges and the presets."""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
import pytest

from himecat.errors import UsageError
from himecat.estimator import HiMeCat
from himecat.methods import NAMES, PRESETS, Settings, check_value, resolve


def test_the_paper_preset_is_what_the_paper_says() -> None:
    paper = resolve("paper", {})
    assert (paper.dimension, paper.negatives, paper.min_count, paper.max_tokens) == (100, 5, 10, 300)
    assert {paper.margin_hierarchy, paper.margin_metadata, paper.margin_words} == {0.2}
    assert (paper.beta, paper.neighbours, paper.real_share) == (500, 50, 0.2)
    assert (paper.classifier, paper.filter_widths, paper.filter_maps) == ("kim-cnn", (2, 3, 4, 5), 20)
    assert (paper.hidden, paper.batch_size, paper.learning_rate, paper.momentum) == (20, 256, 0.1, 0.9)
    assert paper.use_hierarchy
    assert paper.use_metadata
    assert paper.scaled_steps


def test_given_values_replace_those_of_the_preset() -> None:
    found = resolve("paper", {"beta": 100, "dimension": None, "use_metadata": False, "filter_widths": [5, 2]})
    assert (found.beta, found.dimension, found.use_metadata, found.filter_widths) == (100, 100, False, (5, 2))
    assert resolve(None, {}) == resolve("default", {}) == PRESETS["default"] == Settings()
    with pytest.raises(UsageError, match="no preset 'papers'; known are default, paper"):
        resolve("papers", {})


def test_every_hyperparameter_is_an_argument_of_the_estimator_that_defaults_to_the_preset() -> None:
    arguments = inspect.signature(HiMeCat).parameters
    for name in NAMES:
        assert arguments[name].default is None
        # ... and takes the value that the preset has.
        value = getattr(Settings(), name)
        if value is not None:
            assert check_value(name, value) == value


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("beta", -1, "beta must be at least 0, not -1."),
        ("beta", 1.5, "beta must be a whole number, not 1.5."),
        ("beta", 2_000_000, "beta must be at least 0 and at most 1e+06, not 2e+06."),
        ("beta", "many", "beta must be a number, not 'many'."),
        ("beta", True, "beta must be a number, not True."),
        ("dimension", 1, "dimension must be at least 2, not 1."),
        ("dimension", float("nan"), "dimension must be a whole number, not nan."),
        ("samples", 0, "samples must be at least 1, not 0."),
        ("negatives", 0, "negatives must be at least 1, not 0."),
        ("rate", 0, "rate must be above 0, not 0."),
        ("rate", 1.01, "rate must be above 0 and at most 1, not 1.01."),
        ("margin_words", 0.0, "margin_words must be above 0, not 0."),
        ("margin_words", float("nan"), "margin_words must be above 0, not nan."),
        ("concentration", 0, "concentration must be above 0, not 0."),
        ("momentum", 1.0, "momentum must be at least 0 and at most 0.999, not 1."),
        ("min_confidence", 1.1, "min_confidence must be at least 0 and at most 1, not 1.1."),
        ("use_metadata", 1, "use_metadata must be True or False, not 1."),
        ("scaled_steps", "no", "scaled_steps must be True or False, not 'no'."),
        ("filter_widths", (), "filter_widths must be whole numbers of at least 1, not ()."),
        ("filter_widths", 3, "filter_widths must be whole numbers of at least 1, not 3."),
        ("filter_widths", (0, 2), "filter_widths must be whole numbers of at least 1, not (0, 2)."),
        ("filter_widths", (2, 2.5), "filter_widths must be whole numbers of at least 1, not (2, 2.5)."),
        ("filter_widths", (2, 2), "filter_widths must differ from each other, not (2, 2)."),
        ("classifier", 7, "classifier must be 'mixture' or the name of a flat classifier, not 7."),
        ("space", "flat", "space must be spectral or sampled, not 'flat'."),
        ("contexts", 1, "contexts must be at least 2, not 1."),
        ("topics", -1, "topics must be at least 0, not -1."),
        ("topics", 5000, "topics must be at least 0 and at most 4096, not 5000."),
        ("topics", 2.5, "topics must be a whole number, not 2.5."),
        ("leaf_concentration", 0, "leaf_concentration must be above 0, not 0."),
        ("em_rounds", -1, "em_rounds must be at least 0, not -1."),
        ("self_training", 0.5, "self_training must be a whole number, not 0.5."),
        ("calibrate", "yes", "calibrate must be True or False, not 'yes'."),
    ],
)
def test_a_value_out_of_range_is_explained(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_value(name, value)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("samples", 1e6, 1_000_000),
        ("beta", np.int64(0), 0),
        ("topics", np.int64(0), 0),
        ("topics", 50.0, 50),
        ("rate", 1, 1.0),
        ("rate", np.float32(0.5), 0.5),
        ("real_share", 0, 0.0),
        ("min_confidence", 1, 1.0),
        ("filter_widths", [np.int64(3)], (3,)),
    ],
)
def test_a_value_in_range_comes_in_its_plain_type(name: str, value: Any, plain: Any) -> None:
    found = check_value(name, value)
    assert found == plain
    assert type(found) is type(plain)


def test_settings_pass_through_json() -> None:
    settings = resolve(None, {"filter_widths": (1, 7), "samples": 5000})
    loaded = json.loads(json.dumps(settings.as_dict()))
    assert Settings(**{**loaded, "filter_widths": tuple(loaded["filter_widths"])}) == settings
