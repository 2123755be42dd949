"""Few bits, pruning and sparsity as a model's config.json tells them, by the documented classes.

What is read by such a configuration, and what is refused, models/quantised/methods.py decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pygpukit.models.fields import Fields

_BLOCK = (128, 128)
_METHODS = ("qat", "awq", "gptq", "bnb", "modelopt")  # of QATQuantConfig
_WHERE = "config.json: quantization_config"


@dataclass
class FP8QuantConfig:
    """The FP8 weights of a config.json: quantization_config with quant_method "fp8".

    Parameters
    ----------
    quant_method
        "fp8".
    fmt
        "e4m3" or "e5m2".
    weight_block_size
        (rows, columns) that share a scale.
    modules_to_not_convert
        Modules whose weights stayed as they were.
    """

    quant_method: str
    fmt: str
    weight_block_size: tuple[int, int]
    modules_to_not_convert: list[str]

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> FP8QuantConfig | None:
        """Of a config.json; None for a model of other weights. Raises InvalidSpecError for a field of another kind."""
        method = Fields(config).object("quantization_config") or {}
        if method.get("quant_method") != "fp8":
            return None
        fields = Fields(method, _WHERE)
        block = _pair(fields, "weight_block_size") or _BLOCK
        return cls("fp8", fields.text("fmt") or "e4m3", block, _texts(fields, "modules_to_not_convert"))


@dataclass
class QATQuantConfig:
    """Weights that were quantised in training or after it: AWQ, GPTQ, ModelOpt, or a hf_quant_config.json.

    Parameters
    ----------
    quant_method
        "awq", "gptq", "bnb", "modelopt" or "qat".
    quant_algo
        The method's own name of it, "NVFP4", or its bits, "4"; "unknown" where the file names none.
    group_size
        Neighbours that share a scale; 128 where the file names none.
    kv_cache_quant_algo
        Of keys and values; None where they stayed as they were.
    exclude_modules
        Modules whose weights stayed as they were.
    producer, producer_version
        The program that wrote the file, of a hf_quant_config.json; None in others.
    """

    quant_method: str
    quant_algo: str
    group_size: int
    kv_cache_quant_algo: str | None
    exclude_modules: list[str]
    producer: str | None
    producer_version: str | None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> QATQuantConfig | None:
        """Of a config.json or hf_quant_config.json; None where neither names such a method. Raises InvalidSpecError
        for a field of another kind."""
        top = Fields(config)
        producer, own = top.object("producer"), top.object("quantization")
        if producer is not None and own is not None:
            wrote = Fields(producer, "hf_quant_config.json: producer")
            fields, method = Fields(own, "hf_quant_config.json: quantization"), "modelopt"
            by = wrote.text("name"), wrote.text("version")
        else:
            fields = Fields(top.object("quantization_config") or {}, _WHERE)
            method, by = fields.text("quant_method") or "", (None, None)
            if method not in _METHODS:
                return None
        return cls(
            method,
            str(fields.get("quant_algo", "bits") or "unknown"),
            fields.integer("group_size", "block_size", minimum=-1) or 128,
            fields.text("kv_cache_quant_algo"),
            _texts(fields, "exclude_modules", "modules_to_not_convert"),
            *by,
        )


@dataclass
class PruningConfig:
    """The parts that were taken out of a model: the heads of pruned_heads, or what a pruning_config says.

    Parameters
    ----------
    pruning_method
        "structured" for heads, else the file's word, or "unknown".
    sparsity
        The part of the weights that is gone, 0 to 1; 0 where the file does not say.
    pruned_heads
        Heads by layer, or None.
    is_structured
        Whether whole heads or neurons are gone.
    """

    pruning_method: str
    sparsity: float
    pruned_heads: dict[int, list[int]] | None
    is_structured: bool

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> PruningConfig | None:
        """Of a config.json; None for a model of which nothing was taken. Raises InvalidSpecError for a field of another
        kind."""
        top = Fields(config)
        heads = _heads(top)
        if heads:
            return cls("structured", 0.0, heads, True)
        own = top.object("pruning_config")
        if own is None:
            return None
        fields = Fields(own, "config.json: pruning_config")
        return cls(
            fields.text("pruning_type", "method") or "unknown",
            _share(fields, "target_sparsity", "sparsity") or 0.0,
            _heads(fields),
            bool(fields.flag("is_structured", "structured")),
        )


@dataclass
class SparsityConfig:
    """The pattern of the zeros in a model's weights.

    Parameters
    ----------
    pattern
        "2:4", "block", "unstructured" or the file's word.
    block_size
        (rows, columns) of a block, or None.
    density
        The part of the weights that is not 0.
    """

    pattern: str
    block_size: tuple[int, int] | None
    density: float

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> SparsityConfig | None:
        """Of a config.json, its sparsity_config or the sparsity_pattern of its quantization_config; None without one.
        Raises InvalidSpecError for a field of another kind."""
        top = Fields(config)
        own, gone = top.object("sparsity_config"), 0.0
        fields = Fields(own or {}, "config.json: sparsity_config")
        if own is None:
            fields, gone = Fields(top.object("quantization_config") or {}, _WHERE), 0.5
            if fields.text("sparsity_pattern") is None:
                return None
        density, sparsity = _share(fields, "density"), _share(fields, "sparsity")
        if density is None:
            density = 1.0 - (gone if sparsity is None else sparsity)
        return cls(fields.text("pattern", "sparsity_pattern") or "unknown", _pair(fields, "block_size"), density)

    def is_2_4_sparse(self) -> bool:
        """True if two of each four neighbours are 0, which tensor cores can skip."""
        return self.pattern == "2:4"


@dataclass
class ModelOptimizationInfo:
    """All of these of one config.json; None for what it does not have."""

    fp8_config: FP8QuantConfig | None
    qat_config: QATQuantConfig | None
    pruning_config: PruningConfig | None
    sparsity_config: SparsityConfig | None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> ModelOptimizationInfo:
        """Of a config.json. Raises InvalidSpecError for a field of another kind."""
        own = (FP8QuantConfig, QATQuantConfig, PruningConfig, SparsityConfig)
        fp8, qat, pruning, sparsity = (kind.from_config(config) for kind in own)
        return cls(fp8, qat, pruning, sparsity)  # type: ignore[arg-type]

    def has_any_optimization(self) -> bool:
        """True if one of them is there."""
        return any((self.fp8_config, self.qat_config, self.pruning_config, self.sparsity_config))

    def summary(self) -> str:
        """A text of what is there: "FP8(e4m3), Sparse(2:4)"; "None" for nothing."""
        parts = []
        if self.fp8_config:
            parts.append(f"FP8({self.fp8_config.fmt})")
        if self.qat_config:
            parts.append(f"QAT({self.qat_config.quant_algo})")
        if self.pruning_config:
            parts.append(f"Pruned({self.pruning_config.pruning_method})")
        if self.sparsity_config:
            parts.append(f"Sparse({self.sparsity_config.pattern})")
        return ", ".join(parts) or "None"


def _pair(fields: Fields, name: str) -> tuple[int, int] | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != 2 or not all(type(n) is int and n > 0 for n in value):
        raise fields.error("must be two whole numbers above 0", name)
    return value[0], value[1]


def _texts(fields: Fields, *names: str) -> list[str]:
    value = fields.get(*names)
    if value is not None and not (isinstance(value, list) and all(isinstance(text, str) for text in value)):
        raise fields.error("must be a list of texts", *names)
    return list(value or [])


def _share(fields: Fields, *names: str) -> float | None:
    value = fields.get(*names)
    if value is not None and not (type(value) in (int, float) and 0 <= value <= 1):
        raise fields.error("must be a number of 0 to 1", *names)
    return None if value is None else float(value)


def _heads(fields: Fields) -> dict[int, list[int]] | None:
    value = fields.object("pruned_heads")
    if value is None:
        return None
    layers = {str(layer): heads for layer, heads in value.items()}
    if not all(
        layer.isdecimal() and isinstance(heads, list) and all(type(head) is int for head in heads)
        for layer, heads in layers.items()
    ):
        raise fields.error("must give lists of heads by layer", "pruned_heads")
    return {int(layer): list(heads) for layer, heads in layers.items()}
