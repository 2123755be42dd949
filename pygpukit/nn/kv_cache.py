"""KVCache: keys and values on the device, in blocks that sequences are given one by one, and can share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.array import factory
from pygpukit.core.dtypes import as_dtype, float8_e4m3
from pygpukit.core.errors import InvalidSpecError
from pygpukit.ops import copying
from pygpukit.ops.elementwise.math import exp2

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.config import TransformerConfig

FP8 = "fp8"


@dataclass
class LayerCache:
    """Keys and values of one layer: (blocks, key heads, positions of one, head_dim).

    In fp8 they are codes, and k_scales and v_scales, uint8 (blocks, key heads, positions), have a power of two for each
    head of each position, as the exponent of a float32; 255 makes the codes NaN.
    """

    k: GPUArray
    v: GPUArray
    k_scales: GPUArray | None = None
    v_scales: GPUArray | None = None

    @property
    def is_fp8(self) -> bool:
        """True if there are codes."""
        return self.k_scales is not None

    @property
    def arrays(self) -> tuple[GPUArray, ...]:
        """All that it has."""
        return tuple(x for x in (self.k, self.v, self.k_scales, self.v_scales) if x is not None)

    @property
    def operands(self) -> tuple[GPUArray, ...]:
        """As kernels take them; something in the place of scales that there are not."""
        return self.k, self.v, *(self.arrays[2:] or (self.k, self.v))

    @property
    def keys(self) -> GPUArray:
        """The numbers that the keys stand for."""
        if self.k_scales is None:
            return self.k
        scales = exp2(self.k_scales.astype("float32") - 127.0)
        return self.k.astype("float32") * scales.reshape(*scales.shape, 1)


class KVCache:
    """Keys and values of `count` blocks of `size` positions; which sequence has which is somebody else's to know.

    dtype: of floats, or "fp8". Where sequences have several blocks each, size is a multiple of kv_write.PART: a part
    that attention takes at a time lies in one block then. layers: caches of layers that there are already.
    """

    def __init__(
        self,
        config: TransformerConfig,
        count: int,
        size: int,
        dtype: str,
        name: str,
        layers: list[LayerCache] | None = None,
    ) -> None:
        self.config, self.count, self.size, self.dtype = config, count, size, dtype
        self.layers = layers or [self._layer() for _ in range(config.num_layers)]
        for number, layer in enumerate(self.layers):
            for array, label in zip(layer.arrays, ("k", "v", "k_scales", "v_scales"), strict=False):
                array.name = f"{name}/layers.{number:02d}/kv.{label}"

    def _layer(self) -> LayerCache:
        shape = self.count, self.config.kv_heads, self.size, self.config.head_dim
        if self.dtype != FP8:
            return LayerCache(factory.zeros(shape, self.dtype), factory.zeros(shape, self.dtype))
        return LayerCache(
            factory.zeros(shape, float8_e4m3),
            factory.zeros(shape, float8_e4m3),
            factory.zeros(shape[:3], "uint8"),
            factory.zeros(shape[:3], "uint8"),
        )

    @property
    def nbytes(self) -> int:
        """Bytes on the device, of all blocks."""
        return sum(array.nbytes for layer in self.layers for array in layer.arrays)

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one position of one sequence takes."""
        return bytes_per_token(self.config, self.dtype)

    @property
    def block_bytes(self) -> int:
        """Bytes of a block."""
        return self.size * self.bytes_per_token

    def bytes_of(self, positions: int) -> int:
        """Bytes of so many positions of one sequence."""
        return positions * self.bytes_per_token

    def copy(self, copies: Iterable[tuple[int, int]]) -> None:
        """The contents of blocks into others: pairs of source and target, in order."""
        for source, target in copies:
            for layer in self.layers:
                for array in layer.arrays:
                    copying.copy_to(array[source], array[target])


def bytes_per_token(config: TransformerConfig, dtype: str) -> int:
    """Bytes of the keys and values of one position of one sequence, in all layers, with the scales of fp8."""
    head = config.head_dim + 1 if dtype == FP8 else config.head_dim * as_dtype(dtype).itemsize
    return 2 * config.num_layers * config.kv_heads * head


def check_kv_dtype(kv_dtype: str | None) -> None:
    """Raises InvalidSpecError for what keys and values cannot be stored as. None: as the weights' type."""
    if kv_dtype not in (None, FP8):
        raise InvalidSpecError(
            f'kv_dtype={kv_dtype!r}; give "{FP8}", or nothing for the type of the weights', "kv_dtype"
        )
