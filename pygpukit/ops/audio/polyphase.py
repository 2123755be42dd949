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


def upfirdn(x: GPUArray, taps: np.ndarray[Any, Any], up: int, down: int, first: int, outputs: int) -> GPUArray:
    """out[..., m] = sum over i of taps[first + m * down - up * i] * x[..., i], for m < outputs.

    x: float32 or float64, time on the last axis, zeros around it. taps: float64, rounded to x's type. Sums are made in
    the order of the taps, 32 at a time in x's type and those in float64, so that a line gives the same bits in any
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
    blocks = -(-out.size // _BLOCK)
    spec = SOURCE.of(f"pk::polyphase<{CTYPES[x.dtype.name]}>")
    kernels.launch(spec, (blocks, 1, 1), (_BLOCK, 1, 1), x, filter, out, work)
    return out


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that upfirdn() can ask for."""
    yield tuple(f"pk::polyphase<{CTYPES[dtype.name]}>" for dtype in (float32, float64))
