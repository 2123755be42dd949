"""Normalisation of rows: layernorm, rmsnorm, l2norm, groupnorm.

Floats of any layout; float16 and bfloat16 are computed in float32 and rounded once, and may have float32 weights. The
result has the input's type, and is right where squares overflow, too. The variance is the mean squared distance from
the mean, never a difference of squares. A row's bits depend on that row and its length only. All raise ShapeError
(weights, out), DTypeError and DeviceMismatchError before anything is launched, and are asynchronous on the current
stream. out: written and returned instead of a new array; it may be the input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array.layout import Shape
from pygpukit.core.dtypes import DataType, bfloat16, float16, float32
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, host, raw
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn import rowwise
from pygpukit.ops.operands import check_array, check_devices, span
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["groupnorm", "l2norm", "layernorm", "rmsnorm"]
LOW_LEVEL = ["rmsnorm_residual"]

SOURCE = kernels.KernelSpec(__file__, "norm.cu", options=kernels.SAME_BITS)
_WORK = SOURCE.structure("NormWork")
_HALVES = (float16, bfloat16)


@dataclass(frozen=True)
class _Norm:
    """The work on each row. per_weight: elements that share a weight; rows: after so many the weights repeat."""

    name: str
    center: bool
    epsilon: float
    per_weight: int = 1
    rows: int = 1


@prepared
def layernorm(
    input: GPUArray,
    gamma: GPUArray | None,
    beta: GPUArray | None,
    eps: float = 1e-5,
    *,
    out: GPUArray | None = None,
) -> GPUArray:
    """(x - mean) / sqrt(variance + eps) * gamma + beta along the last axis; gamma and beta: its length, or None."""
    input = _rows("layernorm", input)
    weights = _weights("layernorm", input, (input.shape[-1],), gamma, beta)
    return _normalised(_Norm("layernorm", True, eps), input, input.shape, weights, out)


@prepared
def rmsnorm(input: GPUArray, gamma: GPUArray | None, eps: float = 1e-5, *, out: GPUArray | None = None) -> GPUArray:
    """x / sqrt(mean(x * x) + eps) * gamma along the last axis; gamma: its length, or None."""
    input = _rows("rmsnorm", input)
    weights = _weights("rmsnorm", input, (input.shape[-1],), gamma, None)
    return _normalised(_Norm("rmsnorm", False, eps), input, input.shape, weights, out)


@prepared
def rmsnorm_residual(
    input: GPUArray, residual: GPUArray, gamma: GPUArray, eps: float = 1e-5, *, out: GPUArray | None = None
) -> GPUArray:
    """rmsnorm() of input + residual, two arrays of one shape; the sum, rounded to their type, is not kept."""
    from pygpukit.ops.elementwise import add

    if _rows("rmsnorm_residual", input).shape != check_array(residual, "rmsnorm_residual: residual").shape:
        raise ShapeError(
            f"rmsnorm_residual: input has shape {input.shape} and residual {residual.shape}; must be alike"
        )
    return rmsnorm(add(input, residual), gamma, eps, out=out)


@prepared
def l2norm(input: GPUArray, eps: float = 1e-6, *, out: GPUArray | None = None) -> GPUArray:
    """rmsnorm() without a weight: x / sqrt(mean(x * x) + eps) along the last axis."""
    input = _rows("l2norm", input)
    return _normalised(_Norm("l2norm", False, eps), input, input.shape, (None, None), out)


@prepared
def groupnorm(
    input: GPUArray,
    num_groups: int,
    gamma: GPUArray | None = None,
    beta: GPUArray | None = None,
    eps: float = 1e-5,
    *,
    out: GPUArray | None = None,
) -> GPUArray:
    """(x - mean) / sqrt(variance + eps) * gamma + beta over groups of channels.

    input: (N, C, ...); its C channels are cut into num_groups groups, each normalised with all that follows; gamma and
    beta: (C,), or None.
    """
    input = rowwise.check_rows("groupnorm", input)
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise ShapeError(
            f"groupnorm: {num_groups} groups do not divide the channels, axis 1, of shape {input.shape} evenly"
        )
    weights = _weights("groupnorm", input, (input.shape[1],), gamma, beta)
    per_group = input.shape[1] // num_groups
    per_weight = 1
    for extent in input.shape[2:]:
        per_weight *= extent
    rows = (input.shape[0] * num_groups, per_group * per_weight)
    norm = _Norm("groupnorm", True, eps, max(per_weight, 1), num_groups)
    return _normalised(norm, input, rows, weights, out)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for."""
    for name in rowwise.FLOATS:
        for types in dict.fromkeys((_types(name, name), _types(name, "float32" if name != "float64" else name))):
            itemsize = DataType.from_string(name).itemsize
            yield tuple(rowwise.kernels("norm", types, itemsize, pairs=True, last=_forms))


def _forms(dense: bool) -> list[str]:
    """norm.cu: WeightForm."""
    return [f", pk::{form}" for form in (("kShared", "kScale", "kBoth") if dense else ("kShared",))]


def _types(name: str, weights: str) -> str:
    return f"{CTYPES[name]}, {CTYPES[weights]}"


def _rows(name: str, a: Any) -> GPUArray:
    a = rowwise.check_rows(name, a)
    if not a.ndim:
        raise ShapeError(f"{name}: a 0-d array has no axis to normalise; reshape it to (1,)")
    return a


def _weights(name: str, a: GPUArray, shape: Shape, *weights: Any) -> tuple[GPUArray | None, ...]:
    """The weights, dense and all of one type that the kernels read: that of a, or float32."""
    checked = [w if w is None else check_array(w, f"{name}: weights") for w in weights]
    for weight in checked:
        if weight is None:
            continue
        check_devices(f"{name}: weights", weight)
        if weight.shape != shape:
            raise ShapeError(
                f"{name}: the input has shape {a.shape}, so weights have shape {shape}, not {weight.shape}"
            )
        if weight.dtype.name not in rowwise.FLOATS or weight.itemsize > max(a.itemsize, 4):
            raise DTypeError(f"{name}: weights of {weight.dtype} for an input of {a.dtype}; convert them to {a.dtype}")
    same = all(weight is None or weight.dtype == a.dtype for weight in checked)
    dtype = a.dtype if same or a.dtype.name == "float64" else float32
    return tuple(
        weight
        if weight is None or (weight.dtype == dtype and weight.is_contiguous())
        else copying.astype(weight, dtype)
        for weight in checked
    )


def _normalised(
    norm: _Norm, a: GPUArray, rows: Shape, weights: tuple[GPUArray | None, ...], out: GPUArray | None
) -> GPUArray:
    """rows: the shape in which each row is the last axis."""
    result = rowwise.target(norm.name, a, a.dtype, out, *(weight for weight in weights if weight is not None))
    if a.size:
        whole = rows == a.shape
        source, target = (a, result) if whole else (a.reshape(rows), result.reshape(rows))
        (_on_host if host.computes() else _on_device)(norm, source, weights, target)
    if out is None or result is out:
        return result
    copying.copy_to(result, out)
    return out


def _on_device(norm: _Norm, a: GPUArray, weights: tuple[GPUArray | None, ...], out: GPUArray) -> None:
    scale, shift = weights
    elements, start = span(a)
    strides, out_strides = (tuple(step // a.itemsize for step in x.strides) for x in (a, out))
    per_load = 16 // a.itemsize
    # Where neighbours have a weight each, the dense kernels want a scale.
    aligned = (norm.per_weight == 1 and (scale is not None or shift is None)) or norm.per_weight % per_load == 0
    for array in (a, out, scale, shift):
        aligned = aligned and (array is None or raw.address(array) % 16 == 0)
    work = rowwise.plan(a.shape, strides, out_strides, a.ndim - 1, start, a.itemsize, aligned, pairs=norm.rows == 1)
    present = [weight for weight in weights if weight is not None]
    weight_type = present[0].dtype.name if present else a.dtype.name
    form = (
        "kShared" if scale is None or norm.per_weight != 1 or not work.dense else "kScale" if shift is None else "kBoth"
    )
    packed = _WORK.pack(
        row=work.layout,
        center=norm.center,
        scaled=scale is not None,
        shifted=shift is not None,
        per_weight=norm.per_weight,
        rows=norm.rows,
        epsilon=norm.epsilon,
    )
    kernels.launch(
        SOURCE.of(work.kernel("norm", _types(a.dtype.name, weight_type), last=f", pk::{form}")),
        (work.blocks, 1, 1),
        (work.threads, 1, 1),
        elements,
        elements if scale is None else scale,
        elements if shift is None else shift,
        out,
        packed,
    )


def _on_host(norm: _Norm, a: GPUArray, weights: tuple[GPUArray | None, ...], out: GPUArray) -> None:
    import numpy as np

    def compute() -> None:
        values, *factors = (
            None if x is None else host.values(x).astype(np.float32) if a.dtype in _HALVES else host.values(x)
            for x in (a, *weights)
        )
        assert values is not None
        with np.errstate(all="ignore"):
            values = values - values.mean(axis=-1, keepdims=True) if norm.center else values.copy()
            values /= _root_mean_square(values, norm.epsilon)
            scale, shift = (None if each is None else _spread(norm, each, values.shape) for each in factors)
            if scale is not None:
                values *= scale
            if shift is not None:
                values += shift
            host.store(out, values)

    native.host_launch(norm.name, compute, [a, *(weight for weight in weights if weight is not None), out])


def _root_mean_square(values: Any, epsilon: float) -> Any:
    """Of each row; of one whose squares overflow from values made smaller by a power of two, as norm.cu does it."""
    import numpy as np

    dtype = values.dtype.type
    square = np.square(values).mean(axis=-1, keepdims=True)
    root = np.sqrt(square + dtype(epsilon))
    if np.isinf(square).any():
        smaller = dtype(2.0 ** (-80 if values.itemsize == 4 else -560))
        again = np.square(values * smaller).mean(axis=-1, keepdims=True)
        root = np.where(np.isinf(square), np.sqrt(again + dtype(epsilon) * smaller * smaller) / smaller, root)
    return root


def _spread(norm: _Norm, weights: Any, shape: Shape) -> Any:
    """Weights for the elements of the rows; one for each row where all of its elements share it."""
    import numpy as np

    if norm.per_weight == shape[-1]:
        each = weights.reshape(norm.rows, 1)
    else:
        each = np.repeat(weights, norm.per_weight).reshape(norm.rows, shape[-1])
    return np.tile(each, (shape[0] // norm.rows, 1)) if norm.rows > 1 else each
