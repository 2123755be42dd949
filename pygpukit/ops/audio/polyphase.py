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
from pygpukit.array.factory import from_numpy
from pygpukit.core.dtypes import float32, float64
from pygpukit.core.extras import need
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "polyphase.cu")
_WORK = SOURCE.structure("PolyphaseWork")
_BLOCK = 256
_TILE_THREADS, _TILE_OUTPUTS = 128, 7  # polyphase.cu: kOutputs
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
    filter = from_numpy(np.ascontiguousarray(by_phase.T).astype(x.dtype.to_numpy_dtype()))
    work = _WORK.pack(
        lines=prod(x.shape[:-1]),
        length=x.shape[-1],
        outputs=outputs,
        up=up,
        down=down,
        first=first,
        taps=per_phase,
    )
    name = CTYPES[x.dtype.name]
    shared = _tile_bytes(up, down, first, per_phase, x.dtype.itemsize)
    if shared <= _TILE_BYTES:
        blocks = prod(x.shape[:-1]) * -(-outputs // (_TILE_THREADS * _TILE_OUTPUTS * up))
        spec, threads = SOURCE.of(f"pk::polyphase_tile<{name}>", shared_bytes=shared), _TILE_THREADS
    else:
        blocks = -(-out.size // _BLOCK)
        spec, threads = SOURCE.of(f"pk::polyphase<{name}>"), _BLOCK
    kernels.launch(spec, (blocks, 1, 1), (threads, 1, 1), x, filter, out, work)
    return out


def _tile_bytes(up: int, down: int, first: int, taps: int, itemsize: int) -> int:
    """Shared memory of a block of polyphase_tile(): the samples that it reads, and its results."""
    all_ = _TILE_THREADS * _TILE_OUTPUTS
    return ((all_ - 1) * down + (first % up + (up - 1) * down) // up + taps + all_ * up) * itemsize


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that upfirdn() can ask for."""
    for kernel in ("polyphase", "polyphase_tile"):
        yield tuple(f"pk::{kernel}<{CTYPES[dtype.name]}>" for dtype in (float32, float64))
