"""Onsets: where something begins, from how much louder the spectrum gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.array.factory import from_numpy
from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise, reduce, sorting
from pygpukit.ops.audio.filtering import lfilter
from pygpukit.ops.audio.framing import padded
from pygpukit.ops.audio.inputs import finite, floats, positive, rate
from pygpukit.ops.audio.peaks import peak_pick
from pygpukit.ops.audio.units import positions
from pygpukit.ops.shape import atleast_2d

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["onset_backtrack", "onset_detect", "onset_strength"]

Array = np.ndarray[Any, Any]


def onset_strength(
    *,
    y: Any = None,
    sr: float | None = None,
    S: GPUArray | None = None,
    lag: int = 1,
    max_size: int = 1,
    ref: GPUArray | None = None,
    detrend: bool = False,
    center: bool = True,
    feature: Callable[..., GPUArray] | None = None,
    aggregate: Callable[..., Any] | None = None,
    n_fft: int = 2048,
    hop_length: int = 512,
    **kwargs: Any,
) -> GPUArray:
    """The rise of the spectrum from frame to frame, as librosa.onset.onset_strength() (Boeck, Widmer 2013).

    y: (..., samples), of which feature (melspectrogram, with kwargs) is taken in dB; or S: (..., bins, frames), a
    spectrogram in dB. Result: (..., frames). lag: to which frame it is compared; max_size: of the bins around, the
    largest there; ref: a spectrogram to compare to instead. aggregate: of the bins, called as aggregate(rises, axis=-2)
    (the mean by default, np.median and other functions of NumPy, or yours). center: as the frames of y are. detrend:
    the mean level is taken away, by a filter. Raises ValueError, ShapeError, DTypeError. Deterministic.
    """
    what = "onset_strength"
    sr, hop_length = rate(sr, y), positive(hop_length, "hop_length", what)
    lag, max_size = positive(lag, "lag", what), positive(max_size, "max_size", what)
    if S is None:
        if y is None:
            raise ValueError(f"{what}: give y, a signal, or S, a spectrogram in dB")
        S = _in_decibels(y, sr, feature, n_fft, hop_length, kwargs)
    S = atleast_2d(floats(S, f"{what}: S"))
    if ref is None:
        ref = S if max_size == 1 else _largest(S, max_size)
    elif ref.shape != S.shape:
        raise ShapeError(f"{what}: ref has shape {ref.shape}, S {S.shape}; they must be alike")
    rises = elementwise.maximum(elementwise.sub(S[..., lag:], ref[..., : max(S.shape[-1] - lag, 0)]), 0.0)
    strength = _aggregated(rises, aggregate)
    shift = lag + (n_fft // (2 * hop_length) if center else 0)
    strength = padded(strength, shift, 0, "constant", what)
    if detrend:
        strength = lfilter([1.0, -1.0], [1.0, -0.99], strength)
    return strength[..., : S.shape[-1]] if center else strength


def onset_detect(
    *,
    y: Any = None,
    sr: float | None = None,
    onset_envelope: Any = None,
    hop_length: int = 512,
    backtrack: bool = False,
    energy: Any = None,
    units: str = "frames",
    normalize: bool = True,
    sparse: bool = True,
    **kwargs: Any,
) -> Array:
    """Where onsets are: peaks of the onset strength, as librosa.onset.onset_detect(); a NumPy array.

    y, or its onset_envelope (..., frames). units: "frames", "samples" or "time" (seconds). backtrack: moved back to the
    minimum of energy (the envelope by default) before each. normalize: the envelope from 0 to 1. kwargs: as peak_pick()
    takes them; by default windows of 30 and 100 ms. sparse: positions, of one signal; else True and False. An envelope
    that is zero or not finite has no onsets. Peaks are picked on the host. Raises ValueError, for a y with NaN or
    infinity, too.
    """
    what, sr = "onset_detect", rate(sr, y)
    hop_length = positive(hop_length, "hop_length", what)
    if onset_envelope is None:
        if y is None:
            raise ValueError(f"{what}: give y, a signal, or onset_envelope")
        onset_envelope = onset_strength(y=finite(y, what), sr=sr, hop_length=hop_length)
    envelope = _on_host(onset_envelope)
    if backtrack and not sparse:
        raise ValueError(f"{what}: backtrack=True gives positions; pass sparse=True")
    if normalize and envelope.size:
        envelope = envelope - envelope.min(-1, keepdims=True)
        envelope = envelope / (envelope.max(-1, keepdims=True) + np.finfo(envelope.dtype).tiny)
    if not envelope.any() or not np.isfinite(envelope).all():
        onsets = np.zeros(0, int) if sparse else np.zeros(envelope.shape, bool)
    else:
        windows = {
            "pre_max": 0.03 * sr // hop_length,
            "post_max": 1,
            "pre_avg": 0.1 * sr // hop_length,
            "post_avg": 0.1 * sr // hop_length + 1,
            "wait": 0.03 * sr // hop_length,
            "delta": 0.07,
        }
        onsets = peak_pick(envelope, sparse=sparse, **(windows | kwargs))
        if backtrack:
            onsets = onset_backtrack(onsets, envelope if energy is None else energy)
    return positions(onsets, units, sr, hop_length, what) if sparse else onsets


def onset_backtrack(events: Any, energy: Any) -> Array:
    """The last local minimum of energy at or before each event (frames), 0 if there is none, as
    librosa.onset.onset_backtrack(); NumPy arrays, made on the host."""
    curve, frames = _on_host(energy), np.asarray(events)
    minima = 1 + np.flatnonzero((curve[1:-1] <= curve[:-2]) & (curve[1:-1] < curve[2:]))
    minima = np.unique(np.concatenate(([0], minima)))
    return np.asarray(minima[np.searchsorted(minima, frames, side="right") - 1])


def _median(array: GPUArray) -> GPUArray:
    """The middle of the sorted elements along axis -2, of an even number the mean of two."""
    ordered, length = sorting.sort(array, -2), array.shape[-2]
    return elementwise.mul(elementwise.add(ordered[..., (length - 1) // 2, :], ordered[..., length // 2, :]), 0.5)


def _in_decibels(
    y: Any, sr: float, feature: Callable[..., GPUArray] | None, n_fft: int, hop_length: int, kwargs: dict[str, Any]
) -> GPUArray:
    from pygpukit.ops.audio import melspectrogram, power_to_db

    if feature is None:
        feature = melspectrogram
        kwargs = {"fmax": 0.5 * sr, **kwargs}
    power: GPUArray = power_to_db(elementwise.abs(feature(y=y, sr=sr, n_fft=n_fft, hop_length=hop_length, **kwargs)))
    return power


def _largest(S: GPUArray, size: int) -> GPUArray:
    """Of each bin and those around it, size in all, the largest; mirrored at the ends."""
    from pygpukit.ops.indexing import padding

    before, after = size // 2, size - 1 - size // 2
    wide = padding.pad(S, [(0, 0)] * (S.ndim - 2) + [(before, after), (0, 0)], "symmetric")
    result = wide[..., : S.shape[-2], :]
    for shift in range(1, size):
        result = elementwise.maximum(result, wide[..., shift : shift + S.shape[-2], :])
    return result


def _aggregated(rises: GPUArray, aggregate: Callable[..., Any] | None) -> GPUArray:
    if aggregate is None or aggregate is np.mean:
        return reduce.mean(rises, -2)
    if aggregate is np.median:
        return _median(rises)
    result = aggregate(rises, axis=-2)
    return result if hasattr(result, "to_numpy") else from_numpy(np.asarray(result))


def _on_host(values: Any) -> Array:
    array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    return array if array.dtype.kind == "f" else array.astype(np.float64)
