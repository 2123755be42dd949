"""Rotary position embedding (Su et al. 2021) in place, in both pairings in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import check_array, check_devices, overlaps, same_view, span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["rope_inplace"]
LOW_LEVEL = ["rope_inplace_f32table"]

SOURCE = kernels.KernelSpec(__file__, "rope.cu")
_HEADS, _CALL = SOURCE.structure("RopeHeads"), SOURCE.structure("RopeCall")
LAYOUTS = ("neox", "gptj")
_BLOCK = 256
_TYPES = (float32, float16, bfloat16)


def rope_inplace(q: GPUArray, k: GPUArray, cos: GPUArray, sin: GPUArray, *, layout: str = "neox") -> None:
    """Rotate q and k by the angles of their positions.

    q: (S, Hq, D) or (B, S, Hq, D), k: the same with its own number of heads; any strides, so that views into a joint
    qkv array are rotated where they lie, and q[..., :r] rotates a part of each head. cos, sin: (S, D) as the rope_init
    functions make them in the same layout, or (S, D/2) with one angle a pair; float32 (others are converted).
    layout: "neox" pairs element j with j + D/2 ("rotate half"), "gptj" element 2j with 2j + 1.
    q and k: float32, float16 or bfloat16, computed in float32. One launch, asynchronous; the same bits on every run.
    Raises ShapeError, DTypeError, DeviceMismatchError, InvalidSpecError (an unknown layout).
    """
    what = "rope_inplace"
    for name, array in (("q", q), ("k", k), ("cos", cos), ("sin", sin)):
        check_array(array, f"{what}: {name}")
    if layout not in LAYOUTS:
        raise InvalidSpecError(f"{what}: layout {layout!r} is unknown; use 'neox' or 'gptj'", "layout")
    if q.dtype not in _TYPES or q.dtype != k.dtype:
        raise DTypeError(f"{what}: q is {q.dtype} and k is {k.dtype}; both must be float32, float16 or bfloat16, alike")
    fits = q.ndim == k.ndim and q.ndim in (3, 4) and q.shape[:-2] == k.shape[:-2] and q.shape[-1] == k.shape[-1]
    if not fits or q.shape[-1] % 2:
        raise ShapeError(
            f"{what}: q has shape {q.shape} and k {k.shape}; they must be ([batch,] positions, heads, D) with D even, "
            "and differ in the number of heads only"
        )
    positions, _, dim = q.shape[-3:]
    if cos.shape != sin.shape or cos.shape not in ((positions, dim), (positions, dim // 2)):
        raise ShapeError(
            f"{what}: cos has shape {cos.shape} and sin {sin.shape}; both must be {(positions, dim)} or "
            f"{(positions, dim // 2)} for q of shape {q.shape}; slice the tables to the positions of q"
        )
    check_devices(what, q, k, cos, sin)
    if any(step == 0 and extent > 1 for x in (q, k) for extent, step in zip(x.shape, x.strides, strict=True)):
        raise ShapeError(f"{what}: q or k is a broadcast view, whose elements are one; use .clone() first")
    if same_view(q, k) or (overlaps(q, k) and not _interleaved(q, k)):
        raise ShapeError(f"{what}: q and k share memory; each must be rotated once")
    if not q.size and not k.size:
        return
    cos, sin = (copying.contiguous(x if x.dtype == float32 else x.astype(float32)) for x in (cos, sin))
    if host.computes():
        native.host_launch("rope", lambda: _on_host(q, k, cos, sin, layout), [q, k, cos, sin])
    else:
        _on_device(q, k, cos, sin, layout)


def rope_inplace_f32table(q: GPUArray, k: GPUArray, cos: GPUArray, sin: GPUArray) -> None:
    """rope_inplace() with tables that must be float32. Errors as it."""
    for name, table in (("cos", cos), ("sin", sin)):
        if check_array(table, f"rope_inplace_f32table: {name}").dtype != float32:
            raise DTypeError(f"rope_inplace_f32table: {name} is {table.dtype}, must be float32")
    rope_inplace(q, k, cos, sin)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that rope_inplace() can ask for."""
    yield tuple(f"pk::rope<{CTYPES[dtype.name]}>" for dtype in _TYPES)


def _interleaved(q: GPUArray, k: GPUArray) -> bool:
    """True for views into one array whose rows hold q's heads and then k's (or the other way round), apart."""
    if q.block != k.block or q.strides[:-2] != k.strides[:-2] or any(step <= 0 for step in q.strides + k.strides):
        return False
    (first, second) = (q, k) if q.device_ptr <= k.device_ptr else (k, q)
    distance, row = second.device_ptr - first.device_ptr, first.strides[-3]
    return _row_bytes(first) <= distance and distance + _row_bytes(second) <= row


def _row_bytes(array: GPUArray) -> int:
    """Bytes from the first element of one position's heads to the end of its last."""
    return sum((n - 1) * step for n, step in zip(array.shape[-2:], array.strides[-2:], strict=True)) + array.itemsize


def _on_host(q: GPUArray, k: GPUArray, cos: GPUArray, sin: GPUArray, layout: str) -> None:
    import numpy as np

    half = q.shape[-1] // 2
    first, second = (np.s_[..., :half], np.s_[..., half:]) if layout == "neox" else (np.s_[..., ::2], np.s_[..., 1::2])
    cosine, sine = (host.values(table)[:, None] for table in (cos, sin))
    full = cosine.shape[-1] == 2 * half
    for array in (q, k):
        values = host.values(array).astype(np.float32)
        a, b = values[first].copy(), values[second].copy()
        with np.errstate(all="ignore"):
            values[first] = a * (cosine[first] if full else cosine) - b * (sine[first] if full else sine)
            values[second] = b * (cosine[second] if full else cosine) + a * (sine[second] if full else sine)
        host.store(array, values)


def _on_device(q: GPUArray, k: GPUArray, cos: GPUArray, sin: GPUArray, layout: str) -> None:
    half = q.shape[-1] // 2
    first_apart, second_apart = (1, half) if layout == "neox" else (2, 1)
    full = cos.shape[-1] == 2 * half
    table = (cos.shape[-1], first_apart, second_apart) if full else (half, 1, 0)
    heads, spans = [], []
    for array in (q, k):
        storage, start = span(array)
        steps = [step // array.itemsize for step in array.strides]
        spans.append(storage)
        heads.append(_HEADS.pack(start=start, heads=array.shape[-2], step=steps if array.ndim == 4 else [0, *steps]))
    pairs = (q.size + k.size) // 2
    table_row, table_step, table_second = table
    packed = _CALL.pack(
        pairs_q=q.size // 2,
        pairs=pairs,
        positions=q.shape[-3],
        half=half,
        first_apart=first_apart,
        second_apart=second_apart,
        table_row=table_row,
        table_step=table_step,
        table_second=table_second,
        of=b"".join(heads),
    )
    kernels.launch(
        SOURCE.of(f"pk::rope<{CTYPES[q.dtype.name]}>"),
        (-(-pairs // _BLOCK), 1, 1),
        (_BLOCK, 1, 1),
        *spans,
        cos,
        sin,
        packed,
    )
