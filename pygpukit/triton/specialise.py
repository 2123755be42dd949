"""Specialise: the type of each argument of a call, and what Triton may build into the kernel about its value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

from pygpukit._core import native
from pygpukit.core.dtypes import DTYPES as ALL_DTYPES
from pygpukit.core.errors import DTypeError, KernelArgumentError
from pygpukit.ops.operands import is_aligned
from pygpukit.triton.array import DTYPES

_CODES = {dtype.name: code for code, dtype in enumerate(ALL_DTYPES)}
_SCALARS = {"i32": ("int32", 4), "i64": ("int64", 8), "u64": ("uint64", 8), "fp32": ("float32", 4), "u1": ("bool", 1)}
_ALIGNED = 16


class Param(Protocol):
    """A parameter, as Triton describes it."""

    name: str
    is_constexpr: bool
    is_const: bool
    do_not_specialize: bool
    do_not_specialize_on_alignment: bool


def parameters(params: Iterable[Param]) -> tuple[Param, ...]:
    """The same parameters, each question answered once: Triton reads annotations anew each time."""
    return tuple(
        SimpleNamespace(
            name=one.name,
            is_constexpr=bool(one.is_constexpr),
            is_const=bool(one.is_const),
            do_not_specialize=bool(one.do_not_specialize),
            do_not_specialize_on_alignment=bool(one.do_not_specialize_on_alignment),
        )
        for one in params
    )


@dataclass(frozen=True)
class Specialisation:
    """The values that a kernel is compiled for; the key of the result.

    types: Triton's of each parameter, "constexpr" for one that is built in. constants: (position, value) of those.
    kinds: their types, because 1, True and 1.0 are equal. aligned: positions of arrays and integers that are multiples
    of 16. options: of the compiler, such as num_warps.
    """

    types: tuple[tuple[str, str], ...]
    constants: tuple[tuple[int, Any], ...]
    kinds: tuple[type, ...]
    aligned: tuple[int, ...]
    options: tuple[tuple[str, Any], ...]

    @property
    def passed(self) -> list[tuple[int, str, str]]:
        """(position, name, type) of the parameters that a launch passes."""
        return [(at, name, kind) for at, (name, kind) in enumerate(self.types) if kind != "constexpr"]

    @property
    def plan(self) -> list[tuple[str, str, int, int]]:
        """The parameters that a launch passes, as native.Kernel takes them."""
        return [
            (name, "pointer", -1, 8)
            if kind.startswith("*")
            else (name, "scalar", _CODES[_SCALARS[kind][0]], _SCALARS[kind][1])
            for _, name, kind in self.passed
        ]


def specialise(
    kernel: str, params: Iterable[Param], arguments: Mapping[str, Any], options: Mapping[str, Any]
) -> Specialisation:
    """The specialisation of a call. params: of Triton's function. Raises KernelArgumentError, DTypeError."""
    types, constants, aligned = [], [], []
    for at, param in enumerate(params):
        value = arguments[param.name]
        if param.is_constexpr:
            types.append((param.name, "constexpr"))
            constants.append((at, value))
            continue
        kind = _type(kernel, param.name, value, param.is_const)
        specialises = not param.do_not_specialize
        if value is None or (kind in ("i32", "i64") and value == 1 and specialises):
            types.append((param.name, "constexpr"))
            constants.append((at, value))
            continue
        types.append((param.name, kind))
        if specialises and not param.do_not_specialize_on_alignment and _is_aligned(value):
            aligned.append(at)
    kinds = tuple(type(value) for _, value in constants)
    return Specialisation(tuple(types), tuple(constants), kinds, tuple(aligned), tuple(sorted(options.items())))


def _is_aligned(value: Any) -> bool:
    if isinstance(value, native.ArrayBase):
        return is_aligned(value, _ALIGNED)
    return type(value) is int and value % _ALIGNED == 0


def _type(kernel: str, name: str, value: Any, is_const: bool) -> str:
    if isinstance(value, native.ArrayBase):
        if value.dtype.name not in DTYPES:
            raise DTypeError(f"{kernel}(): parameter '{name}': Triton has no {value.dtype}")
        return f"*{'k' if is_const else ''}{DTYPES[value.dtype.name]}"
    if value is None:
        return "constexpr"
    if isinstance(value, bool):
        return "u1"
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return "i32"
        if -(2**63) <= value < 2**63:
            return "i64"
        if value < 2**64:
            return "u64"
    elif isinstance(value, float):
        return "fp32"
    raise KernelArgumentError(
        f"{kernel}(): parameter '{name}': {value!r:.60} is neither an array nor a number of 64 bits; annotate what is "
        "known when the kernel is compiled as tl.constexpr",
        name,
    )
