"""Levels of a signal, frame by frame: rms, zero_crossing_rate, short-term energy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygpukit.array.factory import from_numpy, zeros
from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.framing import frames, padded
from pygpukit.ops.audio.inputs import floats, magnitude_of, matrix, positive, signal
from pygpukit.ops.elementwise import logic
from pygpukit.ops.elementwise.math import sign, sqrt
from pygpukit.ops.shape import expand_dims

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

__all__ = ["compute_short_term_energy", "rms", "zero_crossing_rate"]


def rms(
    *,
    y: Any = None,
    S: Any = None,
    frame_length: int = 2048,
    hop_length: int = 512,
    center: bool = True,
    pad_mode: str = "constant",
    dtype: DTypeLike = "float32",
) -> GPUArray:
    """The root of the mean square of each frame, as librosa.feature.rms().

    y: (..., samples); or S: its spectrogram (..., 1 + frame_length // 2, frames), of a transform without a window.
    Result: (..., 1, frames), of dtype. center: frame t is around sample t * hop_length of y, which pad_mode continues
    by frame_length // 2. NaN makes the frames NaN that it is in. Raises ValueError without y and S, ShapeError for an S
    of another height and a signal shorter than a frame, DTypeError. A frame's bits depend on that frame alone.
    """
    what = "rms"
    if y is not None:
        y = floats(y, f"{what}: y")
        if not y.ndim:
            raise ShapeError(f"{what}: y is a 0-d array; a signal has its time on the last axis")
        if center:
            y = padded(y, frame_length // 2, frame_length // 2, pad_mode, what)
        power = reduce.mean(frames(elementwise.square(y), frame_length, hop_length, what), -1)
    elif S is not None:
        power = _power(matrix(S, f"{what}: S"), frame_length)
    else:
        raise ValueError(f"{what}: give y, a signal, or S, a spectrogram")
    return elementwise.as_type(expand_dims(sqrt(power), -2), as_dtype(dtype))


def _power(S: GPUArray, frame_length: int) -> GPUArray:
    """The mean square of each frame, from its transform (Parseval): the bins between are there twice."""
    import numpy as np

    if S.shape[-2] != frame_length // 2 + 1:
        raise ShapeError(
            f"rms: S has {S.shape[-2]} bins, those of frame_length {2 * S.shape[-2] - 2} or {2 * S.shape[-2] - 1}; "
            f"frame_length is {frame_length}"
        )
    magnitude = floats(magnitude_of(S), "rms: S")
    weights = np.full((S.shape[-2], 1), 2.0)
    weights[0] = 1
    if frame_length % 2 == 0:
        weights[-1] = 1
    weighted = elementwise.mul(
        elementwise.square(magnitude), from_numpy(weights.astype(magnitude.dtype.to_numpy_dtype()))
    )
    return elementwise.div(reduce.sum(weighted, -2), float(frame_length) ** 2)


@keywords("y frame_length hop_length", audio="y", frame_size="frame_length", hop_size="hop_length")
def zero_crossing_rate(
    y: Any,
    *,
    frame_length: int = 2048,
    hop_length: int = 512,
    center: bool = True,
    threshold: float = 1e-10,
    ref_magnitude: float | Callable[[GPUArray], Any] | None = None,
    pad: bool = False,
    zero_pos: bool = True,
) -> GPUArray:
    """The rate of sign changes: crossings of each frame over its length, as librosa.feature.zero_crossing_rate().

    y: (..., samples). Result: (..., 1, frames), float64, exact. center: as rms(), continued by the samples at the ends.
    What is not above threshold, times ref_magnitude (a number, or a function of |y|), counts as 0. zero_pos: 0 is
    positive; else it is a sign of its own. pad: a frame's first sample counts as a crossing. NaN counts by
    its sign. Raises ShapeError, DTypeError, ValueError. Waits for nothing.
    """
    what = "zero_crossing_rate"
    y = signal(y, what)
    if center:
        y = padded(y, frame_length // 2, frame_length // 2, "edge", what)
    whole = frames(y, frame_length, hop_length, what)
    if ref_magnitude is not None:
        size = ref_magnitude(elementwise.abs(y)) if callable(ref_magnitude) else ref_magnitude
        threshold = size * threshold
    quiet = logic.less_equal(elementwise.abs(y), threshold)
    heard = elementwise.where(quiet, 0.0, y)
    side = logic.signbit(heard) if zero_pos else sign(heard)
    if frame_length > 1:
        crossings = logic.not_equal(side[..., 1:], side[..., :-1])
        count = reduce.sum(frames(crossings, frame_length - 1, hop_length, what), -1)[..., : whole.shape[-2]]
    else:
        count = zeros(whole.shape[:-1], "int64")
    rate = elementwise.div(elementwise.add(count, int(pad)), frame_length)
    return expand_dims(rate, -2)


@keywords(frame_size="frame_length")
def compute_short_term_energy(audio: Any, frame_length: int = 256) -> GPUArray:
    """The mean square of frames that follow each other without overlap.

    audio: (..., samples). Result: (..., samples // frame_length); what is left at the end is not counted. Raises
    ShapeError, DTypeError, ValueError. A frame's bits depend on that frame alone.
    """
    what = "compute_short_term_energy"
    y = floats(audio, f"{what}: audio")
    frame_length = positive(frame_length, "frame_length", what)
    return reduce.mean(frames(elementwise.square(y), frame_length, frame_length, what), -1)
