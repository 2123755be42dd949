"""spectral_rolloff: the frequency below which most of a frame's energy is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pygpukit.ops import elementwise, reduce, scan
from pygpukit.ops.audio.bins import frequencies
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.inputs import magnitudes, rate
from pygpukit.ops.audio.magnitudes import spectrogram
from pygpukit.ops.elementwise import logic

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

__all__ = ["spectral_rolloff"]


@keywords("S sr roll_percent", spectrum="S", sample_rate="sr")
def spectral_rolloff(
    *,
    y: Any = None,
    sr: float | None = None,
    S: GPUArray | None = None,
    n_fft: int = 2048,
    hop_length: int = 512,
    win_length: int | None = None,
    window: Window = "hann",
    center: bool = True,
    pad_mode: str = "constant",
    freq: Any = None,
    roll_percent: float = 0.85,
) -> GPUArray:
    """The lowest frequency at which a frame's magnitudes add up to roll_percent of all: (..., 1, frames), in Hz.

    As librosa.feature.spectral_rolloff(); sums are running sums in S's type, so that a frame close to a bin's edge may
    give the next one. Arguments and errors as spectral_centroid(); ValueError unless 0 < roll_percent < 1.
    """
    what = "spectral_rolloff"
    if not 0.0 < roll_percent < 1.0:
        raise ValueError(f"{what}: roll_percent is {roll_percent} and must lie between 0 and 1")
    sr = rate(sr, y)
    S, n_fft = spectrogram(what, y, S, n_fft, hop_length, 1, win_length, window, center, pad_mode)
    S = magnitudes(S, what)
    sums = scan.cumsum(S, -2)
    below = logic.less(sums, elementwise.mul(sums[..., -1:, :], roll_percent))
    return reduce.min(elementwise.where(below, math.inf, frequencies(freq, S, sr, n_fft, what)), -2, keepdims=True)
