"""Windowed overlap-add: each sample gathers the frames that cover it, so that nothing is added by atomics."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying, host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "overlap.cu")
_ADDING = SOURCE.structure("Adding")
_BLOCK = 256
_MAX_SAMPLES = (1 << 32) - _BLOCK  # samples, which the kernel counts in 32 bits
_CTYPES = {"float32": "float", "float64": "double"}


def added(pieces: GPUArray, window: GPUArray, hop: int, start: int, samples: int) -> GPUArray:
    """(..., samples): frames (..., frames, length) times the window, added hop apart, from sample start of the whole,
    over the sum of the squared windows where it is above the smallest normal number. Zeros behind the last frame.
    Raises ShapeError for 2^32 samples."""
    if start + samples > _MAX_SAMPLES:
        raise ShapeError(
            f"istft: a signal of {samples} samples is too long, {_MAX_SAMPLES} is the most; make parts of it"
        )
    pieces = copying.contiguous(pieces)
    out = native.empty((*pieces.shape[:-2], samples), pieces.dtype)
    if not out.size:
        return out
    if host.computes():
        native.host_launch("overlap_add", lambda: _on_host(pieces, window, hop, start, out), [pieces, window, out])
        return out
    blocks = -(-samples // _BLOCK)
    packed = _ADDING.pack(
        samples=samples,
        blocks=blocks,
        start=start,
        frames=pieces.shape[-2],
        length=pieces.shape[-1],
        hop=hop,
    )
    kernel = SOURCE.of(f"pk::overlap_add<{_CTYPES[pieces.dtype.name]}>")
    kernels.launch(kernel, (blocks * prod(out.shape[:-1]), 1, 1), (_BLOCK, 1, 1), pieces, window, out, packed)
    return out


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that added() can ask for."""
    yield tuple(f"pk::overlap_add<{ctype}>" for ctype in _CTYPES.values())


def _on_host(pieces: GPUArray, window: GPUArray, hop: int, start: int, out: GPUArray) -> None:
    import numpy as np

    bent, shape = host.values(window), host.values(pieces)
    frames, length = shape.shape[-2:]
    total = max(length + hop * (frames - 1), start + out.shape[-1])
    sums = np.zeros((*shape.shape[:-2], total), shape.dtype)
    squares = np.zeros(total, np.float64)
    for frame in range(frames):
        here = slice(frame * hop, frame * hop + length)
        sums[..., here] += bent * shape[..., frame, :]
        squares[here] += bent.astype(np.float64) ** 2
    kept = slice(start, start + out.shape[-1])
    divisor = squares[kept].astype(shape.dtype)
    host.store(out, sums[..., kept] / np.where(divisor > np.finfo(shape.dtype).tiny, divisor, 1))
