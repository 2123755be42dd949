"""KVCache: keys and values on the device, in blocks that sequences are given one by one, and can share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.array import factory
from pygpukit.ops import copying

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.config import TransformerConfig


@dataclass
class LayerCache:
    """Keys and values of one layer: (blocks, key heads, positions of one, head_dim)."""

    k: GPUArray
    v: GPUArray


class KVCache:
    """Keys and values of `count` blocks of `size` positions; which sequence has which is somebody else's to know.

    Where sequences have several blocks each, size is a multiple of kv_write.PART: a part that attention takes at a time
    lies in one block then.
    """

    def __init__(self, config: TransformerConfig, count: int, size: int, dtype: str, name: str) -> None:
        self.count, self.size = count, size
        shape = (count, config.kv_heads, size, config.head_dim)
        self.layers = [
            LayerCache(factory.zeros(shape, dtype), factory.zeros(shape, dtype)) for _ in range(config.num_layers)
        ]
        for number, layer in enumerate(self.layers):
            layer.k.name, layer.v.name = f"{name}/layers.{number:02d}/kv.k", f"{name}/layers.{number:02d}/kv.v"

    @property
    def nbytes(self) -> int:
        """Bytes on the device, of all blocks."""
        return sum(layer.k.nbytes + layer.v.nbytes for layer in self.layers)

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one position of one sequence takes."""
        return self.nbytes // (self.count * self.size)

    def copy(self, copies: Iterable[tuple[int, int]]) -> None:
        """The contents of blocks into others: pairs of source and target, in order."""
        for source, target in copies:
            for layer in self.layers:
                for array in (layer.k, layer.v):
                    copying.copy_to(array[source], array[target])
