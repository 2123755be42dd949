"""YIN's curve: the difference function of each frame, normalised by its mean so far (de Cheveigne, Kawahara 2002)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array.factory import arange
from pygpukit.core.dtypes import float32, float64
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying, elementwise, host, scan
from pygpukit.ops.audio.framing import frames, padded
from pygpukit.ops.audio.inputs import positive, signal
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "yin_curve.cu")
_WORK = SOURCE.structure("YinWork")
_BLOCK = 256
_FRAMES_AT_ONCE = 256


@dataclass(frozen=True)
class Periods:
    """Periods that yin() and pyin() search, in samples: from `shortest` to `longest`, in frames hop_length apart."""

    shortest: int
    longest: int
    frame_length: int
    hop_length: int


def check_periods(fmin: float, fmax: float, sr: float, frame_length: int, hop_length: int | None, what: str) -> Periods:
    """Raises ValueError for frequencies and frames that do not fit together; warns where a frame has under two
    periods."""
    frame_length = positive(frame_length, "frame_length", what)
    hop_length = frame_length // 4 if hop_length is None else hop_length
    hop_length = positive(hop_length, "hop_length", what)
    if not 0 < fmin < fmax <= sr / 2:
        raise ValueError(f"{what}: fmin {fmin} and fmax {fmax} must satisfy 0 < fmin < fmax <= sr / 2, {sr / 2}")
    if sr / fmin >= frame_length - 1:
        raise ValueError(
            f"{what}: a period of fmin {fmin} has {sr / fmin:.1f} samples and does not fit into frame_length "
            f"{frame_length}; take fmin above {sr / (frame_length - 1):.3f}, or frame_length {ceil(sr / fmin) + 2}"
        )
    if sr / fmin >= frame_length // 2:
        warnings.warn(f"{what}: frame_length {frame_length} has under two periods of fmin {fmin}", stacklevel=3)
    return Periods(floor(sr / fmax), min(ceil(sr / fmin), frame_length - 1), frame_length, hop_length)


def curve(y: Any, periods: Periods, center: bool, pad_mode: str, what: str) -> GPUArray:
    """(..., frames, periods): the normalised difference at each period; small where a frame repeats itself."""
    y = signal(y, what)
    if center:
        y = padded(y, periods.frame_length // 2, periods.frame_length // 2, pad_mode, what)
    difference = _difference(copying.contiguous(y), periods, what)
    if periods.longest - periods.shortest < 1:
        raise ShapeError(f"{what}: fmin and fmax leave one period, {periods.shortest} samples; two are needed")
    lags = arange(1, periods.longest + 1, dtype=difference.dtype)
    mean = elementwise.div(scan.cumsum(difference[..., 1:], -1), lags)[..., periods.shortest - 1 :]
    tiny = float(np.finfo(difference.dtype.to_numpy_dtype()).tiny)
    return elementwise.div(difference[..., periods.shortest :], elementwise.add(mean, tiny))


def _difference(y: GPUArray, periods: Periods, what: str) -> GPUArray:
    """(..., frames, longest + 1): sum of (y[n] - y[n + lag])^2 over each frame, which is zero beyond its end."""
    pieces = frames(y, periods.frame_length, periods.hop_length, what)
    lags = periods.longest + 1
    out = native.empty((*pieces.shape[:-1], lags), y.dtype)
    if not out.size:
        return out
    if host.computes():

        def compute() -> None:
            with np.errstate(invalid="ignore"):  # infinity gives NaN
                _on_host(host.memory(pieces), out)

        native.host_launch("yin_difference", compute, [y, out])
        return out
    work = _WORK.pack(
        frames=pieces.shape[-2],
        stride=y.shape[-1],
        hop=periods.hop_length,
        length=periods.frame_length,
        lags=lags,
        total=prod(out.shape),
    )
    blocks = -(-out.size // _BLOCK)
    spec = SOURCE.of(f"pk::yin_difference<{CTYPES[y.dtype.name]}>")
    kernels.launch(spec, (blocks, 1, 1), (_BLOCK, 1, 1), y, out, work)
    return out


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that curve() can ask for."""
    yield tuple(f"pk::yin_difference<{CTYPES[dtype.name]}>" for dtype in (float32, float64))


def _on_host(pieces: np.ndarray[Any, Any], out: GPUArray) -> None:
    """2 (r[0] - r[lag]) - the energy of the first lag samples: the sum of squares, multiplied out."""
    length, lags = pieces.shape[-1], out.shape[-1]
    flat, result = pieces.reshape(-1, length), np.empty((prod(out.shape[:-1]), lags))
    for start in range(0, len(flat), _FRAMES_AT_ONCE):
        some = flat[start : start + _FRAMES_AT_ONCE].astype(np.float64)
        spectrum = np.fft.rfft(some, 2 * length)
        correlation = np.fft.irfft(np.abs(spectrum) ** 2, 2 * length)[:, :lags]
        energy = np.cumsum(some**2, -1)[:, : lags - 1]
        rows = result[start : start + _FRAMES_AT_ONCE]
        rows[:] = 2 * (correlation[:, :1] - correlation)
        rows[:, 1:] -= energy
        rows[:, 0] = 0
    host.store(out, result.reshape(out.shape))
