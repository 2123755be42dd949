"""Filters of samples: lfilter, sosfilt, fir_filter, with states that let a signal come in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.array.factory import from_numpy
from pygpukit.core.dtypes import float64
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying, elementwise
from pygpukit.ops.audio.inputs import floats
from pygpukit.ops.audio.polyphase import upfirdn
from pygpukit.ops.audio.recursion import ORDERS, linear
from pygpukit.ops.audio.returned import like
from pygpukit.ops.operands import is_array
from pygpukit.ops.shape import joining, moveaxis

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["fir_filter", "lfilter", "sosfilt"]


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """The filter a[0] y[n] + a[1] y[n-1] + ... = b[0] x[n] + b[1] x[n-1] + ..., as scipy.signal.lfilter().

    x: an array or AudioBuffer; y has its shape and type. zi: the state before, of x's shape with max(len(a), len(b)) -
    1 along the axis; then the result is (y, zf), zf the state after, float64, for the next block. Coefficients and
    states are float64. At most order 32 with feedback: take sosfilt() for high orders, which are not stable in this
    form. The same bits on every run. Raises ValueError, ShapeError, DTypeError.
    """
    what = "lfilter"
    numerator, denominator = (_coefficients(c, name, what) for c, name in ((b, "b"), (a, "a")))
    if denominator[0] == 0:
        raise ValueError(f"{what}: a[0] is 0 and must not be")
    numerator, denominator = numerator / denominator[0], denominator / denominator[0]
    order = max(len(numerator), len(denominator)) - 1
    values = floats(x, f"{what}: x")
    axis = layout.normalize_axis(axis, values.ndim, what)
    lines = moveaxis(values, axis, -1)
    state = _state(zi, (*lines.shape[:-1], order), axis, what)
    if len(np.trim_zeros(denominator, "b")) == 1:
        y, zf = _fed_forward(lines, np.pad(numerator, (0, order + 1 - len(numerator))), state)
    elif order > ORDERS[-1]:
        raise ValueError(f"{what}: order {order} is above {ORDERS[-1]}; take sosfilt() with sections of order 2")
    else:
        numerator, denominator = (np.pad(c, (0, order + 1 - len(c))) for c in (numerator, denominator))
        y, zf = linear(lines, numerator, denominator, state)
    result = like(x, moveaxis(y, -1, axis))
    return result if zi is None else (result, moveaxis(zf, -1, axis))


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Second-order sections one after the other, as scipy.signal.sosfilt().

    sos: (sections, 6), b and a of each, a[0] = 1; biquad() makes them. zi: (sections, ..., 2), x's shape with 2 along
    the axis; then the result is (y, zf). Otherwise as lfilter(); between sections samples have x's type.
    """
    what = "sosfilt"
    sections = np.atleast_2d(np.asarray(sos, np.float64))
    if sections.ndim != 2 or sections.shape[1] != 6 or not np.all(sections[:, 3] == 1):
        raise ValueError(f"{what}: sos has shape {np.shape(sos)}; it must be (sections, 6) with ones in column 3")
    y = floats(x, f"{what}: x")
    axis = layout.normalize_axis(axis, y.ndim, what)
    y = moveaxis(y, axis, -1)
    if zi is not None and len(zi) != len(sections):
        raise ShapeError(f"{what}: zi has {len(zi)} states for {len(sections)} sections")
    states = []
    for k, section in enumerate(sections):
        state = _state(None if zi is None else zi[k], (*y.shape[:-1], 2), axis, what)
        y, zf = linear(y, section[:3], section[3:], state)
        states.append(moveaxis(zf, -1, axis))
    result = like(x, moveaxis(y, -1, axis))
    return result if zi is None else (result, joining.stack(states))


def fir_filter(x: Any, taps: Any, *, mode: str = "same", axis: int = -1) -> Any:
    """A finite impulse response, summed directly; fftconvolve() is faster for hundreds of taps.

    taps: 1-D, real. mode: "same", of x's length and without delay for symmetric taps (the middle of "full"); "causal",
    of x's length, as lfilter(taps, 1, x); "full", "valid" as numpy.convolve. Raises ValueError, ShapeError, DTypeError.
    A line's bits do not depend on the batch.
    """
    what = "fir_filter"
    values, response = floats(x, f"{what}: x"), _coefficients(taps, "taps", what)
    axis = layout.normalize_axis(axis, values.ndim, what)
    lines = moveaxis(values, axis, -1)
    length, more = lines.shape[-1], len(response) - 1
    spans = {
        "same": (more // 2, length),
        "causal": (0, length),
        "full": (0, length + more if length else 0),
        "valid": (more, max(length - more, 0)),
    }
    if mode not in spans:
        raise ValueError(f"{what}: mode {mode!r} is unknown; use one of {', '.join(map(repr, spans))}")
    first, outputs = spans[mode]
    return like(x, moveaxis(upfirdn(lines, response, 1, 1, first, outputs), -1, axis))


def _fed_forward(x: GPUArray, taps: np.ndarray[Any, Any], state: GPUArray) -> tuple[GPUArray, GPUArray]:
    """Without feedback the state is what is still to come out: it is added to the next outputs."""
    length, order = x.shape[-1], len(taps) - 1
    long = upfirdn(x, taps, 1, 1, 0, length + order)
    if order:
        head = long[..., :order]
        copying.copy_to(elementwise.add(head, copying.astype(state, x.dtype)), head)
    return copying.contiguous(long[..., :length]), copying.astype(long[..., length:], state.dtype)


def _coefficients(values: Any, name: str, what: str) -> np.ndarray[Any, Any]:
    array = np.atleast_1d(np.asarray(values.to_numpy() if is_array(values) else values, np.float64))
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{what}: {name} has shape {array.shape}; it must be 1-D and not empty")
    return array


def _state(zi: Any, shape: tuple[int, ...], axis: int, what: str) -> GPUArray:
    """The states, time last, as float64; zeros without any."""
    if zi is None:
        state = native.empty(shape, "float64")
        if state.size:
            copying.fill(state, 0)
        return state
    initial = zi if is_array(zi) else from_numpy(np.asarray(zi, np.float64))
    moved = moveaxis(initial, axis, -1) if initial.ndim == len(shape) else initial
    if moved.shape != shape:
        raise ShapeError(f"{what}: zi has shape {initial.shape}; with its axis last it must be {shape}")
    return elementwise.as_type(moved, float64)
