"""The two methods: their hyperparameters, ranges and defaults."""

from __future__ import annotations

import json
import pickle
from copy import deepcopy
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from himecat import Default, Paper
from himecat.errors import UsageError
from himecat.methods import METHODS, Method, check_value, hyperparameters, resolve_method, with_values


def test_the_paper_s_values_are_what_the_paper_says() -> None:
    paper = Paper()
    assert (paper.dimension, paper.negatives, paper.min_count, paper.max_tokens) == (100, 5, 10, 300)
    assert {paper.margin_hierarchy, paper.margin_metadata, paper.margin_words} == {0.2}
    assert (paper.beta, paper.neighbours, paper.real_share) == (500, 50, 0.2)
    assert (paper.classifier, paper.filter_widths, paper.filter_maps) == ("kim-cnn", (2, 3, 4, 5), 20)
    assert (paper.hidden, paper.batch_size, paper.learning_rate, paper.momentum) == (20, 256, 0.1, 0.9)
    assert (paper.space, paper.epochs, paper.min_steps, paper.rate) == ("sampled", 30, 0, 0.04)
    assert paper.use_hierarchy
    assert paper.use_metadata
    assert paper.scaled_steps


def test_a_method_is_named_or_given() -> None:
    assert resolve_method(None) == resolve_method("default") == resolve_method(None, "default") == Default()
    assert (
        resolve_method("paper")
        == resolve_method(None, "paper")
        == resolve_method("paper", "paper")
        == Paper()
    )
    assert resolve_method(Paper(beta=3), "paper") == Paper(beta=3)
    with pytest.raises(UsageError, match="no method 'papers'; known are default, paper"):
        resolve_method("papers")
    with pytest.raises(UsageError, match="no preset 'papers'; known are default, paper"):
        resolve_method(None, "papers")
    with pytest.raises(UsageError, match="preset='paper' and method='default' are two methods"):
        resolve_method("default", "paper")


def test_given_values_replace_the_usual_ones() -> None:
    found = with_values(Paper(), {"beta": 100, "use_metadata": False, "filter_widths": [5, 2]})
    assert found == Paper(beta=100, use_metadata=False, filter_widths=(5, 2))
    with pytest.raises(
        UsageError, match="'default' has no hyperparameter 'beta'; it is one of the method 'paper'"
    ):
        with_values(Default(), {"beta": 100})
    with pytest.raises(UsageError, match="'paper' has no hyperparameter 'bta'; did you mean 'beta'"):
        with_values(Paper(), {"bta": 100})
    with pytest.raises(
        UsageError, match="'paper' has no hyperparameter 'qqq'; known are min_count, max_tokens"
    ):
        with_values(Paper(), {"qqq": 100})


@pytest.mark.parametrize("kind", METHODS.values(), ids=METHODS)
def test_every_default_is_in_its_range_and_in_its_plain_type(kind: type[Method]) -> None:
    for name in hyperparameters(kind):
        value = getattr(kind(), name)
        if value is not None:
            checked = check_value(name, value)
            assert (checked, type(checked)) == (value, type(value))


def test_the_default_method_in_the_paper_s_words_is_refused() -> None:
    with pytest.raises(UsageError, match="is the default method"):
        Paper(space="spectral", classifier="mixture")


def test_a_method_is_a_value() -> None:
    for method in (Default(topics=0), Paper(filter_widths=(1, 7), samples=5000, neighbours=None)):
        loaded = json.loads(json.dumps(method.as_dict()))
        assert type(method)(**loaded) == method
        assert pickle.loads(pickle.dumps(method)) == deepcopy(method) == replace(method) == method
        assert hash(type(method)(**loaded)) == hash(method)
        with pytest.raises(FrozenInstanceError):
            method.min_count = 3  # type: ignore[misc]
    assert repr(Paper(filter_widths=(1, 7), beta=500)) == "Paper(filter_widths=(1, 7))"
    assert Paper(filter_widths=(1, 7), beta=500).changed() == {"filter_widths": [1, 7]}


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
    for kind in METHODS.values():
        if name in hyperparameters(kind):
            with pytest.raises(UsageError) as caught:
                kind(**{name: value})
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


def test_numbers_of_hundreds_of_digits_are_told() -> None:
    with pytest.raises(UsageError, match="dimension is far too large"):
        Default(dimension=int("9" * 400))
