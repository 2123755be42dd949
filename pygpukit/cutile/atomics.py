"""Atomic operations: each element is read, changed and written as one, in the order of the tile's elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from pygpukit.core.errors import DTypeError
from pygpukit.cutile.access import array_argument, element_places, stored
from pygpukit.cutile.arithmetic import broadcast
from pygpukit.cutile.block import count_spin, refused
from pygpukit.cutile.dtypes import DType
from pygpukit.cutile.enums import MemoryOrder, MemoryScope, order
from pygpukit.cutile.memory import Array
from pygpukit.cutile.races import Order
from pygpukit.cutile.rounding import rounded
from pygpukit.cutile.tile import Tile, of

Numbers: TypeAlias = "np.ndarray[Any, Any]"

_INTEGERS = ("int32", "int64", "uint32", "uint64")
_NUMBERS = (*_INTEGERS, "float32", "float64")
_OPERATIONS: dict[str, tuple[Callable[[Any, Any], Any], tuple[str, ...]]] = {
    "xchg": (lambda old, new: new, _NUMBERS),
    "add": (np.add, (*_NUMBERS, "float16", "bfloat16")),
    "max": (np.maximum, _INTEGERS),
    "min": (np.minimum, _INTEGERS),
    "and": (np.bitwise_and, _INTEGERS),
    "or": (np.bitwise_or, _INTEGERS),
    "xor": (np.bitwise_xor, _INTEGERS),
}
ORDERS = "RELAXED ACQUIRE RELEASE ACQ_REL"


def update(
    name: str, array: Any, indices: Any, update: Any, check_bounds: Any, memory_order: Any, memory_scope: Any
) -> Tile:
    """atomic_add() and its kin: the elements as they were before."""
    what = f"atomic_{name}"
    target = array_argument(array, what)
    how = order(memory_order, memory_scope, ORDERS, what)
    index, inside = element_places(what, target, indices, None, check_bounds)
    return changed(name, target, index, inside, operand(name, target.dtype, update), how)


def compare_and_swap(
    array: Any,
    indices: Any,
    expected: Any,
    desired: Any,
    /,
    *,
    check_bounds: Any = True,
    memory_order: Any = MemoryOrder.ACQ_REL,
    memory_scope: Any = MemoryScope.DEVICE,
) -> Tile:
    """Write desired where the element is expected; the elements as they were before, expected outside."""
    target = array_argument(array, "atomic_cas")
    how = order(memory_order, memory_scope, ORDERS, "atomic_cas")
    index, inside = element_places("atomic_cas", target, indices, None, check_bounds)
    return swapped(target, index, inside, expected, desired, how)


def swapped(array: Array, index: Any, inside: Numbers, expected: Any, desired: Any, how: Order) -> Tile:
    """compare_and_swap() at places."""
    _check("cas", array.dtype, _NUMBERS)
    old, new = (stored("atomic_cas", one, array.dtype) for one in (expected, desired))
    for one in (old, new):
        one.known("an operand of ct.atomic_cas")
    _, before, after = (np.array(one) for one in broadcast("atomic_cas", inside, old.data, new.data))
    swap = lambda value, at: after[at] if value == before[at] else value  # noqa: E731
    return _in_turn(array, index, inside, swap, before, how)


def operand(name: str, dtype: DType, value: Any) -> Tile:
    """The operand of an atomic operation, checked. Raises DTypeError."""
    what = f"atomic_{name}"
    _check(name, dtype, _OPERATIONS[name][1])
    own = of(value, what).dtype
    if name in ("and", "or", "xor") and own != dtype:
        raise refused(DTypeError(f"{what}: the operand is {own}, the array {dtype}; they must have one type"))
    tile = stored(what, value, dtype)
    tile.known(f"the operand of ct.{what}")
    return tile


def changed(name: str, array: Array, index: Any, inside: Numbers, value: Tile, how: Order) -> Tile:
    """The elements before the operation, 0 outside."""
    function = _OPERATIONS[name][0]
    operands = np.broadcast_to(value.data, inside.shape)
    places = _inside(index, inside)
    units = list(zip(*(one.tolist() for one in places), strict=True))
    if len(set(units)) < len(units):
        step = lambda old, at: rounded(function(old, operands[at]), array.dtype)  # noqa: E731
        return _in_turn(array, index, inside, step, np.zeros(inside.shape, array.dtype.host), how)
    old = np.zeros(inside.shape, array.dtype.host)
    with np.errstate(all="ignore"):
        before = _touched(array, places, how)
        old[inside] = before
        after = rounded(function(before, operands[inside]), array.dtype)
    array.update(places, after)
    count_spin(bool((after == before).all()))
    return Tile(old, array.dtype)


def _in_turn(array: Array, index: Any, inside: Numbers, step: Any, outside: Numbers, how: Order) -> Tile:
    """One element after the other: a tile may name one twice."""
    old = np.array(np.broadcast_to(outside, inside.shape), array.dtype.host)
    _touched(array, _inside(index, inside), how)
    idle = True
    for at in np.ndindex(inside.shape):
        if inside[at]:
            here = tuple(one[at].reshape(1) for one in index)
            value = array.peek(here)[0]
            with np.errstate(all="ignore"):
                new = step(value, at)
            old[at] = value
            idle = idle and bool(new == value)
            array.update(here, np.asarray(new).reshape(1))
    count_spin(idle)
    return Tile(old, array.dtype)


def _inside(index: Any, inside: Numbers) -> Any:
    return tuple(one[inside] for one in index) if index else ()


def _touched(array: Array, places: Any, how: Order) -> Numbers:
    """The elements before, with the access looked at as one that writes."""
    array.touch(places, True, how)
    return array.peek(places)


def _check(name: str, dtype: DType, allowed: tuple[str, ...]) -> None:
    if dtype.name not in allowed:
        raise refused(DTypeError(f"atomic_{name}: the array is {dtype}; it must be one of {', '.join(allowed)}"))
