"""Loads and stores of tiles, by their place in the grid that tiles make of an array, and by places of elements."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from pygpukit.core.errors import DTypeError, GPUError, ShapeError
from pygpukit.cutile.arithmetic import astype
from pygpukit.cutile.block import count_spin, finding, plain, refused
from pygpukit.cutile.dtypes import DType, bool_, check_implicit, int32
from pygpukit.cutile.enums import MemoryOrder, MemoryScope, PaddingMode, order, padding
from pygpukit.cutile.memory import PLAIN, Array
from pygpukit.cutile.races import Order
from pygpukit.cutile.rounding import poison, rounded
from pygpukit.cutile.tile import Tile, kind_of, of, shape_argument

Numbers: TypeAlias = "np.ndarray[Any, Any]"
_HINTS = range(1, 11)


class Slice:
    """A range of an axis for load_advanced_indexing(): elements from start on, a power of two of them."""

    def __init__(self, start: Any, length: Any, /) -> None:
        self.start, self.length = start, length


def load(
    array: Any,
    /,
    index: Any,
    shape: Any,
    *,
    order: Any = "C",
    padding_mode: Any = PaddingMode.UNDETERMINED,
    check_bounds: Any = True,
    latency: Any = None,
    allow_tma: Any = None,
    memory_order: Any = MemoryOrder.WEAK,
    memory_scope: Any = MemoryScope.NONE,
) -> Tile:
    """The tile at an index of the grid that tiles of that shape make of the array."""
    source = array_argument(array, "load")
    extents = shape_argument(shape, "load")
    single = not extents and isinstance(shape, tuple)
    extents = (1,) * source.ndim if single else extents
    how = _order(memory_order, memory_scope, "WEAK RELAXED ACQUIRE", "load")
    check_hints("load", latency)
    if how.acquires:
        count_spin(True)
    coordinates = tile_places("load", source, index, extents, extents, order, check_bounds)
    tile = loaded("load", source, coordinates, extents, padding(padding_mode, source.dtype, "load"), how)
    return Tile(tile.data.reshape(()), tile.dtype, tile.undetermined) if single else tile


def store(
    array: Any,
    /,
    index: Any,
    tile: Any,
    *,
    order: Any = "C",
    check_bounds: Any = True,
    latency: Any = None,
    allow_tma: Any = None,
    memory_order: Any = MemoryOrder.WEAK,
    memory_scope: Any = MemoryScope.NONE,
) -> None:
    """Write the tile at an index of the grid that tiles of its shape make of the array; what is past its end is not."""
    target = array_argument(array, "store")
    value = stored("store", tile, target.dtype)
    value = Tile(value.data.reshape((1,) * target.ndim), value.dtype, value.undetermined) if not value.ndim else value
    how = _order(memory_order, memory_scope, "WEAK RELAXED RELEASE", "store")
    check_hints("store", latency)
    coordinates = tile_places("store", target, index, value.shape, value.shape, order, check_bounds)
    written("store", target, coordinates, value, how)


def gather(
    array: Any,
    indices: Any,
    /,
    *,
    mask: Any = None,
    padding_value: Any = 0,
    check_bounds: Any = True,
    latency: Any = None,
) -> Tile:
    """The elements at places that tiles name, one for each axis; padding_value outside, and where mask is False."""
    source = array_argument(array, "gather")
    check_hints("gather", latency)
    index, inside = element_places("gather", source, indices, mask, check_bounds)
    _check(padding_value, source.dtype, "gather: padding_value")
    fill = astype(padding_value, source.dtype)
    shape = inside.shape
    data = np.array(_spread("gather: padding_value", fill.data, shape))
    unknown = None if fill.undetermined is None else _spread("gather", fill.undetermined, shape) & ~inside
    data[inside] = source.read(tuple(one[inside] for one in index))
    return Tile(data, source.dtype, unknown)


def scatter(
    array: Any, indices: Any, value: Any, /, *, mask: Any = None, check_bounds: Any = True, latency: Any = None
) -> None:
    """Write elements at places that tiles name, one for each axis; none outside, and none where mask is False."""
    target = array_argument(array, "scatter")
    check_hints("scatter", latency)
    index, inside = element_places("scatter", target, indices, mask, check_bounds)
    tile = stored("scatter", value, target.dtype)
    put(target, index, inside, tile, "scatter")


def load_advanced_indexing(
    array: Any,
    indices: Any,
    /,
    *,
    padding_mode: Any = PaddingMode.UNDETERMINED,
    latency: Any = None,
    allow_tma: Any = None,
) -> Tile:
    """The rows, or other slices, that one tile of places names, and ranges of the other axes."""
    what = "load_advanced_indexing"
    source = array_argument(array, what)
    coordinates, shape = _slices(what, source, indices)
    return loaded(what, source, coordinates, shape, padding(padding_mode, source.dtype, what), PLAIN)


def store_advanced_indexing(
    array: Any, indices: Any, tile: Any, /, *, latency: Any = None, allow_tma: Any = None
) -> None:
    """Write the rows, or other slices, that one tile of places names, in ranges of the other axes."""
    what = "store_advanced_indexing"
    target = array_argument(array, what)
    coordinates, shape = _slices(what, target, indices)
    value = stored(what, tile, target.dtype)
    if value.ndim and value.shape != shape:
        raise refused(ShapeError(f"{what}: the tile has shape {value.shape}, the indices name {shape}"))
    written(what, target, coordinates, Tile(_spread(what, value.data, shape), value.dtype, value.undetermined), PLAIN)


def num_tiles(array: Any, /, axis: Any, shape: Any, order: Any = "C") -> Tile:
    """Tiles of that shape along an axis of the grid that they make of an array."""
    source, extents = array_argument(array, "num_tiles"), shape_argument(shape, "num_tiles")
    axes, at = axis_order(order, source.ndim, "num_tiles"), plain(axis, "num_tiles: the axis")
    if len(extents) != source.ndim or not -source.ndim <= at < source.ndim:
        raise refused(ShapeError(f"num_tiles: axis {at} of tiles of shape {extents} in {source.name}, which has "
                                 f"{source.ndim} axes"))  # fmt: skip
    return Tile(np.asarray(-(-source.view.shape[axes[at]] // extents[at]), np.int32), int32)


def array_argument(value: Any, what: str) -> Array:
    """The array of an access. Raises DTypeError for anything else."""
    if not isinstance(value, Array):
        kind = "tile" if isinstance(value, Tile) else type(value).__name__
        raise refused(DTypeError(f"{what}: the first argument is a {kind}; it must be an array of the launch"))
    return value


def axis_order(value: Any, ndim: int, what: str) -> tuple[int, ...]:
    """The axis of the array for each axis of a tile. Raises ShapeError."""
    axes = {"C": tuple(range(ndim)), "F": tuple(range(ndim))[::-1]}.get(value) if isinstance(value, str) else value
    axes = axes if axes is None else tuple(one % ndim if isinstance(one, int) and ndim else one for one in axes)
    if axes is None or sorted(axes) != list(range(ndim)):
        raise refused(ShapeError(f"{what}: order={value!r}; it is 'C', 'F' or each of the {ndim} axes once"))
    return tuple(axes)


def tile_places(
    what: str,
    array: Array,
    index: Any,
    shape: tuple[int, ...],
    steps: tuple[int, ...],
    axes: Any,
    check_bounds: Any,
) -> list[Numbers]:
    """Along each axis of the array the places of a tile, shaped to be broadcast. steps: from one tile to the next.

    Raises KernelCheckError for a tile that lies wholly outside, and for any place outside without check_bounds.
    """
    places = index if isinstance(index, (tuple, list)) else (index,)
    if not len(places) == len(shape) == array.ndim:
        raise refused(ShapeError(f"{what}: {array.name} has {array.ndim} axes, the index {len(places)} and the tile "
                                 f"{len(shape)}"))  # fmt: skip
    order = axis_order(axes, array.ndim, what)
    checked = plain(check_bounds, f"{what}: check_bounds")
    numbers = [of(one, f"{what}: the index").__index__() for one in places]
    coordinates: list[Any] = [None] * array.ndim
    for at, (number, extent, step) in enumerate(zip(numbers, shape, steps, strict=True)):
        along = number * step + np.arange(extent, dtype=np.int64)
        limit = array.view.shape[order[at]]
        if number < 0 or along[0] >= limit or (not checked and along[-1] >= limit):
            whole = "lies wholly outside of" if number < 0 or along[0] >= limit else "goes past the end of"
            hint = "" if checked else ", which check_bounds=False promises not to"
            raise finding(
                "out of bounds",
                f"ct.{what}: the tile {tuple(numbers)} of shape {shape} {whole} {array.name}, of shape "
                f"{array.view.shape}: elements {int(along[0])} to {int(along[-1])} of axis {order[at]}{hint}",
                array.name,
                int(along[0]),
            )
        coordinates[order[at]] = along.reshape([-1 if one == at else 1 for one in range(len(shape))])
    return coordinates


def loaded(
    what: str, array: Array, coordinates: list[Numbers], shape: tuple[int, ...], fill: float | None, how: Order
) -> Tile:
    """The tile of places that may be outside, which the fill stands for; nothing determines those without one."""
    index = tuple(np.broadcast_to(one, shape) for one in coordinates)
    inside = array.inside(index, shape)
    if inside.all():
        return Tile(array.read(index, how), array.dtype)
    if not inside.any():
        raise finding("out of bounds", f"ct.{what}: no element of the tile is inside of {array.name}", array.name)
    data = np.full(shape, rounded(poison(array.dtype) if fill is None else fill, array.dtype))
    data[inside] = array.read(tuple(one[inside] for one in index), how)
    return Tile(data, array.dtype, ~inside if fill is None else None)


def written(what: str, array: Array, coordinates: list[Numbers], tile: Tile, how: Order) -> None:
    """Store a tile at places that may be outside, where nothing is stored."""
    index = tuple(np.broadcast_to(one, tile.shape) for one in coordinates)
    inside = array.inside(index, tile.shape)
    if not inside.any():
        raise finding("out of bounds", f"ct.{what}: no element of the tile is inside of {array.name}", array.name)
    put(array, index, inside, tile, what, how)


def put(array: Array, index: tuple[Numbers, ...], inside: Numbers, tile: Tile, what: str, how: Order = PLAIN) -> None:
    """Store the elements that are inside. Raises KernelCheckError where one is undetermined."""
    data = _spread(f"{what}: the value", tile.data, inside.shape)
    if tile.undetermined is not None:
        bad = _spread(what, tile.undetermined, inside.shape) & inside
        if bad.any():
            place = tuple(int(one[bad][0]) for one in index)
            raise finding(
                "uninitialised",
                f"ct.{what} writes {array.element(place)} a value that depends on elements past the end of an array: "
                "give their load a padding_mode, or mask them",
                array.name,
            )
    if inside.all():
        array.write(index, data, how)
    elif inside.any():
        array.write(tuple(one[inside] for one in index), data[inside], how)


def element_places(
    what: str, array: Array, indices: Any, mask: Any, check_bounds: Any
) -> tuple[tuple[Numbers, ...], Numbers]:
    """The places that tiles of indices name, in their common shape, and which of them are accessed.

    Raises KernelCheckError for an index that nothing determines, and without check_bounds for one that is outside.
    """
    parts = indices if isinstance(indices, (tuple, list)) else (indices,)
    if len(parts) != array.ndim:
        raise refused(ShapeError(f"{what}: {array.name} has {array.ndim} axes; {len(parts)} indices were given"))
    tiles = [of(one, f"{what}: an index") for one in parts]
    for one in tiles:
        if one.dtype.category != "i":
            raise refused(DTypeError(f"{what}: an index is {one.dtype}; indices are integers"))
    try:
        shape = np.broadcast_shapes(*(one.shape for one in tiles))
    except ValueError:
        raise refused(ShapeError(f"{what}: indices of shapes {[one.shape for one in tiles]} do not fit")) from None
    accessed = np.ones(shape, bool)
    if mask is not None:
        chosen = of(mask, f"{what}: mask")
        if chosen.dtype != bool_:
            raise refused(DTypeError(f"{what}: mask is {chosen.dtype}; it must be bool_"))
        accessed = np.array(_spread(f"{what}: mask", chosen.known(f"the mask of ct.{what}"), shape))
    for one in tiles:
        if one.undetermined is not None and (_spread(what, one.undetermined, shape) & accessed).any():
            one.known(f"an index of ct.{what}")
    index = tuple(np.broadcast_to(one.data, shape).astype(np.int64) for one in tiles)
    inside = array.inside(index, shape)
    if not plain(check_bounds, f"{what}: check_bounds") and (accessed & ~inside).any():
        place = tuple(int(one[accessed & ~inside][0]) for one in index)
        raise finding(
            "out of bounds",
            f"ct.{what} of {array.element(place)}, of shape {array.view.shape}, with check_bounds=False",
            array.name,
        )
    return index, accessed & inside


def stored(what: str, value: Any, dtype: DType) -> Tile:
    """A value as the array's type has it. Raises DTypeError where it does not become one by itself."""
    of(value, f"{what}: the value")
    _check(value, dtype, f"{what}: the value")
    return astype(value, dtype)


def check_hints(what: str, latency: Any) -> None:
    """Raises GPUError for a hint that the compiler does not take."""
    if latency is not None and plain(latency, f"{what}: latency") not in _HINTS:
        raise refused(GPUError(f"{what}: latency={latency!r}; it is a whole number from 1 to 10"))


def _order(memory_order: Any, memory_scope: Any, allowed: str, what: str) -> Order:
    return order(memory_order, memory_scope, allowed, what)


def _check(value: Any, dtype: DType, what: str) -> None:
    try:
        check_implicit(kind_of(value), dtype, what)
    except DTypeError as error:
        raise refused(error) from None


def _spread(what: str, data: Numbers, shape: tuple[int, ...]) -> Numbers:
    try:
        return np.broadcast_to(data, shape)
    except ValueError:
        raise refused(ShapeError(f"{what} has shape {data.shape}; it does not fit places of shape {shape}")) from None


def _slices(what: str, array: Array, indices: Any) -> tuple[list[Numbers], tuple[int, ...]]:
    """The places of one tile of indices and of ranges, and the shape of what they name."""
    parts = tuple(indices) if isinstance(indices, (tuple, list)) else (indices,)
    if len(parts) != array.ndim or sum(not isinstance(one, Slice) for one in parts) != 1:
        raise refused(
            ShapeError(f"{what}: {array.name} needs {array.ndim} indices: one tile, and ct.Slice of the others")
        )
    along = []
    for one in parts:
        if isinstance(one, Slice):
            [length] = shape_argument(one.length, what)
            along.append(of(one.start, what).__index__() + np.arange(length, dtype=np.int64))
            continue
        tile = of(one, what)
        if tile.ndim != 1 or tile.dtype.category != "i":
            raise refused(ShapeError(f"{what}: {tile.kind}; places are integers in a tile with one axis"))
        along.append(tile.known(f"an index of ct.{what}").astype(np.int64))
    shape = tuple(one.size for one in along)
    return [one.reshape([-1 if at == axis else 1 for at in range(len(along))]) for axis, one in enumerate(along)], shape
