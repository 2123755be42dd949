"""Products of 8-bit floats with scales, and of one with wider floats, summed in float32."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.dtypes import as_dtype, bfloat16, float8_e4m3, float8_e5m2, float16, float32, uint8
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.core.sizes import factor
from pygpukit.ops import copying, host
from pygpukit.ops.matmul.choose import MatmulPlan, by_name, choose
from pygpukit.ops.matmul.cuda_cores import fp8 as cuda_fp8
from pygpukit.ops.matmul.cutlass import mixed
from pygpukit.ops.matmul.cutlass import scaled as cutlass
from pygpukit.ops.matmul.mma import fp8 as mma
from pygpukit.ops.matmul.problem import Problem
from pygpukit.ops.matmul.sm90 import cluster
from pygpukit.ops.matmul.tile import fp8 as tile_fp8
from pygpukit.ops.matmul.tile import fp8_weight
from pygpukit.ops.matmul.tile.fp8 import Scale
from pygpukit.ops.operands import check_array, check_devices, check_out, is_array, span
from pygpukit.ops.prepared import as_replaced, prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType, DTypeLike

__all__ = ["matmul_fp8"]
LOW_LEVEL = ["gemv_fp8_bf16", "gemv_fp8_bf16_batched", "matmul_fp8_plan"]

_BLOCK = 128  # of k, that share a scale
_EIGHT = (float8_e4m3, float8_e5m2)
_WIDE = (float16, bfloat16, float32)
_TYPES = (*_EIGHT, *_WIDE)
_NAMED = (cutlass.BACKEND, mma.BACKEND)  # that are taken on the simulated device where they are asked for


@prepared
def matmul_fp8(
    a: GPUArray,
    b: GPUArray,
    scale_a: GPUArray | float | None = None,
    scale_b: GPUArray | float | None = None,
    *,
    out_dtype: DTypeLike | None = None,
    out: GPUArray | None = None,
    backend: str | None = None,
) -> GPUArray:
    """(scale_a a) @ (scale_b b): a (m, k) and b (k, n), of float8_e4m3 or float8_e5m2, give (m, n).

    One of them may be float16, bfloat16 or float32 instead. Scales are what the numbers were divided by: a number or
    one element for all; m of a's rows, n of b's columns; or one for each 128 of k: (m, k/128) or (m/128, k/128) of a,
    (k/128, n) or (k/128, n/128) of b, rounded up. Arrays of scales are float32. out_dtype: float16, bfloat16 or
    float32; by default that of out=, of the wider operand, or float32. Any strides.

    Products of a block of k are summed, with fewer bits than float32 where tensor cores multiply fp8 by fp8, scaled (by
    tensor cores at the end, where no scale is of a block) and added to those before in float32, in ascending order: a
    row's bits depend on no other row. matmul_fp8_plan() says which cores; asynchronous. A number as a scale is
    refused where it is NaN or float32 does not have it; on the device such a one makes its results NaN.
    backend: "hopper", the kernels for SM 9.0, or "mma", those by mma.sync, whatever the plan says; these also run on
    the simulated device; "cutlass", by CUTLASS's on SM 9.0, which of float16 or bfloat16 times fp8 sum all of k at once
    and take no scales of blocks. Raises ShapeError, DTypeError, ValueError,
    DeviceMismatchError, GPUError where the backend asked for does not take the product.
    """
    what = "matmul_fp8"
    a, b = check_array(a, f"{what}: a"), check_array(b, f"{what}: b")
    left, right = _checked(what, a, b, scale_a, scale_b)
    arrays = [a, b, *(operand.values for operand in (left, right) if operand.values is not None)]
    check_devices(what, *arrays)
    dtype = _result_type(what, a, b, out_dtype, out)
    if out is not None:
        check_out(out, (a.shape[0], b.shape[1]), dtype, what)
    target = out
    if target is None or any(target.block == operand.block for operand in arrays):  # may share bytes
        target = native.empty((a.shape[0], b.shape[1]), dtype)
    if target.size:
        plan = _planned(what, a, b, left, right, backend)
        if plan.backend == "hopper":
            cluster.scaled(a, b, left, right, target)
        elif plan.backend in _NAMED:
            plan.kernel.product(a, b, left, right, target)
        elif host.computes():
            native.host_launch(what, lambda: _on_host(a, b, left, right, target), [*arrays, target])
        elif plan.backend == "tile":
            plan.kernel.product(a, b, left, right, target)
        else:
            cuda_fp8.product(a, b, left, right, target)
    if out is None or target is out:
        return target
    copying.copy_to(target, out)
    return out


def matmul_fp8_plan(
    a: GPUArray,
    b: GPUArray,
    scale_a: GPUArray | float | None = None,
    scale_b: GPUArray | float | None = None,
    *,
    backend: str | None = None,
) -> MatmulPlan:
    """The plan of `gp.matmul_fp8(a, b, scale_a, scale_b, backend=backend)`: which kernel, and why. Launches nothing.
    Raises as it."""
    what = "matmul_fp8_plan"
    a, b = check_array(a, f"{what}: a"), check_array(b, f"{what}: b")
    plan = _planned(what, a, b, *_checked(what, a, b, scale_a, scale_b), backend)
    return as_replaced(replace(plan, tile=None), matmul_fp8)


def gemv_fp8_bf16(a: GPUArray, b_nk: GPUArray, b_scale: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """matmul_fp8() of a bfloat16 vector (k,) and a weight (n, k) with scales (n/128, k/128): (n,) of bfloat16.

    The weight may be uint8: the bits of float8_e4m3.
    """
    if check_array(a, "gemv_fp8_bf16: a").ndim != 1:
        raise ShapeError(f"gemv_fp8_bf16: a has shape {a.shape}, must be (k,); gemv_fp8_bf16_batched takes (m, k)")
    into = None
    if out is not None:
        check_array(out, "gemv_fp8_bf16: out")
        into = native.view(out, (1, *out.shape), (0, *out.strides), out.offset)
    product = gemv_fp8_bf16_batched(a.reshape(1, -1), b_nk, b_scale, out=into).reshape(-1)
    return product if out is None else out


def gemv_fp8_bf16_batched(a: GPUArray, b_nk: GPUArray, b_scale: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """gemv_fp8_bf16() of several rows: a (m, k) gives (m, n)."""
    weight = check_array(b_nk, "gemv_fp8_bf16: b_nk")
    weight = weight.view("float8_e4m3") if weight.dtype == uint8 else weight
    return matmul_fp8(
        a, weight.T, scale_b=check_array(b_scale, "gemv_fp8_bf16: b_scale").T, out_dtype=bfloat16, out=out
    )


def _checked(what: str, a: GPUArray, b: GPUArray, scale_a: Any, scale_b: Any) -> tuple[Scale, Scale]:
    if not (a.dtype in _TYPES and b.dtype in _TYPES and (a.dtype in _EIGHT or b.dtype in _EIGHT)):
        raise DTypeError(
            f"{what}: a is {a.dtype} and b {b.dtype}; one at least must be float8_e4m3 or float8_e5m2, the other that, "
            "float16, bfloat16 or float32: divide by a scale and convert with .astype('float8_e4m3')"
        )
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ShapeError(f"{what}: a has shape {a.shape} and b {b.shape}; they must be (m, k) and (k, n)")
    k = a.shape[1]
    left = _scale(f"{what}: scale_a", scale_a, a.shape[0], k, False)
    right = _scale(f"{what}: scale_b", scale_b, b.shape[1], k, True)
    factor(left.number * right.number, f"{what}: scale_a * scale_b")
    return left, right


def _planned(what: str, a: GPUArray, b: GPUArray, left: Scale, right: Scale, named: str | None = None) -> MatmulPlan:
    """From types, the kind of scales, extents, the device, and what is asked for."""
    alike = a.dtype == b.dtype
    if alike or named != mixed.BACKEND:
        p = Problem.of("fp8", a, b, float32, scales=tile_fp8.unscalable(a, b, left, right))
    else:
        p = Problem.of("decoded", a, b, float32, scales=mixed.unscalable(a, b, left, right))
    if kernel := by_name(what, named, p):
        return kernel
    if alike:
        return choose(p)
    return choose(Problem.of("decoded", a, b, float32, scales=fp8_weight.unscalable(a, b, left, right)))


def _result_type(what: str, a: GPUArray, b: GPUArray, out_dtype: DTypeLike | None, out: GPUArray | None) -> DataType:
    asked = None if out_dtype is None else as_dtype(out_dtype)
    out_type = None if out is None else check_array(out, f"{what}: out").dtype
    if asked is not None and out_type is not None and asked != out_type:
        raise DTypeError(f"{what}: out_dtype={asked} and out= of {out_type} contradict each other; give one of them")
    dtype = asked or out_type or next((operand.dtype for operand in (a, b) if operand.dtype in _WIDE), float32)
    if dtype not in _WIDE:
        raise DTypeError(f"{what}: a result of {dtype}; it can be {', '.join(map(str, _WIDE))}")
    return dtype


def _scale(what: str, scale: Any, lines: int, k: int, of_columns: bool) -> Scale:
    """Scales as the kernel reads them. of_columns: the lines are the second axis."""
    if scale is None:
        return Scale(None, 1, (0, 0))
    if not is_array(scale):
        return Scale(None, 1, (0, 0), factor(scale, what))
    if scale.dtype != float32:
        raise DTypeError(f"{what} is {scale.dtype}; scales are float32")
    if any(step < 0 for step in scale.strides):
        scale = copying.contiguous(scale)
    steps = [step // scale.itemsize for step in scale.strides]
    blocks, groups = -(-k // _BLOCK), -(-lines // _BLOCK)
    if scale.size == 1 and scale.ndim < 2:
        return Scale(scale, 1, (0, 0))
    if scale.shape == (lines,):
        return Scale(scale, 1, (steps[0], 0))
    if scale.ndim == 2:
        (across, down), (step, depth) = (scale.shape[::-1], steps[::-1]) if of_columns else (scale.shape, steps)
        if down == blocks and across in (lines, groups):
            # One column is a block, as tiles take it.
            by_line = across == lines and not (of_columns and across == groups)
            return Scale(scale, 1 if by_line else _BLOCK, (step, depth))
    shapes = [(blocks, lines), (blocks, groups)] if of_columns else [(lines, blocks), (groups, blocks)]
    raise ShapeError(f"{what} has shape {scale.shape}; it must be (), {(lines,)}, {shapes[0]} or {shapes[1]}")


def _on_host(a: GPUArray, b: GPUArray, left: Scale, right: Scale, out: GPUArray) -> None:
    import numpy as np

    x, y = (host.values(operand).astype(np.float32) for operand in (a, b))
    total = np.zeros(out.shape, np.float32)
    with np.errstate(all="ignore"):
        for block, first in enumerate(range(0, a.shape[1], _BLOCK)):
            rows = _of_block(left, block, a.shape[0])[:, None]
            columns = _of_block(right, block, b.shape[1])
            total += (rows * columns) * (x[:, first : first + _BLOCK] @ y[first : first + _BLOCK])
        host.store(out, np.float32(left.number * right.number) * total)


def _of_block(scale: Scale, block: int, lines: int) -> Any:
    """The scales of every line for one block of k."""
    import numpy as np

    if scale.values is None:
        return np.ones(lines, np.float32)
    flat, start = span(scale.values)
    places = np.arange(lines) // scale.lines * scale.steps[0] + block * scale.steps[1] + start
    return host.values(flat).reshape(-1)[places]
