"""Peaks of spectrograms, and how far an instrument is off 440 Hz."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from pygpukit.ops import copying, elementwise, reduce
from pygpukit.ops.audio import scales
from pygpukit.ops.audio.inputs import finite, floats, magnitude_of, rate
from pygpukit.ops.audio.magnitudes import spectrogram
from pygpukit.ops.elementwise import logic
from pygpukit.ops.operands import check_array, is_array
from pygpukit.ops.shape.joining import concatenate

if TYPE_CHECKING:
    from collections.abc import Callable

    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

__all__ = ["estimate_tuning", "piptrack", "pitch_tuning"]


def piptrack(
    *,
    y: Any = None,
    sr: float | None = None,
    S: GPUArray | None = None,
    n_fft: int | None = 2048,
    hop_length: int | None = None,
    fmin: float = 150.0,
    fmax: float = 4000.0,
    threshold: float = 0.1,
    win_length: int | None = None,
    window: Window = "hann",
    center: bool = True,
    pad_mode: str = "constant",
    ref: float | Callable[..., GPUArray] | None = None,
) -> tuple[GPUArray, GPUArray]:
    """(pitches in Hz, magnitudes) where a frame has a peak, else 0: each (..., bins, frames), as librosa.piptrack().

    Peaks between fmin and fmax above threshold times the frame's largest magnitude (or times ref(S, axis=-2); or above
    the number ref), placed by a parabola through three bins (Smith 2011). Others as stft(). Raises ValueError,
    ShapeError, DTypeError. Deterministic.
    """
    import numpy as np

    from pygpukit.array.factory import from_numpy

    what = "piptrack"
    sr = rate(sr, y)
    S, n_fft = spectrogram(what, y, S, n_fft, hop_length, 1, win_length, window, center, pad_mode)
    S = elementwise.abs(floats(magnitude_of(check_array(S, what)), f"{what}: S"))
    if S.shape[-2] < 3:
        raise ValueError(f"{what}: S has {S.shape[-2]} bins; a peak has a bin on either side")
    low, middle, high = S[..., :-2, :], S[..., 1:-1, :], S[..., 2:, :]
    slope = elementwise.mul(elementwise.sub(high, low), 0.5)
    curve = elementwise.sub(elementwise.add(high, low), elementwise.mul(middle, 2.0))
    flat = logic.greater_equal(elementwise.abs(slope), elementwise.abs(curve))
    shift = elementwise.where(flat, 0.0, elementwise.neg(elementwise.div(slope, elementwise.where(flat, 1.0, curve))))
    if ref is None or callable(ref):
        largest = reduce.max(S, -2, keepdims=True) if ref is None else ref(S, axis=-2).reshape(_one_bin(S))
        min_magnitude: Any = elementwise.mul(largest, threshold)
    else:
        min_magnitude = abs(ref)
    loud = elementwise.where(logic.greater(S, min_magnitude), S, 0.0)
    here = loud[..., 1:-1, :]
    peak = logic.logical_and(logic.greater(here, loud[..., :-2, :]), logic.greater_equal(here, loud[..., 2:, :]))
    hz = scales.fft_frequencies(sr, n_fft)[:, None]
    inside = (hz >= max(fmin, 0)) & (hz < min(fmax, sr / 2))
    peak = logic.logical_and(peak, from_numpy(inside[1:-1]))
    place = from_numpy(np.arange(1.0, S.shape[-2] - 1)[:, None].astype(S.dtype.to_numpy_dtype()))
    pitches = elementwise.where(peak, elementwise.mul(elementwise.add(shift, place), sr / n_fft), 0.0)
    heights = elementwise.add(middle, elementwise.mul(elementwise.mul(slope, shift), 0.5))
    # The last bin of an odd n_fft lies below sr / 2. Where it is above the one before it is a peak, without a parabola.
    last = logic.logical_and(logic.greater(loud[..., -1:, :], loud[..., -2:-1, :]), bool(inside[-1, 0]))
    end_hz, end_height = (elementwise.where(last, x, 0.0) for x in (float(hz[-1, 0]), S[..., -1:, :]))
    return _with_edges(pitches, end_hz, S), _with_edges(elementwise.where(peak, heights, 0.0), end_height, S)


def pitch_tuning(frequencies: Any, *, resolution: float = 0.01, bins_per_octave: int = 12) -> float:
    """The offset of frequencies (Hz, any array) from A4 = 440 Hz, in bins of -0.5 to 0.5: the likeliest, in steps
    of resolution, as librosa.pitch_tuning(). Computed on the host. Warns of none, which give 0."""
    import numpy as np

    hz = np.atleast_1d(frequencies.to_numpy() if is_array(frequencies) else np.asarray(frequencies))
    hz = hz[hz > 0]
    if not hz.size:
        warnings.warn("pitch_tuning: there are no frequencies to estimate a tuning from", stacklevel=2)
        return 0.0
    residual = np.mod(bins_per_octave * scales.hz_to_octaves(hz, 0.0, bins_per_octave), 1.0)
    residual[residual >= 0.5] -= 1.0
    counts, edges = np.histogram(residual, np.linspace(-0.5, 0.5, math.ceil(1.0 / resolution) + 1))
    return float(edges[np.argmax(counts)])


def estimate_tuning(
    *,
    y: Any = None,
    sr: float | None = None,
    S: GPUArray | None = None,
    n_fft: int | None = 2048,
    resolution: float = 0.01,
    bins_per_octave: int = 12,
    **kwargs: Any,
) -> float:
    """pitch_tuning() of the peaks that are at least as high as their median, as librosa.estimate_tuning().

    kwargs: as piptrack(), whose peaks they are. The peaks are brought to the host, which waits for the device. Raises
    as piptrack(), and ValueError for a y with NaN or infinity.
    """
    import numpy as np

    if y is not None:
        sr, y = rate(sr, y), finite(y, "estimate_tuning")
    pitches, heights = (x.to_numpy() for x in piptrack(y=y, sr=sr, S=S, n_fft=n_fft, **kwargs))
    voiced = pitches > 0
    min_height = np.median(heights[voiced]) if voiced.any() else 0.0
    return pitch_tuning(
        pitches[(heights >= min_height) & voiced], resolution=resolution, bins_per_octave=bins_per_octave
    )


def _one_bin(S: GPUArray) -> tuple[int, ...]:
    return (*S.shape[:-2], 1, S.shape[-1])


def _with_edges(inner: GPUArray, last: GPUArray, S: GPUArray) -> GPUArray:
    """The first bin has no peak."""
    from pygpukit.array.factory import zeros

    return concatenate([zeros(_one_bin(S), S.dtype), inner, copying.astype(last, S.dtype)], -2)
