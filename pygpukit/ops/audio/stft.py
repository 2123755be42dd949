"""stft: the short-time Fourier transform."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import DataType, as_dtype
from pygpukit.ops import copying, elementwise
from pygpukit.ops.audio import windows
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.framing import frames, padded
from pygpukit.ops.audio.inputs import complex_of, positive, signal
from pygpukit.ops.fft import rfft
from pygpukit.ops.operands import check_out

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.audio.windows import Window

__all__ = ["stft"]


@keywords(audio="y")
def stft(
    y: Any,
    *,
    n_fft: int = 2048,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Window = "hann",
    center: bool = True,
    dtype: DTypeLike | None = None,
    pad_mode: str = "constant",
    out: GPUArray | None = None,
) -> GPUArray:
    """The short-time Fourier transform, as librosa.stft().

    y: (..., samples), an array or an AudioBuffer. Result: (..., 1 + n_fft // 2, frames), complex64, of float64
    complex128; its memory has one frame after the other. n_fft: samples of a transform, of any size. hop_length: from
    frame to frame, win_length // 4 by default. win_length: of the window, n_fft by default, with zeros around it in the
    frame. window: as get_window(). center: frame t is around sample t * hop_length of the signal, which pad_mode
    ("constant", "edge", "reflect", "symmetric") continues by n_fft // 2 at both ends; else it begins there.
    A signal shorter than n_fft warns, and is refused without center. Raises DTypeError, ShapeError, ValueError (also
    for NaN and infinity: see inputs.signal). A frame's bits depend on that frame alone, the same on every run.
    """
    what = "stft"
    y = signal(y, what)
    n_fft = positive(n_fft, "n_fft", what)
    win_length = n_fft if win_length is None else positive(win_length, "win_length", what)
    hop_length = max(1, win_length // 4) if hop_length is None else positive(hop_length, "hop_length", what)
    if center:
        if n_fft > y.shape[-1]:
            warnings.warn(f"{what}: n_fft is {n_fft}, the signal has {y.shape[-1]} samples only", stacklevel=3)
        y = padded(y, n_fft // 2, n_fft // 2, pad_mode, what)
    spectrum = transformed(y, on_device(window, win_length, n_fft, y.dtype, what), hop_length)
    wanted = complex_of(y.dtype) if dtype is None else as_dtype(dtype)
    if out is not None:
        check_out(out, spectrum.shape, wanted, what)
        copying.copy_to(spectrum if spectrum.dtype == out.dtype else copying.astype(spectrum, out.dtype), out)
        return out
    return spectrum if spectrum.dtype == wanted else copying.astype(spectrum, wanted)


def transformed(y: GPUArray, window: GPUArray, hop_length: int) -> GPUArray:
    """(..., bins, frames) of the whole frames of a signal that is as long as a window or longer."""
    pieces = frames(y, window.size, hop_length, "stft")
    return rfft(elementwise.mul(pieces, window)).swapaxes(-1, -2)


def on_device(window: Window, win_length: int, n_fft: int, dtype: DataType, what: str) -> GPUArray:
    """The centred window as an array of dtype; of named windows the one that was made before."""
    if isinstance(window, (str, tuple, int, float)):
        return _kept(window, win_length, n_fft, dtype, what)
    return _made(window, win_length, n_fft, dtype, what)


def _made(window: Window, win_length: int, n_fft: int, dtype: DataType, what: str) -> GPUArray:
    from pygpukit.array.factory import from_numpy

    return from_numpy(windows.centred(window, win_length, n_fft, what).astype(dtype.to_numpy_dtype()))


_kept = lru_cache(maxsize=64)(_made)
