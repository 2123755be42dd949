"""The documented names for joining, repeating, transposing and converting arrays of few axes; new code has shape.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pygpukit.core.dtypes import DataType, bfloat16, float16, float32
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, shape
from pygpukit.ops.indexing import padding
from pygpukit.ops.operands import check_array, check_out
from pygpukit.ops.shape import joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

LOW_LEVEL = [
    "cast_bf16_to_f32", "cast_f16_to_f32", "cast_f32_to_bf16", "cast_f32_to_f16", "concat_axis0",
    "repeat_interleave_axis1", "reshape_copy", "transpose_3d_021", "transpose_4d_0213",
]  # fmt: skip


def concat_axis0(a: GPUArray, b: GPUArray) -> GPUArray:
    """b's rows below a's. Errors as concatenate()."""
    return joining.concatenate([a, b], 0)


def repeat_interleave_axis1(input: GPUArray, repeats: int) -> GPUArray:
    """[d0, d1, d2] -> [d0, d1 * repeats, d2], each slice of the second axis `repeats` times. Errors as repeat()."""
    if check_array(input, "repeat_interleave_axis1").ndim != 3:
        raise ShapeError(f"repeat_interleave_axis1: shape {input.shape} is not 3-D")
    return padding.repeat(input, repeats, 1)


def transpose_3d_021(input: GPUArray, *, out: GPUArray | None = None) -> GPUArray | None:
    """[d0, d1, d2] -> [d1, d0, d2] (the documented meaning of this name), C-contiguous; None when out is given."""
    return _transposed(input, (1, 0, 2), out, "transpose_3d_021")


def transpose_3d_012(input: GPUArray, *, out: GPUArray | None = None) -> GPUArray | None:
    """[d0, d1, d2] -> [d0, d2, d1] (the documented meaning of this name), C-contiguous; None when out is given."""
    return _transposed(input, (0, 2, 1), out, "transpose_3d_012")


def transpose_4d_0213(input: GPUArray, *, out: GPUArray | None = None) -> GPUArray | None:
    """[a, b, c, d] -> [a, c, b, d], C-contiguous; None when out is given."""
    return _transposed(input, (0, 2, 1, 3), out, "transpose_4d_0213")


def transpose_4d_0132(input: GPUArray, *, out: GPUArray | None = None) -> GPUArray | None:
    """[a, b, c, d] -> [a, b, d, c], C-contiguous; None when out is given."""
    return _transposed(input, (0, 1, 3, 2), out, "transpose_4d_0132")


def reshape_copy(
    input: GPUArray, new_shape: Sequence[int] | None = None, *, out: GPUArray | None = None
) -> GPUArray | None:
    """A copy in another shape: new_shape, or out's, which then is written and None returned. Raises ShapeError."""
    if new_shape is None and out is None:
        raise ShapeError("reshape_copy: give new_shape or out")
    target = tuple(new_shape) if new_shape is not None else check_array(out, "reshape_copy: out").shape
    return _delivered(shape.reshape(input, target), out, "reshape_copy")


def cast_f32_to_bf16(src: GPUArray) -> GPUArray:
    """float32 to bfloat16, rounded to nearest even. Raises DTypeError for another type."""
    return _cast(src, float32, bfloat16, "cast_f32_to_bf16")


def cast_f32_to_f16(src: GPUArray) -> GPUArray:
    """float32 to float16, rounded to nearest even. Raises DTypeError for another type."""
    return _cast(src, float32, float16, "cast_f32_to_f16")


def cast_bf16_to_f32(src: GPUArray) -> GPUArray:
    """bfloat16 to float32, exactly. Raises DTypeError for another type."""
    return _cast(src, bfloat16, float32, "cast_bf16_to_f32")


def cast_f16_to_f32(src: GPUArray) -> GPUArray:
    """float16 to float32, exactly. Raises DTypeError for another type."""
    return _cast(src, float16, float32, "cast_f16_to_f32")


def _transposed(array: GPUArray, axes: tuple[int, ...], out: GPUArray | None, what: str) -> GPUArray | None:
    if check_array(array, what).ndim != len(axes):
        raise ShapeError(f"{what}: shape {array.shape} is not {len(axes)}-D")
    return _delivered(shape.transpose(array, axes), out, what)


def _delivered(view: GPUArray, out: GPUArray | None, what: str) -> GPUArray | None:
    if out is None:
        return copying.clone(view)
    copying.copy_to(view, check_out(out, view.shape, view.dtype, what))
    return None


def _cast(src: GPUArray, source: DataType, target: DataType, what: str) -> GPUArray:
    if check_array(src, what).dtype != source:
        raise DTypeError(f"{what}: expected {source}, got {src.dtype}; use .astype({target.name!r})")
    return copying.astype(src, target)
