"""What is added to the mixture's scores at each leaf."""

from __future__ import annotations

import numpy as np
import pytest

from himecat.classifier.locate import Correction
from himecat.runtime.softmax import softmax

RNG = np.random.default_rng(0)
LOGITS = (2.0 * RNG.normal(size=(600, 4)) + [1.5, 0, 0, -0.5]).astype(np.float32)
BIAS = np.array([0.5, -0.5, 0.2, -0.2], dtype=np.float32)
PRIOR = np.log(np.array([0.4, 0.3, 0.2, 0.1], dtype=np.float32))
ALL = np.arange(len(LOGITS))


def test_bias_and_prior_are_added() -> None:
    np.testing.assert_allclose(Correction(1.0, BIAS, PRIOR).offset(LOGITS, ALL), BIAS + PRIOR, rtol=1e-6)
    np.testing.assert_allclose(Correction(1.0, BIAS).offset(LOGITS, ALL), BIAS)
    assert not Correction().offset(LOGITS, ALL).any()


@pytest.mark.parametrize(("prior", "wanted"), [(None, [0.25] * 4), (PRIOR, [0.4, 0.3, 0.2, 0.1])])
def test_even_leaves_are_balanced_instead(prior: np.ndarray | None, wanted: list[float]) -> None:
    found = Correction(1.0, BIAS, prior, evenness=1.0).offset(LOGITS, ALL)
    assert found.dtype == np.float32
    np.testing.assert_allclose(softmax(LOGITS + found).mean(axis=0), wanted, atol=0.005)


def test_half_even_leaves_are_balanced_by_half() -> None:
    ends = [Correction(1.0, BIAS, PRIOR, evenness=share).offset(LOGITS, ALL) for share in (0.0, 1.0)]
    half = Correction(1.0, BIAS, PRIOR, evenness=0.5).offset(LOGITS, ALL)
    np.testing.assert_allclose(half, (ends[0] + ends[1]) / 2, rtol=1e-5)


def test_only_documents_without_a_label_are_balanced() -> None:
    labelled = LOGITS + np.array([50.0, 0, 0, 0], dtype=np.float32)
    together = np.concatenate([LOGITS, labelled])
    one = Correction(evenness=1.0)
    np.testing.assert_array_equal(one.offset(together, ALL), one.offset(LOGITS, ALL))
