"""spectral_flatness: how much a frame is like noise, from 0 (a tone) to 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.inputs import magnitudes
from pygpukit.ops.audio.magnitudes import spectrogram
from pygpukit.ops.audio.powers import to_power
from pygpukit.ops.elementwise.math import exp, log

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

__all__ = ["spectral_flatness"]


@keywords("S", spectrum="S")
def spectral_flatness(
    *,
    y: Any = None,
    S: GPUArray | None = None,
    n_fft: int = 2048,
    hop_length: int = 512,
    win_length: int | None = None,
    window: Window = "hann",
    center: bool = True,
    pad_mode: str = "constant",
    amin: float = 1e-10,
    power: float = 2.0,
) -> GPUArray:
    """The geometric over the arithmetic mean of S ** power of each frame: (..., 1, frames), as librosa has it.

    y: (..., samples), or S: (..., bins, frames), magnitudes. amin: the least that counts, above 0. Others as stft().
    Raises DTypeError, ShapeError, ValueError. Deterministic.
    """
    what = "spectral_flatness"
    if not amin > 0:
        raise ValueError(f"{what}: amin is {amin} and must be above 0")
    S, _ = spectrogram(what, y, S, n_fft, hop_length, 1, win_length, window, center, pad_mode)
    powers = elementwise.maximum(to_power(magnitudes(S, what), power), amin)
    geometric = exp(reduce.mean(log(powers), -2, keepdims=True))
    return elementwise.div(geometric, reduce.mean(powers, -2, keepdims=True))
