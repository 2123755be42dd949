"""A folder's quantization_config: the weights that it means, or a refusal by the method's name before any is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pygpukit.core.dtypes import uint8
from pygpukit.models.quantised.fp4 import MXFP4, NVFP4, ExpertsMXFP4
from pygpukit.models.quantised.scaled import WEIGHT, check_formats, scaled
from pygpukit.models.quantised.tensors import Quantised, Tensors, Weight
from pygpukit.models.quantised.words import AWQ, GPTQ, Packed

_BITS = (2, 3, 4, 8)  # of GPTQ
_LAYOUTS = (  # of compressed-tensors
    "float-quantized", "int-quantized", "naive-quantized", "pack-quantized", "mixed-precision",
    "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp8-quantized",
)  # fmt: skip
# Of activations and caches, which are not quantised here, and what means nothing without a weight.
_BESIDE = (
    ".input_scale", ".input_zero_point", ".input_global_scale", ".activation_scale", ".output_scale", ".k_scale",
    ".v_scale", ".q_scale", ".prob_output_scale", ".weight_format",
)  # fmt: skip
_READ = (
    "8 bits with scales (fp8, fbgemm_fp8, modelopt, compressed-tensors, bitsandbytes' int8), GPTQ of 2, 3, 4 and 8 "
    "bits, AWQ of 4, compressed-tensors of 1 to 8 packed bits, NVFP4 and MXFP4"
)


@dataclass(frozen=True)
class Method:
    """A way in which a folder stores weights. find: the weight that a stored tensor is the first of, or None."""

    find: Callable[[Tensors, str], Weight | None]
    quantised: bool = True


def quantised(config: Mapping[str, Any], stored: Tensors) -> Quantised:
    """The weights in few bits, by a folder's configuration and tensors. Raises ModelFileError for what is not read."""
    method = _method(config.get("quantization_config"), stored)
    own: dict[str, Weight] = {}
    for name in stored.names:
        weight = method.find(stored, name)
        if weight is not None:
            weight.check(stored)
            own[_name(name)] = weight
    beside = {tensor for weight in own.values() for tensor in weight.tensors[1:]}
    if own or method.quantised:
        beside |= {name for name in stored.names if name.endswith(_BESIDE)}
        check_formats(stored)
    return Quantised(own, frozenset(beside))


def _name(first: str) -> str:
    """The name of the weight whose first tensor has that name."""
    for ending, plain in ((".qweight", WEIGHT), (".weight_packed", WEIGHT), ("_blocks", "")):
        if first.endswith(ending):
            return first.removesuffix(ending) + plain
    return first


def _method(config: Any, stored: Tensors) -> Method:
    if config is None:
        return Method(lambda tensors, name: scaled(tensors, name, None, False), False)
    if not isinstance(config, Mapping):
        raise stored.error(f"quantization_config is {config!r:.80}, must be an object")
    name = config.get("quant_method")
    make = _METHODS.get(name) if isinstance(name, str) else None
    method = "" if make is None else make(config)
    if isinstance(method, str):
        raise stored.error(
            f"weights quantised by {name!r:.40}{method} are not read. What is read is {_READ}. Take the model's files "
            "without quantisation, or a GGUF file"
        )
    return method


# Each gives the method of a configuration, or the part of it that is not read, for a refusal.


def _fp8(config: Mapping[str, Any]) -> Method | str:
    size = config.get("weight_block_size")
    if size is None:
        block = None
    elif isinstance(size, list) and len(size) == 2 and all(type(n) is int and 0 < n < 1 << 31 for n in size):
        block = size[0], size[1]
    else:
        return f" with weight_block_size {size!r:.80}, which is not two whole numbers,"
    return Method(lambda stored, name: scaled(stored, name, block, True))


def _bitsandbytes(config: Mapping[str, Any]) -> Method | str:
    return " with load_in_4bit" if config.get("load_in_4bit") is True else _fp8(config)


def _modelopt(config: Mapping[str, Any]) -> Method | str:
    algorithm = config.get("quant_algo", "FP8")
    if algorithm == "NVFP4":
        return Method(_modelopt_fp4)
    return _fp8(config) if algorithm == "FP8" else f" with quant_algo {algorithm!r:.40}"


def _modelopt_fp4(stored: Tensors, name: str) -> Weight | None:
    if not name.endswith(WEIGHT) or f"{name}_scale_2" not in stored.names or stored.dtype(name) != uint8:
        return scaled(stored, name, None, True)
    return NVFP4(name, f"{name}_scale", f"{name}_scale_2", divides=False)


def _mxfp4(config: Mapping[str, Any]) -> Method | str:
    def find(stored: Tensors, name: str) -> Weight | None:
        stem = name.removesuffix("_blocks")
        return ExpertsMXFP4(stem) if stem != name and f"{stem}_scales" in stored.names else None

    return Method(find)


def _gptq(config: Mapping[str, Any]) -> Method | str:
    bits, layout = config.get("bits"), config.get("checkpoint_format", "gptq")
    if type(bits) is not int or bits not in _BITS:
        return f" to {bits!r:.20} bits"
    if layout not in ("gptq", "gptq_v2"):
        return f" in the format {layout!r:.40}"
    if config.get("dynamic"):
        return " with bits that differ by layer (dynamic)"
    less = 1 if layout == "gptq" else 0
    return Method(lambda stored, name: GPTQ(name.removesuffix(".qweight"), bits, less) if _words(name) else None)


def _awq(config: Mapping[str, Any]) -> Method | str:
    bits, version = config.get("bits", config.get("w_bit")), config.get("version", "gemm")
    if bits != 4:
        return f" to {bits!r:.20} bits"
    if str(version).lower() != "gemm":
        return f" in the version {version!r:.40}"
    return Method(lambda stored, name: AWQ(name.removesuffix(".qweight")) if _words(name) else None)


def _words(name: str) -> bool:
    return name.endswith(".qweight")


def _compressed(config: Mapping[str, Any]) -> Method | str:
    layout = config.get("format")
    if layout not in _LAYOUTS:
        return f" in the format {layout!r:.40}"
    for key in ("transform_config", "sparsity_config"):
        more = config.get(key)
        if more and not (isinstance(more, Mapping) and more.get("format") == "dense"):
            return f" with a {key}"
    groups = config.get("config_groups")
    numbers = set()
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        bits = weights.get("num_bits") if isinstance(weights, Mapping) else None
        if type(bits) is not int or not 1 <= bits <= 8:
            return f" to {bits!r:.20} bits"
        numbers.add(bits)
    widths = tuple(sorted(numbers or {8}))
    rounds = _rounds(groups) if layout == "int-quantized" else None

    def find(stored: Tensors, name: str) -> Weight | None:
        stem = name.removesuffix(".weight_packed")
        if stem == name:
            return scaled(stored, name, None, True, rounds)
        scale, overall = f"{stem}.weight_scale", f"{stem}.weight_global_scale"
        if stored.dtype(name) != uint8:
            return Packed(stem, widths)
        return NVFP4(name, scale, overall, divides=True) if overall in stored.names else MXFP4(name, scale)

    return Method(find)


def _rounds(groups: Any) -> str | None:
    """The scales by which all groups have activations rounded to int8 without zeros: "dynamic", of each row, or
    "static", of the file. None where they do not, or differently."""
    kinds: set[str] = set()
    for group in groups.values() if isinstance(groups, Mapping) else ():
        rows = group.get("input_activations")
        if not isinstance(rows, Mapping):
            return None
        own = rows.get("num_bits", 8), rows.get("type", "int"), rows.get("symmetric", True)
        if own != (8, "int", True):
            return None
        is_dynamic, strategy = rows.get("dynamic", False), rows.get("strategy")
        if is_dynamic is True and strategy in (None, "token"):
            kinds.add("dynamic")
        elif is_dynamic is False and strategy in (None, "tensor"):
            kinds.add("static")
        else:
            return None
    return kinds.pop() if len(kinds) == 1 else None


_METHODS: dict[str, Callable[[Mapping[str, Any]], Method | str]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "bitsandbytes": _bitsandbytes,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "mxfp4": _mxfp4,
    "gptq": _gptq,
    "awq": _awq,
    "compressed-tensors": _compressed,
}
