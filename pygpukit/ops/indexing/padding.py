"""Arrays continued, repeated and shifted: new arrays written by one kernel, as NumPy's functions.

Errors: ShapeError naming the function and the shapes, DTypeError, DeviceMismatchError. The same bits on every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout, scalars
from pygpukit.array.layout import Shape, normalize_axis
from pygpukit.core.errors import ShapeError
from pygpukit.kernels.structure import Structure
from pygpukit.ops import copying, host, indexing, raw, shape
from pygpukit.ops.operands import check_array, check_devices, is_array, span
from pygpukit.ops.prepared import prepared
from pygpukit.ops.shape import joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["pad", "repeat", "roll", "tile"]

SOURCE = kernels.KernelSpec(__file__, "padding.cu")
_BLOCK = 256
_PACK_BYTES = 16  # that a thread makes
_SHORT_ROW = 128  # elements, at most
_APART = 4  # elements of a thread of a short row's kernel
_CONTINUATIONS = {"constant": 0, "edge": 1, "reflect": 2, "symmetric": 3, "wrap": 4}  # padding.cu: Continuation


@prepared
def pad(array: GPUArray, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> GPUArray:
    """The array with elements added before and after each axis.

    pad_width: a number, (before, after), or one such pair for each axis. mode: "constant" (constant_values, given as
    pad_width is), "edge", "reflect" (the border is not repeated), "symmetric" (it is), "wrap". Raises ShapeError for
    negative widths and for an empty axis that only a constant can continue.
    """
    array = check_array(array, "pad")
    check_devices("pad", array)
    if mode not in _CONTINUATIONS:
        raise ValueError(f"pad: mode {mode!r} is unknown; use one of {', '.join(map(repr, _CONTINUATIONS))}")
    widths = [(int(before), int(after)) for before, after in _pairs(pad_width, array.ndim, "pad_width")]
    if any(width < 0 for pair in widths for width in pair):
        raise ShapeError(f"pad: pad_width {pad_width} has a negative width; slice the array instead")
    if mode != "constant":
        for axis, (extent, pair) in enumerate(zip(array.shape, widths, strict=True)):
            if not extent and any(pair):
                raise ShapeError(f"pad: axis {axis} of shape {array.shape} is empty; only mode 'constant' continues it")
    values = [[_encoded(value, array) for value in pair] for pair in _pairs(constant_values, array.ndim, "values")]
    extents = tuple(before + extent + after for extent, (before, after) in zip(array.shape, widths, strict=True))
    return _remapped(array, extents, [before for before, _ in widths], mode, values, "pad")


@prepared
def roll(array: GPUArray, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> GPUArray:
    """Elements shifted along axes, those past the end back at the start; of the flattened array when axis is None."""
    array = check_array(array, "roll")
    check_devices("roll", array)
    if axis is None:
        total = sum(layout.integers(shift, "roll: shift"))
        return shape.reshape(roll(shape.ravel(array), total, 0), array.shape)
    shifts = layout.integers(shift, "roll: shift")
    axes = layout.integers(axis, "roll: axis")
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ShapeError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    count = max(len(shifts), len(axes))
    before = [0] * array.ndim
    for step, k in zip(shifts * (count // len(shifts)), axes * (count // len(axes)), strict=True):
        k = normalize_axis(k, array.ndim, "roll")
        before[k] = (before[k] + step) % max(array.shape[k], 1)
    shifted = [k for k, step in enumerate(before) if step]
    if len(shifted) == 1:  # the two ends of one axis, exchanged
        ends = joining.split(array, [array.shape[shifted[0]] - before[shifted[0]]], shifted[0])
        return joining.concatenate(ends[::-1], shifted[0])
    return _remapped(array, array.shape, before, "wrap", [], "roll")


@prepared
def tile(array: GPUArray, reps: int | Sequence[int]) -> GPUArray:
    """The array repeated as a whole, reps times along each axis; missing axes are added in front on either side."""
    array = check_array(array, "tile")
    times = layout.integers(reps, "tile: reps")
    if any(time < 0 for time in times):
        raise ShapeError(f"tile: repetitions {times} must not be negative")
    ndim = max(array.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    own = (1,) * (ndim - array.ndim) + array.shape
    strides = (0,) * (ndim - array.ndim) + array.strides
    pairs = tuple(extent for pair in zip(times, own, strict=True) for extent in pair)
    steps = tuple(step for k in range(ndim) for step in (0, strides[k]))
    return _repeated(array, pairs, steps, tuple(time * extent for time, extent in zip(times, own, strict=True)), "tile")


@prepared
def repeat(array: GPUArray, repeats: Any, axis: int | None = None) -> GPUArray:
    """Each element (slice along the axis) repeated in place; of the flattened array when axis is None.

    repeats: a number, or one for each slice: a list, a NumPy array, or a GPUArray, which is waited for.
    """
    array = check_array(array, "repeat")
    check_devices("repeat", array)
    if axis is None:
        array, axis = shape.ravel(array), 0
    array = shape.atleast_1d(array)
    axis = normalize_axis(axis, array.ndim, "repeat")
    extent = array.shape[axis]
    if isinstance(repeats, int) or (not is_array(repeats) and getattr(repeats, "ndim", None) == 0):
        repeats = layout.integer(repeats, "repeat: repeats")
    else:
        import numpy as np

        counts = np.asarray(repeats.to_numpy() if is_array(repeats) else repeats)
        if counts.dtype.kind not in "iub" or counts.ndim > 1 or (counts.size not in (1, extent)):
            raise ShapeError(f"repeat: {counts.size} repetitions do not fit axis {axis} with size {extent}")
        if (counts < 0).any():
            raise ShapeError("repeat: repetitions must not be negative")
        if counts.size != 1 or (counts.ndim and extent == 1):
            return indexing.take(array, np.repeat(np.arange(extent), counts.astype(np.int64)), axis)
        repeats = int(counts.reshape(-1)[0])
    if repeats < 0:
        raise ShapeError(f"repeat: {repeats} repetitions must not be negative")
    split = axis + 1
    pairs = (*array.shape[:split], repeats, *array.shape[split:])
    steps = (*array.strides[:split], 0, *array.strides[split:])
    return _repeated(array, pairs, steps, (*array.shape[:axis], extent * repeats, *array.shape[split:]), "repeat")


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for."""
    for item in raw.RAW.values():
        yield (f"pk::remap<{item}>", f"pk::remap_short<{item}>")


def _pairs(value: Any, ndim: int, what: str) -> Any:
    import numpy as np

    try:
        return np.broadcast_to(np.asarray(value, dtype=object), (ndim, 2)).tolist()
    except ValueError:
        raise ShapeError(
            f"pad: {what} {value} is neither a number nor (before, after) nor a pair for each of the {ndim} axes"
        ) from None


def _encoded(value: Any, array: GPUArray) -> bytes:
    return bytes(array.itemsize) if value == 0 else scalars.encode(value, array.dtype)


def _repeated(array: GPUArray, pairs: Shape, steps: Shape, extents: Shape, what: str) -> GPUArray:
    """A new array of `extents`, written through a view of the shape `pairs` from the array read with these steps."""
    check_devices(what, array)
    out = native.empty(extents, array.dtype)
    if out.size:
        keep = [k for k, extent in enumerate(pairs) if extent != 1]  # no more axes than an array may have
        wide = tuple(pairs[k] for k in keep)
        source = native.view(array, wide, [steps[k] for k in keep], array.offset)
        copying.copy_to(source, native.view(out, wide, layout.contiguous_strides(wide, out.itemsize), out.offset))
    return out


def _remapped(
    array: GPUArray, extents: Shape, before: list[int], mode: str, values: list[list[bytes]], what: str
) -> GPUArray:
    out = native.empty(extents, array.dtype)
    if not out.size:
        return out
    if host.computes():
        _remapped_on_host(array, out, before, mode, values, what)
        return out
    dense, start = span(array) if array.size else (out, 0)  # nothing is read of an empty array
    size = array.itemsize
    axes: list[tuple[int, int, int, int, list[bytes]]] = []  # of the result, of the array, step, before, values
    for k, (wide, extent) in enumerate(zip(extents, array.shape, strict=True)):
        axis = (wide, extent, array.strides[k] // size, before[k], values[k] if values else [])
        untouched = wide == extent and not before[k]
        if untouched and axes and axes[-1][0] == axes[-1][1] and not axes[-1][3] and axes[-1][2] == extent * axis[2]:
            axes[-1] = (wide * axes[-1][0], wide * axes[-1][0], axis[2], 0, axis[4])
        elif wide != 1 or not untouched:
            axes.append(axis)
    widths, sizes, steps, shifts, fills = zip(*(axes or [(1, 1, 1, 0, [])]), strict=True)
    packed = _remap(size).pack(
        size=out.size,
        ndim=len(widths),
        start=start,
        span=dense.size,
        continuation=_CONTINUATIONS[mode],
        shape=widths,
        extent=sizes,
        stride=steps,
        before=shifts,
        fill=b"".join(value for own in fills for value in own),
    )
    short = widths[-1] <= _SHORT_ROW
    kernel = f"pk::{'remap_short' if short else 'remap'}<{raw.RAW[size]}>"
    blocks = -(-out.size // (_BLOCK * _APART)) if short else -(-out.nbytes // (_BLOCK * _PACK_BYTES))
    kernels.launch(SOURCE.of(kernel), (blocks, 1, 1), (_BLOCK, 1, 1), dense, out, packed)
    return out


@cache
def _remap(itemsize: int) -> Structure:
    return SOURCE.structure("Remap", T=itemsize)


def _remapped_on_host(
    array: GPUArray, out: GPUArray, before: list[int], mode: str, values: list[list[bytes]], what: str
) -> None:
    import numpy as np

    def compute() -> None:
        elements = host.memory(array)
        if what == "roll":
            host.memory(out)[...] = np.roll(elements, before, tuple(range(array.ndim)))
            return
        widths = [
            (first, wide - extent - first) for first, wide, extent in zip(before, out.shape, array.shape, strict=True)
        ]
        options: dict[str, Any] = {}
        if mode == "constant":
            options["constant_values"] = [
                tuple(np.frombuffer(value, elements.dtype)[0] for value in pair) for pair in values
            ]
        host.memory(out)[...] = np.pad(elements, widths, mode, **options) if array.ndim else elements  # type: ignore[call-overload]

    native.host_launch(what, compute, [array, out])
