"""mfcc: mel-frequency cepstral coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import ShapeError
from pygpukit.ops.audio.decibels import power_to_db
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.inputs import floats, matrix, positive
from pygpukit.ops.audio.magnitudes import frame_major
from pygpukit.ops.audio.melspectrogram import melspectrogram
from pygpukit.ops.fft.tables import TABLES
from pygpukit.ops.matmul.gemm import matmul

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

__all__ = ["mfcc"]


@keywords("S n_mfcc", log_mel_input="S", audio="y", sample_rate="sr")
def mfcc(
    *,
    y: Any = None,
    sr: float | None = None,
    S: GPUArray | None = None,
    n_mfcc: int = 20,
    dct_type: int = 2,
    norm: str | None = "ortho",
    lifter: float = 0,
    mel_norm: str | float | None = "slaney",
    **kwargs: Any,
) -> GPUArray:
    """Cepstral coefficients (..., n_mfcc, frames) of a signal or of a log-mel spectrogram, as librosa.feature.mfcc().

    y: (..., samples), whose melspectrogram(y=y, sr=sr, norm=mel_norm, **kwargs) is taken in dB, or S: (..., n_mels,
    frames). dct_type: 1, 2 or 3; norm: "ortho" or None. lifter: coefficient k is multiplied by 1 + lifter / 2 *
    sin(pi * (k + 1) / lifter), by nothing if 0. One matrix product, made in float64. Raises ValueError, and as
    melspectrogram().
    """
    what = "mfcc"
    if S is None:
        S = power_to_db(melspectrogram(y=y, sr=sr, norm=mel_norm, **kwargs))
    S = matrix(floats(S, f"{what}: S"), f"{what}: S")
    n_mfcc = positive(n_mfcc, "n_mfcc", what)
    if not lifter >= 0:
        raise ValueError(f"{what}: lifter is {lifter} and must not be negative")
    bands = S.shape[-2]
    if bands < (2 if dct_type == 1 else 1):
        raise ShapeError(f"{what}: S has {bands} bands, too few for a transform of type {dct_type}")
    how, kind = (bands, n_mfcc, dct_type, norm, lifter), S.dtype.to_numpy_dtype()
    columns = TABLES.get(("mfcc", S.dtype, how), lambda: _cosines(*how).astype(kind))
    return matmul(frame_major(S), columns).swapaxes(-1, -2)


def _cosines(bands: int, count: int, kind: int, norm: str | None, lifter: float) -> np.ndarray[Any, Any]:
    """The first count columns of the transform as (bands, count), liftered."""
    import numpy as np

    if kind not in (1, 2, 3):
        raise ValueError(f"mfcc: dct_type is {kind!r} and must be 1, 2 or 3")
    if norm not in ("ortho", None):
        raise ValueError(f"mfcc: norm is {norm!r} and must be 'ortho' or None")
    n, k = np.arange(bands)[:, None], np.arange(min(count, bands))
    if kind == 1:
        weights = 2 * np.cos(np.pi * n * k / (bands - 1))
        weights[[0, -1]] /= 2
        if norm:
            weights[[0, -1]] *= np.sqrt(2)
            weights *= np.where((k == 0) | (k == bands - 1), 0.5, np.sqrt(0.5)) / np.sqrt(bands - 1)
    elif kind == 2:
        weights = 2 * np.cos(np.pi * k * (2 * n + 1) / (2 * bands))
        if norm:
            weights *= np.where(k == 0, 0.5, np.sqrt(0.5)) / np.sqrt(bands)
    else:
        weights = 2 * np.cos(np.pi * n * (2 * k + 1) / (2 * bands))
        weights[0] /= 2
        if norm:
            weights *= np.where(n == 0, 1.0, np.sqrt(0.5)) / np.sqrt(bands)
    if lifter > 0:
        weights *= 1 + lifter / 2 * np.sin(np.pi * (k + 1) / lifter)
    return weights
