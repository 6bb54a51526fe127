"""The same bytes from any thread: a server fits and predicts outside the main one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from estimators import estimator
from himecat import HiMeCat
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

DOCUMENTS = sample_documents()
LABELS = sample_split(DOCUMENTS)
WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"space": "sampled", "classifier": "mean-logistic", "samples": 200_000, "beta": 10},
}


def fitted(way: str, threads: int) -> HiMeCat:
    model = estimator(sample_taxonomy(), METADATA, threads=threads, **WAYS[way])
    return model.fit(DOCUMENTS, LABELS)


def answers(model: HiMeCat) -> tuple[bytes, bytes]:
    return model.predict_proba(DOCUMENTS).tobytes(), model.transform(DOCUMENTS).tobytes()


def in_threads(work: Callable[[], Any], count: int) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return [future.result() for future in [pool.submit(work) for _ in range(count)]]


@pytest.mark.parametrize("way", WAYS)
def test_fitting_and_predicting_in_any_thread_give_the_same_bytes(way: str) -> None:
    # The main thread comes first: it must not keep the limits of matrix products for itself.
    model = fitted(way, threads=1)
    expected = answers(model)
    assert np.frombuffer(expected[0], np.float32).max() > 0.5
    assert answers(fitted(way, threads=2)) == expected
    (elsewhere,) = in_threads(lambda: fitted(way, threads=2), 1)
    assert answers(elsewhere) == expected
    assert in_threads(lambda: answers(model), 1) == [expected]
    assert in_threads(lambda: answers(model), 8) == [expected] * 8
