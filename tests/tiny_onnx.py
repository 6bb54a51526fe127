"""ONNX files of a few numbers, written byte by byte: the package `onnx` is no dependency."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "red", "hen", "fox", "night", "the")
TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 6)).astype(np.float32)
_TYPES = {np.dtype(np.float32): 1, np.dtype(np.int8): 3, np.dtype(np.int64): 7}
INT64, INT32, FLOAT = 7, 6, 1


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def part(field: int, content: bytes | str) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def tensor(name: str, values: npt.NDArray[Any]) -> bytes:
    shape = b"".join(number(1, size) for size in values.shape)
    return shape + number(2, _TYPES[values.dtype]) + part(8, name) + part(9, values.tobytes())


def external_tensor(name: str, shape: Sequence[int], location: str) -> bytes:
    entry = part(1, "location") + part(2, location)
    return (
        b"".join(number(1, size) for size in shape)
        + number(2, 1)
        + part(8, name)
        + part(13, entry)
        + number(14, 1)
    )


def node(operator: str, inputs: Sequence[str], output: str, **numbers: int) -> bytes:
    attributes = (part(1, name) + number(3, value) + number(20, 2) for name, value in numbers.items())
    return (
        b"".join(part(1, name) for name in inputs)
        + part(2, output)
        + part(4, operator)
        + b"".join(part(5, attribute) for attribute in attributes)
    )


def value(name: str, kind: int, shape: Sequence[str]) -> bytes:
    sizes = b"".join(part(1, part(2, size)) for size in shape)
    return part(1, name) + part(2, part(1, number(1, kind) + part(2, sizes)))


def model(
    nodes: Sequence[bytes],
    tensors: Sequence[bytes],
    inputs: Mapping[str, int],
    output: str = "last_hidden_state",
    shape: Sequence[str] = ("batch", "length", "size"),
) -> bytes:
    graph = (
        b"".join(part(1, one) for one in nodes)
        + part(2, "graph")
        + b"".join(part(5, one) for one in tensors)
        + b"".join(part(11, value(name, kind, ("batch", "length"))) for name, kind in inputs.items())
        + part(12, value(output, FLOAT, shape))
    )
    return number(1, 8) + part(7, graph) + part(8, number(2, 17))


def lookup(
    table: npt.NDArray[np.float32] = TABLE, inputs: Sequence[str] = ("input_ids", "attention_mask")
) -> bytes:
    """A model that gives every token its row of a table."""
    found = node("Gather", ["table", "input_ids"], "last_hidden_state")
    return model([found], [tensor("table", table)], dict.fromkeys(inputs, INT64))


def int8_product(
    weights: npt.NDArray[Any], scales: npt.NDArray[np.float32], more: Sequence[bytes] = ()
) -> bytes:
    """A model that multiplies the rows by weights that its file keeps as int8 numbers."""
    nodes = [
        node("Cast", ["q"], "f", to=1),
        node("Mul", ["f", "scales"], "weights"),
        node("Gather", ["table", "input_ids"], "rows"),
        node("MatMul", ["rows", "weights"], "last_hidden_state"),
    ]
    tensors = [tensor("q", weights), tensor("scales", scales), tensor("table", TABLE)]
    return model([*nodes, *more], tensors, {"input_ids": INT64})


def write_tokenizer(folder: Path) -> None:
    """Words as they stand in a text, [CLS] before them and [SEP] after; it neither pads nor cuts."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    folder.mkdir(parents=True, exist_ok=True)
    words.save(str(folder / "tokenizer.json"))


def write_onnx(folder: Path, content: bytes | None = None, name: str = "model.onnx", **configs: Any) -> Path:
    """A folder with a model and its tokenizer; `configs` are JSON files, with `__` for a slash."""
    write_tokenizer(folder)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(lookup() if content is None else content)
    for config, settings in configs.items():
        path = folder / f"{config.replace('__', '/')}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings))
    return folder


def rows_of(text: str) -> list[int]:
    """The tokens of a text, as the tokenizer gives them."""
    return [2, *(WORDS.index(word) if word in WORDS else 1 for word in text.split()), 3]


def unit(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
