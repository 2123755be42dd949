"""Constant-Q and variable-Q transforms: an octave at a time, the signal at half the rate for each one below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying, elementwise
from pygpukit.ops.audio import scales, wavelets
from pygpukit.ops.audio.analysis import prepared
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.inputs import complex_of, positive, rate, signal
from pygpukit.ops.audio.resampling import resample
from pygpukit.ops.audio.tuning import estimate_tuning
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.shape.joining import concatenate

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.audio.windows import Window

    Values = np.ndarray[Any, Any]

__all__ = ["cqt", "vqt"]


@keywords("y sr hop_length fmin n_bins bins_per_octave", audio="y", sample_rate="sr", f_min="fmin")
def cqt(
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
    """The constant-Q transform, complex (..., n_bins, frames), as librosa.cqt() (Schoerkhuber and Klapuri 2010).

    vqt() with filters whose length follows their frequency alone: gamma 0. Arguments and errors as vqt().
    """
    return vqt(
        y,
        sr=sr,
        hop_length=hop_length,
        fmin=fmin,
        n_bins=n_bins,
        gamma=0,
        bins_per_octave=bins_per_octave,
        tuning=tuning,
        filter_scale=filter_scale,
        norm=norm,
        sparsity=sparsity,
        window=window,
        scale=scale,
        pad_mode=pad_mode,
        res_type=res_type,
        dtype=dtype,
    )


@keywords(audio="y", sample_rate="sr", f_min="fmin")
def vqt(
    y: Any,
    *,
    sr: float | None = None,
    hop_length: int = 512,
    fmin: float | None = None,
    n_bins: int = 84,
    intervals: str | Sequence[float] = "equal",
    gamma: float | None = None,
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
    """The variable-Q transform, complex (..., n_bins, frames), as librosa.vqt() (Schoerkhuber et al. 2014).

    y: (..., samples), 22050 a second by default, of an AudioBuffer its own rate. fmin: of the first bin in Hz, C1 by
    default; tuning: of it, in bins, None to estimate it, which waits for the device. intervals: of
    bins_per_octave bins, "equal" (temperament), "pythagorean", "ji3", "ji5" or "ji7" (just intonation); or an octave's
    ratios. gamma: added bandwidth in Hz, None for that of hearing.
    filter_scale: of the filters' length; norm: of each filter; sparsity: the part of a filter's magnitude that is left
    out; scale: by the root of the filters' length. pad_mode: as stft(); res_type: as resample(), which halves the rate
    from octave to octave; hop_length must have as many factors of two as there are octaves below the first for that.
    Raises ValueError (filters beyond half the rate, too), ShapeError, DTypeError. Deterministic.
    """
    what = "vqt"
    sr = rate(sr, y)
    y = signal(y, what)
    hop, n_bins = positive(hop_length, "hop_length", what), positive(n_bins, "n_bins", what)
    bins = positive(bins_per_octave, "bins_per_octave", what) if isinstance(intervals, str) else len(intervals)
    if not filter_scale > 0:
        raise ValueError(f"{what}: filter_scale is {filter_scale} and must be above 0")
    if gamma is not None and gamma < 0:
        raise ValueError(f"{what}: gamma is {gamma} and must not be negative")
    if not 0 <= sparsity < 1:
        raise ValueError(f"{what}: sparsity is {sparsity} and must be at least 0 and below 1")
    if tuning is None:
        tuning = estimate_tuning(y=y, sr=sr, bins_per_octave=bins)
    first = (scales.C1_HZ if fmin is None else fmin) * 2.0 ** (tuning / bins)
    if not first > 0:
        raise ValueError(f"{what}: fmin is {fmin} and must be above 0 Hz")
    hz = wavelets.interval_frequencies(n_bins, first, intervals, bins)
    alpha = wavelets.relative_bandwidths(hz, bins)
    _, width = wavelets.lengths(hz, sr, alpha, filter_scale, gamma)
    highest = wavelets.highest(hz, alpha, filter_scale, width, window)
    if highest > sr / 2:
        raise ValueError(
            f"{what}: the filter of {hz[-1]:.1f} Hz reaches {highest:.1f} Hz, above sr / 2, {sr / 2:.1f} Hz; take "
            "fewer n_bins or a lower fmin"
        )
    octaves = math.ceil(n_bins / bins)
    result_dtype = complex_of(y.dtype) if dtype is None else as_dtype(dtype)
    halvings = _early_halvings(sr / 2, highest, hop, octaves)
    if halvings:
        factor = 2**halvings
        if y.shape[-1] < factor:
            raise ShapeError(f"{what}: y has {y.shape[-1]} samples, too few for {octaves} octaves")
        y = resample(y, orig_sr=factor, target_sr=1, res_type=res_type, scale=True)
        y = y if scale else elementwise.mul(y, math.sqrt(factor))
        sr, hop = sr / factor, hop // factor
    parts: list[GPUArray] = []
    here, here_sr, here_hop = y, sr, hop
    for octave in range(octaves):
        stop = n_bins - octave * min(bins, n_bins)
        own = slice(max(0, stop - bins), stop)
        how = (norm, sparsity, window, gamma)
        spectra = wavelets.basis(hz[own], here_sr, alpha[own], filter_scale, *how) * math.sqrt(sr / here_sr)
        if scale:
            spectra /= wavelets.lengths(hz[own], sr, alpha[own], filter_scale, gamma)[0][:, None] ** 0.5
        parts.append(_response(here, spectra, here_hop, pad_mode))
        if here_hop % 2 == 0 and octave + 1 < octaves:
            here = resample(here, orig_sr=2, target_sr=1, res_type=res_type, scale=True)
            here_sr, here_hop = here_sr / 2, here_hop // 2
    frames = min(part.shape[-2] for part in parts)
    coefficients = concatenate([part[..., :frames, :] for part in reversed(parts)], -1)
    return (
        coefficients if coefficients.dtype == result_dtype else copying.astype(coefficients, result_dtype)
    ).swapaxes(-1, -2)


def _response(y: GPUArray, spectra: Values, hop: int, pad_mode: str) -> GPUArray:
    """(..., frames, filters) of one octave."""
    import numpy as np

    from pygpukit.array.factory import from_numpy

    n_fft = 2 * (spectra.shape[1] - 1)
    D = prepared(y, n_fft, hop, None, "ones", True, pad_mode, "vqt").complex()
    bank = from_numpy(np.ascontiguousarray(spectra.T.astype(D.dtype.to_numpy_dtype())))
    return matmul(D, bank)


def _early_halvings(nyquist: float, highest: float, hop: int, octaves: int) -> int:
    """The number of times that the rate can be halved before the first octave, which saves work."""
    twos = (hop & -hop).bit_length() - 1
    return min(max(0, math.ceil(math.log2(nyquist / highest)) - 2), max(0, twos - octaves + 1))
