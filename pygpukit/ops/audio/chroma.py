"""Chroma: energy in the pitch classes, whatever the octave."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import DataType
from pygpukit.ops import elementwise
from pygpukit.ops.audio import scales
from pygpukit.ops.audio.cqt import cqt
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.hybrid import hybrid_cqt
from pygpukit.ops.audio.inputs import floats, magnitude_of, matrix, positive, rate
from pygpukit.ops.audio.magnitudes import frame_major, spectrogram
from pygpukit.ops.audio.scaling import normalized
from pygpukit.ops.audio.tuning import estimate_tuning
from pygpukit.ops.elementwise import logic
from pygpukit.ops.fft.tables import TABLES
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

    Values = np.ndarray[Any, Any]

__all__ = ["chroma_cqt", "chroma_stft"]

_CQT: dict[str, Callable[..., GPUArray]] = {"full": cqt, "hybrid": hybrid_cqt}


@keywords("S sr n_chroma tuning", spectrum="S", sample_rate="sr")
def chroma_stft(
    *,
    y: Any = None,
    sr: float | None = None,
    S: GPUArray | None = None,
    norm: float | None = math.inf,
    n_fft: int = 2048,
    hop_length: int = 512,
    win_length: int | None = None,
    window: Window = "hann",
    center: bool = True,
    pad_mode: str = "constant",
    tuning: float | None = None,
    n_chroma: int = 12,
    ctroct: float = 5.0,
    octwidth: float | None = 2,
    base_c: bool = True,
) -> GPUArray:
    """Energy in n_chroma pitch classes: (..., n_chroma, frames), as librosa.feature.chroma_stft() (Ellis 2007).

    y: (..., samples), or S: (..., bins, frames), power. tuning: of A4, in parts of a pitch class; None estimates it
    from all of S, which waits for the device. norm: of each frame, inf by default. ctroct, octwidth: middle, in octaves
    above A0, and width of the weight of octaves, None for equal weights. base_c: begin with C, else with A. Others as
    stft(). Raises DTypeError, ShapeError, ValueError. Deterministic.
    """
    what = "chroma_stft"
    sr = rate(sr, y)
    S, n_fft = spectrogram(what, y, S, n_fft, hop_length, 2, win_length, window, center, pad_mode)
    S = floats(S, f"{what}: S")
    if tuning is None:
        tuning = estimate_tuning(S=S, sr=sr, bins_per_octave=n_chroma)
    bank = _kept(S.dtype, sr, n_fft, positive(n_chroma, "n_chroma", what), tuning, ctroct, octwidth, base_c)
    return normalized(matmul(frame_major(S), bank).swapaxes(-1, -2), norm, -2, what)


@keywords("C bins_per_octave", cqt_magnitude_input="C", sample_rate="sr")
def chroma_cqt(
    *,
    y: Any = None,
    sr: float | None = None,
    C: GPUArray | None = None,
    hop_length: int = 512,
    fmin: float | None = None,
    norm: float | None = math.inf,
    threshold: float | None = 0.0,
    tuning: float | None = None,
    n_chroma: int = 12,
    n_octaves: int = 7,
    window: Any = None,
    bins_per_octave: int | None = 36,
    cqt_mode: str = "full",
) -> GPUArray:
    """Magnitudes of a constant-Q transform in pitch classes: (..., n_chroma, frames), as librosa.feature.chroma_cqt().

    y: (..., samples), or C: (..., bins, frames), magnitudes from fmin on (C1 by default), bins_per_octave a multiple of
    n_chroma. threshold: less becomes 0. tuning: as cqt(). window: what pitch classes are smoothed with, a row of an odd
    number of weights. cqt_mode: "full" for cqt(), "hybrid" for hybrid_cqt(). norm: of each frame. Raises ValueError,
    ShapeError, DTypeError. Deterministic.
    """
    what = "chroma_cqt"
    bins_per_octave = n_chroma if bins_per_octave is None else bins_per_octave
    if bins_per_octave % n_chroma:
        raise ValueError(f"{what}: bins_per_octave is {bins_per_octave} and must be a multiple of n_chroma, {n_chroma}")
    if cqt_mode not in _CQT:
        raise ValueError(f"{what}: cqt_mode is {cqt_mode!r}; use 'full' or 'hybrid'")
    fmin = scales.C1_HZ if fmin is None else fmin
    if C is None:
        if y is None:
            raise ValueError(f"{what}: give a signal y or magnitudes C")
        bins = n_octaves * bins_per_octave
        C = _CQT[cqt_mode](
            y, sr=sr, hop_length=hop_length, fmin=fmin, n_bins=bins, bins_per_octave=bins_per_octave, tuning=tuning
        )
    C = matrix(floats(magnitude_of(check_array(C, what)), f"{what}: C"), f"{what}: C")
    chroma = matmul(frame_major(C), _folded(C, bins_per_octave, n_chroma, fmin, window)).swapaxes(-1, -2)
    if threshold is not None:
        chroma = elementwise.where(logic.less(chroma, threshold), 0.0, chroma)
    return normalized(chroma, norm, -2, what)


def _folded(C: GPUArray, bins_per_octave: int, n_chroma: int, fmin: float, window: Any) -> GPUArray:
    """(bins, n_chroma): each pitch class takes its bins of every octave."""
    import numpy as np

    from pygpukit.array.factory import from_numpy

    merged = bins_per_octave // n_chroma
    one = np.roll(np.repeat(np.eye(n_chroma), merged, axis=1), -(merged // 2), axis=1)
    bank = np.tile(one, math.ceil(C.shape[-2] / bins_per_octave))[:, : C.shape[-2]]
    midi = (12 * (math.log2(fmin) - math.log2(440.0)) + 69) % 12
    bank = np.roll(bank, round(midi * (n_chroma / 12.0)), axis=0)
    if window is not None:
        bank = np.apply_along_axis(lambda row: np.convolve(row, np.ravel(window), "same"), 1, bank)
    return from_numpy(np.ascontiguousarray(bank.T.astype(C.dtype.to_numpy_dtype())))


def _kept(dtype: DataType, *how: Any) -> GPUArray:
    """The filters as (bins, n_chroma), on the device, made once."""
    return TABLES.get(("chroma", dtype, how), lambda: _filters(*how).T.astype(dtype.to_numpy_dtype(), order="C"))


def _filters(
    sr: float, n_fft: int, n_chroma: int, tuning: float, ctroct: float, octwidth: float | None, base_c: bool
) -> Values:
    """(n_chroma, bins) in float32: Gaussian bumps around the pitch classes, as wide as a bin or a class."""
    import numpy as np

    hz = np.linspace(0, sr, n_fft, endpoint=False)[1:]
    places = n_chroma * scales.hz_to_octaves(hz, tuning, n_chroma)
    places = np.concatenate(
        ([places[0] - 1.5 * n_chroma], places)
    )  # 0 Hz lies an octave and a half below the first bin
    widths = np.concatenate((np.maximum(np.diff(places), 1.0), [1.0]))
    half = np.round(n_chroma / 2)
    apart = (places - np.arange(n_chroma)[:, None] + half + 10 * n_chroma) % n_chroma - half
    bumps = np.exp(-0.5 * (2 * apart / widths) ** 2)
    bumps /= np.sqrt((bumps**2).sum(axis=0, keepdims=True))
    if octwidth is not None:
        bumps *= np.exp(-0.5 * ((places / n_chroma - ctroct) / octwidth) ** 2)
    if base_c:
        bumps = np.roll(bumps, -3 * (n_chroma // 12), axis=0)
    return bumps[:, : 1 + n_fft // 2].astype(np.float32)
