"""Elements at computed places of an array: how index arrays say where, and the kernels that read and write there.

Without host.computes() an index out of range is reported through core/deferred.py; NumPy on the simulated device raises
at once. Of several values for one place the last in C order of the index stays, on both: on the device the positions
that lose are found first, through a table of the places with an atomic maximum, whose result no timing changes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.array.layout import Shape
from pygpukit.core import deferred
from pygpukit.core.errors import out_of_range
from pygpukit.ops import host, raw
from pygpukit.ops.elementwise.pointwise import packed_layout
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

    HostArray = np.ndarray[Any, Any]

SOURCE: kernels.KernelSpec = kernels.KernelSpec(__file__, "gather.cu")
_TARGET, _ROWS = SOURCE.structure("Target"), SOURCE.structure("Rows")
MODES = {"raise": 0, "wrap": 1, "clip": 2}  # gather.cu: Mode
OFFSETS = 3
SKIP = struct.unpack("<q", b"\x80" * 8)[0]  # gather.cu: kSkip
_BLOCK = 256
_UNROLL = 4  # gather.cu: kUnroll
_TOGETHER = 4  # gather.cu: indexed_together(), at most
_PACK_BYTES = 16
# Pieces that are put together to packs: of rows and results from so many bytes on, where it pays.
_NARROW = tuple(item for size, item in raw.RAW.items() if size <= 4)
_LONG_ROW, _LARGE = 2048, 1 << 24
_NEAR_BYTES = 24576  # gather.cu: kNearBytes
_NEAR_ELEMENTS = 1024  # of a row, at least
_LITERALS = 448  # gather.cu: kLiterals
_INDEX_TYPES = {"int32": "int", "int64": "long long"}
_TABLE_ROOM = 2  # slots of the table for each position, at least


@dataclass(frozen=True)
class Target:
    """The meaning of index values: they count through axes of these extents and strides (bytes), or are offsets."""

    shape: Shape = ()
    strides: Shape = ()
    axis: int = 0  # the first of them, for errors
    mode: int = OFFSETS
    grain: int = 0  # divides every offset, bytes

    @staticmethod
    def of(shape: Shape, strides: Shape, axis: int, mode: int = 0) -> Target:
        """The target of an index array; several axes count as one."""
        return Target(shape, strides, axis, mode, gcd(*strides))

    @property
    def size(self) -> int:
        """The number of values."""
        return prod(self.shape)

    def pack(self) -> bytes:
        """As the kernels take it."""
        return _TARGET.pack(
            mode=self.mode,
            size=self.size,
            axis=self.axis,
            ndim=len(self.shape),
            shape=self.shape,
            stride=self.strides,
        )


@dataclass(frozen=True)
class Places:
    """`shape` places in an array: each at `offset` plus `strides` (bytes), plus what the index says there.

    The index has as many axes as the shape and broadcasts to it.
    """

    array: GPUArray
    offset: int
    shape: Shape
    strides: Shape
    index: GPUArray
    target: Target

    @property
    def index_strides(self) -> Shape:
        """The index's strides over the shape, bytes."""
        return layout.broadcast_strides(self.index.shape, self.index.strides, self.shape)


# ---- reading and writing ----


def gather(places: Places, out: GPUArray) -> None:
    """out[...] = the elements there; out is dense, of the places' shape and the array's type."""
    if not out.size:
        _check(places)
        return
    if host.computes():

        def compute() -> None:
            host.memory(out)[...] = _elements(places.array)[_positions(places)]

        native.host_launch("gather", compute, [places.array, places.index, out])
        return
    rows = _rows(places, out)
    dense, _ = span(places.array)
    index_type = _INDEX_TYPES[places.index.dtype.name]
    if rows is not None:
        kernel, blocks, packed, row = rows
        args = dense, places.index, out, deferred.report(), packed, places.target.pack()
        form = "rows"
        if kernel in _NARROW and row >= _LONG_ROW and out.nbytes >= _LARGE:
            packs = -(-out.nbytes // _PACK_BYTES) + 1  # one more where the first is not whole
            form, blocks = "packs", -(-packs // (_BLOCK * _UNROLL))
        _launch(f"pk::gather_{form}<{kernel}, {index_type}>", blocks, *args)
        return
    if _is_near(places):
        index, start = span(places.index)
        strides = [places.strides[:-1], _over(places.index_strides[:-1], index.itemsize)]
        packed = layout_fields(places.shape[:-1], (places.offset - dense.offset, start), strides)
        args = dense, index, out, deferred.report(), packed, places.target.pack()
        count = places.shape[-1].to_bytes(8, "little")
        _launch(f"pk::gather_near<{raw.RAW[out.itemsize]}, {index_type}>", out.size // places.shape[-1], *args, count)
        return
    index, packed = _layout(places, dense)
    args = dense, index, out, deferred.report(), packed, places.target.pack()
    together = _BLOCK * min(_TOGETHER, max(1, _PACK_BYTES // out.itemsize))
    _launch(f"pk::gather_strided<{raw.RAW[out.itemsize]}, {index_type}>", -(-out.size // together), *args)


def scatter(places: Places, values: GPUArray) -> None:
    """The elements there = values, of the array's type, broadcast to the places' shape; the last of several stays."""
    size = prod(places.shape)
    if not size:
        _check(places)
        return
    if host.computes():

        def compute() -> None:
            _elements(places.array)[_positions(places)] = host.memory(values)

        native.host_launch("scatter", compute, [places.array, places.index, values])
        return
    spread = layout.broadcast_strides(values.shape, values.strides, places.shape)
    if places.index.size > 1 and any(step and wide != 1 for step, wide in zip(spread, places.index.shape, strict=True)):
        places = _without_losers(places)
    index_type = _INDEX_TYPES[places.index.dtype.name]
    rows = _rows(places, values) if values.shape == places.shape and values.is_contiguous() else None
    dense, _ = span(places.array)
    if rows is not None:
        kernel, blocks, packed, _ = rows
        args = dense, places.index, values, deferred.report(), packed, places.target.pack()
        _launch(f"pk::scatter_rows<{kernel}, {index_type}>", blocks, *args)
        return
    index, packed = _layout(places, dense, values)
    dense_values, _ = span(values)
    args = dense, index, dense_values, deferred.report(), packed, places.target.pack()
    _launch(f"pk::scatter_strided<{raw.RAW[values.itemsize]}, {index_type}>", -(-size // _BLOCK), *args)


def resolved(shape: Shape, strides: Shape, parts: list[tuple[GPUArray, Target]]) -> GPUArray:
    """Byte offsets over a shape: its own strides plus every part's share. Indices have the shape's number of axes."""
    offsets = native.empty(shape, "int64")
    if host.computes():

        def compute() -> None:
            total = _grid(shape, strides)
            for index, target in parts:
                total = total + _shares(host.memory(index), target)
            host.memory(offsets)[...] = total

        native.host_launch("resolve", compute, [offsets, *(index for index, _ in parts)])
        return offsets
    for position, (index, target) in enumerate(parts):
        own = layout.broadcast_strides(index.shape, index.strides, shape)
        dense, start = span(index)
        fields = layout_fields(shape, (0, start), (strides, _over(own, index.itemsize)))
        _launch(
            f"pk::resolve<{_INDEX_TYPES[index.dtype.name]}>",
            -(-offsets.size // _BLOCK),
            *(dense, offsets, deferred.report(), fields, target.pack(), (not position).to_bytes(8, "little")),
        )
    return offsets


def upload(numbers: HostArray) -> GPUArray:
    """An int64 array of numbers of the host. Few of them travel in a launch and wait for nothing; more are copied."""
    out = native.empty(numbers.shape, "int64")
    if host.computes() or numbers.size > _LITERALS:
        if numbers.size:
            native.copy_from_host(out, numbers.astype("int64", order="C", copy=False))
    elif numbers.size:
        packed = numbers.astype("<i8").tobytes().ljust(8 * _LITERALS, b"\0")
        _launch("pk::literals", 1, out, numbers.size.to_bytes(8, "little"), packed)
    return out


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for."""
    for item in raw.RAW.values():
        yield tuple(
            f"pk::{name}_{form}<{item}, {index}>"
            for name in ("gather", "scatter")
            for form in ("rows", "strided")
            for index in _INDEX_TYPES.values()
        )
    for item in raw.RAW.values():
        yield tuple(f"pk::gather_near<{item}, {index}>" for index in _INDEX_TYPES.values())
    yield tuple(f"pk::gather_packs<{item}, {index}>" for item in _NARROW for index in _INDEX_TYPES.values())
    resolving = tuple(f"pk::resolve<{index}>" for index in _INDEX_TYPES.values())
    yield (*resolving, "pk::claim", "pk::settle", "pk::literals")


def _check(places: Places) -> None:
    """An index for which there is nothing to move is still checked."""
    if places.index.size and places.target.mode == MODES["raise"]:
        resolved(places.index.shape, (0,) * places.index.ndim, [(places.index, places.target)])


# ---- with kernels ----


def _without_losers(places: Places) -> Places:
    """The same places, by offsets, where all but the last position of each place is skipped."""
    wide = [extent != 1 for extent in places.index.shape]
    own = tuple(step if is_index else 0 for step, is_index in zip(places.strides, wide, strict=True))
    rest = tuple(0 if is_index else step for step, is_index in zip(places.strides, wide, strict=True))
    offsets = resolved(places.index.shape, own, [(places.index, places.target)])
    slots = 1 << (_TABLE_ROOM * offsets.size - 1).bit_length()
    table = native.empty((2, slots), "int64")
    native.fill(table, SKIP.to_bytes(8, "little", signed=True))
    blocks = -(-offsets.size // _BLOCK)
    numbers = offsets.size.to_bytes(8, "little"), slots.to_bytes(8, "little")
    _launch("pk::claim", blocks, offsets, table, *numbers)
    _launch("pk::settle", blocks, offsets, table, *numbers)
    grain = gcd(places.target.grain, *own)
    return replace(places, strides=rest, index=offsets, target=Target(grain=grain))


def _rows(places: Places, other: GPUArray) -> tuple[str, int, bytes, int] | None:
    """(C++ type of a piece, blocks, gather.cu's Rows, bytes of a row) when places are whole rows; `other` is dense."""
    shape, (steps, index_steps) = layout.collapse(places.shape, [places.strides, places.index_strides])
    axes = list(zip(shape, steps, index_steps, strict=True))
    inner, count, outer, outer_step = places.array.itemsize, 1, 1, 0
    if axes and axes[-1][1:] == (places.array.itemsize, 0):
        inner = axes.pop()[0] * places.array.itemsize
    if axes and axes[-1][1:] == (0, places.index.itemsize):
        count = axes.pop()[0]
    if axes and axes[-1][2] == 0:
        outer, outer_step, _ = axes.pop()
    if axes or (count == 1 and places.index.size != 1) or not places.index.is_contiguous():
        return None
    start = raw.address(places.array) - places.array.offset + places.offset
    piece = raw.widest(inner, outer_step, start, raw.address(other), places.target.grain)
    dense, _ = span(places.array)
    units = inner // piece
    shift = units.bit_length() - 1 if units & (units - 1) == 0 else -1
    packed = _ROWS.pack(
        outer=outer,
        count=count,
        units=units,
        shift=shift,
        outer_step=outer_step,
        start=places.offset - dense.offset,
    )
    return raw.RAW[piece], -(-outer * count * units // (_BLOCK * _UNROLL)), packed, inner


def _is_near(places: Places) -> bool:
    """True if the index picks from the row that it lies in, about as often as the row has elements, and a block can
    keep the row."""
    target, item = places.target, places.array.itemsize
    if target.mode == OFFSETS or target.strides != (item,) or not places.shape or places.strides[-1]:
        return False
    dense = places.index_strides[-1] == places.index.itemsize
    count, size = places.shape[-1], target.size
    return dense and count >= _NEAR_ELEMENTS and size <= 2 * count and size * item <= _NEAR_BYTES


def _layout(places: Places, dense: GPUArray, values: GPUArray | None = None) -> tuple[GPUArray, bytes]:
    """The index's dense storage and the Layout of array (bytes), index and values (elements)."""
    index, start = span(places.index)
    starts = [places.offset - dense.offset, start]
    strides = [places.strides, _over(places.index_strides, places.index.itemsize)]
    if values is not None:
        own = layout.broadcast_strides(values.shape, values.strides, places.shape)
        starts.append(span(values)[1])
        strides.append(_over(own, values.itemsize))
    return index, layout_fields(places.shape, starts, strides)


def layout_fields(shape: Shape, starts: Any, strides: Any) -> bytes:
    """numeric.cuh's Layout, with axes taken together where that changes nothing."""
    extents, steps = layout.collapse(shape, strides)
    return packed_layout(prod(shape), extents, starts, steps)


def _over(strides: Shape, itemsize: int) -> Shape:
    return tuple(step // itemsize for step in strides)


def _launch(expression: str, blocks: int, *args: Any) -> None:
    if blocks:
        kernels.launch(SOURCE.of(expression), (blocks, 1, 1), (_BLOCK, 1, 1), *args)


# ---- with NumPy, inside host launches ----


def _elements(array: GPUArray) -> HostArray:
    """The whole storage in elements of the array's type, counted from where the array's phase in it begins."""
    import numpy as np

    phase = array.offset % array.itemsize
    buffer = native.host_buffer(array)[phase:]
    return np.frombuffer(buffer[: len(buffer) // array.itemsize * array.itemsize], array.dtype.to_numpy_dtype())


def _positions(places: Places) -> HostArray:
    """Positions in _elements() of every place. Raises IndexError."""
    shares = _shares(host.memory(places.index), places.target)
    total = _grid(places.shape, places.strides) + shares + (places.offset - places.offset % places.array.itemsize)
    return total // places.array.itemsize


def _grid(shape: Shape, strides: Shape) -> HostArray:
    import numpy as np

    total = np.zeros(shape, np.int64)
    for axis, (extent, step) in enumerate(zip(shape, strides, strict=True)):
        if step and extent > 1:
            along = [-1 if k == axis else 1 for k in range(len(shape))]
            total += (np.arange(extent, dtype=np.int64) * step).reshape(along)
    return total


def _shares(index: HostArray, target: Target) -> HostArray:
    """Byte offsets of index values. Raises IndexError naming the first that is out of range."""
    import numpy as np

    values = index.astype(np.int64)
    if target.mode == OFFSETS:
        return values
    return offsets_of(values, target)


def offsets_of(values: HostArray, target: Target) -> HostArray:
    """Byte offsets of index values on the host, after checking them. Raises IndexError naming one out of range."""
    import numpy as np

    size = target.size
    if target.mode == MODES["raise"]:
        bad = values[(values < -size) | (values >= size)]
        if bad.size:
            raise out_of_range(int(bad.flat[0]), target.axis, size)
        values = np.where(values < 0, values + size, values)
    elif values.size:
        values = values % size if target.mode == MODES["wrap"] else np.clip(values, 0, size - 1)
    total = np.zeros(values.shape, np.int64)
    for extent, step in zip(reversed(target.shape), reversed(target.strides), strict=True):
        total += values % max(extent, 1) * step
        values = values // max(extent, 1)
    return total
