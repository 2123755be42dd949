"""resample: another sampling rate, by one FIR filter in polyphase form, or by transforms."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.array import layout
from pygpukit.ops import copying, elementwise
from pygpukit.ops.audio.framing import fix_length
from pygpukit.ops.audio.inputs import signal
from pygpukit.ops.audio.polyphase import upfirdn
from pygpukit.ops.audio.returned import like
from pygpukit.ops.fft import irfft, rfft
from pygpukit.ops.shape import moveaxis

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["resample"]

TYPES = ("soxr_hq", "kaiser_best", "polyphase", "sinc", "fft", "scipy")
_LARGEST = 1 << 22  # taps of a filter


def resample(
    y: Any,
    *,
    orig_sr: float | None = None,
    target_sr: float,
    res_type: str = "soxr_hq",
    fix: bool = True,
    scale: bool = False,
    axis: int = -1,
    **kwargs: Any,
) -> Any:
    """The signal at another rate, as librosa.resample().

    y: an array, or AudioBuffer, which brings orig_sr; of the same rate it is returned itself. res_type: "soxr_hq", the
    best filter here (also "kaiser_best"): flat within 0.01 dB up to 91 % of the lower Nyquist frequency, images below
    -100 dB; the passband of soxr's filter, not its bits. "polyphase": scipy.signal.resample_poly() (Kaiser 5.0).
    "sinc": torchaudio's default (Hann-windowed, 6 zeros, rolloff 0.99). "fft" or "scipy": scipy.signal.resample(),
    periodic. All but the last two need rates whose ratio is rational and a filter of at most 2^22 taps. fix: exactly
    ceil(samples * ratio), kwargs as fix_length(). scale: keep the energy. A line's bits do not depend on the batch.
    Raises ValueError (rates), ShapeError, DTypeError.
    """
    what = "resample"
    orig_sr = getattr(y, "sample_rate", None) if orig_sr is None else orig_sr
    if orig_sr is None:
        raise ValueError(f"{what}: give orig_sr, or an AudioBuffer, which has its rate")
    if orig_sr <= 0 or target_sr <= 0:
        raise ValueError(f"{what}: orig_sr {orig_sr} and target_sr {target_sr} must be positive")
    values = signal(y, what)
    if orig_sr == target_sr:
        return y if values is y or values is getattr(y, "data", None) else values
    axis = layout.normalize_axis(axis, values.ndim, what)
    lines = moveaxis(values, axis, -1)
    samples = ceil(lines.shape[-1] * (float(target_sr) / orig_sr))
    if res_type in ("fft", "scipy"):
        result = _by_transform(lines, samples)
    else:
        up, down = ratio(orig_sr, target_sr)
        taps, delay = design(res_type, up, down)
        result = upfirdn(lines, taps, up, down, delay, -(-lines.shape[-1] * up // down))
    if fix:
        result = fix_length(result, size=samples, **kwargs)
    if scale:
        result = elementwise.div(result, float(np.sqrt(float(target_sr) / orig_sr)))
    fields = {"sample_rate": int(target_sr)} if float(target_sr).is_integer() else {"sample_rate": target_sr}
    return like(y, moveaxis(result, -1, axis), **fields)


def ratio(orig_sr: float, target_sr: float) -> tuple[int, int]:
    """(up, down) in lowest terms. Raises ValueError for rates without a short one."""
    exact = Fraction(target_sr) / Fraction(orig_sr)
    if max(exact.numerator, exact.denominator) > _LARGEST:
        raise ValueError(
            f"resample: {orig_sr} to {target_sr} has no ratio of small integers; give integer rates, or res_type='fft'"
        )
    return exact.numerator, exact.denominator


@lru_cache(maxsize=32)
def design(res_type: str, up: int, down: int) -> tuple[np.ndarray[Any, Any], int]:
    """(taps, delay) of the filter for up / down, float64; the delay in samples of the raised signal."""
    rate = max(up, down)
    if res_type == "polyphase":
        taps = _kaiser(10 * rate, 1.0 / rate, 5.0)
    elif res_type in ("soxr_hq", "kaiser_best"):
        # Kaiser's formulas for 110 dB and the band from 0.9165 to 0.9965 of the lower Nyquist frequency: as steep as
        # soxr's filter, from which noise that fills the band then differs by 0.25 %.
        taps = _kaiser(ceil((110 - 7.95) / (2 * 2.285 * np.pi * 0.08) * rate), 0.9565 / rate, 0.1102 * (110 - 8.7))
    elif res_type == "sinc":
        taps = _hann_sinc(up, down)
    else:
        raise ValueError(f"resample: res_type {res_type!r} is unknown; use one of {', '.join(map(repr, TYPES))}")
    return taps * up, len(taps) // 2


def _kaiser(half: int, cutoff: float, beta: float) -> np.ndarray[Any, Any]:
    """A low-pass of 2 * half + 1 taps whose sum is 1; cutoff: of the Nyquist frequency of the raised signal."""
    if 2 * half + 1 > _LARGEST:
        raise ValueError(f"resample: the filter would have {2 * half + 1} taps; res_type='fft' needs none")
    place = np.arange(-half, half + 1)
    taps = cutoff * np.sinc(cutoff * place) * np.kaiser(2 * half + 1, beta)
    return np.asarray(taps / taps.sum())


def _hann_sinc(up: int, down: int) -> np.ndarray[Any, Any]:
    zeros, rolloff = 6, 0.99
    cutoff = min(up, down) * rolloff  # in the rate that both are a divisor of
    half = ceil(zeros * up * down / cutoff)
    place = np.arange(-half, half + 1) * cutoff / (up * down)
    bell = np.where(np.abs(place) < zeros, np.cos(np.pi * place / (2 * zeros)) ** 2, 0)
    return np.asarray(np.sinc(place) * bell * cutoff / (up * down))


def _by_transform(x: GPUArray, samples: int) -> GPUArray:
    """Cuts or continues the spectrum with zeros; the bin at the lower Nyquist frequency is halved or doubled."""
    length = x.shape[-1]
    if not length or not samples:
        return copying.astype(x[..., :samples], x.dtype)
    spectrum = rfft(x, length)
    kept = min(length, samples)
    spectrum = copying.clone(spectrum[..., : kept // 2 + 1])
    if kept % 2 == 0 and length != samples:
        edge = spectrum[..., kept // 2 :]
        copying.copy_to(elementwise.mul(edge, 2.0 if samples < length else 0.5), edge)
    return elementwise.mul(irfft(spectrum, samples), samples / length)
