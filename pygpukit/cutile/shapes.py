"""Shapes of tiles: moving, joining and cutting elements, and reading their bits as another type."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.cutile.arithmetic import astype, common_type
from pygpukit.cutile.block import plain, refused
from pygpukit.cutile.dtypes import DType, bool_, uint8
from pygpukit.cutile.rounding import decoded, encoded, rounded
from pygpukit.cutile.tile import Tile, dtype_argument, of, shape_argument

Array: TypeAlias = "np.ndarray[Any, Any]"


def moved(tile: Tile, move: Any) -> Tile:
    """The tile with its elements, and what is known of them, moved by one function."""
    return Tile(move(tile.data), tile.dtype, None if tile.undetermined is None else move(tile.undetermined))


def axis_argument(axis: Any, ndim: int, what: str) -> int:
    """An axis that a kernel names, from 0. Raises ShapeError."""
    number = plain(axis, f"{what}: the axis")
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not -ndim <= number < ndim:
        raise refused(ShapeError(f"{what}: axis {number!r} of a tile with {ndim} axes"))
    return int(number) % ndim


def arange(size: Any, /, *, dtype: Any, start: Any = 0, step: Any = 1) -> Tile:
    """start, start + step, ... in a tile with one axis."""
    [count] = shape_argument(size, "arange")
    target = dtype_argument(dtype)
    first, increment = (of(one, "arange").scalar("arange: start and step") for one in (start, step))
    return Tile(rounded(first + increment * np.arange(count), target), target)


def full(shape: Any, fill_value: Any, dtype: Any) -> Tile:
    """A tile of one value."""
    extents, target = shape_argument(shape, "full"), dtype_argument(dtype)
    return moved(astype(fill_value, target), lambda data: np.broadcast_to(data.reshape(()), extents))


def astile(value: Any, /, *, dtype: Any) -> Tile:
    """Numbers in nested tuples, or one number, as a tile."""
    target = dtype_argument(dtype)
    if isinstance(value, tuple):
        parts = [astile(one, dtype=target) for one in value]
        if len({one.shape for one in parts}) != 1 or len(parts) & (len(parts) - 1):
            raise refused(ShapeError(f"astile: {len(parts)} parts; tuples have one shape and a power of two of parts"))
        unknown = np.stack([np.zeros(one.shape, bool) if one.undetermined is None else one.undetermined
                            for one in parts])  # fmt: skip
        return Tile(np.stack([one.data for one in parts]), target, unknown)
    tile = astype(value, target)
    if tile.ndim:
        raise refused(ShapeError(f"astile: {tile.kind}, is no scalar"))
    return tile


def broadcast_to(x: Any, /, shape: Any) -> Tile:
    """The tile repeated along axes of extent 1 and new ones in front."""
    tile, extents = of(x, "broadcast_to"), shape_argument(shape, "broadcast_to")
    try:
        return moved(tile, lambda data: np.broadcast_to(data, extents))
    except ValueError:
        raise refused(ShapeError(f"broadcast_to: a tile of shape {tile.shape} does not become {extents}")) from None


def reshape(x: Any, /, shape: Any) -> Tile:
    """The same elements in another shape; one extent may be -1."""
    tile, extents = of(x, "reshape"), shape_argument(shape, "reshape", whole=True)
    try:
        return moved(tile, lambda data: data.reshape(extents))
    except ValueError:
        raise refused(ShapeError(f"reshape: a tile of shape {tile.shape} does not become {extents}")) from None


def permute(x: Any, /, axes: Any) -> Tile:
    """The axes in another order."""
    tile = of(x, "permute")
    order = [axis_argument(one, tile.ndim, "permute") for one in axes]
    if sorted(order) != list(range(tile.ndim)):
        raise refused(ShapeError(f"permute: {tuple(axes)} does not name each of the {tile.ndim} axes once"))
    return moved(tile, lambda data: data.transpose(order))


def transpose(x: Any, /, axis0: Any = None, axis1: Any = None) -> Tile:
    """Two axes swapped; of a tile with two axes both need not be named."""
    tile = of(x, "transpose")
    if axis0 is None and axis1 is None and tile.ndim == 2:
        axis0, axis1 = 0, 1
    if axis0 is None or axis1 is None:
        raise refused(ShapeError(f"transpose: a tile of shape {tile.shape}; name the two axes to swap"))
    first, second = (axis_argument(one, tile.ndim, "transpose") for one in (axis0, axis1))
    return moved(tile, lambda data: data.swapaxes(first, second))


def expand_dims(x: Any, /, axis: Any) -> Tile:
    """A new axis of extent 1."""
    tile = of(x, "expand_dims")
    at = axis_argument(axis, tile.ndim + 1, "expand_dims")
    return moved(tile, lambda data: np.expand_dims(data, at))


def indexed(tile: Tile, key: Any) -> Tile:
    """tile[:, None]: new axes alone."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(part is not None and part is not Ellipsis and part != slice(None) for part in parts):
        raise refused(ShapeError(f"tiles take None, ':' and '...' as index, not {key!r}; see ct.extract()"))
    try:
        return moved(tile, lambda data: data[parts])
    except IndexError as error:
        raise refused(ShapeError(f"index {key!r} of a tile of shape {tile.shape}: {error}")) from None


def cat(tiles: Any, /, axis: Any) -> Tile:
    """Two tiles of one shape, one behind the other along an axis."""
    pair = tuple(tiles)
    if len(pair) != 2:
        raise refused(ShapeError(f"cat joins a pair of tiles, not {len(pair)}"))
    left, right = (of(one, "cat") for one in pair)
    if left.shape != right.shape:
        raise refused(ShapeError(f"cat: tiles of shapes {left.shape} and {right.shape}; they must have one shape"))
    dtype, at = common_type("cat", left, right), axis_argument(axis, left.ndim, "cat")
    unknown = np.concatenate([np.zeros(one.shape, bool) if one.undetermined is None else one.undetermined
                              for one in (left, right)], at)  # fmt: skip
    return Tile(np.concatenate([astype(one, dtype).data for one in (left, right)], at), dtype, unknown)


def extract(x: Any, /, index: Any, shape: Any) -> Tile:
    """The part of a tile at an index of the grid that parts of that shape make."""
    tile, extents = of(x, "extract"), shape_argument(shape, "extract")
    part = _part(tile, index, extents, "extract")
    return moved(tile, lambda data: data[part])


def insert(x: Any, /, index: Any, value: Any) -> Tile:
    """The tile with one part replaced."""
    tile = of(x, "insert")
    if isinstance(value, Tile) and value.dtype != tile.dtype:
        raise refused(DTypeError(f"insert: the part is {value.dtype}, the tile {tile.dtype}; they must have one type"))
    one = astype(value, tile.dtype)
    one = one if one.ndim else reshape(one, (1,) * tile.ndim)
    part = _part(tile, index, one.shape, "insert")
    data, unknown = tile.data.copy(), np.zeros(tile.shape, bool)
    data[part] = one.data
    if tile.undetermined is not None:
        unknown[...] = tile.undetermined
    unknown[part] = False if one.undetermined is None else one.undetermined
    return Tile(data, tile.dtype, unknown)


def bitcast(x: Any, /, dtype: Any) -> Tile:
    """The bits read as another type of as many."""
    tile, target = of(x, "bitcast"), dtype_argument(dtype)
    if bool_ in (tile.dtype, target) or tile.dtype.bitwidth != target.bitwidth:
        raise refused(DTypeError(f"bitcast: {tile.dtype} cannot be read as {target}: types of as many bits can"))
    return Tile(_read(_bits(tile), target).reshape(tile.shape), target, tile.undetermined)


def pack_to_bytes(x: Any, /) -> Tile:
    """The bytes of all elements, in one axis."""
    tile = of(x, "pack_to_bytes")
    size = _whole_bytes(tile.dtype, "pack_to_bytes")
    unknown = None if tile.undetermined is None else np.repeat(tile.undetermined.ravel(), size)
    return Tile(_bits(tile).view(np.uint8), uint8, unknown)


def unpack_from_bytes(x: Any, /, dtype: Any) -> Tile:
    """Bytes in one axis read as a type."""
    tile, target = of(x, "unpack_from_bytes"), dtype_argument(dtype)
    size = _whole_bytes(target, "unpack_from_bytes")
    if tile.dtype != uint8 or tile.ndim != 1 or tile.shape[0] % size:
        raise refused(ShapeError(f"unpack_from_bytes: {tile.kind}; it must be uint8 with one axis, whole elements"))
    unknown = None if tile.undetermined is None else np.asarray(tile.undetermined.reshape(-1, size).any(1))
    return Tile(_read(tile.data, target), target, unknown)


def _part(tile: Tile, index: Any, shape: tuple[int, ...], what: str) -> tuple[slice, ...]:
    places = index if isinstance(index, (tuple, list)) else (index,)
    if not len(places) == len(shape) == tile.ndim or any(a % b for a, b in zip(tile.shape, shape, strict=True)):
        raise refused(ShapeError(f"{what}: parts of shape {shape} at {tuple(places)} of a tile of shape {tile.shape}"))
    numbers = [of(one, what).__index__() for one in places]
    for axis, (number, extent, whole) in enumerate(zip(numbers, shape, tile.shape, strict=True)):
        if not 0 <= number < whole // extent:
            raise refused(ShapeError(f"{what}: index {number} of axis {axis}, which has {whole // extent} parts"))
    return tuple(slice(number * extent, (number + 1) * extent) for number, extent in zip(numbers, shape, strict=True))


def _whole_bytes(dtype: DType, what: str) -> int:
    if dtype == bool_ or dtype.bitwidth % 8:
        raise refused(DTypeError(f"{what}: {dtype} has no whole bytes"))
    return dtype.bitwidth // 8


def _bits(tile: Tile) -> Array:
    """The elements' bits, in one axis."""
    elements = tile.data if tile.dtype.name == "tfloat32" else encoded(tile.data, tile.dtype)
    return np.ascontiguousarray(elements).reshape(-1)


def _read(bits: Array, dtype: DType) -> Array:
    if dtype.name == "tfloat32":
        return bits.view(np.float32)
    host = {"bfloat16": "uint16"}.get(dtype.name, "uint8" if dtype.kind == "r" else dtype.host)
    return decoded(bits.view(host), dtype)
