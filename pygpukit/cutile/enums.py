"""The choices that kernels name: padding, rounding, order and scope of memory accesses, as cuTile has them."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pygpukit.core.errors import DTypeError, GPUError
from pygpukit.cutile.block import refused
from pygpukit.cutile.dtypes import DType
from pygpukit.cutile.races import Order


class PaddingMode(Enum):
    """The value of elements past the end of an array."""

    UNDETERMINED = "undetermined"
    ZERO = "zero"
    NEG_ZERO = "neg_zero"
    NAN = "nan"
    POS_INF = "pos_inf"
    NEG_INF = "neg_inf"


class RoundingMode(Enum):
    """The rounding of an operation."""

    RN = "nearest_even"
    RZ = "zero"
    RM = "negative_inf"
    RP = "positive_inf"
    RA = "nearest_away"
    FULL = "full"
    APPROX = "approx"
    RZI = "nearest_int_to_zero"


class MemoryOrder(Enum):
    """The order of an access with those before and after it."""

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class MemoryScope(Enum):
    """The threads among which an access is ordered."""

    NONE = "none"
    BLOCK = "block"
    DEVICE = "device"
    SYS = "sys"


_PADDING = {"zero": 0.0, "neg_zero": -0.0, "nan": float("nan"), "pos_inf": float("inf"), "neg_inf": -float("inf")}
_OF_INTEGERS = (PaddingMode.ZERO, PaddingMode.UNDETERMINED)
_ROUNDED = (None, RoundingMode.RN, RoundingMode.FULL, RoundingMode.APPROX)


def padding(mode: Any, dtype: DType, what: str) -> float | None:
    """The value that a mode stands for, None where it is undetermined. Raises DTypeError for one of floats alone."""
    if not isinstance(mode, PaddingMode):
        raise refused(GPUError(f"{what}: padding_mode={mode!r}; take one of ct.PaddingMode"))
    if dtype.category != "f" and mode not in _OF_INTEGERS:
        raise refused(DTypeError(f"{what}: {dtype} has no {mode.value}; padding_mode is ZERO or UNDETERMINED"))
    return _PADDING.get(mode.value)


def check_rounding(mode: Any, what: str) -> None:
    """Raises GPUError for a rounding that the interpreter does not do: it rounds to nearest even."""
    if mode not in _ROUNDED:
        raise refused(GPUError(f"{what}: rounding_mode={mode}; the interpreter has {_ROUNDED[1:]} alone"))


def order(memory_order: Any, memory_scope: Any, allowed: str, what: str) -> Order:
    """The order of an access. allowed: names of MemoryOrder, with spaces. Raises GPUError for a pair that is none.

    An order among the threads of one block orders nothing between blocks.
    """
    if not isinstance(memory_order, MemoryOrder) or memory_order.name not in allowed.split():
        raise refused(GPUError(f"{what}: memory_order={memory_order}; it must be one of {allowed}"))
    if not isinstance(memory_scope, MemoryScope):
        raise refused(GPUError(f"{what}: memory_scope={memory_scope!r}; take one of ct.MemoryScope"))
    if (memory_order is MemoryOrder.WEAK) != (memory_scope is MemoryScope.NONE):
        raise refused(GPUError(f"{what}: memory_order={memory_order} with memory_scope={memory_scope}; WEAK has no "
                               "scope, and every other order has one"))  # fmt: skip
    if memory_scope in (MemoryScope.NONE, MemoryScope.BLOCK):
        return Order()
    acquires, releases = (
        memory_order in (one, MemoryOrder.ACQ_REL) for one in (MemoryOrder.ACQUIRE, MemoryOrder.RELEASE)
    )
    return Order(True, acquires, releases)
