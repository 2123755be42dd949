"""A checkpoint whose products are rounded to few bits when they are read, with the error of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.core.dtypes import DataType, float8_e4m3, float32
from pygpukit.models.convert import convert
from pygpukit.models.dequantise import named
from pygpukit.models.quantised.blocks import of_bytes
from pygpukit.models.stored import Stored

if TYPE_CHECKING:
    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.models.tokenizer.tokenizer import Tokenizer

    Array = np.ndarray[Any, Any]

_LARGEST_E4M3 = np.float32(448)
_TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # (in, out) in files
_WHOLE = (
    "embed",
    "wte.",
    "wpe.",
    "lm_head",
    "mlp.gate.weight",
    "block_sparse_moe.gate.weight",
    "router",
)  # tables, logits and routers


def _groups(values: Array, size: int) -> Array:
    return values.reshape(len(values), -1, size)


def _halves(scale: Array) -> tuple[Array, Array]:
    """Scales rounded to float16: their bytes, and their values, of which 0 divides as 1."""
    rounded = scale.astype(np.float16)
    wide = rounded.astype(np.float32)
    return rounded.view(np.uint8), np.where(wide == 0, np.float32(1), wide)


def _int8(values: Array) -> Array:
    """Q8_0: the largest of 32 becomes 127."""
    groups = _groups(values, 32)
    head, scale = _halves(np.abs(groups).max(-1, keepdims=True) / np.float32(127))
    codes = np.clip(np.rint(groups / scale), -127, 127).astype(np.int8)
    return np.concatenate([head, codes.view(np.uint8)], axis=-1).reshape(len(values), -1)


def _int4(values: Array) -> Array:
    """Q4_1: the smallest of 32 becomes 0, the largest 15."""
    groups = _groups(values, 32)
    low = groups.min(-1, keepdims=True)
    head, scale = _halves((groups.max(-1, keepdims=True) - low) / np.float32(15))
    minimum = low.astype(np.float16)
    codes = np.clip(np.rint((groups - minimum.astype(np.float32)) / scale), 0, 15).astype(np.uint8)
    packed = codes[..., :16] | codes[..., 16:] << np.uint8(4)
    return np.concatenate([head, minimum.view(np.uint8), packed], axis=-1).reshape(len(values), -1)


def _fp8(values: Array, size: int) -> Array:
    """FP8: the largest of 128, or of 32, becomes 448."""
    groups = _groups(values, size)
    scale = np.abs(groups).max(-1) / _LARGEST_E4M3
    scale = np.where(scale == 0, np.float32(1), scale)
    codes = convert(groups / scale[..., None], float32, float8_e4m3)
    return of_bytes(codes.reshape(values.shape), scale)


_KINDS: dict[str, Callable[[int], tuple[str, Callable[[Array], Array]]]] = {
    "int8": lambda _: ("Q8_0", _int8),
    "int4": lambda _: ("Q4_1", _int4),
    "fp8": lambda columns: (
        ("FP8_32", lambda values: _fp8(values, 32)) if columns % 128 else ("FP8_128", lambda values: _fp8(values, 128))
    ),
}
NAMES = tuple(_KINDS)


class QuantisingCheckpoint:
    """A checkpoint as it is, but for weights of products of 32 columns or a multiple, which have few bits.

    errors: of each weight that was read, the root mean square of what rounding changed, relative to the weight's.
    """

    def __init__(self, checkpoint: Checkpoint, quantize: str) -> None:
        self._checkpoint, self._kind = checkpoint, _KINDS[quantize]
        self.name, self.config, self.generation = checkpoint.name, checkpoint.config, checkpoint.generation
        self.errors: dict[str, float] = {}

    def names(self) -> tuple[str, ...]:
        return self._checkpoint.names()

    def shape(self, name: str) -> tuple[int, ...]:
        return self._checkpoint.shape(name)

    def dtype(self, name: str) -> DataType:
        return self._checkpoint.dtype(name) if self._quantised(name) is None else float32

    def read(self, name: str, dtype: DataType | None = None) -> Array:
        kind = self._quantised(name)
        if kind is None:
            return self._checkpoint.read(name, dtype)
        values = _values(kind[0], self._rows(name))
        return convert(values.T if name.endswith(_TRANSPOSED) else values, float32, dtype or float32)

    def stored(self, name: str) -> Stored | None:
        kind = self._quantised(name)
        if kind is None:
            return self._checkpoint.stored(name)
        return Stored(kind[0], lambda: self._rows(name), name.endswith(_TRANSPOSED))

    def quantised_weight(self, name: str) -> tuple[str, int] | None:
        kind = self._quantised(name)
        if kind is None:
            return self._checkpoint.quantised_weight(name)
        return kind[0], named(kind[0]).size(self.shape(name))

    def tokenizer(self) -> Tokenizer:
        return self._checkpoint.tokenizer()

    def close(self) -> None:
        self._checkpoint.close()

    def _quantised(self, name: str) -> tuple[str, Callable[[Array], Array]] | None:
        """The kind that a weight becomes, and what makes its rows; None where it stays as it is."""
        shape = self.shape(name)
        columns = shape[0 if name.endswith(_TRANSPOSED) else -1] if len(shape) == 2 else 0
        if not columns or columns % 32 or any(part in name for part in _WHOLE) or not name.endswith(".weight"):
            return None
        return None if self._checkpoint.quantised_weight(name) is not None else self._kind(columns)

    def _rows(self, name: str) -> Array:
        kind = self._quantised(name)
        assert kind is not None
        values = self._checkpoint.read(name, float32)
        values = np.ascontiguousarray(values.T if name.endswith(_TRANSPOSED) else values)
        rows = kind[1](values)
        change = np.square(_values(kind[0], rows) - values).sum(dtype=np.float64)
        self.errors[name] = float(np.sqrt(change / max(np.square(values).sum(dtype=np.float64), 1e-300)))
        return rows


def _values(kind: str, rows: Array) -> Array:
    block = named(kind)
    return block.decoded(rows.reshape(-1, block.bytes)).reshape(len(rows), -1)
