"""Along an axis of a tile: sums and other reductions, scans, and those with a function of the kernel's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.cutile.arithmetic import astype, flushed, together
from pygpukit.cutile.block import plain, refused
from pygpukit.cutile.dtypes import bool_, int32
from pygpukit.cutile.rounding import rounded
from pygpukit.cutile.shapes import axis_argument, moved
from pygpukit.cutile.tile import Tile, of

Array: TypeAlias = "np.ndarray[Any, Any]"
_REDUCTIONS = {"sum": np.add, "prod": np.multiply, "max": np.fmax, "min": np.fmin}
_NAN_WINS = {"max": np.maximum, "min": np.minimum}


def reduction(
    name: str, x: Any, axis: Any, keepdims: Any, *, flush_to_zero: bool = False, propagate_nan: bool = False
) -> Tile:
    """The sum, product, maximum or minimum along an axis, several or all; bools count as int32."""
    tile = _numbers(name, x)
    axes = _axes(name, axis, tile.ndim)
    function = (_NAN_WINS.get(name) if propagate_nan else None) or _REDUCTIONS[name]
    data = flushed(tile.data) if flush_to_zero else tile.data
    if data.dtype == np.float16 and name in ("sum", "prod"):
        data = data.astype(np.float32)  # the order of additions is the device's own: its roundings cannot be followed
    keep = bool(plain(keepdims, f"{name}: keepdims"))
    options: dict[str, Any] = {"axis": axes, "keepdims": keep}
    if name in ("sum", "prod"):
        options["dtype"] = data.dtype
    with np.errstate(all="ignore"):
        result = rounded(function.reduce(data, **options) if axes else data, tile.dtype)
    unknown = None if tile.undetermined is None else tile.undetermined.any(axis=axes, keepdims=keep)
    return Tile(np.asarray(flushed(result) if flush_to_zero else result), tile.dtype, _array(unknown))


def place_of(name: str, x: Any, axis: Any, keepdims: Any, *, propagate_nan: bool = False) -> Tile:
    """argmax, argmin: the first place of the largest or smallest element, int32."""
    tile = _numbers(name, x)
    keep = bool(plain(keepdims, f"{name}: keepdims"))
    shape = (1,) * tile.ndim
    if axis is None:
        tile, at = moved(tile, lambda data: data.reshape(-1)), 0
    else:
        at = axis_argument(axis, tile.ndim, name)
    data = tile.data
    if data.dtype.kind == "f":
        worst = -np.inf if name == "argmax" else np.inf
        data = np.where(np.isnan(data), -worst if propagate_nan else worst, data)
        if propagate_nan:  # the first NaN wins over every number
            some = np.isnan(tile.data).any(at, keepdims=True)
            data = np.where(some, np.where(np.isnan(tile.data), -worst, worst), data)
    function = np.argmax if name == "argmax" else np.argmin
    result = function(data, axis=at, keepdims=keep)
    unknown = None if tile.undetermined is None else tile.undetermined.any(at, keepdims=keep)
    if axis is None and keep:
        result, unknown = np.reshape(result, shape), None if unknown is None else np.reshape(unknown, shape)
    return Tile(np.asarray(result, np.int32), int32, _array(unknown))


def cumulative(name: str, x: Any, axis: Any, reverse: Any, *, flush_to_zero: bool = False) -> Tile:
    """cumsum, cumprod: with every element the sum or product of those up to it."""
    tile = _numbers(name, x)
    at = axis_argument(axis, tile.ndim, name)
    function = np.add if name == "cumsum" else np.multiply
    flip = bool(plain(reverse, f"{name}: reverse"))

    def along(data: Array, step: Callable[..., Array]) -> Array:
        ordered = np.flip(data, at) if flip else data
        result = step(ordered, axis=at)
        return np.flip(result, at) if flip else result

    data = flushed(tile.data) if flush_to_zero else tile.data
    wide = data.astype(np.float32) if data.dtype == np.float16 else data
    with np.errstate(all="ignore"):
        result = rounded(along(wide, lambda one, axis: function.accumulate(one, axis, dtype=one.dtype)), tile.dtype)
    unknown = None if tile.undetermined is None else along(tile.undetermined, np.logical_or.accumulate)
    return Tile(result, tile.dtype, unknown)


def reduce(x: Any, /, axis: Any, func: Any, identity: Any, *, keepdims: Any = False) -> Any:
    """A reduction by the kernel's own function, halves of the axis with each other; identity is not needed here."""
    tiles, at, single = _operands("reduce", x, axis)
    while tiles[0].shape[at] > 1:
        half = tiles[0].shape[at] // 2
        first = tuple(_cut(one, at, 0, half) for one in tiles)
        second = tuple(_cut(one, at, half, 2 * half) for one in tiles)
        tiles = _combined("reduce", func, first, second, single)
    if not plain(keepdims, "reduce: keepdims"):
        tiles = tuple(moved(one, lambda data: data.squeeze(at)) for one in tiles)
    return tiles[0] if single else tiles


def scan(x: Any, /, axis: Any, func: Any, identity: Any, *, reverse: Any = False) -> Any:
    """With every element the kernel's own function of those up to it; identity is not needed here."""
    tiles, at, single = _operands("scan", x, axis)
    order = range(tiles[0].shape[at])
    steps = list(reversed(order)) if plain(reverse, "scan: reverse") else list(order)
    so_far = tuple(_cut(one, at, steps[0], steps[0] + 1) for one in tiles)
    parts = {steps[0]: so_far}
    for step in steps[1:]:
        so_far = _combined("scan", func, so_far, tuple(_cut(one, at, step, step + 1) for one in tiles), single)
        parts[step] = so_far
    joined = tuple(_joined([parts[step][which] for step in order], at) for which in range(len(tiles)))
    return joined[0] if single else joined


def _numbers(name: str, x: Any) -> Tile:
    tile = of(x, name)
    if tile.dtype.kind == "r":
        raise refused(DTypeError(f"{name}: {tile.dtype} does no arithmetic; convert it by .astype()"))
    return astype(tile, int32) if tile.dtype == bool_ else tile


def _axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(axis_argument(one, ndim, name) for one in (axis if isinstance(axis, tuple) else (axis,)))


def _operands(name: str, x: Any, axis: Any) -> tuple[tuple[Tile, ...], int, bool]:
    tiles = tuple(of(one, name) for one in (x if isinstance(x, tuple) else (x,)))
    shape = np.broadcast_shapes(*(one.shape for one in tiles))
    tiles = tuple(moved(one, lambda data: np.broadcast_to(data, shape)) for one in tiles)
    return tiles, axis_argument(axis, len(shape), name), not isinstance(x, tuple)


def _cut(tile: Tile, axis: int, start: int, stop: int) -> Tile:
    part = (slice(None),) * axis + (slice(start, stop),)
    return moved(tile, lambda data: data[part])


def _combined(
    name: str, func: Any, first: tuple[Tile, ...], second: tuple[Tile, ...], single: bool
) -> tuple[Tile, ...]:
    """One step of the kernel's own function, on all other axes at a time. Raises ShapeError for what is no result."""
    result = func(*first, *second)
    values = (result,) if single else result
    if not isinstance(values, tuple) or len(values) != len(first):
        raise refused(ShapeError(f"{name}: the function must give {len(first)} values, not {result!r:.60}"))
    out = tuple(astype(of(one, name), old.dtype) for one, old in zip(values, first, strict=True))
    return tuple(
        moved(one, lambda data, shape=old.shape: np.broadcast_to(data, shape))
        for one, old in zip(out, first, strict=True)
    )


def _joined(tiles: list[Tile], axis: int) -> Tile:
    masks = [together("scan", (one,), one.dtype)[1] for one in tiles]
    unknown = None
    if any(mask is not None for mask in masks):
        filled = [np.zeros(tile.shape, bool) if mask is None else mask for tile, mask in zip(tiles, masks, strict=True)]
        unknown = np.concatenate(filled, axis)
    return Tile(np.concatenate([one.data for one in tiles], axis), tiles[0].dtype, unknown)


def _array(mask: Any) -> Array | None:
    return None if mask is None else np.asarray(mask)
