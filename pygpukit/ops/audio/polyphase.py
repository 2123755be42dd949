"""The leaf of FIR filters and of resampling: upsample, filter, downsample, as one sum an output.

Only the products that matter are made: of the zeros put in between none, of the outputs left out none.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import float32, float64
from pygpukit.core.extras import need
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.fft.tables import TABLES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "polyphase.cu")
_WORK = SOURCE.structure("PolyphaseWork")
_BLOCK = 256
_TILE_THREADS, _TILE_OUTPUTS, _TILE_PRODUCTS = 128, 7, 64  # polyphase.cu: kOutputs, kProducts
_TILE_BYTES = 64 << 10  # of shared memory, at most


def upfirdn(x: GPUArray, taps: np.ndarray[Any, Any], up: int, down: int, first: int, outputs: int) -> GPUArray:
    """out[..., m] = sum over i of taps[first + m * down - up * i] * x[..., i], for m < outputs.

    x: float32 or float64, time on the last axis, zeros around it. taps: float64, rounded to x's type. Sums are made in
    one order, some products at a time in x's type and those in float64, so that a line gives the same bits in any
    batch.
    """
    out = native.empty((*x.shape[:-1], outputs), x.dtype)
    if not out.size:
        return out
    if not x.shape[-1]:
        copying.fill(out, 0)
        return out
    x = copying.contiguous(x)
    if host.computes():
        signal = need("scipy.signal", "audio", "a filter on the simulated device")

        def compute() -> None:
            short = first % down  # zeros in front make `first` one of the places that are kept
            padded = np.concatenate((np.zeros((down - short) % down), taps))
            full = signal.upfirdn(padded, host.memory(x).astype(np.float64), up, down)
            begin = -(-first // down)
            kept = full[..., begin : begin + outputs]
            result = np.zeros(out.shape)
            result[..., : kept.shape[-1]] = kept
            host.store(out, result)

        native.host_launch("polyphase", compute, [x, out])
        return out
    per_phase = -(-len(taps) // up)
    by_phase = np.zeros((per_phase, up))
    by_phase.reshape(-1)[: len(taps)] = taps
    filter = by_phase.T.astype(x.dtype.to_numpy_dtype())
    name, lines = CTYPES[x.dtype.name], prod(x.shape[:-1])
    shared = _tile_bytes(up, down, first, per_phase, x.dtype.itemsize)
    if shared <= _TILE_BYTES:
        max_taps = -(-per_phase // down)
        filter = np.pad(filter, ((0, 0), (0, max_taps * down - per_phase))).reshape(up, max_taps, down).swapaxes(1, 2)
        blocks, threads = lines * -(-outputs // (_TILE_THREADS * _TILE_OUTPUTS * up)), _TILE_THREADS
        long = str(per_phase > _TILE_PRODUCTS).lower()
        spec = SOURCE.of(f"pk::polyphase_tile<{name}, {long}>", shared_bytes=shared)
    else:
        blocks, threads = -(-out.size // _BLOCK), _BLOCK
        spec = SOURCE.of(f"pk::polyphase<{name}>")
    work = _WORK.pack(
        lines=lines,
        length=x.shape[-1],
        outputs=outputs,
        up=up,
        down=down,
        first=first,
        taps=per_phase,
    )
    filter = np.ascontiguousarray(filter)
    kept = TABLES.get(("polyphase", x.dtype, filter.shape, filter.tobytes()), lambda: filter)
    kernels.launch(spec, (blocks, 1, 1), (threads, 1, 1), x, kept, out, work)
    return out


def _tile_bytes(up: int, down: int, first: int, taps: int, itemsize: int) -> int:
    """Shared memory of a block of polyphase_tile(): the samples that it reads, and its results."""
    outputs = _TILE_THREADS * _TILE_OUTPUTS
    span = (outputs - 1) * down + (first % up + (up - 1) * down) // up + taps + down
    return (span + outputs * up) * itemsize


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that upfirdn() can ask for."""
    names = [CTYPES[dtype.name] for dtype in (float32, float64)]
    yield tuple(f"pk::polyphase<{name}>" for name in names)
    yield tuple(f"pk::polyphase_tile<{name}, {long}>" for name in names for long in ("false", "true"))
