"""The largest values of rows beside a stable sort."""

from __future__ import annotations

import numpy as np
import pytest

from himecat.classifier import unexplained
from himecat.kernels.nearest import largest_below


@pytest.mark.parametrize("count", [1, 5, 20])
def test_the_largest_values_are_those_of_a_stable_sort(count: int) -> None:
    rng = np.random.default_rng(count)
    # Few different values: most of them are equal to others.
    values = (rng.integers(-50, 51, (200, 300)) / 50).astype(np.float32)
    places, found = np.zeros((200, count), dtype=np.int64), np.zeros((200, count), dtype=np.float32)
    largest_below(values, np.float32(0.95), places, found)
    held = np.where(values > np.float32(0.95), np.float32(-1.0), values)
    order = np.argsort(-held, axis=1, kind="stable")[:, :count]
    assert np.array_equal(places, order)
    assert np.array_equal(found, np.take_along_axis(held, order, axis=1))


def test_neighbours_are_the_same_with_and_without_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[700] = rows[3]
    compiled = unexplained.neighbours(rows, rows[:900])
    monkeypatch.setattr(unexplained, "_COMPILED_FROM", 1 << 40)
    plain = unexplained.neighbours(rows, rows[:900])
    assert all(np.array_equal(one, other) for one, other in zip(compiled, plain, strict=True))
