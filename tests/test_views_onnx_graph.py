"""Reading ONNX files without the package `onnx`."""

from __future__ import annotations

import numpy as np
import pytest

from himecat.views.onnx_graph import external_files, with_int8_products
from tiny_onnx import INT64, TABLE, external_tensor, int8_product, lookup, model, node, part, tensor

WEIGHTS, SCALES = np.ones((6, 5), dtype=np.int8), np.ones((1, 5), dtype=np.float32)


def test_tensors_in_other_files_are_found_wherever_they_stand() -> None:
    held = external_tensor("w", [2], "held.bin")
    inside = part(1, node("Constant", [], "c") + part(5, part(1, "value") + part(5, held)))
    nested = node("If", ["x"], "y") + part(5, part(1, "then_branch") + part(6, inside))
    sparse = part(15, part(1, external_tensor("v", [2], "sparse.bin")))
    made = model([nested], [external_tensor("t", [2], "beside.bin"), tensor("table", TABLE)], {"x": INT64})
    assert sorted(external_files(made + part(7, sparse))) == ["beside.bin", "held.bin", "sparse.bin"]
    assert external_files(lookup()) == []


@pytest.mark.parametrize("scales", [SCALES, SCALES[0], SCALES[0, :1], SCALES[0, 0].reshape(())])
def test_products_with_int8_weights_are_replaced(scales: np.ndarray) -> None:  # type: ignore[type-arg]
    made = with_int8_products(int8_product(WEIGHTS, scales))
    assert made.count(b"DynamicQuantizeMatMul") == 1
    assert made.count(b"com.microsoft") == 2
    # Once more changes nothing.
    assert with_int8_products(made) == made


@pytest.mark.parametrize(
    "made",
    [
        lookup(),
        int8_product(WEIGHTS, np.ones((6, 1), dtype=np.float32)),
        int8_product(WEIGHTS[None], SCALES),
        int8_product(WEIGHTS.astype(np.float32), SCALES),
        int8_product(WEIGHTS, SCALES) + part(7, b""),
        b"",
    ],
)
def test_what_is_no_such_product_stays(made: bytes) -> None:
    assert with_int8_products(made) == made


def test_a_graph_inside_of_a_node_may_use_the_weights() -> None:
    body = part(5, part(1, "body") + part(6, b""))
    made = int8_product(WEIGHTS, SCALES, [node("Loop", ["input_ids"], "y") + body])
    assert with_int8_products(made) == made


def test_bytes_that_are_no_model_are_told() -> None:
    for wrong in (b"\xff" * 20, b"\x3a\x05\x0a", b"\x3b", b"\x08" + b"\x80" * 12, b"\x38\x01"):
        with pytest.raises(ValueError, match=r"no ONNX model|cut short"):
            external_files(wrong)
