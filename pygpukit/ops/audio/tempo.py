"""tempo and tempogram: how often onsets repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.array.factory import from_numpy
from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio.amplitude import normalize
from pygpukit.ops.audio.correlation import autocorrelate
from pygpukit.ops.audio.framing import frames
from pygpukit.ops.audio.inputs import floats, positive, rate
from pygpukit.ops.audio.onset import onset_strength
from pygpukit.ops.audio.windows import get_window
from pygpukit.ops.shape import joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

__all__ = ["tempo", "tempogram"]


def tempogram(
    *,
    y: Any = None,
    sr: float | None = None,
    onset_envelope: GPUArray | None = None,
    hop_length: int = 512,
    win_length: int = 384,
    center: bool = True,
    window: Window = "hann",
    norm: float | None = np.inf,
) -> GPUArray:
    """The autocorrelation of the onset strength around each frame, as librosa.feature.tempogram() (Grosche, Mueller,
    Kurth 2010).

    y, or its onset_envelope (..., frames). Result: (..., win_length, frames), lags first, each frame normalised by norm
    (normalize()). center: the envelope goes down to 0 at both ends by a ramp. Raises ValueError, ShapeError,
    DTypeError.
    """
    what = "tempogram"
    win_length, sr = positive(win_length, "win_length", what), rate(sr, y)
    envelope = _envelope(y, sr, onset_envelope, hop_length, what)
    count = envelope.shape[-1]
    if center:
        envelope = _ramped(envelope, win_length // 2)
    pieces = frames(envelope, win_length, 1, what)
    if center:
        pieces = pieces[..., :count, :]
    bent = elementwise.mul(pieces, from_numpy(get_window(window, win_length).astype(pieces.dtype.to_numpy_dtype())))
    return normalize(autocorrelate(bent).swapaxes(-1, -2), norm=norm, axis=-2)


def tempo(
    *,
    y: Any = None,
    sr: float | None = None,
    onset_envelope: GPUArray | None = None,
    tg: GPUArray | None = None,
    hop_length: int = 512,
    start_bpm: float = 120,
    std_bpm: float = 1.0,
    ac_size: float = 8.0,
    max_tempo: float | None = 320.0,
    aggregate: Callable[..., Any] | None = np.mean,
    prior: Any = None,
) -> np.ndarray[Any, Any]:
    """The tempo in beats a minute, as librosa.feature.tempo(); a NumPy array (..., 1), without aggregate (..., frames).

    y, its onset_envelope (..., frames), or its tempogram tg. The best lag of the tempogram, of ac_size seconds, whose
    logarithm is weighted by a normal distribution around start_bpm, std_bpm octaves wide, or by prior.logpdf(bpm).
    aggregate: np.mean or another function of NumPy, over the frames. The choice of one lag is discontinuous: rounding
    may change it. Waits for the device. Raises ValueError, ShapeError, DTypeError.
    """
    what = "tempo"
    sr, hop_length = rate(sr, y), positive(hop_length, "hop_length", what)
    if start_bpm <= 0:
        raise ValueError(f"{what}: start_bpm is {start_bpm} and must be positive")
    if tg is None:
        win_length = int(ac_size * sr // hop_length)
        tg = tempogram(y=y, sr=sr, onset_envelope=onset_envelope, hop_length=hop_length, win_length=win_length)
    if aggregate is np.mean:
        tg = reduce.mean(tg, -1, keepdims=True)
        aggregate = None
    gram = np.asarray(tg.to_numpy(), np.float64)
    if not np.isfinite(gram).all():
        raise ValueError(f"{what}: the onset strength is NaN or infinite somewhere; replace it, with gp.where for one")
    if aggregate is not None:
        gram = aggregate(gram, axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        rates = 60.0 * sr / (hop_length * np.arange(gram.shape[-2], dtype=np.float64))
    if prior is None:
        weight = -0.5 * ((np.log2(rates) - np.log2(start_bpm)) / std_bpm) ** 2
    else:
        weight = prior.logpdf(rates)
    if max_tempo is not None:
        weight[: int(np.argmax(rates < max_tempo))] = -np.inf
    best = np.argmax(np.log1p(1e6 * gram) + weight[:, None], axis=-2)
    return np.asarray(np.take(rates, best))


def _envelope(y: Any, sr: float, onset_envelope: Any, hop_length: int, what: str) -> GPUArray:
    if onset_envelope is not None:
        envelope = floats(onset_envelope, f"{what}: onset_envelope")
        if not envelope.ndim or not envelope.shape[-1]:
            raise ShapeError(f"{what}: onset_envelope has shape {envelope.shape}; it must have frames")
        return envelope
    if y is None:
        raise ValueError(f"{what}: give y, a signal, or onset_envelope")
    return onset_strength(y=y, sr=sr, hop_length=hop_length)


def _ramped(envelope: GPUArray, width: int) -> GPUArray:
    """The envelope between lines that go up from 0 and down to it."""
    if not width:
        return envelope
    slope = from_numpy((np.arange(width) / width).astype(envelope.dtype.to_numpy_dtype()))
    up = elementwise.mul(envelope[..., :1], slope)
    down = elementwise.mul(envelope[..., -1:], slope[::-1])
    return joining.concatenate([up, envelope, down], -1)
