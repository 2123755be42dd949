"""Signature: what of a call's arguments is built into a kernel, and what its launch passes, in cuTile's convention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import FunctionType
from typing import Any

from pygpukit.core.dtypes import DTYPES as ALL_DTYPES
from pygpukit.core.errors import DTypeError, KernelArgumentError
from pygpukit.cutile.annotations import Marks, has_64_bits, is_constant, mark, marks_of
from pygpukit.cutile.dtypes import DType, bool_, fits, float32, int32, int64, named
from pygpukit.cutile.tile import is_number, plain_number
from pygpukit.ops.operands import is_aligned, is_array, overlaps, same_view, span

_CODES = {dtype.name: code for code, dtype in enumerate(ALL_DTYPES)}
_ALIGNED = 16  # bytes, of what bulk copies move
_SIZES = {"int32": 4, "int64": 8, "float32": 4, "bool_": 1}


@dataclass(frozen=True)
class ArrayFacts:
    """The facts of an array that its kernel is compiled for.

    fixed_extents, fixed_strides: numbers that are built in, None for those that a launch passes. groups: pairs of
    parameters that share memory with another. repeats: two of its places may be one in memory.
    """

    dtype: str
    ndim: int
    index: str
    fixed_extents: tuple[int | None, ...]
    fixed_strides: tuple[int | None, ...]
    stride_divisors: tuple[int, ...]
    extent_divisors: tuple[int, ...]
    base_divisor: int
    groups: tuple[str, ...]
    repeats: bool


@dataclass(frozen=True)
class Scalar:
    """A number that a launch passes, by the name of its type."""

    dtype: str


@dataclass(frozen=True)
class Constant:
    """A value that is built in. kind: its type, because 1, True and 1.0 are equal."""

    value: Any
    kind: str


Fact = ArrayFacts | Scalar | Constant | tuple  # type: ignore[type-arg]
Plan = list[tuple[str, str, int, int]]


def facts_of(function: FunctionType, arguments: Mapping[str, Any]) -> tuple[Fact, ...]:
    """The facts that a kernel is compiled for: its key. Raises KernelArgumentError, DTypeError."""
    marks = marks_of(function)
    groups = _groups(arguments)
    return tuple(
        _fact(function.__name__, name, value, marks.get(name, ()), groups) for name, value in arguments.items()
    )


def passed(facts: tuple[Fact, ...], arguments: Mapping[str, Any]) -> tuple[Plan, list[Any]]:
    """The parameters of the compiled kernel as native.Kernel takes them, and a launch's operands."""
    plan: Plan = []
    operands: list[Any] = []
    for (name, value), fact in zip(arguments.items(), facts, strict=True):
        for label, kind, size, operand in _operands(name, value, fact):
            plan.append((label, "pointer", -1, 8) if kind == "pointer" else (label, "scalar", _CODES[kind], size))
            operands.append(operand)
    return plan, operands


def _fact(kernel: str, name: str, value: Any, marks: Marks, groups: Mapping[int, tuple[str, ...]]) -> Fact:
    what = f"{kernel}(): parameter '{name}'"
    if is_constant(marks):
        constant = plain_number(value)
        return Constant(constant, repr(type(constant)))
    if is_array(value):
        return _array(what, value, marks, groups.get(id(value), ()))
    if isinstance(value, tuple):
        return tuple(_fact(kernel, f"{name}[{at}]", one, marks, groups) for at, one in enumerate(value))
    if is_number(value):
        return Scalar(scalar_type(kernel, name, plain_number(value), marks).name)
    remedy = "pass its arrays in a tuple" if isinstance(value, list) else "annotate constants as ct.Constant"
    raise KernelArgumentError(f"{what}: {value!r:.60} is neither an array nor a number; {remedy}", name)


def scalar_type(kernel: str, name: str, value: bool | int | float, marks: Marks) -> DType:
    """The type of a number that is known when the kernel runs: int32, float32, or int64 where it is annotated so.

    Raises KernelArgumentError for an integer that does not fit.
    """
    if isinstance(value, bool):
        return bool_
    if isinstance(value, float):
        return float32
    dtype = int64 if has_64_bits(marks) else int32
    if not fits(value, dtype):
        remedy = "" if dtype == int64 else "; annotate it as ct.ScalarInt64"
        raise KernelArgumentError(f"{kernel}(): parameter '{name}': {value} does not fit {dtype}{remedy}", name)
    return dtype


def _array(what: str, array: Any, marks: Marks, groups: tuple[str, ...]) -> ArrayFacts:
    try:
        dtype = named(array.dtype)
    except DTypeError:
        raise DTypeError(f"{what}: tiles have no {array.dtype}") from None
    if dtype.bitwidth == 4:
        raise DTypeError(f"{what}: an array of {dtype} is not passed; pack it in uint8")
    if span(array)[1]:
        raise KernelArgumentError(f"{what} is a view whose first element is not its first in memory; copy it", "")
    index = int64 if has_64_bits(marks) else int32
    size = array.itemsize
    strides = [step // size for step in array.strides]
    if index == int32 and any(not fits(one, int32) for one in (*strides, *array.shape)):
        raise KernelArgumentError(f"{what}: shape {array.shape} needs 64 bits; annotate it as ct.IndexedWithInt64", "")
    step = max(1, _ALIGNED // size)
    annotated = mark(marks, "ArrayAnnotation")
    shown = _axes(annotated and annotated.static_shape_dims, array.ndim)
    unit = _axes(annotated and annotated.static_stride_dims, array.ndim)
    unit = unit or [at for at, one in enumerate(strides) if one == 1]
    return ArrayFacts(
        dtype.name,
        array.ndim,
        index.name,
        tuple(one if at in shown else None for at, one in enumerate(array.shape)),
        tuple(one if at in unit else None for at, one in enumerate(strides)),
        tuple(step if one % step == 0 else 1 for one in strides),
        tuple(step if one % step == 0 else 1 for one in array.shape),
        _ALIGNED if is_aligned(array, _ALIGNED) else 1,
        groups,
        any(one == 0 and extent > 1 for one, extent in zip(strides, array.shape, strict=True)),
    )


def _axes(named: Any, ndim: int) -> list[int]:
    """Axes that an annotation names, from 0."""
    return [one % ndim for one in named or ()]


def _groups(arguments: Mapping[str, Any]) -> dict[int, tuple[str, ...]]:
    """For each array, by id, the pairs of parameters that share memory. An array that is passed twice does, too."""
    arrays = [(name, one) for name, value in arguments.items() for one in _arrays(value)]
    out: dict[int, list[str]] = {}
    for at, ((_, a), (_, b)) in enumerate(combinations(arrays, 2)):
        if overlaps(a, b) or same_view(a, b):
            for one in (a, b):
                out.setdefault(id(one), []).append(f"pair{at}")
    return {key: tuple(dict.fromkeys(names)) for key, names in out.items()}


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [one for part in value for one in _arrays(part)]
    return [value] if is_array(value) else []


def _operands(name: str, value: Any, fact: Fact) -> Iterator[tuple[str, str, int, Any]]:
    """(label, kind, bytes, operand) of each parameter: of an array its address, extents and strides in elements."""
    if isinstance(fact, ArrayFacts):
        yield name, "pointer", 8, span(value)[0]
        numbers = [*value.shape, *(step // value.itemsize for step in value.strides)]
        for at, number in enumerate(numbers):
            what = "shape" if at < value.ndim else "strides"
            yield f"{name}.{what}[{at % value.ndim}]", fact.index, _SIZES[fact.index], int(number)
    elif isinstance(fact, Scalar):
        yield name, fact.dtype.removesuffix("_"), _SIZES[fact.dtype], plain_number(value)
    elif isinstance(fact, tuple):
        for at, (one, part) in enumerate(zip(value, fact, strict=True)):
            yield from _operands(f"{name}[{at}]", one, part)
