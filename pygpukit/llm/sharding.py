"""A checkpoint as one of several devices reads it: of each tensor the part that is this device's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.models.convert import convert
from pygpukit.models.dequantise import named
from pygpukit.models.stored import Stored
from pygpukit.nn.parallel.shard import VOCABULARY

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.core.dtypes import DataType
    from pygpukit.llm.models.architecture import Architecture
    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.models.tokenizer.tokenizer import Tokenizer
    from pygpukit.nn.config import TransformerConfig
    from pygpukit.nn.parallel.shard import Cut, Shard

    Array = np.ndarray[Any, Any]


class ShardCheckpoint:
    """The part of a checkpoint, with the names, shapes and values that its device's layers are made of.

    Raises InvalidSpecError for a weight of few bits whose blocks the division would cut; nothing is read before.
    """

    def __init__(
        self, checkpoint: Checkpoint, architecture: Architecture, config: TransformerConfig, shard: Shard, prefix: str
    ) -> None:
        self._checkpoint = checkpoint
        self.name, self.config, self.generation = checkpoint.name, checkpoint.config, checkpoint.generation
        own = {prefix + name: role for name, role in _roles(architecture, config, shard) if shard.has(role)}
        self._names = tuple(name for name in checkpoint.names() if name in own)
        self._cuts = {name: shard.cut(own[name], config, architecture.interleaved_gates) for name in self._names}
        self._transposed = {name for name in self._names if architecture.transposed and own[name] not in VOCABULARY}
        self._biases = {name for name in self._names if own[name].endswith("_bias")}
        for name in self._names:
            self._check(name, shard.size)

    def names(self) -> tuple[str, ...]:
        return self._names

    def shape(self, name: str) -> tuple[int, ...]:
        shape, cut = self._checkpoint.shape(name), self._cuts[name]
        if cut is None:
            return shape
        axis = self._axis(name, cut)
        return *shape[:axis], sum(part.stop - part.start for part in cut.parts), *shape[axis + 1 :]

    def dtype(self, name: str) -> DataType:
        return self._checkpoint.dtype(name)

    def read(self, name: str, dtype: DataType | None = None) -> Array:
        cut = self._cuts[name]
        if cut is None:
            return self._checkpoint.read(name, dtype)
        stored = self._checkpoint.dtype(name)
        part = _taken(self._checkpoint.read(name), cut.parts, self._axis(name, cut))
        return part if dtype in (None, stored) else convert(part, stored, dtype)

    def stored(self, name: str) -> Stored | None:
        stored, cut = self._checkpoint.stored(name), self._cuts[name]
        if stored is None or cut is None:
            return stored
        if len(self._checkpoint.shape(name)) > 2:  # experts that are stacked: their values are divided
            return None
        axis, parts = self._axis_of_stored(stored, cut), cut.parts
        if axis:
            parts = tuple(_in_bytes(part, stored.kind) for part in parts)
        return stored._replace(rows=_part_of(stored.rows, parts, axis), int8=None)

    def quantised_weight(self, name: str) -> tuple[str, int] | None:
        quantised, shape = self._checkpoint.quantised_weight(name), self._checkpoint.shape(name)
        cut = self._cuts[name]
        if quantised is None or cut is None:
            return quantised
        axis = self._axis(name, cut)
        return quantised[0], quantised[1] * self.shape(name)[axis] // shape[axis]

    def tokenizer(self) -> Tokenizer:
        return self._checkpoint.tokenizer()

    def close(self) -> None:
        self._checkpoint.close()

    def _axis(self, name: str, cut: Cut) -> int:
        """The axis of a tensor of the file that is cut: (out, in), or (in, out) where it is transposed, as are experts
        that are stacked."""
        count = len(self._checkpoint.shape(name))
        if count == 1 or name in self._biases:
            return count - 1
        return count - 1 if cut.is_inner != (name in self._transposed or count > 2) else count - 2

    def _axis_of_stored(self, stored: Stored, cut: Cut) -> int:
        return int(cut.is_inner != stored.is_transposed)

    def _check(self, name: str, size: int) -> None:
        stored, cut = self._checkpoint.stored(name), self._cuts[name]
        is_stacked = len(self._checkpoint.shape(name)) > 2
        if stored is None or cut is None or is_stacked or not self._axis_of_stored(stored, cut):
            return
        block = named(stored.kind)
        if stored.order is not None:
            problem = "its columns lie by groups (act-order), which are not divided"
        elif block.decode is not None and any(part.start % block.elements for part in cut.parts):
            problem = f"its blocks of {block.elements} columns would be cut"
        else:
            return
        raise InvalidSpecError(
            f"{self.name}: over {size} devices the weight {name!r} of {stored.kind} does not divide: {problem}; give "
            'fewer devices, or parallel="pipeline"',
            "devices",
        )


def _roles(architecture: Architecture, config: TransformerConfig, shard: Shard) -> Iterator[tuple[str, str]]:
    """The name of each tensor that the device may have, and its role."""
    for role, template in architecture.weights.items():
        count = template.count("{}")
        for number in shard.layers(config) if count else (0,):
            for expert in range(config.num_experts or 0) if count > 1 else (0,):
                yield template.format(number, expert), role


def _taken(values: Array, parts: tuple[slice, ...], axis: int) -> Array:
    import numpy as np

    pieces = [values[(slice(None),) * axis + (part,)] for part in parts]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis)


def _part_of(rows: Callable[[], Array], parts: tuple[slice, ...], axis: int) -> Callable[[], Array]:
    return lambda: _taken(rows(), parts, axis)


def _in_bytes(part: slice, kind: str) -> slice:
    """Columns of a row in blocks as its bytes."""
    block = named(kind)
    if block.decode is None:
        return part
    return slice(*(block.row_bytes(bound) for bound in (part.start, part.stop)))
