"""Eight numbers at a time, for loops that the compiler does not vectorise by itself.

The compiler cannot know that the rows a loop reads and writes are not the same memory, so it would go through
them one number at a time. `Lanes` says what it should do: a value of this type is one vector register, and on
floats `+`, `-` and `*` work on all lanes of it. The order of every sum is fixed by the code, so that it is the
same on all processors. The functions can only be called from compiled code.

Memory is given by address: handing over an array changes its reference count, which takes a tenth of the time of
a training step. Addresses are not checked.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.extending import models, register_model

# Two registers of a processor without AVX, one with AVX, half of one with AVX-512.
WIDTH = 8
# Bytes of a number in a lane, float or integer.
SIZE = 4

_INT = ir.IntType(32)
_FLOAT_VECTOR = ir.VectorType(ir.FloatType(), WIDTH)
_INT_VECTOR = ir.VectorType(_INT, WIDTH)
# A product may be fused with the sum it goes into.
_FLAGS = ("contract", "nsz")

Codegen = Callable[[Any, Any, Any, Sequence[Any]], Any]
# None where there is no such function for the types of the arguments.
Typed = tuple[Any, Codegen] | None

# numba's own types are in the way of calls from compiled code, where the first argument is left out.
intrinsic: Callable[[Callable[..., Typed]], Any] = extending.intrinsic
type_callable: Any = extending.type_callable
lower_builtin: Any = extending.lower_builtin
function_of: Any = cgutils.get_or_insert_function


class Lanes(types.Type):
    """The type of eight 32-bit floats or integers in a register.

    Examples
    --------
    >>> FLOATS, INTS
    (floats, ints)
    """


FLOATS, INTS = Lanes("floats"), Lanes("ints")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        vector = _FLOAT_VECTOR if kind == FLOATS else _INT_VECTOR
        super().__init__(manager, kind, vector)  # type: ignore[no-untyped-call]


def _pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


def _constant(numbers: Sequence[float]) -> Any:
    return ir.Constant(_FLOAT_VECTOR, list(numbers))


def _shuffle(builder: Any, a: Any, b: Any, order: Sequence[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(_INT_VECTOR, list(order)))


def _instruction(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a function that builds LLVM code, from a builder and values of these types, callable in kernels."""

    def decorate(build: Callable[..., Any]) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            built = build(builder, *args)
            return context.get_dummy_value() if result is types.none else built

        def typed(_: Any, *given: Any) -> Typed:
            return result(*arguments), codegen

        return intrinsic(functools.update_wrapper(typed, build))

    return decorate


@intrinsic
def address_of(_: Any, array: Any) -> Typed:
    """Where the first number of an array lies in memory; the caller keeps the array alive."""
    if array.layout != "C" or array.dtype not in (types.float32, types.int32):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        start = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(start, ir.IntType(64))

    return types.int64(array), codegen


@intrinsic
def store(_: Any, address: Any, value: Any) -> Typed:
    """Write eight floats or integers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        builder.store(args[1], _pointer(builder, args[0], args[1].type), align=SIZE)
        return context.get_dummy_value()

    return types.none(types.int64, value), codegen


@intrinsic
def broadcast(_: Any, number: Any) -> Typed:
    """The same number in all lanes; a float as floats, an integer as integers."""
    is_float = isinstance(number, types.Float)

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        undefined = ir.Constant(_FLOAT_VECTOR if is_float else _INT_VECTOR, ir.Undefined)
        first = builder.insert_element(undefined, args[0], ir.Constant(_INT, 0))
        return _shuffle(builder, first, undefined, [0] * WIDTH)

    return FLOATS(types.float32) if is_float else INTS(types.int32), codegen


@intrinsic
def select_greater(_: Any, a: Any, b: Any, chosen: Any, other: Any) -> Typed:
    """`chosen` in the lanes where a is greater than b, `other` in the rest; both floats or both integers."""
    if chosen != other:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        a, b, chosen, other = args
        return builder.select(builder.fcmp_ordered(">", a, b), chosen, other)

    return chosen(FLOATS, FLOATS, chosen, other), codegen


@_instruction(FLOATS, types.int64)
def load(builder: Any, address: Any) -> Any:
    """Read eight floats; they need not be aligned."""
    return builder.load(_pointer(builder, address, _FLOAT_VECTOR), align=SIZE)


@_instruction(types.none, types.int64)
def prefetch(builder: Any, address: Any) -> None:
    """Prefetch the cache line at an address, which will be read and written soon."""
    byte = ir.IntType(8)
    kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), _INT, _INT, _INT])
    function = function_of(builder.module, kind, "llvm.prefetch.p0")
    # For writing, into all caches, as data.
    options = [ir.Constant(_INT, option) for option in (1, 3, 1)]
    builder.call(function, [_pointer(builder, address, byte), *options])


@_instruction(FLOATS, types.float32)
def first_lane(builder: Any, number: Any) -> Any:
    """A number in the first lane, zeros in the others."""
    return builder.insert_element(_constant([0.0] * WIDTH), number, ir.Constant(_INT, 0))


@_instruction(types.float32, FLOATS, types.int64)
def lane(builder: Any, value: Any, number: Any) -> Any:
    """The float in a lane."""
    return builder.extract_element(value, number)


@_instruction(FLOATS)
def ones_from_1_to_5(builder: Any) -> Any:
    """1 in the lanes 1 to 5, 0 in the others."""
    return _constant([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0])


@_instruction(FLOATS, FLOATS)
def reciprocal_sqrt(builder: Any, value: Any) -> Any:
    """1 / sqrt(x) of each lane, rounded as the standard says and not estimated."""
    kind = ir.FunctionType(_FLOAT_VECTOR, [_FLOAT_VECTOR])
    root = function_of(builder.module, kind, f"llvm.sqrt.v{WIDTH}f32")
    return builder.fdiv(_constant([1.0] * WIDTH), builder.call(root, [value]))


def _adjacent(builder: Any, a: Any, b: Any) -> Any:
    """Sums of neighbouring lanes; each half of the result comes from the same half of both values."""
    even = _shuffle(builder, a, b, [0, 2, 8, 10, 4, 6, 12, 14])
    odd = _shuffle(builder, a, b, [1, 3, 9, 11, 5, 7, 13, 15])
    return builder.fadd(even, odd, flags=_FLAGS)


@_instruction(FLOATS, *[FLOATS] * 6)
def sum_lanes_of_six(builder: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    """The sums over the lanes of six values, in the first six lanes; the last two are 0."""
    left = _adjacent(builder, _adjacent(builder, a, b), _adjacent(builder, c, d))
    right = _adjacent(builder, _adjacent(builder, e, f), _constant([0.0] * WIDTH))
    low = _shuffle(builder, left, right, [0, 1, 2, 3, 8, 9, 10, 11])
    high = _shuffle(builder, left, right, [4, 5, 6, 7, 12, 13, 14, 15])
    return builder.fadd(low, high, flags=_FLAGS)


@_instruction(types.float32, FLOATS)
def sum_lanes(builder: Any, value: Any) -> Any:
    """The sum over the lanes."""
    for half in (4, 2, 1):
        order = [lane ^ half for lane in range(WIDTH)]
        value = builder.fadd(value, _shuffle(builder, value, value, order), flags=_FLAGS)
    return builder.extract_element(value, ir.Constant(_INT, 0))


def _lanewise(symbol: Any, instruction: str) -> None:
    """Let an operator work on two values of floats."""

    def typed(_: Any) -> Callable[[Any, Any], Any]:
        def kind(a, b):  # type: ignore[no-untyped-def]
            return FLOATS if a == b == FLOATS else None

        return kind

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        return getattr(builder, instruction)(args[0], args[1], flags=_FLAGS)

    type_callable(symbol)(typed)
    lower_builtin(symbol, Lanes, Lanes)(codegen)


_lanewise(operator.add, "fadd")
_lanewise(operator.sub, "fsub")
_lanewise(operator.mul, "fmul")
