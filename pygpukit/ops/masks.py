"""Compaction: the positions of the true elements of a mask, and the elements at them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.ops import copying, host, raw
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.core.array import GPUArray

SOURCE = "kernels/gather.cu"
_BLOCK = 256
_CHUNK = 2048  # gather.cu: kChunk
_GROUP = 256  # gather.cu: kGroup
_SPARSE = 16  # one selected of so many: reading the others, too, costs less than waiting for the mask
_WARPS = 8  # of a block: it counts as many chunks


def flatnonzero(mask: GPUArray) -> GPUArray:
    """Positions of the true elements of a bool array in C order, int64. Waits once, for their number."""
    return _selected(check_array(mask, "flatnonzero"), None)


def compacted(mask: GPUArray, array: GPUArray) -> GPUArray:
    """The elements of the array where the mask of its shape holds, 1-D in C order. Waits once, for their number."""
    return _selected(mask, array)


def catalogue() -> Iterator[tuple[str, tuple[str, ...]]]:
    """(source, name expressions) of every kernel that the functions above can ask for."""
    yield SOURCE, ("pk::count_chunks", "pk::start_chunks", "pk::select_positions")
    for item in raw.RAW.values():
        yield SOURCE, (f"pk::select_elements<{item}>",)


def _selected(mask: GPUArray, array: GPUArray | None) -> GPUArray:
    operands = [mask] if array is None else [mask, array]
    check_devices("selecting by a mask", *operands)
    dtype: Any = "int64" if array is None else array.dtype
    if not mask.size:
        return native.empty(0, dtype)
    if host.computes():
        return _on_host(mask, array, dtype)
    mask = copying.contiguous(mask)
    chunks = -(-mask.size // _CHUNK)
    blocks = -(-chunks // _GROUP)
    counts, groups, starts = (native.empty(*each) for each in ((chunks, "int32"), (blocks, "int64"), (chunks, "int64")))
    native.fill(groups, bytes(8))
    size = mask.size.to_bytes(8, "little")
    _launch("pk::count_chunks", -(-chunks // _WARPS), mask, counts, groups, size)
    _launch("pk::start_chunks", blocks, counts, groups, starts, chunks.to_bytes(8, "little"))
    out = native.empty(int(groups.to_numpy().sum()), dtype)
    if not out.size:
        return out
    if array is None:
        _launch("pk::select_positions", chunks, mask, starts, out, size)
    else:
        kernel = f"pk::select_elements<{raw.RAW[array.itemsize]}>"
        early = (out.size * _SPARSE >= mask.size).to_bytes(8, "little")
        _launch(kernel, chunks, mask, copying.contiguous(array), starts, out, size, early)
    return out


def _on_host(mask: GPUArray, array: GPUArray | None, dtype: Any) -> GPUArray:
    import numpy as np

    found: list[np.ndarray[Any, Any]] = []

    def compute() -> None:
        chosen = host.memory(mask)
        found.append(np.flatnonzero(chosen) if array is None else host.memory(array)[chosen])

    native.host_launch("select", compute, [mask] if array is None else [mask, array])
    out = native.empty(found[0].size, dtype)
    if out.size:
        native.host_launch("select", lambda: np.copyto(host.memory(out), found[0]), [out])
    return out


def _launch(expression: str, blocks: int, *args: Any) -> None:
    from pygpukit.jit import builtin

    builtin.launch(SOURCE, expression, (blocks, 1, 1), (_BLOCK, 1, 1), *args)
