"""StateCache: what Mamba-2 layers keep of each sequence, whatever its length."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.array import factory
from pygpukit.core.dtypes import as_dtype
from pygpukit.nn.mamba.state_space import CHUNK
from pygpukit.ops import copying

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.config import TransformerConfig
    from pygpukit.nn.mamba.state_space import StateSpace


@dataclass
class LayerState:
    """Of one layer, for each sequence: tail (n, conv, channels), what the convolution saw last, position p at p % conv;
    rows (n, CHUNK, channels) and steps, float32 (n, CHUNK, heads), what the positions of the chunk gave so far; state,
    float32 (n, heads, head_dim, state), where the chunk began."""

    tail: GPUArray
    rows: GPUArray
    steps: GPUArray
    state: GPUArray

    @property
    def arrays(self) -> tuple[GPUArray, ...]:
        """All that it has."""
        return self.tail, self.rows, self.steps, self.state


class StateCache:
    """States of `count` sequences; which sequence has which is somebody else's to know.

    A state is written where a chunk ends, at a multiple of CHUNK positions, and read by every row of the next one
    beside that chunk's rows before it: a row's bits are the same however a sequence was cut, and a step writes a row,
    not a state.
    """

    def __init__(self, config: TransformerConfig, space: StateSpace, count: int, dtype: str, name: str) -> None:
        self.config, self.count, self.dtype = config, count, dtype
        self.block_bytes = bytes_per_sequence(config, space, dtype)
        heads, channels = config.num_heads, space.channels(config.num_heads * config.head_dim)
        self.layers = [
            LayerState(
                factory.zeros((count, space.conv, channels), dtype),
                factory.zeros((count, CHUNK, channels), dtype),
                factory.zeros((count, CHUNK, heads)),
                factory.zeros((count, heads, config.head_dim, space.state)),
            )
            for _ in range(config.num_layers)
        ]
        for number, layer in enumerate(self.layers):
            for array, label in zip(layer.arrays, ("tail", "rows", "steps", "state"), strict=True):
                array.name = f"{name}/layers.{number:02d}/state.{label}"

    @property
    def nbytes(self) -> int:
        """Bytes on the device, of all sequences."""
        return sum(array.nbytes for layer in self.layers for array in layer.arrays)

    def bytes_of(self, positions: int) -> int:
        """Bytes of one sequence, however many positions it has."""
        return self.block_bytes

    def copy(self, copies: Iterable[tuple[int, int]]) -> None:
        """States of sequences into those of others: pairs of source and target, in order."""
        for source, target in copies:
            for layer in self.layers:
                for array in layer.arrays:
                    copying.copy_to(array[source], array[target])


def bytes_per_sequence(config: TransformerConfig, space: StateSpace, dtype: str) -> int:
    """Bytes that the states of one sequence take in all layers."""
    inner = config.num_heads * config.head_dim
    rows = (space.conv + CHUNK) * space.channels(inner) * as_dtype(dtype).itemsize
    return config.num_layers * (rows + 4 * (CHUNK * config.num_heads + inner * space.state))
