"""Blocks: a weight as a file stores it, in blocks of few bits a value, which products read as they go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.dtypes import DataType, float32
from pygpukit.core.errors import ShapeError
from pygpukit.models.convert import convert
from pygpukit.ops import host

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

# Types of GGUF that host products read (native/host/formats.h). Of others the values are made when a model is loaded.
KINDS = ("F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")


@dataclass(frozen=True)
class Part:
    """Rows of one type: uint8 (rows, bytes of a row), or float16 and bfloat16 as they are. order: int32 (in,), which
    column of the weight each stored one is; None where they are in their order. tiled: whether the blocks lie by tiles
    (in_tiles.py), as kernels of a device read them."""

    kind: str
    array: GPUArray
    order: GPUArray | None = None
    tiled: bool = False


@dataclass(frozen=True)
class Blocks:
    """A weight (out, in), one or more parts below each other.

    dtype: what its values are as an array, and what is multiplied with them: float32 on the simulated device, where a
    product with it has the bits of a product with its values; of 16 bits on others, where values are not rounded to it.
    """

    parts: tuple[Part, ...]
    columns: int
    dtype: DataType = float32

    def __getitem__(self, rows: slice) -> Blocks:
        """Some neighbouring rows, of the same memory. Raises ShapeError where they are not whole tiles of a part."""
        from pygpukit.nn.linear import in_tiles

        first, end, _ = rows.indices(self.shape[0])
        parts, start = [], 0
        for part in self.parts:
            count = part.array.shape[0]
            low, high = max(first - start, 0), min(end - start, count)
            if low < high:
                if part.tiled and (low % in_tiles.TILE_ROWS or high % in_tiles.TILE_ROWS):
                    raise ShapeError(
                        f"rows {low} to {high} of a weight by tiles cannot be taken: give multiples of "
                        f"{in_tiles.TILE_ROWS}"
                    )
                parts.append(replace(part, array=part.array[low:high]))
            start += count
        return Blocks(tuple(parts), self.columns, self.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """(out, in) of the values."""
        return sum(part.array.shape[0] for part in self.parts), self.columns

    @property
    def itemsize(self) -> int:
        """Bytes of a value, once it is one."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def name(self) -> str:
        """The name of its memory."""
        return self.parts[0].array.name

    @property
    def arrays(self) -> list[GPUArray]:
        """The memory of all parts, and of the orders of their columns."""
        orders = {id(part.order): part.order for part in self.parts if part.order is not None}
        return [*(part.array for part in self.parts), *orders.values()]

    @property
    def stored(self) -> list[GPUArray]:
        """The memory of its rows, which in_memory() replaces."""
        return [part.array for part in self.parts]

    def in_memory(self, arrays: Sequence[GPUArray]) -> Blocks:
        """The same weight, whose rows lie in these arrays."""
        pairs = zip(self.parts, arrays, strict=True)
        return replace(self, parts=tuple(replace(part, array=array) for part, array in pairs))

    @property
    def operands(self) -> list[tuple[str, GPUArray]]:
        """As native.host_linear() takes it."""
        return [(part.kind, part.array) for part in self.parts]

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The values."""
        import numpy as np

        from pygpukit.models.dequantise import named

        rows = []
        for part in self.parts:
            if part.tiled:
                rows.append(self._of_tiles(part))
                continue
            stored = part.array.to_numpy()
            block = named(part.kind)
            if block.decode is None:
                rows.append(convert(stored, part.array.dtype, float32))
            else:
                values = block.decoded(stored.reshape(-1, block.bytes)).reshape(len(stored), -1)[:, : self.columns]
                rows.append(values if part.order is None else values[:, np.argsort(part.order.to_numpy())])
        return np.concatenate(rows)

    def _of_tiles(self, part: Part) -> np.ndarray[Any, Any]:
        from pygpukit.nn.linear import in_blocks

        out = native.empty((part.array.shape[0], self.columns), float32)
        in_blocks.values(part, self.columns, out)
        return out.to_numpy()

    def expanded(self) -> GPUArray:
        """The values as an array of their own, for what reads no blocks."""
        from pygpukit.array import factory
        from pygpukit.nn.linear import in_blocks

        if host.computes() or self.dtype not in in_blocks.TYPES:
            return factory.from_numpy(convert(self.to_numpy(), float32, self.dtype))
        result = native.empty(self.shape, self.dtype)
        start = 0
        for part in self.parts:
            rows = part.array.shape[0]
            in_blocks.values(part, self.columns, result[start : start + rows])
            start += rows
        return result


def below(weights: Sequence[Blocks]) -> Blocks:
    """Weights of the same inputs, one below the other. Raises ShapeError for others."""
    widths = {weight.columns for weight in weights}
    if len(widths) != 1:
        raise ShapeError(f"weights with rows of {sorted(widths)} cannot be joined")
    return Blocks(tuple(part for weight in weights for part in weight.parts), widths.pop(), weights[0].dtype)


def values_of(weight: GPUArray | Blocks) -> GPUArray:
    """A weight as an array of its values."""
    return weight.expanded() if isinstance(weight, Blocks) else weight


def memory_of(weight: GPUArray | Blocks) -> list[GPUArray]:
    """The arrays that a weight lies in."""
    return weight.arrays if isinstance(weight, Blocks) else [weight]


def stored_of(weight: GPUArray | Blocks) -> list[GPUArray]:
    """The arrays that a weight's rows lie in: not the orders of columns."""
    return weight.stored if isinstance(weight, Blocks) else [weight]


def read_into(weight: GPUArray | Blocks) -> list[tuple[GPUArray, int]]:
    """The arrays that a weight's rows are read into, and how many bytes: by tiles some kinds take more."""
    from pygpukit.nn.linear import in_tiles

    if not isinstance(weight, Blocks):
        return [(weight, weight.nbytes)]
    return [
        (part.array, in_tiles.as_in_file(part.kind, part.array, weight.columns).nbytes if part.tiled else
         part.array.nbytes)
        for part in weight.parts
    ]  # fmt: skip


def operands_of(weight: GPUArray | Blocks) -> list[tuple[str, GPUArray]]:
    """A weight of float32 values as native.host_linear() takes it."""
    return weight.operands if isinstance(weight, Blocks) else [("F32", weight)]
