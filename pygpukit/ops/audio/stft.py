"""stft: the short-time Fourier transform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import as_dtype
from pygpukit.ops import copying
from pygpukit.ops.audio.analysis import prepared, warn_of_short
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.operands import check_out

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.audio.windows import Window

__all__ = ["stft"]


@keywords("y n_fft hop_length win_length center", audio="y")
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
    A signal shorter than n_fft warns, and is refused without center. NaN and infinity make the frames NaN that they are
    in: values are not looked at, so that nothing waits for the device (valid_audio() does). Raises DTypeError,
    ShapeError, ValueError. A frame's bits depend on that frame alone, the same on every run.
    """
    what = "stft"
    analysis = prepared(y, n_fft, hop_length, win_length, window, center, pad_mode, what)
    warn_of_short(analysis, what)
    spectrum = analysis.complex().swapaxes(-1, -2)
    result_dtype = spectrum.dtype if dtype is None else as_dtype(dtype)
    if out is not None:
        check_out(out, spectrum.shape, result_dtype, what)
        copying.copy_to(spectrum if spectrum.dtype == out.dtype else copying.astype(spectrum, out.dtype), out)
        return out
    return spectrum if spectrum.dtype == result_dtype else copying.astype(spectrum, result_dtype)
