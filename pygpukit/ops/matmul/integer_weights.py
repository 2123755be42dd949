"""Products of half precision with weights of integers of 8 and 4 bits, and the numbers that packed ones stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.dtypes import as_dtype, bfloat16, float16, float32, int8, uint8
from pygpukit.core.errors import DTypeError, GPUError, ShapeError
from pygpukit.ops import copying
from pygpukit.ops.elementwise.logic import bitwise_left_shift, bitwise_right_shift
from pygpukit.ops.matmul import gemm
from pygpukit.ops.matmul.cutlass import mixed
from pygpukit.ops.matmul.tile.fp8 import Scale
from pygpukit.ops.operands import check_array, check_devices
from pygpukit.ops.shape.joining import stack

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType, DTypeLike

LOW_LEVEL = ["matmul_mixed"]

_HALVES = (float16, bfloat16)


def matmul_mixed(
    x: GPUArray,
    w: GPUArray,
    scale: GPUArray | None = None,
    *,
    out_dtype: DTypeLike | None = None,
    backend: str | None = None,
) -> GPUArray:
    """x @ (scale w) with a weight of integers of 8 or 4 bits, as W8A16 and W4A16 have it.

    Parameters
    ----------
    x : GPUArray
        (m, k) of float16 or bfloat16.
    w : GPUArray
        (k, n) of int8; or of uint8 (k/2, n), rounded up: two numbers of int4 along k in a byte, the first in its low
        bits. Read where it lies where its columns are whole 16 bytes and follow each other.
    scale : GPUArray or None
        Of the columns, (n,) of float32, which the sums are multiplied with; or of groups, (groups, n) of x's type,
        where a group is a whole number of 128 of k, or all of it: then numbers times scales are rounded to x's type,
        and those are multiplied.
    out_dtype : DTypeLike or None
        float16, bfloat16 or float32; None: x's type.
    backend : str or None
        "cutlass": by CUTLASS's main loop for mixed operands on SM 9.0, which reads the weight as it is stored and sums
        in float32, rounded once. None: the weight becomes numbers of x's type, exactly but for a group's scale, and
        matmul() makes the product, rounded to x's type before it is multiplied with scales of columns.

    Returns
    -------
    GPUArray
        (m, n). A row's bits depend on no other row.

    Raises
    ------
    DTypeError, ShapeError, ValueError, DeviceMismatchError
        The operands do not fit together; the sentence says which and how.
    GPUError
        The backend that is asked for does not take the product.

    Examples
    --------
    >>> x, w = gp.ones((2, 256), "bfloat16"), gp.full((256, 8), 3, "int8")
    >>> gp.ops.matmul_mixed(x, w, gp.full(8, 0.5, "float32")).tolist()[0][0]
    384.0
    """
    what = "matmul_mixed"
    x, w = check_array(x, f"{what}: x"), check_array(w, f"{what}: w")
    if x.dtype not in _HALVES or w.dtype not in (int8, uint8):
        raise DTypeError(
            f"{what}: x is {x.dtype} and w {w.dtype}; x is float16 or bfloat16, w int8, or uint8: two int4 in a byte"
        )
    packed = w.dtype == uint8
    if x.ndim != 2 or w.ndim != 2 or w.shape[0] != (-(-x.shape[1] // 2) if packed else x.shape[1]):
        rows = "(k/2, n)" if packed else "(k, n)"
        raise ShapeError(f"{what}: x has shape {x.shape} and w of {w.dtype} {w.shape}; they must be (m, k) and {rows}")
    of_columns, of_groups = _scales(what, x, w, scale)
    check_devices(what, x, w, *(() if scale is None else (scale,)))
    dtype = _result_type(what, x, out_dtype)
    if backend not in (None, mixed.BACKEND):
        raise ValueError(f"{what}: backend={backend!r}; it is {mixed.BACKEND!r}, or None for decoded weights")
    out = native.empty((x.shape[0], w.shape[1]), dtype)
    if not (out.size and x.shape[1]):
        copying.fill(out, 0)
    elif backend is None:
        _decoded(x, w, of_columns, of_groups, out)
    elif why := mixed.integers(x, w.shape[1]):
        raise GPUError(f"{what}: backend={backend!r}: {why}; leave backend out for decoded weights")
    else:
        columns = Scale(None, 1, (0, 0)) if of_columns is None else Scale(of_columns, 1, (1, 0))
        mixed.product(x, w, Scale(None, 1, (0, 0)), columns, out, of_groups)
    return out


def int4_numbers(packed: GPUArray) -> GPUArray:
    """The int8 (rows, 2 k) of int4 in bytes (rows, k), the first of two in the low bits."""
    bits = packed.view("int8")
    low = bitwise_right_shift(bitwise_left_shift(bits, 4), 4)  # shifts extend the sign
    return stack([low, bitwise_right_shift(bits, 4)], axis=2).reshape(packed.shape[0], 2 * packed.shape[1])


def _scales(what: str, x: GPUArray, w: GPUArray, scale: Any) -> tuple[GPUArray | None, GPUArray | None]:
    """Scales of columns, and of groups."""
    if scale is None:
        return None, None
    array, k, n = check_array(scale, f"{what}: scale"), x.shape[1], w.shape[1]
    if array.shape == (n,) and array.dtype == float32:
        return copying.contiguous(array), None
    groups = array.shape[0] if array.ndim == 2 else 0
    fits = groups == 1 or (groups > 1 and k % groups == 0 and k // groups % mixed.DEPTH == 0)
    if not fits or array.shape[1] != n or array.dtype != x.dtype:
        raise ShapeError(
            f"{what}: scale is {array.dtype} of shape {array.shape}; it is float32 ({n},), or {x.dtype} (groups, {n}) "
            f"with groups of a whole number of {mixed.DEPTH} of k={k}"
        )
    return None, array


def _result_type(what: str, x: GPUArray, out_dtype: DTypeLike | None) -> DataType:
    dtype = x.dtype if out_dtype is None else as_dtype(out_dtype)
    if dtype not in (*_HALVES, float32):
        raise DTypeError(f"{what}: a result of {dtype}; it can be float16, bfloat16, float32")
    return dtype


def _decoded(x: GPUArray, w: GPUArray, of_columns: GPUArray | None, of_groups: GPUArray | None, out: GPUArray) -> None:
    """out = x @ (scale w) by matmul() of the weight's numbers in x's type."""
    k, n = x.shape[1], w.shape[1]
    lines = int4_numbers(copying.contiguous(w.T))[:, :k] if w.dtype == uint8 else w.T
    numbers = copying.astype(lines, x.dtype)
    if of_groups is not None:
        groups = of_groups.shape[0]
        numbers = (
            copying.contiguous(numbers).reshape(n, groups, k // groups) * of_groups.T.reshape(n, groups, 1)
        ).reshape(n, k)
    product = gemm.matmul(x, numbers.T)
    copying.copy_to(product if of_columns is None else product * of_columns, out)
