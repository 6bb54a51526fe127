"""Eight numbers at a time inside compiled loops.

The compiler turns these into the machine's vector instructions. Left to itself it does not: it cannot know that
the arrays of a loop do not overlap, and our rows are too short for it to check each time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

LANES = 8
# What is called in compiled code has other arguments than what is written here; nothing can say so in types.
_instruction: Any = intrinsic
_INT = ir.IntType(32)
_VECTORS = {
    "floats": ir.VectorType(ir.FloatType(), LANES),
    "ints": ir.VectorType(_INT, LANES),
}


class Lanes(types.Type):
    """Eight 32-bit floats or integers in a register.

    Examples
    --------
    >>> Lanes("floats")
    floats
    """


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, _VECTORS[kind.name])  # type: ignore[no-untyped-call]


FLOATS, INTS = Lanes("floats"), Lanes("ints")


def _spread(builder: Any, value: Any, vector: Any) -> Any:
    """The same number in every lane."""
    alone = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_INT, 0))
    everywhere = ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES)
    return builder.shuffle_vector(alone, ir.Constant(vector, ir.Undefined), everywhere)


def _address(context: Any, builder: Any, array_type: Any, array: Any, at: Any, vector: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), vector.as_pointer())


@_instruction  # type: ignore[untyped-decorator]
def floats(typing: Any, value: Any) -> Any:
    """The same float in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = context.cast(builder, arguments[0], signature.args[0], types.float32)
        return _spread(builder, value, _VECTORS["floats"])

    return FLOATS(value), generate


@_instruction  # type: ignore[untyped-decorator]
def ints(typing: Any, value: Any) -> Any:
    """The same integer in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = context.cast(builder, arguments[0], signature.args[0], types.int32)
        return _spread(builder, value, _VECTORS["ints"])

    return INTS(value), generate


@_instruction  # type: ignore[untyped-decorator]
def load(typing: Any, array: Any, at: Any) -> Any:
    """Eight numbers of a flat float array from a place on; the place is not checked."""
    if array.dtype != types.float32:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], arguments[0], arguments[1], _VECTORS["floats"])
        return builder.load(place, align=4)

    return FLOATS(array, types.intp), generate


@_instruction  # type: ignore[untyped-decorator]
def store(typing: Any, array: Any, at: Any, values: Any) -> Any:
    """Write eight numbers into a flat array from a place on; the place is not checked."""
    if array.dtype != (types.float32 if values == FLOATS else types.int32):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = _VECTORS[signature.args[2].name]
        place = _address(context, builder, signature.args[0], arguments[0], arguments[1], vector)
        builder.store(arguments[2], place, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, values), generate


@_instruction  # type: ignore[untyped-decorator]
def add(typing: Any, left: Any, right: Any) -> Any:
    """Lane by lane, left + right."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return FLOATS(FLOATS, FLOATS), generate


@_instruction  # type: ignore[untyped-decorator]
def add_scaled(typing: Any, total: Any, weight: Any, values: Any) -> Any:
    """Lane by lane, total + weight * values; one instruction where the machine has it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, weight, values = arguments
        product = builder.fmul(weight, values, flags=("contract",))
        return builder.fadd(total, product, flags=("contract",))

    return FLOATS(FLOATS, FLOATS, FLOATS), generate


@_instruction  # type: ignore[untyped-decorator]
def larger(typing: Any, new: Any, old: Any) -> Any:
    """Lane by lane the larger one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        new, old = arguments
        return builder.select(builder.fcmp_ordered(">", new, old), new, old)

    return FLOATS(FLOATS, FLOATS), generate


@_instruction  # type: ignore[untyped-decorator]
def where_larger(typing: Any, new: Any, old: Any, position: Any, positions: Any) -> Any:
    """Lane by lane, `position` where the new number is larger than the old one, else what was there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        new, old, position, positions = arguments
        position = context.cast(builder, position, signature.args[2], types.int32)
        here = _spread(builder, position, _VECTORS["ints"])
        return builder.select(builder.fcmp_ordered(">", new, old), here, positions)

    return INTS(FLOATS, FLOATS, position, INTS), generate
