"""Checks of functions of sound before they compute: signals, spectrograms, rates and lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array import promotion
from pygpukit.core.dtypes import DataType, complex64, complex128, float32, float64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, elementwise, reduce
from pygpukit.ops.elementwise import logic
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["valid_audio"]

DEFAULT_RATE = 22050.0


def valid_audio(y: Any) -> bool:
    """True for samples that are finite, as librosa.util.valid_audio(); waits for the device.

    Functions whose results are arrays of the device do not ask this, since they would have to wait. Raises ValueError
    for NaN and infinity, DTypeError, ShapeError.
    """
    finite(y, "valid_audio")
    return True


def signal(y: Any, what: str) -> GPUArray:
    """The samples of an array or an AudioBuffer, time on the last axis, as float32 or float64.

    Values are not looked at, so that nothing waits for the device. Raises DTypeError (integers: say what full scale is
    first), ShapeError (0-d).
    """
    array = floats(y, f"{what}: y")
    if array.ndim == 0:
        raise ShapeError(f"{what}: y is a 0-d array; a signal has its time on the last axis")
    return array


def finite(y: Any, what: str) -> GPUArray:
    """signal(), whose samples must be finite: for functions whose results are the host's, which wait for the device
    anyway. Raises ValueError, too."""
    array = signal(y, what)
    if array.size and not bool(reduce.all(logic.isfinite(array)).item()):
        raise ValueError(f"{what}: y has samples that are NaN or infinite; replace them, with gp.where for one")
    return array


def floats(array: Any, what: str) -> GPUArray:
    """A real array (or an AudioBuffer's) as float32 or float64; 16-bit floats become float32. Raises DTypeError."""
    array = check_array(array.data if hasattr(array, "sample_rate") else array, what)
    check_devices(what, array)
    if array.dtype in (float32, float64):
        return array
    if array.dtype in promotion.FLOATS:
        return copying.astype(array, float32)
    remedy = "take gp.abs() of it" if array.dtype in promotion.COMPLEX else "scale with .astype('float32') / 32768"
    raise DTypeError(f"{what} is {array.dtype} and must be floating-point; {remedy} (int16 has full scale 32768)")


def spectrum(array: Any, what: str) -> GPUArray:
    """A complex spectrogram (..., bins, frames). Raises DTypeError and ShapeError."""
    array = check_array(array, what)
    check_devices(what, array)
    if array.dtype not in promotion.COMPLEX:
        raise DTypeError(f"{what} is {array.dtype} and must be complex, as stft() gives it")
    return matrix(array, what)


def matrix(array: GPUArray, what: str) -> GPUArray:
    """array, which must have two axes at least: (..., bins, frames). Raises ShapeError."""
    if array.ndim < 2:
        raise ShapeError(f"{what} has shape {array.shape} and must be (..., bins, frames)")
    return array


def magnitudes(S: Any, what: str) -> GPUArray:
    """A real spectrogram (..., bins, frames); that it has no negative values is not looked at. Raises DTypeError,
    ShapeError."""
    return matrix(floats(S, f"{what}: S"), f"{what}: S")


def rate(sr: float | None, y: Any = None) -> float:
    """Samples a second: sr, else an AudioBuffer's own, else 22050. Raises ValueError unless positive."""
    if sr is None:
        sr = getattr(y, "sample_rate", DEFAULT_RATE)
    if not sr > 0:
        raise ValueError(f"sr is {sr} and must be positive: samples a second")
    return float(sr)


def positive(value: Any, name: str, what: str) -> int:
    """value as an int of 1 or more. Raises ValueError naming it."""
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise ValueError(f"{what}: {name} is {value!r} and must be an integer of 1 or more")
    return int(value)


def complex_of(dtype: DataType) -> DataType:
    """The complex type whose parts are of a real one."""
    return complex128 if dtype == float64 else complex64


def magnitude_of(array: GPUArray) -> GPUArray:
    """|array| of complex numbers; of others array itself."""
    return elementwise.abs(array) if array.dtype in promotion.COMPLEX else array
