"""Functions that NumPy lacks, on NumPy arrays: for operations that compute on the host. Loaded with NumPy only."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation 23 (1969): erf on
# |x| <= 0.46875, erfc beyond, in double precision. Highest power last but the leading one first, as Horner takes them.
_ERF_P = (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
          3.20937758913846947e3)  # fmt: skip
_ERF_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_MID_P = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
          2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
          1.23033935479799725e3)  # fmt: skip
_MID_Q = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
          3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3)  # fmt: skip
_FAR_P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
          1.60837851487422766e-2, 6.58749161529837803e-4)  # fmt: skip
_FAR_Q = (1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1, 6.05183413124413191e-2,
          2.33520497626869185e-3)  # fmt: skip
_NEAR, _MIDDLE = 0.46875, 4.0


def _ratio(above: tuple[float, ...], below: tuple[float, ...], x: Array) -> Array:
    return np.polyval(above, x) / np.polyval(below, x)


def _erfc_positive(y: Array) -> Array:
    """erfc of y >= 0.46875."""
    inverse = 1.0 / (y * y)
    far = (1.0 / np.sqrt(np.pi) - inverse * _ratio(_FAR_P, _FAR_Q, inverse)) / y
    scaled = np.where(y <= _MIDDLE, _ratio(_MID_P, _MID_Q, np.minimum(y, _MIDDLE)), far)
    coarse = np.trunc(y * 16.0) / 16.0  # its square is exact, so that the exponential keeps its digits
    return np.exp(-coarse * coarse) * np.exp(-(y - coarse) * (y + coarse)) * scaled


def _double(x: Any) -> Array:
    return np.asarray(x, np.float64)


def _near_erf(x: Array) -> Array:
    return x * _ratio(_ERF_P, _ERF_Q, x * x)


def erf(x: Array) -> Array:
    """The error function, to about 1e-15, in float64."""
    x = _double(x)
    y = np.minimum(np.abs(x), 30.0)
    far = np.copysign(1.0 - _erfc_positive(np.maximum(y, _NEAR)), x)
    return np.where(y <= _NEAR, _near_erf(np.clip(x, -_NEAR, _NEAR)), far)


def erfc(x: Array) -> Array:
    """1 - erf(x) without cancellation, in float64."""
    x = _double(x)
    y = np.minimum(np.abs(x), 30.0)
    tail = _erfc_positive(np.maximum(y, _NEAR))
    far = np.where(x < 0, 2.0 - tail, tail)
    return np.where(y <= _NEAR, 1.0 - _near_erf(np.clip(x, -_NEAR, _NEAR)), far)


def _single(x: Array) -> Array:
    """float16 computes in float32, as on a device."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    x = _single(x)
    return 1 / (1 + np.exp(-x))


def silu(x: Array) -> Array:
    """x sigmoid(x)."""
    x = _single(x)
    return x / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    """x times the normal distribution's probability below x; computed in float64, for float32 by a table."""
    if x.dtype != np.float64:
        return _gelu_by_table(_single(x))
    return np.where(x < -40.0, -0.0, 0.5 * x * erfc(-np.sqrt(0.5) * x))


_STEPS, _REACH = 1024, 15  # of the table: places for each unit; beyond, x times the probability is no float32
_CHUNK = 1 << 13  # elements; what is made on the way stays in the processor's cache


@cache
def _normal_table() -> tuple[Array, Array]:
    """The normal distribution's probability below each place, and its density there."""
    places = np.arange(-_REACH * _STEPS, _REACH * _STEPS + 1) / _STEPS
    return 0.5 * erfc(-np.sqrt(0.5) * places), np.exp(-0.5 * places * places) / np.sqrt(2.0 * np.pi)


def _gelu_by_table(x: Array) -> Array:
    """By the distribution's Taylor series from the nearest place; the first term left out is 1e-10 of the sum."""
    below, density = _normal_table()
    flat = x.reshape(-1)
    result = np.empty(flat.shape, np.float32)
    for start in range(0, flat.size, _CHUNK):
        wide = flat[start : start + _CHUNK].astype(np.float64)
        place = np.fmax(np.fmin(wide, _REACH), -_REACH)  # NaN becomes a place, and is NaN again in the product
        step = place.copy()
        place *= _STEPS
        np.rint(place, out=place)
        index = place.astype(np.int32)
        index += _REACH * _STEPS
        place /= _STEPS
        step -= place
        series = (place * place - 1.0) * step * (1 / 6) - 0.5 * place
        series *= step
        series += 1.0
        series *= step
        series *= density[index]
        series += below[index]
        series[wide <= -_REACH] = 0.0
        result[start : start + _CHUNK] = wide * series
    result[flat == -np.inf] = -0.0
    return result.reshape(x.shape)


def gelu_tanh(x: Array) -> Array:
    """gelu's form with tanh, x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)); computed in float64."""
    wide = _double(x)
    return wide / (1.0 + np.exp(-2.0 * np.sqrt(2.0 / np.pi) * wide * (1.0 + 0.044715 * wide * wide)))


def relu(x: Array) -> Array:
    """x, or 0 where x is below it."""
    return np.where(x < 0, x.dtype.type(0), x)


def activated(x: Array, act: str | None) -> Array:
    """An activation of sums by its name, as activation.cuh applies it; None changes nothing."""
    if act is None:
        return x
    result: Array = (globals().get(act) or getattr(np, act))(x)
    return result


def relu2(x: Array) -> Array:
    """max(x, 0) squared."""
    return np.square(np.maximum(_single(x), 0))


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x)."""
    return 1 / np.sqrt(_single(x))


def swiglu(gate: Array, up: Array) -> Array:
    """silu(gate) up."""
    return silu(gate) * _single(up)


def geglu(gate: Array, up: Array) -> Array:
    """gelu(gate) up."""
    return gelu(gate) * _single(up)


def reciprocal_of_integer(x: Array) -> Array:
    """1 / x rounded towards zero, 0 of 0."""
    return np.where(np.abs(x) == 1, x, 0).astype(x.dtype)


def power(a: Array, b: Array) -> Array:
    """NumPy's, but a negative exponent of integers gives the exact result rounded towards zero instead of an error."""
    if np.result_type(a, b).kind != "i" or not np.any(np.less(b, 0)):
        return np.power(a, b)
    inverse = np.where(np.equal(a, 1), 1, np.where(np.equal(a, -1), 1 - 2 * (b & 1), 0))
    return np.where(np.less(b, 0), inverse, np.power(a, np.maximum(b, 0)))


def nextafter_bfloat16(a: Array, b: Array) -> Array:
    """nextafter() of bfloat16 numbers that are given as float32."""
    a, b = np.broadcast_arrays(a, b)
    bits = a.view(np.uint32) if a.flags.c_contiguous else np.ascontiguousarray(a).view(np.uint32).reshape(a.shape)
    away = np.less(a, b) == np.greater(a, 0)
    stepped = np.where(away, bits + np.uint32(0x10000), bits - np.uint32(0x10000)).astype(np.uint32).view(np.float32)
    smallest = np.copysign(np.array(0x10000, np.uint32).view(np.float32), b)
    moved = np.where(np.equal(a, 0), smallest, stepped)
    return np.where(np.isnan(a) | np.isnan(b), a + b, np.where(np.equal(a, b), b, moved))
