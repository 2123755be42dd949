"""Views that kernels take of arrays: a range of an axis, a grid of tiles, memory by offset; as methods of Array."""

from __future__ import annotations

from typing import Any

import numpy as np

from pygpukit.core.errors import GPUError, ShapeError
from pygpukit.cutile import atomics
from pygpukit.cutile.access import element_places, loaded, put, stored, tile_places, written
from pygpukit.cutile.arithmetic import astype
from pygpukit.cutile.block import plain, refused
from pygpukit.cutile.dtypes import DType, int32
from pygpukit.cutile.enums import MemoryOrder, MemoryScope, PaddingMode, order, padding
from pygpukit.cutile.memory import PLAIN, Array
from pygpukit.cutile.races import Order
from pygpukit.cutile.shapes import axis_argument, broadcast_to
from pygpukit.cutile.tile import Tile, of, shape_argument

_ATOMIC = Order(True, True, True)


class TiledView:
    """An array as a grid of tiles of one shape, which may overlap or leave gaps."""

    def __init__(self, array: Array, tile_shape: Any, padding_mode: Any, traversal_steps: Any) -> None:
        self._array = array
        self.tile_shape = shape_argument(tile_shape, "tiled_view")
        steps = None if traversal_steps is None else plain(traversal_steps, "tiled_view: traversal_steps")
        steps = self.tile_shape if steps is None else steps if isinstance(steps, tuple) else (steps,)
        if not len(self.tile_shape) == len(steps) == array.ndim or any(one < 1 for one in steps):
            raise refused(ShapeError(f"tiled_view: {array.name} has {array.ndim} axes; tile_shape is {self.tile_shape} "
                                     f"and traversal_steps {steps}"))  # fmt: skip
        self.traversal_steps: tuple[int, ...] = steps
        self._fill = padding(padding_mode, array.dtype, "tiled_view")

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._array.dtype

    def num_tiles(self, axis: Any) -> Tile:
        """Tiles along an axis."""
        at = axis_argument(axis, self._array.ndim, "num_tiles")
        extent, size, step = self._array.view.shape[at], self.tile_shape[at], self.traversal_steps[at]
        count = -(-extent // step) if size >= step else -(-max(0, extent) // step)
        return Tile(np.asarray(count, np.int32), int32)

    def load(self, index: Any, *, check_bounds: Any = True, latency: Any = None, allow_tma: Any = None) -> Tile:
        """The tile at an index of the grid."""
        return loaded("load", self._array, self._places(index, check_bounds), self.tile_shape, self._fill, PLAIN)

    def store(
        self, index: Any, tile: Any, *, check_bounds: Any = True, latency: Any = None, allow_tma: Any = None
    ) -> None:
        """Write the tile at an index of the grid; what is past its end is not."""
        value = broadcast_to(stored("store", tile, self.dtype), self.tile_shape)
        written("store", self._array, self._places(index, check_bounds), value, PLAIN)

    def atomic_store(self, name: str, index: Any, update: Any) -> None:
        """Change the tile at an index of the grid, each element atomically."""
        value = broadcast_to(atomics.operand(name, self.dtype, update), self.tile_shape)
        places = tuple(np.broadcast_to(one, self.tile_shape) for one in self._places(index, True))
        atomics.changed(name, self._array, places, self._array.inside(places, self.tile_shape), value, _ATOMIC)

    def _places(self, index: Any, check_bounds: Any) -> Any:
        steps = self.traversal_steps
        return tile_places("load or store", self._array, index, self.tile_shape, steps, "C", check_bounds)


class RawMemory:
    """The memory of an array, by offsets in elements from its first one."""

    def __init__(self, array: Array) -> None:
        self._array = array.flat()

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._array.dtype

    def load_offset(self, offset: Any, /, *, mask: Any = None, padding_value: Any = 0, latency: Any = None) -> Tile:
        """The elements at offsets; padding_value where mask is False."""
        index, chosen = self._places("load_offset", offset, mask)
        fill = np.array(np.broadcast_to(astype(padding_value, self.dtype).data, chosen.shape))
        fill[chosen] = self._array.read((index[0][chosen],))
        return Tile(fill, self.dtype)

    def store_offset(self, offset: Any, value: Any, /, *, mask: Any = None, latency: Any = None) -> None:
        """Write elements at offsets, none where mask is False."""
        index, chosen = self._places("store_offset", offset, mask)
        put(self._array, index, chosen, stored("store_offset", value, self.dtype), "store_offset")

    def atomic_cas_offset(
        self,
        offset: Any,
        expected: Any,
        desired: Any,
        /,
        *,
        mask: Any = None,
        memory_order: Any = MemoryOrder.ACQ_REL,
        memory_scope: Any = MemoryScope.DEVICE,
    ) -> Tile:
        """ct.atomic_cas() at offsets."""
        how = order(memory_order, memory_scope, atomics.ORDERS, "atomic_cas_offset")
        index, chosen = self._places("atomic_cas_offset", offset, mask)
        return atomics.swapped(self._array, index, chosen, expected, desired, how)

    def atomic(self, name: str, offset: Any, update: Any, mask: Any, memory_order: Any, memory_scope: Any) -> Tile:
        """ct.atomic_add() and its kin at offsets."""
        how = order(memory_order, memory_scope, atomics.ORDERS, f"atomic_{name}_offset")
        index, chosen = self._places(f"atomic_{name}_offset", offset, mask)
        return atomics.changed(name, self._array, index, chosen, atomics.operand(name, self.dtype, update), how)

    def _places(self, what: str, offset: Any, mask: Any) -> Any:
        return element_places(what, self._array, offset, mask, False)


def _store_method(name: str) -> Any:
    def method(self: TiledView, index: Any, update: Any, /) -> None:
        self.atomic_store(name, index, update)

    return method


def _offset_method(name: str) -> Any:
    def method(
        self: RawMemory,
        offset: Any,
        update: Any,
        /,
        *,
        mask: Any = None,
        memory_order: Any = MemoryOrder.ACQ_REL,
        memory_scope: Any = MemoryScope.DEVICE,
    ) -> Tile:
        return self.atomic(name, offset, update, mask, memory_order, memory_scope)

    return method


class KernelArray(Array):
    """Array with the methods that kernels call."""

    def slice(self, axis: Any, start: Any, stop: Any) -> KernelArray:
        """The view of the elements from start to stop of an axis."""
        at = axis_argument(axis, self.ndim, "slice")
        first, last = (of(one, "slice").__index__() for one in (start, stop))
        one = self.part(at, first, last)
        return KernelArray(one.view, one.dtype, one.name, one.region, one.index_dtype)

    def tiled_view(
        self, tile_shape: Any, *, padding_mode: Any = PaddingMode.UNDETERMINED, traversal_steps: Any = None
    ) -> TiledView:
        """The array as a grid of tiles."""
        return TiledView(self, tile_shape, padding_mode, traversal_steps)

    def get_raw_memory(self) -> RawMemory:
        """The memory by offsets in elements."""
        return RawMemory(self)

    @property
    def foreign_pointer(self) -> Any:
        """Refused: the interpreter has no pointers."""
        raise refused(GPUError(f"{self.name}.foreign_pointer: the interpreter has no pointers; see .get_raw_memory()"))


for _name in ("add", "max", "min", "and", "or", "xor"):
    setattr(TiledView, f"atomic_store_{_name}", _store_method(_name))
for _name in ("xchg", "add", "max", "min", "and", "or", "xor"):
    setattr(RawMemory, f"atomic_{_name}_offset", _offset_method(_name))
