"""Weights of eight bits with scales beside them: which tensors belong together, and the numbers that they mean.

Layouts: one scale for a tensor, a row, a block or a group of a row (FP8 of DeepSeek, Qwen and FBGEMM, ModelOpt's FP8,
compressed-tensors), and bitsandbytes' int8. Every other layout is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import DataType, float8_e4m3, float8_e5m2, float32, int8, uint8
from pygpukit.core.errors import ModelFileError
from pygpukit.models.convert import convert

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_FLOATS = (float8_e4m3, float8_e5m2)
_BLOCK = (128, 128)
_WEIGHT = ".weight"
_LAYOUTS = ("float-quantized", "int-quantized", "naive-quantized")  # of compressed-tensors
# Of activations and caches, which are not quantised here.
_BESIDE = (".input_scale", ".input_zero_point", ".activation_scale", ".output_scale", ".k_scale", ".v_scale")
_FORMAT = ".weight_format"  # bitsandbytes: 0 for rows as they are


@dataclass(frozen=True)
class Scale:
    """Of one weight: the tensor with its scales, that with the codes of zero, and how long blocks are, if given."""

    tensor: str
    zero: str | None
    block: tuple[int, int] | None
    divisor: float = 1.0


@dataclass(frozen=True)
class Scales:
    """Of a whole folder. own: of weights, by name. beside: tensors that mean nothing without them."""

    own: Mapping[str, Scale]
    beside: frozenset[str]

    def values(self, name: str, read: Callable[[str], Array], dtype: Callable[[str], DataType]) -> Array:
        """The float32 values of a weight, as (code - zero) * scale. Raises ModelFileError where shapes do not fit."""
        import numpy as np

        scale = self.own[name]
        values = convert(read(name), dtype(name), float32)
        values = values if values.flags.writeable else values.copy()
        steps = convert(read(scale.tensor), dtype(scale.tensor), float32)
        if scale.zero is not None:
            zero = convert(read(scale.zero), dtype(scale.zero), float32)
            values -= _spread(zero, values.shape, scale.block, scale.zero)
        with np.errstate(all="ignore"):
            values *= _spread(steps, values.shape, scale.block, scale.tensor)
            if scale.divisor != 1.0:
                values /= np.float32(scale.divisor)
        return values


def scales_of(config: Mapping[str, Any], names: Iterable[str], dtype: Callable[[str], DataType], where: str) -> Scales:
    """The scales by a folder's configuration and tensors. Raises ModelFileError for what is not read."""
    block, quantised = _layout(config.get("quantization_config"), where)
    known = set(names)
    scales: dict[str, Scale] = {}
    for name in known:
        if not name.endswith(_WEIGHT):
            continue
        kind = dtype(name)
        if kind not in (*_FLOATS, int8, uint8):
            continue
        stem = name.removesuffix(_WEIGHT)
        if f"{stem}.SCB" in known and kind == int8:
            scales[name] = Scale(f"{stem}.SCB", None, None, 127.0)
            continue
        tensor = next((candidate for candidate in (f"{name}_scale_inv", f"{name}_scale") if candidate in known), None)
        if tensor is not None and kind != uint8:
            zero = f"{name}_zero_point"
            scales[name] = Scale(tensor, zero if zero in known else None, block)
        elif quantised or kind not in _FLOATS:
            raise ModelFileError(f"{where}: the weight {name!r} is {kind.name} and has no scale beside it", where)
    beside = {
        candidate for scale in scales.values() for candidate in (scale.tensor, scale.zero) if candidate is not None
    }
    if scales or quantised:
        beside |= {name for name in known if name.endswith((*_BESIDE, _FORMAT))}
    return Scales(scales, frozenset(beside))


def check_formats(scales: Scales, read: Callable[[str], Array], where: str) -> None:
    """Raises ModelFileError where bitsandbytes' weights are in another order than rows."""
    for name in scales.beside:
        if name.endswith(_FORMAT) and read(name).any():
            raise ModelFileError(f"{where}: {name} is {read(name).tolist()!r}; what is read is 0, rows", where)


def _layout(size_field: Any, where: str) -> tuple[tuple[int, int] | None, bool]:
    """The blocks' size, if it is given, and whether anything is quantised."""
    if size_field is None:
        return None, False
    if not isinstance(size_field, Mapping):
        raise ModelFileError(f"{where}: quantization_config is {size_field!r:.80}, must be an object", where)
    method = size_field.get("quant_method")
    detail = ""
    if method == "bitsandbytes" and size_field.get("load_in_4bit") is True:
        detail = " with load_in_4bit"
    elif method == "compressed-tensors":
        detail = _compressed(size_field)
    elif method == "modelopt" and size_field.get("quant_algo", "FP8") != "FP8":
        detail = f" with quant_algo {size_field.get('quant_algo')!r:.40}"
    elif method not in ("fp8", "fbgemm_fp8", "modelopt", "bitsandbytes"):
        detail = " "
    if detail:
        raise ModelFileError(
            f"{where}: weights quantised by {method!r:.40}{detail.rstrip()} are not read. What is read is 8 bits with "
            "scales: fp8, fbgemm_fp8, modelopt (FP8), compressed-tensors (8 bits) and bitsandbytes (int8). Take the "
            "model's files without quantisation, or a GGUF file",
            where,
        )
    size = size_field.get("weight_block_size")
    if size is None:
        return None, True
    if (
        not isinstance(size, list)
        or len(size) != 2
        or not all(type(extent) is int and 0 < extent < 1 << 31 for extent in size)
    ):
        raise ModelFileError(f"{where}: weight_block_size is {size!r:.80}, must be two whole numbers", where)
    return (size[0], size[1]), True


def _compressed(config: Mapping[str, Any]) -> str:
    """The part of compressed-tensors that is not read; "" where all is."""
    layout = config.get("format")
    if layout not in _LAYOUTS:
        return f" in the format {layout!r:.40}"
    for key in ("transform_config", "sparsity_config"):
        more = config.get(key)
        if more and not (isinstance(more, Mapping) and more.get("format") == "dense"):
            return f" with a {key}"
    groups = config.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        bits = weights.get("num_bits") if isinstance(weights, Mapping) else 8
        if bits != 8:
            return f" to {bits!r:.20} bits"
    return ""


def _spread(scale: Array, shape: tuple[int, ...], block: tuple[int, int] | None, name: str) -> Array:
    """Scales of a tensor, of rows or of blocks, in a shape that broadcasts with the weight's."""
    import numpy as np

    if scale.size == 1:
        return scale.reshape(())
    if len(shape) == 2 and scale.size == shape[0] and scale.shape in ((shape[0],), (shape[0], 1)):
        return scale.reshape(-1, 1)
    if len(shape) == 2 and scale.ndim == 2 and 0 not in scale.shape:
        sizes = block or _block(shape, scale.shape)
        if tuple(-(-length // size) for length, size in zip(shape, sizes, strict=True)) == scale.shape:
            rows = np.repeat(scale, sizes[0], axis=0)[: shape[0]]
            return np.repeat(rows, sizes[1], axis=1)[:, : shape[1]]
    raise ModelFileError(f"the scales {name!r} of shape {scale.shape} do not fit a weight of {shape}", name)


def _block(shape: tuple[int, ...], counts: tuple[int, ...]) -> tuple[int, int]:
    """The block shape where the file gives none: groups of a row, or 128 by 128, or what divides the weight evenly."""
    if counts[0] == shape[0]:
        return 1, max(shape[1] // counts[1], 1)
    if counts == (-(-shape[0] // _BLOCK[0]), -(-shape[1] // _BLOCK[1])):
        return _BLOCK
    return max(shape[0] // counts[0], 1), max(shape[1] // counts[1], 1)
