"""Constant-Q magnitudes with one transform for the short filters: pseudo_cqt() and hybrid_cqt()."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pygpukit.array.factory import from_numpy
from pygpukit.core.dtypes import as_dtype, complex128, float32, float64
from pygpukit.ops import copying, elementwise
from pygpukit.ops.audio import scales, wavelets
from pygpukit.ops.audio.analysis import prepared
from pygpukit.ops.audio.cqt import cqt
from pygpukit.ops.audio.inputs import positive, rate, signal
from pygpukit.ops.audio.tuning import estimate_tuning
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.shape.joining import concatenate

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.audio.windows import Window

    Values = np.ndarray[Any, Any]

__all__ = ["hybrid_cqt", "pseudo_cqt"]


def pseudo_cqt(
    y: Any,
    *,
    sr: float | None = None,
    hop_length: int = 512,
    fmin: float | None = None,
    n_bins: int = 84,
    bins_per_octave: int = 12,
    tuning: float | None = 0.0,
    filter_scale: float = 1,
    norm: float | None = 1,
    sparsity: float = 0.01,
    window: Window = "hann",
    scale: bool = True,
    pad_mode: str = "constant",
    dtype: DTypeLike | None = None,
) -> GPUArray:
    """Magnitudes at constant-Q frequencies from one stft(): (..., n_bins, frames), real, as librosa.pseudo_cqt().

    The filters' magnitudes weigh those of a transform of all frequencies at once, which has no phase. Arguments and
    errors as cqt(); dtype: complex, the result has the type of its parts.
    """
    what = "pseudo_cqt"
    sr, y, hop = rate(sr, y), signal(y, what), positive(hop_length, "hop_length", what)
    hz, alpha = _bins(y, sr, fmin, n_bins, bins_per_octave, tuning, what)
    min_fft = 2 ** (1 + math.ceil(math.log2(hop)))
    basis = abs(wavelets.basis(hz, sr, alpha, filter_scale, norm, sparsity, window, 0, min_fft))
    n_fft = 2 * (basis.shape[1] - 1)
    if scale:
        basis /= math.sqrt(n_fft)
    else:
        basis *= (wavelets.lengths(hz, sr, alpha, filter_scale, 0)[0][:, None] / n_fft) ** 0.5
    S = prepared(y, n_fft, hop, None, "hann", True, pad_mode, what).sizes(1)
    C = matmul(S, from_numpy(basis.T.astype(S.dtype.to_numpy_dtype(), order="C"))).swapaxes(-1, -2)
    if dtype is None:
        return C
    real_dtype = float64 if as_dtype(dtype) in (complex128, float64) else float32
    return C if C.dtype == real_dtype else copying.astype(C, real_dtype)


def hybrid_cqt(
    y: Any,
    *,
    sr: float | None = None,
    hop_length: int = 512,
    fmin: float | None = None,
    n_bins: int = 84,
    bins_per_octave: int = 12,
    tuning: float | None = 0.0,
    filter_scale: float = 1,
    norm: float | None = 1,
    sparsity: float = 0.01,
    window: Window = "hann",
    scale: bool = True,
    pad_mode: str = "constant",
    res_type: str = "soxr_hq",
    dtype: DTypeLike | None = None,
) -> GPUArray:
    """Magnitudes at constant-Q frequencies: (..., n_bins, frames), real, as librosa.hybrid_cqt().

    pseudo_cqt() for the bins whose filters, made a power of two long, are below two hops; the magnitudes of cqt() for
    those below. Arguments and errors as cqt().
    """
    what = "hybrid_cqt"
    sr, y, hop = rate(sr, y), signal(y, what), positive(hop_length, "hop_length", what)
    hz, alpha = _bins(y, sr, fmin, n_bins, bins_per_octave, tuning, what)
    samples, _ = wavelets.lengths(hz, sr, alpha, filter_scale, 0)
    long = sum(1 for length in samples if 2.0 ** math.ceil(math.log2(length)) >= 2 * hop)
    how: dict[str, Any] = {
        "sr": sr, "hop_length": hop, "bins_per_octave": bins_per_octave, "filter_scale": filter_scale, "norm": norm,
        "sparsity": sparsity, "window": window, "scale": scale, "pad_mode": pad_mode, "dtype": dtype,
    }  # fmt: skip
    parts: list[GPUArray] = []
    if long:
        parts.append(elementwise.abs(cqt(y, fmin=float(hz[0]), n_bins=long, res_type=res_type, **how)))
    if long < len(hz):
        parts.append(pseudo_cqt(y, fmin=float(hz[long]), n_bins=len(hz) - long, **how))
    frames = min(part.shape[-1] for part in parts)
    return concatenate([part[..., :frames].swapaxes(-1, -2) for part in parts], -1).swapaxes(-1, -2)


def _bins(
    y: GPUArray, sr: float, fmin: float | None, n_bins: int, bins_per_octave: int, tuning: float | None, what: str
) -> tuple[Values, Values]:
    """(the bins' frequencies in Hz, their relative bandwidths)."""
    n_bins, bins = positive(n_bins, "n_bins", what), positive(bins_per_octave, "bins_per_octave", what)
    if tuning is None:
        tuning = estimate_tuning(y=y, sr=sr, bins_per_octave=bins)
    first = (scales.C1_HZ if fmin is None else fmin) * 2.0 ** (tuning / bins)
    if not first > 0:
        raise ValueError(f"{what}: fmin is {fmin} and must be above 0 Hz")
    hz = wavelets.interval_frequencies(n_bins, first, "equal", bins)
    return hz, wavelets.relative_bandwidths(hz, bins)
