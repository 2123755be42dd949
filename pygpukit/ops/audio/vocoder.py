"""phase_vocoder: a spectrogram faster or slower, its phases carried on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.dtypes import complex128, float32, float64
from pygpukit.ops import copying, elementwise, scan
from pygpukit.ops.audio.inputs import positive, spectrum
from pygpukit.ops.audio.magnitudes import frame_major
from pygpukit.ops.elementwise.math import atan2, cos, imag, real, sin
from pygpukit.ops.elementwise.math import round as rounded
from pygpukit.ops.indexing import padding, take
from pygpukit.ops.shape.joining import concatenate

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["phase_vocoder"]


def phase_vocoder(D: GPUArray, *, rate: float, hop_length: int | None = None, n_fft: int | None = None) -> GPUArray:
    """A spectrogram played rate times as fast, as librosa.phase_vocoder() (Ellis 2002).

    D: complex (..., bins, frames). Result: (..., bins, ceil(frames / rate)), in D's type. hop_length: between D's
    frames, n_fft // 4 by default; n_fft: 2 * (bins - 1) by default. Phases are accumulated in float64. Raises
    DTypeError, ShapeError, ValueError. An item's bits depend on it alone, the same on every run.
    """
    import numpy as np

    from pygpukit.array.factory import from_numpy

    what = "phase_vocoder"
    D = spectrum(D, f"{what}: D")
    if not (rate > 0 and math.isfinite(rate)):
        raise ValueError(f"{what}: rate is {rate} and must be positive")
    n_fft = 2 * (D.shape[-2] - 1) if n_fft is None else n_fft
    hop = max(1, n_fft // 4) if hop_length is None else positive(hop_length, "hop_length", what)
    steps = np.arange(0, D.shape[-1], rate, dtype=np.float64)
    first, part = steps.astype(np.int64), np.mod(steps, 1.0)[:, None]
    advance = from_numpy(hop * np.fft.rfftfreq(n_fft, 1 / (2 * np.pi)))  # of a bin's own frequency, from frame to frame
    frames = padding.pad(frame_major(D), [(0, 0)] * (D.ndim - 2) + [(0, 2), (0, 0)])
    wide = copying.astype(frames, complex128)
    sizes, angles = elementwise.abs(frames), atan2(imag(wide), real(wide))
    here, there = from_numpy(first), from_numpy(first + 1)
    kind = sizes.dtype.to_numpy_dtype()
    low, high = from_numpy((1.0 - part).astype(kind)), from_numpy(part.astype(kind))
    mixed = elementwise.add(elementwise.mul(take(sizes, here, -2), low), elementwise.mul(take(sizes, there, -2), high))
    moved = _wrapped(elementwise.sub(elementwise.sub(take(angles, there, -2), take(angles, here, -2)), advance))
    begin = angles[..., :1, :]
    sums = scan.cumsum(concatenate([begin, elementwise.add(moved, advance)[..., :-1, :]], -2), -2)
    phase = copying.astype(_wrapped(sums), float32 if sizes.dtype == float32 else float64)
    out = native.empty(mixed.shape, D.dtype)
    elementwise.mul(mixed, cos(phase), out=real(out))
    elementwise.mul(mixed, sin(phase), out=imag(out))
    return out.swapaxes(-1, -2)


def _wrapped(angle: GPUArray) -> GPUArray:
    """Between -pi and pi."""
    turns = rounded(elementwise.div(angle, 2 * math.pi))
    return elementwise.sub(angle, elementwise.mul(turns, 2 * math.pi))
