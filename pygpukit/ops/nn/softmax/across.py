"""softmax() and log_softmax() of rows that lie side by side: short ones in one launch, longer ones in three."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn import rowwise

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "across.cu", options=kernels.SAME_BITS)
_WORK = SOURCE.structure("AcrossWork")
_THREADS = 256  # across.cu: kAcross
_HELD = 16  # across.cu: kHeldOfRow
_MAX_HEIGHT = 8
_MIN_CHUNK, _MAX_CHUNKS = 256, 256


def launch(work: rowwise.Work, size: int, log: bool, a: GPUArray, elements: GPUArray, out: GPUArray) -> None:
    """out = the softmax, or its logarithm, of rows of `size` elements as the work says; elements: a's storage."""
    ctype = CTYPES[a.dtype.name]
    height = min(_MAX_HEIGHT, 1 << (-(-size // _HELD) - 1).bit_length())
    groups = _THREADS // (work.lanes * height)
    chunk, chunks = size, 1
    if size > _HELD * height:
        chunk = max(_MIN_CHUNK, -(-size // _MAX_CHUNKS))
        chunks = -(-size // chunk)
    packed = _WORK.pack(row=work.layout, log=log, height=height, chunk=chunk, chunks=chunks)
    merged, many = ((-(-work.blocks * parts // groups), 1, 1) for parts in (1, chunks))
    block = (_THREADS, 1, 1)
    if size <= _HELD * height:
        kernels.launch(SOURCE.of(f"pk::softmax_across<{ctype}>"), merged, block, elements, out, packed)
        return
    state = "float64" if a.itemsize == 8 else "float32"
    rows = a.size // size
    states, totals = native.empty((2 * rows * chunks,), state), native.empty((2 * rows,), state)
    kernels.launch(SOURCE.of(f"pk::softmax_across_parts<{ctype}>"), many, block, elements, states, packed)
    merge = f"pk::softmax_across_merge<{CTYPES[state]}>"
    kernels.launch(SOURCE.of(merge), merged, block, states, totals, packed)
    kernels.launch(SOURCE.of(f"pk::softmax_across_apply<{ctype}>"), many, block, elements, out, totals, packed)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that launch() can ask for."""
    yield tuple(f"pk::softmax_across_merge<{CTYPES[name]}>" for name in ("float32", "float64"))
    for name in rowwise.FLOATS:
        yield tuple(f"pk::softmax_across{part}<{CTYPES[name]}>" for part in ("", "_parts", "_apply"))
