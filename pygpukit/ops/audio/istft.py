"""istft: the inverse short-time Fourier transform, by windowed overlap-add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying
from pygpukit.ops.audio import overlap
from pygpukit.ops.audio.analysis import on_device
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.inputs import positive, spectrum
from pygpukit.ops.fft import irfft
from pygpukit.ops.operands import check_out

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.audio.windows import Window

__all__ = ["istft"]


@keywords("stft_matrix hop_length win_length center length", stft_output="stft_matrix")
def istft(
    stft_matrix: GPUArray,
    *,
    hop_length: int | None = None,
    win_length: int | None = None,
    n_fft: int | None = None,
    window: Window = "hann",
    center: bool = True,
    dtype: DTypeLike | None = None,
    length: int | None = None,
    out: GPUArray | None = None,
) -> GPUArray:
    """The signal of a short-time Fourier transform, as librosa.istft() (Griffin and Lim 1984).

    stft_matrix: complex (..., bins, frames). Result: (..., samples), float32, of complex128 float64. n_fft: 2 * (bins -
    1) by default; hop_length, win_length, window, center as stft(). length: samples of the result, zeros where there
    are no frames; else what the frames cover, without n_fft // 2 at both ends if center. Samples are added in the order
    of the frames and divided by the sum of squared windows where that is above the smallest normal number. Raises
    DTypeError, ShapeError, ValueError. The same bits on every run, whatever else is in the batch.
    """
    what = "istft"
    D = spectrum(stft_matrix, f"{what}: stft_matrix")
    n_fft = 2 * (D.shape[-2] - 1) if n_fft is None else n_fft
    n_fft = positive(n_fft, "n_fft", what)
    if D.shape[-2] != 1 + n_fft // 2:
        raise ShapeError(f"{what}: {D.shape[-2]} bins are not those of n_fft {n_fft}, which has {1 + n_fft // 2}")
    win_length = n_fft if win_length is None else positive(win_length, "win_length", what)
    hop_length = max(1, win_length // 4) if hop_length is None else positive(hop_length, "hop_length", what)
    trimmed = n_fft // 2 if center else 0
    count = D.shape[-1]
    if length:
        count = min(count, -(-(length + 2 * trimmed) // hop_length))
        samples = positive(length, "length", what)
    else:
        samples = n_fft + hop_length * (count - 1) - 2 * trimmed
    if count < 1 or samples < 1:
        raise ShapeError(f"{what}: {D.shape[-1]} frames with n_fft {n_fft} leave no samples; give length, or no center")
    pieces = irfft(D[..., :count].swapaxes(-1, -2), n_fft)
    y = overlap.added(pieces, on_device(window, win_length, n_fft, pieces.dtype, what), hop_length, trimmed, samples)
    if out is not None:
        check_out(out, y.shape, y.dtype, what)
        copying.copy_to(y if y.dtype == out.dtype else copying.astype(y, out.dtype), out)
        return out
    return y if dtype is None or y.dtype == as_dtype(dtype) else copying.astype(y, as_dtype(dtype))
