"""Arrays as kernels see them: every element read or written is checked for bounds and races."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pygpukit.core.errors import GPUError, ShapeError
from pygpukit.cutile.block import finding, refused
from pygpukit.cutile.dtypes import DType, int32
from pygpukit.cutile.races import Elements, History, Order
from pygpukit.cutile.rounding import decoded, encoded
from pygpukit.cutile.tile import Tile

Numbers: TypeAlias = "np.ndarray[Any, Any]"
Index: TypeAlias = "tuple[Numbers, ...]"
PLAIN = Order()


@dataclass(frozen=True)
class Region:
    """Memory that arguments share. start: its address. unit: bytes of what is tracked."""

    start: int
    unit: int
    elements: Elements


class Array:
    """An array in a kernel. view: its elements as memory holds them."""

    def __init__(self, view: Numbers, dtype: DType, name: str, region: Region, index_dtype: DType = int32) -> None:
        self.view, self.name, self.region, self.dtype = view, name, region, dtype
        self.index_dtype = index_dtype

    @property
    def ndim(self) -> int:
        """Number of axes, known when a kernel is compiled."""
        return self.view.ndim

    @property
    def shape(self) -> tuple[Tile, ...]:
        """Extents, known when a kernel runs."""
        return tuple(self._number(one) for one in self.view.shape)

    @property
    def strides(self) -> tuple[Tile, ...]:
        """Elements from one index to the next, known when a kernel runs."""
        return tuple(self._number(one // self.view.itemsize) for one in self.view.strides)

    def part(self, axis: int, start: int, stop: int) -> Array:
        """The view of a range of an axis. Raises KernelCheckError outside of it."""
        if not (0 <= start <= stop <= self.view.shape[axis]):
            raise finding(
                "out of bounds",
                f"slice {start}:{stop} of axis {axis} of {self.name}, which has {self.view.shape[axis]} elements",
                self.name,
            )
        view = self.view[(slice(None),) * axis + (slice(start, stop),)]
        return Array(view, self.dtype, self.name, self.region, self.index_dtype)

    def flat(self) -> Array:
        """The memory from the first element on, as raw accesses by offset see it."""
        view = self.view
        if view.size and any(step < 0 for step in view.strides):
            raise refused(ShapeError(f"{self.name}: a view that goes backwards has no raw memory"))
        last = sum((extent - 1) * step for extent, step in zip(view.shape, view.strides, strict=True))
        count = last // view.itemsize + 1 if view.size else 0
        raw = np.lib.stride_tricks.as_strided(view, (count,), (view.itemsize,))
        return Array(raw, self.dtype, self.name, self.region, self.index_dtype)

    def read(self, index: Index, order: Order = PLAIN) -> Numbers:
        """The numbers at places that are inside."""
        self.touch(index, False, order)
        return self.peek(index)

    def write(self, index: Index, numbers: Numbers, order: Order = PLAIN) -> None:
        """Store numbers of the array's type at places that are inside."""
        if not self.view.flags.writeable:
            raise refused(GPUError(f"{self.name} is an array of NumPy that cannot be written; pass a copy"))
        units = self.touch(index, True, order)
        elements = encoded(np.broadcast_to(numbers, index[0].shape if index else ()), self.dtype)
        if not order.atomic:
            self._check_repeated(units, elements, index)
        self.view[index] = elements

    def peek(self, index: Index) -> Numbers:
        """The numbers at places, whose access has been looked at."""
        return decoded(self.view[index], self.dtype)

    def update(self, index: Index, numbers: Numbers) -> None:
        """Store what an atomic operation gave, whose access has been looked at."""
        self.view[index] = encoded(numbers, self.dtype)

    def inside(self, index: Iterable[Numbers], shape: tuple[int, ...]) -> Numbers:
        """True for the places that the array has."""
        ok = np.ones(shape, bool)
        for numbers, extent in zip(index, self.view.shape, strict=True):
            ok &= (numbers >= 0) & (numbers < extent)
        return ok

    def element(self, place: Iterable[Any]) -> str:
        """ "x[3, 5]"."""
        numbers = ", ".join(str(int(one)) for one in place)
        return f"{self.name}[{numbers or '()'}]"

    def touch(self, index: Index, writes: bool, order: Order) -> Numbers:
        """Look at an access: the units of memory that it touches. Raises KernelCheckError for a race."""
        units = self._units(index)
        conflict = self.region.elements.access(units.reshape(-1), writes, order)
        if conflict is not None:
            per = units.size // max(1, index[0].size if index else 1)
            at = conflict.at // per
            name = self.element(one.reshape(-1)[at] for one in index)
            did = f"{'writes' if writes else 'reads'} {name}{' atomically' if order.atomic else ''}"
            raise finding(
                "race",
                f"{did}, which block {conflict.block} {conflict.did} at {conflict.where}; nothing orders the two: let "
                "blocks write apart, or use ct.atomic_* on both sides",
                self.name,
                int(at),
            )
        return units

    def _units(self, index: Index) -> Numbers:
        start = self.view.__array_interface__["data"][0] - self.region.start
        places = np.full(index[0].shape if index else (), start, np.int64)
        for numbers, step in zip(index, self.view.strides, strict=True):
            places = places + numbers * step
        units = places // self.region.unit
        more = self.view.itemsize // self.region.unit
        return units if more == 1 else units[..., None] + np.arange(more)

    def _check_repeated(self, units: Numbers, elements: Numbers, index: Index) -> None:
        """Raises KernelCheckError where one store gives one element two values."""
        first = units.reshape(elements.size, -1)[:, 0] if elements.size else units.reshape(-1)
        _, places, again = np.unique(first, return_index=True, return_inverse=True)
        if places.size == first.size:
            return
        flat = elements.reshape(-1)
        differs = flat != flat[places[again.reshape(-1)]]
        if differs.any():
            at = int(np.argmax(differs))
            name = self.element(one.reshape(-1)[at] for one in index)
            raise finding("race", f"one store gives {name} two values; which of them stays is not said", self.name, at)

    def _number(self, value: int) -> Tile:
        return Tile(np.asarray(value, self.index_dtype.host), self.index_dtype)


class ArrayList:
    """A list of arrays, of which a kernel takes one by an index that is known when it runs."""

    def __init__(self, arrays: list[Array], name: str) -> None:
        self._arrays, self._name = arrays, name

    def __len__(self) -> int:
        return len(self._arrays)

    def __getitem__(self, index: Any) -> Array:
        number = index.__index__()
        if not 0 <= number < len(self._arrays):
            raise finding("out of bounds", f"{self._name}[{number}] of {len(self._arrays)} arrays", self._name)
        return self._arrays[number]


def regions(views: list[tuple[Numbers, str]], history: History) -> list[Region]:
    """The region of each argument; arguments whose memory overlaps have one together."""
    spans = [_span(view) for view, _ in views]
    order = sorted(range(len(views)), key=lambda at: spans[at])
    groups: list[tuple[int, int, list[int]]] = []
    for at in order:
        start, stop = spans[at]
        if groups and start < groups[-1][1]:
            first, last, members = groups[-1]
            groups[-1] = (first, max(last, stop), [*members, at])
        else:
            groups.append((start, stop, [at]))
    out: dict[int, Region] = {}
    for start, stop, members in groups:
        sizes = {views[at][0].itemsize for at in members}
        steps = {step for at in members for step in views[at][0].strides}
        starts = {spans[at][0] - start for at in members}
        unit = sizes.pop() if len(sizes) == 1 else 1
        unit = 1 if any(one % unit for one in (*steps, *starts)) else unit
        region = Region(start, unit, Elements((stop - start) // unit, history))
        out.update((at, region) for at in members)
    return [out[at] for at in range(len(views))]


def _span(view: Numbers) -> tuple[int, int]:
    """Addresses of the first byte, and of that behind the last."""
    start = int(view.__array_interface__["data"][0])
    if not view.size:
        return start, start
    low = sum(min(0, (extent - 1) * step) for extent, step in zip(view.shape, view.strides, strict=True))
    high = sum(max(0, (extent - 1) * step) for extent, step in zip(view.shape, view.strides, strict=True))
    return start + low, start + high + view.itemsize
