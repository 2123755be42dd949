"""First-order filters of whole signals: pre-emphasis and its inverse, the mean and what is below hearing taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.array.factory import from_numpy
from pygpukit.core.dtypes import DataType, float64
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying, elementwise, reduce
from pygpukit.ops.audio.biquads import biquad
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.filtering import lfilter, sosfilt
from pygpukit.ops.audio.inputs import floats, rate
from pygpukit.ops.audio.returned import in_place
from pygpukit.ops.operands import is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["deemphasis", "highpass_filter", "preemphasis", "remove_dc"]


@keywords("y coef", audio="y", alpha="coef")
def preemphasis(y: Any, *, coef: float = 0.97, zi: Any = None, return_zf: bool = False) -> Any:
    """y[n] - coef * y[n-1], as librosa.effects.preemphasis(): a new array. An AudioBuffer is changed in
    place and given back, as documented.

    zi: what is added to the first sample, (..., 1); by default 2 y[0] - y[1], so that the signal seems to go on as a
    line. return_zf: (result, zf), zf is zi of the next block; blocks then give the bits of the whole. Raises ShapeError
    (two samples are needed without zi), DTypeError.
    """
    values = floats(y, "preemphasis: y")
    result = copying.clone(values)
    rest, first = result[..., 1:], result[..., :1]
    copying.copy_to(elementwise.sub(values[..., 1:], elementwise.mul(values[..., :-1], coef)), rest)
    state = _line(values, "preemphasis") if zi is None else _state_of(zi, values, values.dtype)
    copying.copy_to(elementwise.add(values[..., :1], state), first)
    if not return_zf:
        return _as_passed(y, result)
    zf = elementwise.mul(values[..., -1:], -coef) if values.shape[-1] else state
    return _as_passed(y, result), zf


@keywords("y coef", audio="y", alpha="coef")
def deemphasis(y: Any, *, coef: float = 0.97, zi: Any = None, return_zf: bool = False) -> Any:
    """The inverse of preemphasis(), as librosa.effects.deemphasis(): a new array. An AudioBuffer is changed
    in place and given back, as documented.

    zi: (..., 1), 0 for a signal that began at 0; by default the line that preemphasis() begins with is taken away.
    return_zf: (result, zf), zf is zi of the next block, float64. Raises ShapeError, DTypeError.
    """
    values = floats(y, "deemphasis: y")
    state = np.zeros((*values.shape[:-1], 1)) if zi is None else _state_of(zi, values, float64)
    result, zf = lfilter([1.0], [1.0, -coef], values, zi=state)
    if zi is None:
        _check_two(values, "deemphasis")
        start = elementwise.sub(elementwise.mul(values[..., :1], 2 - coef), values[..., 1:2])
        fading = from_numpy((coef ** np.arange(values.shape[-1]) / (3 - coef)).astype(values.dtype.to_numpy_dtype()))
        result = elementwise.sub(result, elementwise.mul(start, fading))
    return (_as_passed(y, result), zf) if return_zf else _as_passed(y, result)


def remove_dc(audio: Any) -> Any:
    """Takes the mean of each line away, in place, and returns audio itself, as documented. A copy:
    remove_dc(x.clone())."""
    values = floats(audio, "remove_dc: audio")
    return in_place(audio, elementwise.sub(values, reduce.mean(values, -1, keepdims=True))) if values.size else audio


def highpass_filter(audio: Any, cutoff_hz: float = 20.0, sample_rate: float | None = None) -> Any:
    """A second-order Butterworth high-pass, in place; returns audio itself, as documented.

    sample_rate: that of an AudioBuffer, else 16000. Raises ValueError, DTypeError.
    """
    values = floats(audio, "highpass_filter: audio")
    sr = rate(getattr(audio, "sample_rate", 16000) if sample_rate is None else sample_rate)
    return in_place(audio, sosfilt(biquad("highpass", cutoff_hz, sr=sr), values))


def _as_passed(y: Any, result: GPUArray) -> Any:
    """Arrays are librosa's, for which results are new; AudioBuffers are ours."""
    return in_place(y, result) if hasattr(y, "sample_rate") else result


def _line(values: GPUArray, what: str) -> GPUArray:
    _check_two(values, what)
    return elementwise.sub(elementwise.mul(values[..., :1], 2.0), values[..., 1:2])


def _check_two(values: GPUArray, what: str) -> None:
    if values.shape[-1] < 2:
        raise ShapeError(f"{what}: y has {values.shape[-1]} samples; without zi two are needed")


def _state_of(zi: Any, values: GPUArray, dtype: DataType) -> GPUArray:
    state = zi if is_array(zi) else from_numpy(np.atleast_1d(np.asarray(zi, np.float64)))
    shape = (*values.shape[:-1], 1)
    if state.size != np.prod(shape):
        raise ShapeError(f"zi has shape {state.shape} and must have {shape}")
    return elementwise.as_type(state.reshape(shape), dtype)
