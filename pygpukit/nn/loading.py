"""Tensors of a checkpoint as arrays and layers on the device, named after model and layer, with a bar that tells.

Tensors are read and converted by several threads, while those before them are copied to the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import as_dtype, float32, uint8
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.models.convert import convert
from pygpukit.models.dequantise import named
from pygpukit.nn.linear import in_blocks, in_tiles
from pygpukit.nn.linear.blocks import KINDS, Blocks, Part
from pygpukit.nn.linear.codes import Int8
from pygpukit.nn.linear.int8 import LinearInt8
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.norm import Norm
from pygpukit.nn.reads import Read, TensorReads
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.models.stored import Stored
    from pygpukit.nn.reads import OnProgress


class TensorShapeError(ShapeError, InvalidSpecError):
    """A tensor of a file has another shape than its configuration says."""


class TensorLoader:
    """Reads tensors of one checkpoint, inside of `with`: at its end all of them are on the device.

    Memory is named after the model and the place: "smollm2/layers.03/qkv".

    prefix: what the file's names have before those that are asked for. transposed: weights are (in, out) in the file.
    what: what needs the tensors, for errors. keeps: whether weights of products stay as they are stored, where products
    read them: of float32 on the simulated device, with the bits of their values, and of bfloat16 on others. rounds:
    whether products are of int8 where the file has the rows that go into them rounded, too.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        dtype: str,
        title: str,
        progress: bool | OnProgress,
        *,
        prefix: str = "",
        transposed: bool = False,
        what: str = "model",
        keeps: bool = False,
        rounds: bool = False,
    ) -> None:
        self._checkpoint, self._dtype, self._title = checkpoint, as_dtype(dtype), title
        self._kinds = _read_in_products(self._dtype) if keeps else frozenset()
        self._rounds = rounds
        self._prefix, self._transposed, self._what = prefix, transposed, what
        self._names = set(checkpoint.names())
        self._total = sum(self._size(name) for name in self._names)
        self._reads = TensorReads(title, self._total, progress)
        self.placed = 0  # bytes of the arrays that it made
        self.expanded: dict[str, tuple[int, int]] = {}  # by kind of few bits: bytes in the file, and on the device
        self.reordered = 0  # bytes of weights whose columns lie by their groups of scales, not as in the file
        self.tiles = keeps and not host.computes()  # whether products have blocks by tiles, where these take them
        self.pending: list[tuple[Part, int]] = []  # parts, and their columns, that are to lie by tiles at the end

    def __enter__(self) -> None:
        self._reads.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reads.__exit__(kind, error, trace)
        if kind is None:
            for part, columns in self.pending:
                in_tiles.arrange(part.kind, part.array, columns)
        self.pending.clear()

    def linear(
        self, label: str, columns: int, parts: Sequence[tuple[str | None, str | None, int]], *, as_one: bool = False
    ) -> LinearBF16:
        """One weight from one or more tensors, below each other, with their biases where the file has any. as_one:
        kernels read it as it is stored only where all tensors are of one kind, with their columns in order."""
        rows = sum(count for *_, count in parts)
        biased = any(self.has(bias) for _, bias, _ in parts)
        bias = self._array((rows,), f"{label}.bias") if biased else None
        if bias is not None:
            native.fill(bias, bytes(bias.itemsize))
        if self._rounds:
            int8 = self._int8(label, columns, parts, bias)
            if int8 is not None:
                return int8
        kept = [
            (self._kept(tensor, self._in_file(count, columns), self._transposed), count) for tensor, _, count in parts
        ]
        blocks = [(stored, count) for stored, count in kept if stored is not None]
        if as_one and any(stored.kind != blocks[0][0].kind or stored.order is not None for stored, _ in blocks):
            blocks = []
        weight: GPUArray | Blocks = (
            self._blocks(f"{label}.weight", columns, blocks, self.tiles and not as_one)
            if len(blocks) == len(parts)
            else self._array((rows, columns), f"{label}.weight")
        )
        start = 0
        for tensor, bias_tensor, count in parts:
            self._copy_rows(str(tensor), weight, start, count, self._transposed)
            if bias is not None and self.has(bias_tensor):
                self._copy(str(bias_tensor), (count,), bias[start : start + count])
            start += count
        return LinearBF16(weight, bias)

    def _int8(
        self, label: str, columns: int, parts: Sequence[tuple[str | None, str | None, int]], bias: GPUArray | None
    ) -> LinearInt8 | None:
        """The product of linear() by int8; None where the file's weights are others. Raises InvalidSpecError where one
        is and another is not, or rows are rounded differently."""
        kept = [self._stored_as(tensor, self._in_file(count, columns), self._transposed) for tensor, _, count in parts]
        ways = {"16 bits" if one is None or one.int8 is None else one.int8.row_scale for one in kept}
        if ways == {"16 bits"}:
            return None
        if len(ways) > 1:
            names = ", ".join(str(tensor) for tensor, *_ in parts)
            raise InvalidSpecError(
                f"{self._title}: {names} are multiplied with the same rows, and would have these rounded to int8 with "
                f"{' and '.join(sorted(_way(way) for way in ways))}; load the "
                "model without activations=", "activations",
            )  # fmt: skip
        rows = sum(count for *_, count in parts)
        codes = self._array((rows, columns), f"{label}.weight", as_dtype("int8"))
        scales = self._array((rows,), f"{label}.scales", float32)
        start = 0
        for (tensor, bias_tensor, count), stored in zip(parts, kept, strict=True):
            assert stored is not None and stored.int8 is not None
            own, name = slice(start, start + count), self._prefix + str(tensor)
            self._reads.begin(Read(name, codes[own], stored.int8.codes))
            self._reads.begin(Read(name, scales[own], stored.int8.scales))
            if bias is not None and self.has(bias_tensor):
                self._copy(str(bias_tensor), (count,), bias[own])
            start += count
        (row_scale,) = ways
        assert row_scale is None or isinstance(row_scale, float)
        return LinearInt8(Int8.of(codes, scales, self._dtype, row_scale), bias)

    def rows(self, tensor: str, label: str, shape: tuple[int, int], *, multiplied: bool = False) -> GPUArray | Blocks:
        """One tensor whose rows are looked up, or also multiplied with: as it is stored where it may be."""
        stored = self._kept(tensor, shape, False)
        if stored is None:
            return self.table(tensor, label, shape)
        weight = self._blocks(label, shape[1], [(stored, shape[0])], self.tiles and multiplied)
        self._copy_rows(tensor, weight, 0, shape[0], False)
        return weight

    def norm_of(
        self,
        weight: str,
        bias: str | None,
        label: str,
        size: int,
        kind: Literal["rmsnorm", "layernorm"],
        eps: float,
        offset: float = 0.0,
    ) -> Norm:
        """A norm of rows of that size. offset: what is added to its weight."""
        shift = None if bias is None else self.table(bias, f"{label}.bias", (size,))
        scale = self.table(weight, f"{label}.weight", (size,), offset)
        return Norm(scale, shift, kind, eps)

    def plain_norm(self, label: str, size: int, eps: float) -> Norm:
        """An RMS norm of rows of that size whose weight is 1."""
        scale = factory.ones((size,), self._dtype)
        scale.name = f"{self._title}/{label}.weight"
        return Norm(scale, None, "rmsnorm", eps)

    def table(
        self, tensor: str, label: str, shape: tuple[int, ...], offset: float = 0.0, dtype: DataType | None = None
    ) -> GPUArray:
        """One tensor as it is, or with offset added to each element. dtype: the model's, where None."""
        array = self._array(shape, label, dtype)
        self._copy(tensor, shape, array, offset=offset)
        return array

    def stacked(
        self, label: str, tensor: str, bias: str | None, shape: tuple[int, int, int], transposed: bool
    ) -> LinearBF16:
        """One product from a tensor of several weights, (n, out, in), below each other, with biases (n, out) where the
        file has any. transposed: the file has (n, in, out)."""
        count, rows, columns = shape
        stored_shape = (count, columns, rows) if transposed else shape
        kept = self._kept(tensor, stored_shape, transposed)
        weight: GPUArray | Blocks
        if kept is not None:
            weight = self._blocks(f"{label}.weight", columns, [(kept, count * rows)], False)
            self._copy_rows(tensor, weight, 0, count * rows, transposed)
        else:
            values = self._array(shape, f"{label}.weight")
            self._reads.begin(self._read(tensor, stored_shape, values, transposed))
            weight = values.reshape(count * rows, columns)
            weight.name = values.name
        added = self.table(str(bias), f"{label}.bias", (count, rows)) if self.has(bias) else None
        return LinearBF16(weight, None if added is None else added.reshape(count * rows))

    def has(self, tensor: str | None) -> bool:
        """True if the file has that tensor."""
        return tensor is not None and self._prefix + tensor in self._names

    def same(self, first: str, second: str) -> bool:
        """True if two tensors hold the same numbers."""
        import numpy as np

        a, b = (self._checkpoint.read(self._prefix + name) for name in (first, second))
        return a.dtype == b.dtype and np.array_equal(a, b)

    def _in_file(self, rows: int, columns: int) -> tuple[int, int]:
        """The shape of a product's weight in the file."""
        return (columns, rows) if self._transposed else (rows, columns)

    def _array(self, shape: tuple[int, ...], label: str, dtype: DataType | None = None) -> GPUArray:
        array = factory.empty(shape, dtype or self._dtype)
        array.name = f"{self._title}/{label}"
        self.placed += array.nbytes
        return array

    def _kept(self, tensor: str | None, shape: tuple[int, ...], transposed: bool) -> Stored | None:
        """The rows of a weight that stay in the type of the file; None where their values are made."""
        stored = self._stored_as(tensor, shape, transposed) if self._kinds else None
        return None if stored is None or stored.kind not in self._kinds else stored

    def _stored_as(self, tensor: str | None, shape: tuple[int, ...], transposed: bool) -> Stored | None:
        """A weight as it is stored; None where it has another shape in the file than that."""
        name = self._prefix + str(tensor)
        if name not in self._names or self._checkpoint.shape(name) != shape:
            return None
        stored = self._checkpoint.stored(name)
        return None if stored is None or stored.is_transposed != transposed else stored

    def _blocks(self, label: str, columns: int, parts: list[tuple[Stored, int]], tiles: bool) -> Blocks:
        """Room for rows of those types; neighbours of one type and order of columns share theirs."""
        together: list[tuple[Stored, int]] = []
        for stored, rows in parts:
            if together and together[-1][0].kind == stored.kind and _same_order(together[-1][0], stored):
                rows += together.pop()[1]
            together.append((stored, rows))
        weights: list[Part] = []
        for number, (stored, rows) in enumerate(together):
            kind, block = stored.kind, named(stored.kind)
            plain = block.decode is None
            tiled = tiles and in_tiles.takes(kind, rows, columns)
            width = columns if plain else block.row_bytes(columns)
            width = in_tiles.row_bytes(kind, columns) if tiled else width
            array = factory.empty((rows, width), block.dtype if plain else uint8)
            array.name = f"{self._title}/{label}{f'.{number}' if number else ''}"
            self.placed += array.nbytes
            order = None
            if stored.order is not None and number and _same_order(together[number - 1][0], stored):
                order = weights[-1].order
            elif stored.order is not None:
                order = factory.from_numpy(stored.order)
                self.placed += order.nbytes
                order.name = f"{array.name}.order"
            if order is not None:
                self.reordered += array.nbytes
            weights.append(Part(kind, array, order, tiled))
            if tiled:
                self.pending.append((weights[-1], columns))
        return Blocks(tuple(weights), columns, self._dtype)

    def _copy_rows(self, tensor: str, weight: GPUArray | Blocks, start: int, count: int, transposed: bool) -> None:
        """One tensor into rows of a weight."""
        if not isinstance(weight, Blocks):
            shape = (weight.shape[1], count) if transposed else (count, weight.shape[1])
            self._reads.begin(self._read(tensor, shape, weight[start : start + count], transposed))
            return
        for part in weight.parts:
            if start < part.array.shape[0]:
                break
            start -= part.array.shape[0]
        name, rows = self._prefix + tensor, part.array
        if part.tiled:  # at the end, in __exit__()
            rows = in_tiles.as_in_file(part.kind, rows, weight.columns)
        self._reads.begin(Read(name, rows[start : start + count], lambda: self._stored(name)))

    def _ordered(self, name: str, values: Any) -> Any:
        """The rows of a tensor in the order that layers want; a subclass may change it."""
        return values

    def _stored(self, name: str) -> Any:
        import numpy as np

        stored = self._checkpoint.stored(name)
        return None if stored is None else np.ascontiguousarray(self._ordered(name, stored.rows()))

    def _size(self, name: str) -> int:
        """Bytes of a tensor on the device."""
        stored = self._checkpoint.stored(name) if self._kinds or self._rounds else None
        if stored is not None and stored.int8 is not None and self._rounds:
            return _count(self._checkpoint.shape(name)) + self._checkpoint.shape(name)[0] * float32.itemsize
        if stored is not None and stored.kind in self._kinds:
            shape = self._checkpoint.shape(name)
            columns = shape[-2 if stored.is_transposed else -1]
            return _count(shape) // max(columns, 1) * named(stored.kind).row_bytes(columns)
        return _count(self._checkpoint.shape(name)) * self._dtype.itemsize

    def _copy(self, tensor: str, shape: tuple[int, ...], target: GPUArray, offset: float = 0.0) -> None:
        self._reads.begin(self._read(tensor, shape, target, offset=offset))

    def _read(
        self, tensor: str, shape: tuple[int, ...], target: GPUArray, transposed: bool = False, offset: float = 0.0
    ) -> Read:
        """The read of a tensor of that shape in the file. Raises where it has another, or is not there."""
        name = self._prefix + tensor
        if name not in self._names:
            raise InvalidSpecError(f"{self._title}: the model has no tensor {name!r}, a {self._what} needs it", name)
        stored_shape = self._checkpoint.shape(name)
        if stored_shape != shape:
            raise TensorShapeError(
                f"{self._title}: the tensor {name!r} has shape {stored_shape}, must be {shape} by its config.json"
            )
        quantised = self._checkpoint.quantised_weight(name)
        if quantised is not None:
            before, after = self.expanded.get(quantised[0], (0, 0))
            self.expanded[quantised[0]] = before + quantised[1], after + target.nbytes
        dtype = target.dtype  # what reads does not keep the target
        return Read(name, target, lambda: self._values(name, dtype, transposed, offset))

    def _values(self, name: str, dtype: DataType, transposed: bool, offset: float = 0.0) -> Any:
        import numpy as np

        if offset:
            return convert(self._checkpoint.read(name, float32) + np.float32(offset), float32, dtype)
        values = self._ordered(name, self._checkpoint.read(name, dtype))
        return np.ascontiguousarray(values.swapaxes(-1, -2) if transposed and values.ndim > 1 else values)


def _read_in_products(dtype: DataType) -> frozenset[str]:
    """The types in which weights stay whose values are of that type."""
    if host.computes():
        return frozenset(KINDS if dtype == float32 else ())
    return frozenset(in_blocks.KINDS if dtype in in_blocks.TYPES else ())


def _way(row_scale: float | str | None) -> str:
    """The scale of rounded rows, for an error."""
    if isinstance(row_scale, float):
        return f"{row_scale:.6g}"
    return row_scale or "a scale of each"


def _same_order(one: Stored, other: Stored) -> bool:
    if one.order is None or other.order is None:
        return one.order is other.order
    return bool((one.order == other.order).all())


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total
