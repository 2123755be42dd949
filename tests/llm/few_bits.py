"""Small models whose products have weights of few bits, of every kind and as every source gives them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llm.tiny import MemoryCheckpoint
from llm.tiny_weights import CONFIGS, tensors
from models.quantised_folders import LAYOUTS, Made, e4m3
from models.test_quantised import folder  # with the spellings of all types
from nn.random_blocks import random_blocks, values

from pygpukit.core.dtypes import DataType, as_dtype
from pygpukit.models import open_checkpoint
from pygpukit.models.convert import convert
from pygpukit.models.quantised.quantise import NAMES, QuantisingCheckpoint
from pygpukit.models.stored import Stored

Array = np.ndarray[Any, Any]
_FLOATS = np.array([0.0 if code & 127 == 127 else e4m3(code) for code in range(256)])  # no NaN
_TABLES = "embed", "norm", ".gate.weight"  # what has 16 bits in every model


def of_bytes(method: str, extents: Callable[[tuple[int, int]], tuple[int, int]], **config: Any) -> Callable[..., Made]:
    """A layout of FP8 or int8, with a scale for so many rows and columns."""

    def make(stem: str, shape: tuple[int, int], rng: np.random.Generator) -> Made:
        codes, (rows, columns) = rng.integers(0, 256, shape).astype(np.uint8), extents(shape)
        scale = rng.uniform(0.5, 1.5, (shape[0] // rows, shape[1] // columns)).astype(np.float32)
        if method == "fp8":
            codes[codes & 127 == 127] = 0
        numbers = _FLOATS[codes] if method == "fp8" else codes.view(np.int8)
        weight = ("F8_E4M3", codes) if method == "fp8" else codes.view(np.int8)
        name = "weight_scale_inv" if "weight_block_size" in config else "weight_scale"
        given = scale.reshape(()) if scale.size == 1 else scale
        found = numbers * np.repeat(np.repeat(scale, rows, 0), columns, 1)
        return {f"{stem}.weight": weight, f"{stem}.{name}": given}, {"quant_method": "fp8", **config}, found

    return make


def _a_row(shape: tuple[int, int]) -> tuple[int, int]:
    return 1, shape[1]


_INT8 = {
    "quant_method": "compressed-tensors", "format": "int-quantized",
    "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int", "symmetric": True}}},
}  # fmt: skip
FOLDERS: dict[str, Callable[..., Made]] = {
    "fp8 by tensor": of_bytes("fp8", lambda shape: shape),
    "fp8 by channel": of_bytes("fp8", _a_row),
    "fp8 by blocks": of_bytes("fp8", lambda _: (128, 128), weight_block_size=[128, 128]),
    "int8 by channel": of_bytes("int8", _a_row, **_INT8),
    **{name: LAYOUTS[name] for name in ("gptq", "gptq in order", "gptq of 8", "awq", "packed", "nvfp4", "mxfp4")},
}


class RandomBlocks(MemoryCheckpoint):
    """Products of random blocks of one kind."""

    def __init__(self, config: dict[str, Any], kind: str) -> None:
        own = tensors(config)
        self.kind = kind
        self._rows = {
            name: random_blocks(kind, *value.shape, seed=number)
            for number, (name, value) in enumerate(own.items())
            if is_product(name)
        }
        own |= {name: values(kind, rows) for name, rows in self._rows.items()}
        super().__init__(config, balanced(own))

    def stored(self, name: str) -> Stored | None:  # type: ignore[override]
        return Stored(self.kind, lambda: self._rows[name]) if name in self._rows else None

    def quantised_weight(self, name: str) -> tuple[str, int] | None:  # type: ignore[override]
        return (self.kind, self._rows[name].nbytes) if name in self._rows else None


def is_product(name: str) -> bool:
    """True for a tensor that rows are multiplied with, but for routers."""
    return not any(part in name for part in _TABLES)


def balanced(weights: dict[str, Array]) -> dict[str, Array]:
    """The same with tables, norms and routers of a size that lets every product count, however large its numbers are,
    and of 16 bits, as models have them."""
    inside = [value for name, value in weights.items() if is_product(name) and "lm_head" not in name]
    gain = np.mean([np.sqrt(np.square(value, dtype=np.float64).mean() * value.shape[1]) for value in inside])
    sizes = {"embed": 3 * gain, "model.norm": 1.0, "norm": 1 / gain, ".gate.weight": 0.2 * gain}
    bfloat16, float32 = as_dtype("bfloat16"), as_dtype("float32")

    def of(name: str, value: Array) -> Array:
        if is_product(name):
            return value
        size = next(size for part, size in sizes.items() if part in name)
        return convert(convert((value * size).astype(np.float32), float32, bfloat16), bfloat16, float32)

    return {name: of(name, value) for name, value in weights.items()}


def small(name: str, **changes: Any) -> dict[str, Any]:
    """A configuration with one layer whose rows are whole blocks of every kind, and whole tiles."""
    sizes = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "vocab_size": 32}
    return {**CONFIGS[name], **sizes, **changes}


def checkpoint(source: str, config: dict[str, Any], path: Path) -> Any:
    """A checkpoint of a kind of block, of a name of quantize=, or of a folder's layout, which is written to path."""
    if source in NAMES:
        return QuantisingCheckpoint(MemoryCheckpoint(config, balanced(tensors(config))), source)  # type: ignore[arg-type]
    if source not in FOLDERS:
        return RandomBlocks(config, source)
    rng, stored, known, method = np.random.default_rng(5), dict[str, Any](), dict[str, Array](), dict[str, Any]()
    for name, value in tensors(config).items():
        known[name] = value
        if is_product(name) and "lm_head" not in name:
            # Columns in one order of their groups for what is multiplied with the same rows.
            own = np.random.default_rng(9) if "gptq" in source else rng
            made, method, known[name] = FOLDERS[source](name.removesuffix(".weight"), value.shape, own)
            stored |= made
    stored |= {name: value for name, value in balanced(known).items() if not is_product(name) or "lm_head" in name}
    folder(path, stored)
    (path / "config.json").write_text(json.dumps({**config, "quantization_config": method}))
    return open_checkpoint(path)


def numbers(opened: Any, dtype: DataType | None = None) -> dict[str, Array]:
    """What the tensors of a checkpoint mean."""
    return {name: opened.read(name, dtype or as_dtype("float32")) for name in opened.names()}
