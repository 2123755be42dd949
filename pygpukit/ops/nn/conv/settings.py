"""Checks that convolutions and transposed convolutions share: arrays, settings, groups, activations, layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.core.sizes import whole
from pygpukit.kernels import activation
from pygpukit.ops import copying
from pygpukit.ops.operands import check_array, check_devices, span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Pair: TypeAlias = "int | list[int] | tuple[int, ...]"

_MAX_SETTING = 2**31 - 1  # of a setting


@dataclass(frozen=True)
class Settings:
    """Extents as (rows, columns); one dimension has one row. out: of the result. transposed: the convolution is."""

    groups: int
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    out: tuple[int, int]
    act: str | None
    transposed: bool = False


def pair(what: str, name: str, value: Pair, dimensions: int) -> tuple[int, int]:
    """(rows, columns) of a setting; one dimension gives its columns only. Raises InvalidSpecError."""
    minimum = 1 if name in ("stride", "dilation") else 0
    one = dimensions == 1
    needed = "an integer" if one else f"an integer or {dimensions} of them"
    values: Sequence[Any] = value if isinstance(value, (list, tuple)) else (value,) * dimensions
    if len(values) != dimensions:
        raise InvalidSpecError(f"{what}: {name} is {value}, must be {needed}", name)
    checked = [whole(x, f"{what}: {name}", needed) for x in values]
    if not minimum <= min(checked) <= max(checked) <= _MAX_SETTING:
        raise InvalidSpecError(
            f"{what}: {name} is {value}, must be {minimum} to {_MAX_SETTING} in each dimension", name
        )
    return (minimum, checked[0]) if one else (checked[0], checked[1])


def check_others(what: str, groups: int, act: str | None, last: bool) -> int:
    """groups. Raises InvalidSpecError for groups or an activation that there are not, TypeError for channels_last."""
    if not isinstance(last, bool):
        raise TypeError(f"{what}: channels_last is {last!r}, must be True or False")
    if act is not None and not (isinstance(act, str) and act in activation.names()):
        names = ", ".join(activation.names())
        raise InvalidSpecError(f"{what}: act is {act!r}; it is one of {names}, or None", "act")
    return whole(groups, f"{what}: groups", "a whole number of groups")


def check_arrays(what: str, input: GPUArray, weight: GPUArray, bias: GPUArray | None) -> None:
    """Raises DTypeError unless all are arrays of one float type, and DeviceMismatchError."""
    arrays = {"input": input, "weight": weight} | ({} if bias is None else {"bias": bias})
    for name, array in arrays.items():
        check_array(array, f"{what}: {name}")
    if input.dtype not in promotion.FLOATS or any(array.dtype != input.dtype for array in arrays.values()):
        types = ", ".join(f"{name} {array.dtype}" for name, array in arrays.items())
        raise DTypeError(f"{what}: the arrays must have one float type; they have {types}")
    check_devices(what, *arrays.values())


def check_bias(what: str, bias: GPUArray | None, filters: int) -> GPUArray | None:
    """bias, contiguous. Raises ShapeError unless it has one element for each channel of the result."""
    if bias is not None and bias.shape != (filters,):
        raise ShapeError(f"{what}: bias has shape {bias.shape}, must be {(filters,)}")
    return bias if bias is None else copying.contiguous(bias)


def channels_first(array: GPUArray) -> GPUArray:
    """A view of (B, ..., C) as (B, C, ...)."""
    return array.transpose(0, array.ndim - 1, *range(1, array.ndim - 1))


def with_rows(array: GPUArray) -> GPUArray:
    """A view of (B, C, L) as (B, C, 1, L); what has rows, as it is."""
    return array[:, :, None] if array.ndim == 3 else array


def new_result(
    batch: int, filters: int, settings: Settings, dtype: Any, dimensions: int, last: bool
) -> tuple[GPUArray, GPUArray]:
    """The result as users get it, with its channels first or last, and a view of it as (B, C, rows, columns)."""
    extents = settings.out[-dimensions:]
    result = native.empty((batch, *extents, filters) if last else (batch, filters, *extents), dtype)
    return result, with_rows(channels_first(result) if last else result)


def geometry(
    input: GPUArray, kernel: Sequence[int], out: GPUArray, settings: Settings
) -> tuple[GPUArray, dict[str, Any]]:
    """The storage of input, and what every kernel's parameters say of extents, spacing and steps (in elements)."""
    storage, start = span(input)
    return storage, {
        "image": input.shape[2:],
        "result": settings.out,
        "kernel": kernel,
        "stride": settings.stride,
        "padding": settings.padding,
        "dilation": settings.dilation,
        "start": start,
        "step": [step // input.itemsize for step in input.strides],
        "out_step": [step // out.itemsize for step in out.strides],
    }
