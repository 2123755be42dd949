"""Overlapping pieces of a signal: views into its memory, no copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.core.errors import ShapeError
from pygpukit.ops.audio.inputs import positive
from pygpukit.ops.indexing import padding
from pygpukit.ops.operands import check_array
from pygpukit.ops.shape import moveaxis

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["fix_length", "frame"]

PAD_MODES = ("constant", "edge", "reflect", "symmetric")


def frame(
    x: GPUArray,
    *,
    frame_length: int,
    hop_length: int,
    axis: int = -1,
    writeable: bool = False,
    subok: bool = False,
) -> GPUArray:
    """Overlapping frames along an axis, as librosa.util.frame(): a view, of any type.

    The axis becomes the frames'; that of their samples stands before it where axis counts from the end, and after it
    where it counts from the start: of (4, 20) axis -1 gives (4, frame_length, frames), axis 1 (4, frames,
    frame_length). Samples after the last whole frame are left out. Raises ShapeError for a signal shorter than a frame,
    ValueError for lengths below 1. writeable, subok: librosa's, without effect here: arrays of a device have no
    read-only views and no sub-classes. Writing to the view writes to x, and neighbouring frames share elements.
    """
    x = check_array(x, "frame")
    place = layout.normalize_axis(axis, x.ndim, "frame")
    pieces = frames(moveaxis(x, place, -1), frame_length, hop_length, "frame")
    return moveaxis(pieces, (-2, -1), (place + 1, place) if axis < 0 else (place, place + 1))


def frames(y: GPUArray, frame_length: int, hop_length: int, what: str) -> GPUArray:
    """(..., frames, frame_length): the whole frames of a signal whose time is the last axis, as a view."""
    frame_length, hop_length = positive(frame_length, "frame_length", what), positive(hop_length, "hop_length", what)
    length = y.shape[-1]
    check_frame(y, frame_length, what)
    count = 1 + (length - frame_length) // hop_length
    step = y.strides[-1]
    strides = (*y.strides[:-1], hop_length * step, step)
    return native.view(y, (*y.shape[:-1], count, frame_length), strides, y.offset)


def padded(y: GPUArray, before: int, after: int, mode: str, what: str) -> GPUArray:
    """The signal continued on its last axis. Raises ValueError for an unknown mode, ShapeError for an empty signal
    that a mode cannot continue."""
    check_continuation(y, mode, what)
    if not before and not after:
        return y
    return padding.pad(y, [(0, 0)] * (y.ndim - 1) + [(before, after)], mode)


def check_continuation(y: GPUArray, mode: str, what: str) -> None:
    """Raises as padded()."""
    if mode not in PAD_MODES:
        raise ValueError(f"{what}: pad_mode {mode!r} is unknown; use one of {', '.join(map(repr, PAD_MODES))}")
    if not y.shape[-1] and mode != "constant":
        raise ShapeError(f"{what}: y is empty; only pad_mode 'constant' continues it")


def check_frame(y: GPUArray, frame_length: int, what: str) -> None:
    """Raises ShapeError for a signal shorter than a frame."""
    if y.shape[-1] < frame_length:
        raise ShapeError(
            f"{what}: the signal has {y.shape[-1]} samples, a frame {frame_length}; take a shorter frame, or pad the "
            "signal"
        )


def fix_length(data: GPUArray, *, size: int, axis: int = -1, **kwargs: Any) -> GPUArray:
    """data cut or padded at its end to size elements along an axis; kwargs as gp.pad() takes them (zeros by default).

    What is cut is a view. Raises ShapeError, ValueError as gp.pad().
    """
    data = check_array(data, "fix_length")
    axis = layout.normalize_axis(axis, data.ndim, "fix_length")
    extra = size - data.shape[axis]
    if extra > 0:
        return padding.pad(data, [(0, extra if k == axis else 0) for k in range(data.ndim)], **kwargs)
    return data[(slice(None),) * axis + (slice(0, size),)]
