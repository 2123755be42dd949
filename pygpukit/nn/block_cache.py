"""BlockCache: keys and values in blocks that sequences are given one by one, and can share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pygpukit.array import factory
from pygpukit.core.errors import InvalidSpecError
from pygpukit.nn.attention.kv_write import PART
from pygpukit.nn.kv_cache import LayerCache
from pygpukit.ops import copying

if TYPE_CHECKING:
    from pygpukit.nn.config import TransformerConfig


class BlockCache:
    """Keys and values of `count` blocks on the device; which sequence has which is somebody else's to know.

    size: positions of a block. Raises InvalidSpecError where that is no multiple of the parts that attention takes.
    """

    def __init__(self, config: TransformerConfig, count: int, size: int, dtype: str, name: str) -> None:
        if size % PART:
            raise InvalidSpecError(f"blocks of {size} positions; give a multiple of {PART}", "size")
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

    def copy(self, copies: Iterable[tuple[int, int]]) -> None:
        """The contents of blocks into others: pairs of source and target, in order."""
        for source, target in copies:
            for layer in self.layers:
                for array in (layer.k, layer.v):
                    copying.copy_to(array[source], array[target])
