"""Power and amplitude to decibels and back."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygpukit.array import promotion
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio.inputs import floats
from pygpukit.ops.elementwise.math import exp, log, log10
from pygpukit.ops.operands import check_array, is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["amplitude_to_db", "db_to_amplitude", "db_to_power", "log_mel", "power_to_db"]


def power_to_db(
    S: GPUArray, *, ref: float | Callable[[GPUArray], Any] = 1.0, amin: float = 1e-10, top_db: float | None = 80.0
) -> GPUArray:
    """10 log10(S / ref), as librosa.power_to_db().

    S: any shape, floats; of complex numbers the magnitude is taken, with a warning. ref: a power, or a function of S
    such as gp.max. amin: the least of S and ref that counts. top_db: nothing is further below the largest value of the
    whole array than that, so that batch items share their limit; None for no limit. Raises DTypeError, and ValueError
    for amin not above 0 and a negative top_db.
    """
    return _power_to_db(_real(S, "power_to_db"), ref, amin, top_db, "power_to_db")


def amplitude_to_db(
    S: GPUArray, *, ref: float | Callable[[GPUArray], Any] = 1.0, amin: float = 1e-5, top_db: float | None = 80.0
) -> GPUArray:
    """20 log10(|S| / ref), as librosa.amplitude_to_db(). Arguments and errors as power_to_db()."""
    magnitude = elementwise.abs(_real(S, "amplitude_to_db"))
    reference = ref(magnitude) if callable(ref) else abs(ref)
    return _power_to_db(
        elementwise.mul(magnitude, magnitude), reference * reference, amin * amin, top_db, "amplitude_to_db"
    )


def db_to_power(S_db: GPUArray, *, ref: float = 1.0) -> GPUArray:
    """ref * 10 ** (S_db / 10), as librosa.db_to_power(). Raises DTypeError."""
    # As a power of e: ten's own would be computed through it.
    return elementwise.mul(_exp(floats(S_db, "db_to_power: S_db"), math.log(10) / 10), ref)


def db_to_amplitude(S_db: GPUArray, *, ref: float = 1.0) -> GPUArray:
    """ref * 10 ** (S_db / 20), as librosa.db_to_amplitude(). Raises DTypeError."""
    return elementwise.mul(_exp(floats(S_db, "db_to_amplitude: S_db"), math.log(10) / 20), abs(ref))


def log_mel(mel_spectrogram: GPUArray, eps: float = 1e-10) -> GPUArray:
    """The natural logarithm of a spectrogram, of eps where it is less. Raises DTypeError."""
    return log(elementwise.maximum(floats(mel_spectrogram, "log_mel: mel_spectrogram"), eps))


def _real(S: GPUArray, what: str) -> GPUArray:
    S = check_array(S, what)
    if S.dtype not in promotion.COMPLEX:
        return floats(S, f"{what}: S")
    warnings.warn(f"{what}: S is complex and its phase is left out; take gp.abs() of it first", stacklevel=3)
    return elementwise.abs(S)


def _power_to_db(S: GPUArray, ref: Any, amin: float, top_db: float | None, what: str) -> GPUArray:
    if not amin > 0:
        raise ValueError(f"{what}: amin is {amin} and must be above 0")
    if top_db is not None and top_db < 0:
        raise ValueError(f"{what}: top_db is {top_db} and must not be negative")
    decibels = elementwise.mul(log10(elementwise.maximum(S, amin)), 10.0)
    reference = ref(S) if callable(ref) else ref
    if is_array(reference):
        decibels = elementwise.sub(decibels, elementwise.mul(log10(elementwise.maximum(reference, amin)), 10.0))
    elif shift := 10.0 * math.log10(max(amin, abs(reference))):
        decibels = elementwise.sub(decibels, shift)
    if top_db is None or not decibels.size:
        return decibels
    return elementwise.maximum(decibels, elementwise.sub(reduce.max(decibels), top_db))


def _exp(x: GPUArray, factor: float) -> GPUArray:
    return exp(elementwise.mul(x, factor))
