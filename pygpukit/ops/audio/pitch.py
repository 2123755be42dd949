"""yin: the fundamental frequency of each frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.array.factory import zeros
from pygpukit.ops import elementwise, indexing, reduce
from pygpukit.ops.audio import yin_curve as curves
from pygpukit.ops.audio.documented import without_effect
from pygpukit.ops.audio.inputs import rate
from pygpukit.ops.elementwise import logic
from pygpukit.ops.shape import expand_dims, joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["yin"]


def yin(
    y: Any,
    *,
    fmin: float,
    fmax: float,
    sr: float | None = None,
    frame_length: int = 2048,
    hop_length: int | None = None,
    trough_threshold: float = 0.1,
    center: bool = True,
    pad_mode: str = "constant",
    win_length: int | None = None,
) -> GPUArray:
    """The fundamental frequency of each frame in Hz, by YIN, as librosa.yin() (de Cheveigne, Kawahara 2002).

    y: (..., samples). Result: (..., frames), of y's type. Of the periods from sr / fmax to sr / fmin the first trough
    of the normalised difference below trough_threshold is taken, else the lowest point, refined by a parabola; frames
    without a pitch get a frequency, too. hop_length: frame_length // 4 by default. center, pad_mode: as stft().
    win_length: without effect since librosa 0.11; given, it warns. The choice of a trough is discontinuous: rounding
    may change it. A frame with NaN or infinity gets NaN. Raises ValueError, ShapeError, DTypeError. A frame's bits
    depend on that frame alone.
    """
    without_effect(win_length, "yin")
    sr = rate(sr, y)
    periods = curves.check_periods(fmin, fmax, sr, frame_length, hop_length, "yin")
    curve = curves.curve(y, periods, center, pad_mode, "yin")
    deep = logic.logical_and(_troughs(curve), logic.less(curve, trough_threshold))
    first = elementwise.where(reduce.any(deep, -1), reduce.argmax(deep, -1), reduce.argmin(curve, -1))
    # At the longest period the mean has every difference in it.
    known = logic.isfinite(curve[..., -1])
    return elementwise.where(known, elementwise.div(sr, _period(curve, first, periods.shortest)), float("nan"))


def voiced(
    audio: Any, sr: float, frame_length: int, hop_length: int, fmin: float, fmax: float, threshold: float
) -> GPUArray:
    """yin() of frames that are not centred, 0 where no trough is below threshold."""
    what = "detect_pitch_yin"
    periods = curves.check_periods(fmin, fmax, sr, frame_length, hop_length, what)
    curve = curves.curve(audio, periods, False, "constant", what)
    deep = logic.logical_and(_troughs(curve), logic.less(curve, threshold))
    first = reduce.argmax(deep, -1)
    frequency = elementwise.div(float(sr), _period(curve, first, periods.shortest))
    return elementwise.where(reduce.any(deep, -1), frequency, 0.0)


def _period(curve: GPUArray, index: GPUArray, min_period: int) -> GPUArray:
    whole = elementwise.as_type(elementwise.add(index, min_period), curve.dtype)
    return elementwise.add(whole, _shift(curve, index))


def _troughs(curve: GPUArray) -> GPUArray:
    """Where the curve is below what is before it and not above what is after it; at the ends, below its neighbour."""
    falls = logic.less(curve[..., 1:], curve[..., :-1])
    stays = logic.less_equal(curve[..., 1:-1], curve[..., 2:])
    inner = logic.logical_and(falls[..., :-1], stays)
    first = logic.less(curve[..., :1], curve[..., 1:2])
    return joining.concatenate([first, inner, falls[..., -1:]], -1)


def _shift(curve: GPUArray, index: GPUArray) -> GPUArray:
    """Where the parabola through a point of each row and its neighbours has its lowest point, from that point: within
    one step, else 0; 0 at the ends."""
    last = curve.shape[-1] - 1
    if last < 2:
        return zeros(index.shape, curve.dtype)
    inside = elementwise.clip(index, 1, last - 1)
    before, here, after = (
        indexing.take_along_axis(curve, expand_dims(inside + step, -1), -1)[..., 0] for step in (-1, 0, 1)
    )
    bend = elementwise.sub(elementwise.add(after, before), elementwise.mul(here, 2.0))
    slope = elementwise.mul(elementwise.sub(after, before), 0.5)
    moved = logic.logical_and(logic.less(elementwise.abs(slope), elementwise.abs(bend)), logic.equal(inside, index))
    safe = elementwise.where(moved, bend, 1.0)
    return elementwise.where(moved, elementwise.div(elementwise.neg(slope), safe), 0.0)


def host_shifts(curve: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """_shift() of every point, on the host."""
    shifts = np.zeros_like(curve)
    before, here, after = curve[..., :-2], curve[..., 1:-1], curve[..., 2:]
    bend, slope = after + before - 2 * here, (after - before) / 2
    moved = np.abs(slope) < np.abs(bend)
    shifts[..., 1:-1] = np.where(moved, -slope / np.where(moved, bend, 1), 0)
    return shifts
