"""Compaction: the positions of the true elements of a mask, and the elements at them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import OutOfMemoryError
from pygpukit.ops import copying, host, raw
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "masks.cu")
_BLOCK = 256
_CHUNK = 2048  # masks.cu: kChunk
_GROUP = 256  # masks.cu: kGroup
_SPARSE = 16  # one selected of so many: reading the others, too, costs less than waiting for the mask
_WARPS = 8  # of a block: it counts as many chunks
_NARROW = 2  # bytes of an element of which a thread takes twice as many
# Up to so many bytes there is room for all elements until the number of the selected ones is known: they are packed
# while the host still waits for it.
_AHEAD_BYTES = 256 << 20


def flatnonzero(mask: GPUArray) -> GPUArray:
    """Positions of the true elements of a bool array in C order, int64. Waits once, for their number."""
    return _selected(check_array(mask, "flatnonzero"), None)


def compacted(mask: GPUArray, array: GPUArray) -> GPUArray:
    """The elements of the array where the mask of its shape holds, 1-D in C order. Waits once, for their number."""
    return _selected(mask, array)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for."""
    yield ("pk::count_chunks", "pk::start_chunks", "pk::select_positions")
    for item in raw.RAW.values():
        yield (f"pk::select_elements<{item}>",)


def _selected(mask: GPUArray, array: GPUArray | None) -> GPUArray:
    operands = [mask] if array is None else [mask, array]
    check_devices("selecting by a mask", *operands)
    dtype: Any = "int64" if array is None else array.dtype
    if not mask.size:
        return native.empty(0, dtype)
    if host.computes():
        return _on_host(mask, array, dtype)
    mask = copying.contiguous(mask)
    if array is not None:
        array = copying.contiguous(array)
    chunks = -(-mask.size // _CHUNK)
    blocks = -(-chunks // _GROUP)
    counts, groups, starts = (native.empty(*each) for each in ((chunks, "int32"), (blocks, "int64"), (chunks, "int64")))
    native.fill(groups, bytes(8))
    size = mask.size.to_bytes(8, "little")
    _launch("pk::count_chunks", -(-chunks // _WARPS), _BLOCK, mask, counts, groups, size)
    of_chunks = chunks.to_bytes(8, "little")
    _launch("pk::start_chunks", blocks, _GROUP, counts, groups, starts, of_chunks, overlapping=True)
    out = _room(mask.size, dtype)
    if out is None:
        count = _count(groups)
        out = native.empty(count, dtype)
        if count:
            _pack(mask, array, starts, out, early=count * _SPARSE >= mask.size)
        return out
    counted = native.current_stream()
    native.order_streams(counted.handle, _side().handle)
    _pack(mask, array, starts, out, early=True)
    native.set_current_stream(_side())
    try:
        count = _count(groups)
    finally:
        native.set_current_stream(counted)
    native.shorten(out, count)
    return out


def _room(count: int, dtype: Any) -> GPUArray | None:
    """Room for all elements, unless that is much or more than there is; none where a stream is captured: the count
    cannot be waited for there, which reading it says."""
    if count * as_dtype(dtype).itemsize > _AHEAD_BYTES or native.is_capturing():
        return None
    try:
        return native.empty(count, dtype)
    except OutOfMemoryError:  # there may still be enough for those that are selected
        return None


def _count(groups: GPUArray) -> int:
    return int(groups.to_numpy().sum())


def _side() -> native.Stream:
    """A stream of the current device on which the number is read while the elements are packed on another."""
    return _stream_of(native.current_device())


@cache
def _stream_of(device: int) -> native.Stream:
    return native.Stream(whole=True)  # it outlives the task that first needs it


def _pack(mask: GPUArray, array: GPUArray | None, starts: GPUArray, out: GPUArray, early: bool) -> None:
    """out = the selected elements. early: most are selected, so they are read without waiting for the mask."""
    size = mask.size.to_bytes(8, "little")
    if array is None:
        _launch("pk::select_positions", starts.size, _BLOCK, mask, starts, out, size, overlapping=True)
        return
    threads = _BLOCK // 2 if array.itemsize <= _NARROW else _BLOCK
    kernel = f"pk::select_elements<{raw.RAW[array.itemsize]}>"
    args = mask, array, starts, out, size, early.to_bytes(8, "little")
    _launch(kernel, starts.size, threads, *args, overlapping=True)


def _on_host(mask: GPUArray, array: GPUArray | None, dtype: Any) -> GPUArray:
    import numpy as np

    arrays: list[np.ndarray[Any, Any]] = []

    def compute() -> None:
        chosen = host.memory(mask)
        arrays.append(np.flatnonzero(chosen) if array is None else host.memory(array)[chosen])

    native.host_launch("select", compute, [mask] if array is None else [mask, array])
    out = native.empty(arrays[0].size, dtype)
    if out.size:
        native.host_launch("select", lambda: np.copyto(host.memory(out), arrays[0]), [out])
    return out


def _launch(expression: str, blocks: int, threads: int, *args: Any, overlapping: bool = False) -> None:
    kernels.launch(SOURCE.of(expression, overlapping=overlapping), (blocks, 1, 1), (threads, 1, 1), *args)
