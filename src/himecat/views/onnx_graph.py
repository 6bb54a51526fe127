"""What an ONNX file says of itself, read without the `onnx` package: other files it names, and int8 weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

# The parts of the messages in onnx.proto that may hold tensors, by field number.
_PARTS = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}
_FLOAT, _INT8 = 1, 3
_GRAPH, _OPSETS, _NODES, _TENSORS = 7, 8, 1, 5
_SUBGRAPHS = (6, 11)
_CONTRIB = "com.microsoft"


class _Field(NamedTuple):
    """A field of a message: a number, or the bytes of a string or of a message."""

    number: int
    value: int | memoryview
    raw: memoryview

    @property
    def bytes(self) -> memoryview:
        if isinstance(self.value, memoryview):
            return self.value
        raise ValueError("it is no ONNX model")

    @property
    def text(self) -> str:
        return str(self.bytes, "utf-8")


class _Node(NamedTuple):
    operator: str
    inputs: list[str]
    outputs: list[str]
    numbers: dict[str, int]
    """Its attributes that are whole numbers."""
    has_graph: bool


class _Tensor(NamedTuple):
    name: str
    shape: list[int]
    type: int
    content: memoryview


def external_files(model: bytes) -> list[str]:
    """The files outside of an ONNX file that its tensors name, as they are written there.

    Raises
    ------
    ValueError
        These are not the bytes of an ONNX model.

    Examples
    --------
    >>> external_files(b"")
    []
    """
    found: list[str] = []
    waiting = [("model", memoryview(model))]
    while waiting:
        kind, message = waiting.pop()
        for field in _fields(message):
            if kind == "tensor" and field.number == 13:
                entry = {part.number: part.text for part in _fields(field.bytes)}
                if entry.get(1) == "location":
                    found.append(entry.get(2, ""))
            elif part := _PARTS.get(kind, {}).get(field.number):
                waiting.append((part, field.bytes))
    return found


def with_int8_products(model: bytes) -> bytes:
    """The model with int8 arithmetic where its file has int8 weights that are turned into floats for a product.

    Such a file is small, but as slow as one of floats. A product x · (float(q) · scale) becomes one of int8 numbers,
    for which x is rounded to 8 bits, as in models that were quantised dynamically; those stay as they are.

    Raises
    ------
    ValueError
        These are not the bytes of an ONNX model.

    Examples
    --------
    >>> with_int8_products(b"")
    b''
    """
    fields = list(_fields(memoryview(model)))
    graphs = [field for field in fields if field.number == _GRAPH]
    if len(graphs) != 1:
        return model
    graph = list(_fields(graphs[0].bytes))
    nodes = {place: _node(field.bytes) for place, field in enumerate(graph) if field.number == _NODES}
    # Names of this graph may be used in the graphs inside of nodes.
    if any(node.has_graph for node in nodes.values()):
        return model
    weights = _Int8Weights(list(nodes.values()), [f.bytes for f in graph if f.number == _TENSORS])
    replaced: dict[int, bytes] = {}
    for place, node in nodes.items():
        if node.operator == "MatMul" and (made := weights.product(node)):
            replaced[place] = made
    if not replaced:
        return model
    parts = [replaced.get(place, field.raw) for place, field in enumerate(graph)]
    opsets = [field.bytes for field in fields if field.number == _OPSETS]
    if not any(part.number == 1 and part.text == _CONTRIB for opset in opsets for part in _fields(opset)):
        parts_of_opset = _part(1, _CONTRIB.encode()) + _number(2, 1)
        fields.append(_Field(_OPSETS, 0, memoryview(_part(_OPSETS, parts_of_opset))))
    whole = _part(_GRAPH, b"".join(parts))
    return b"".join(whole if field.number == _GRAPH else field.raw for field in fields)


class _Int8Weights:
    """Finds weights that are stored as int8 numbers and a scale for each column, or one for all."""

    def __init__(self, nodes: list[_Node], tensors: list[memoryview]) -> None:
        self._makers = {name: node for node in nodes for name in node.outputs}
        self._tensors = {tensor.name: tensor for tensor in map(_tensor, tensors)}

    def product(self, node: _Node) -> bytes | None:
        """Fields of the graph in the place of a product with such a weight: the scales as a row, and the product."""
        maker = self._makers.get(node.inputs[1]) if len(node.inputs) == 2 else None
        if maker is None or maker.operator != "Mul" or len(maker.inputs) != 2 or not node.outputs:
            return None
        for cast, name in (maker.inputs, maker.inputs[::-1]):
            weight, scale = self._stored(cast), self._tensors.get(name)
            if weight is None or scale is None or scale.type != _FLOAT or len(weight.shape) != 2:
                continue
            columns = weight.shape[1]
            if scale.shape not in ([], [1], [1, 1], [columns], [1, columns]) or not scale.content:
                continue
            row = f"{node.outputs[0]}/scale"
            shape = b"".join(_number(1, size) for size in scale.shape[-1:] if size > 1)
            tensor = shape + _number(2, _FLOAT) + _part(8, row.encode()) + _part(9, scale.content)
            inputs = b"".join(_part(1, one.encode()) for one in (node.inputs[0], weight.name, row))
            made = _part(4, b"DynamicQuantizeMatMul") + _part(7, _CONTRIB.encode())
            return _part(_TENSORS, tensor) + _part(_NODES, inputs + _part(2, node.outputs[0].encode()) + made)
        return None

    def _stored(self, name: str) -> _Tensor | None:
        maker = self._makers.get(name)
        if maker is None or maker.operator != "Cast" or maker.numbers.get("to") != _FLOAT:
            return None
        found = self._tensors.get(maker.inputs[0]) if maker.inputs else None
        return found if found is not None and found.type == _INT8 else None


def _node(message: memoryview) -> _Node:
    node = _Node("", [], [], {}, False)
    for field in _fields(message):
        if field.number == 1:
            node.inputs.append(field.text)
        elif field.number == 2:
            node.outputs.append(field.text)
        elif field.number == 4:
            node = node._replace(operator=field.text)
        elif field.number == 5:
            parts = {part.number: part for part in _fields(field.bytes)}
            if any(number in parts for number in _SUBGRAPHS):
                node = node._replace(has_graph=True)
            if 1 in parts and 3 in parts and isinstance(value := parts[3].value, int):
                node.numbers[parts[1].text] = value
    return node


def _tensor(message: memoryview) -> _Tensor:
    tensor = _Tensor("", [], 0, memoryview(b""))
    for field in _fields(message):
        if field.number == 1:
            tensor.shape.extend([field.value] if isinstance(field.value, int) else _packed(field.value))
        elif field.number == 2 and isinstance(field.value, int):
            tensor = tensor._replace(type=field.value)
        elif field.number == 8:
            tensor = tensor._replace(name=field.text)
        elif field.number == 9:
            tensor = tensor._replace(content=field.bytes)
    return tensor


def _fields(message: memoryview) -> Iterator[_Field]:
    """The fields of a message in the wire format of Protocol Buffers."""
    position = 0
    while position < len(message):
        start = position
        key, position = _varint(message, position)
        kind, value = key & 7, 0
        if kind == _VARINT:
            value, end = _varint(message, position)
        elif kind == _BYTES:
            length, position = _varint(message, position)
            end = position + length
        elif kind in _FIXED:
            end = position + _FIXED[kind]
        else:
            raise ValueError("it is no ONNX model")
        if end > len(message):
            raise ValueError("it is cut short")
        yield _Field(key >> 3, value if kind == _VARINT else message[position:end], message[start:end])
        position = end


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(message):
            raise ValueError("it is cut short")
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("it is no ONNX model")


def _packed(message: memoryview) -> Iterator[int]:
    position = 0
    while position < len(message):
        value, position = _varint(message, position)
        yield value


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(number: int, value: int) -> bytes:
    return _encoded(number << 3 | _VARINT) + _encoded(value)


def _part(number: int, content: bytes | memoryview) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(len(content)) + bytes(content)
