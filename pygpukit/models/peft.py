"""Adapters in PEFT's layout: a folder with adapter_config.json and adapter_model.safetensors, LoRA of any rank."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pygpukit.core.dtypes import float32
from pygpukit.core.errors import ModelFileError
from pygpukit.models.convert import convert
from pygpukit.models.documents import read_object
from pygpukit.models.fields import Fields
from pygpukit.models.quantised.tensors import SCALES
from pygpukit.models.safetensors import SafeTensorsFile

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_PREFIX = "base_model.model."
_NAME = re.compile(r"(?P<module>.+)\.lora_(?P<side>[AB])(?:\.\w+)?\.weight")
_PLAIN = re.compile(r"[\w.]+")
_MAX_RANK = 4096
# Fields that would change the numbers, by the values that change nothing.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "bias": ("none",),
    "use_dora": (False,),
    "use_qalora": (False,),
    "lora_bias": (False,),
    "modules_to_save": ([],),
    "trainable_token_indices": ([], {}),
    "layer_replication": ([],),
    "megatron_config": ({},),
    "alora_invocation_tokens": ([],),
    "init_lora_weights": (True, False, "gaussian", "eva", "orthogonal"),  # others change the model's own weights
}


class LowRank(NamedTuple):
    """The change of a weight (out, in): up @ down. down: float32 (rank, in); up: (out, rank), with the scale."""

    down: Array
    up: Array


def read_adapter(folder: str | os.PathLike[str]) -> dict[str, LowRank]:
    """The adapter of a folder by the names of the modules that it changes: "model.layers.0.self_attn.q_proj".

    Raises ModelFileError for files that are damaged or of another layout, InvalidSpecError for another method than
    LoRA, or for a form of it that adds more than up @ down.
    """
    path = Path(folder).expanduser()
    where, weights = path / "adapter_config.json", path / "adapter_model.safetensors"
    if not where.is_file():
        raise ModelFileError(f"{path}: it has no adapter_config.json, which an adapter in PEFT's layout has", str(path))
    fields = Fields(read_object(where), str(where))
    _check(fields)
    if not weights.is_file():
        pickled = (path / "adapter_model.bin").exists()
        why = ", but adapter_model.bin, a pickle, which can run any code when it is opened" if pickled else ""
        raise ModelFileError(f"{path}: it has no adapter_model.safetensors{why}", str(path))
    file = SafeTensorsFile(weights)
    try:
        return _read(file, fields)
    finally:
        file.close()


def _check(fields: Fields) -> None:
    if fields.text("peft_type") != "LORA":
        raise fields.error("must be 'LORA'", "peft_type")
    for name, neutral in _NEUTRAL.items():
        value = fields.get(name)
        if value is not None and value not in neutral:
            raise fields.error(f"and what is read is {' or '.join(map(repr, neutral))}", name)


def _read(file: SafeTensorsFile, fields: Fields) -> dict[str, LowRank]:
    pairs: dict[str, dict[str, str]] = {}
    for name in file.tensor_names:
        match = _NAME.fullmatch(name.removeprefix(_PREFIX))
        if match is None:
            raise ModelFileError(f"{file.path}: the tensor {name!r} is no lora_A or lora_B of a module", str(file.path))
        sides = pairs.setdefault(match["module"], {})
        if match["side"] in sides:
            raise ModelFileError(f"{file.path}: there are two of {name!r}", str(file.path))
        sides[match["side"]] = name
    if not pairs:
        raise ModelFileError(f"{file.path}: it has no tensors", str(file.path))
    return {module: _pair(file, fields, module, sides) for module, sides in pairs.items()}


def _pair(file: SafeTensorsFile, fields: Fields, module: str, sides: Mapping[str, str]) -> LowRank:
    import numpy as np

    missing = next((f"lora_{side}" for side in "AB" if side not in sides), None)
    if missing is not None:
        raise ModelFileError(f"{file.path}: {module!r} has no {missing}.weight", str(file.path))
    infos = [file.tensor_info(sides[side]) for side in "AB"]
    rank = _of_module(fields, "rank_pattern", "r", module)
    shapes = [tuple(info.shape) for info in infos]
    fits = len(shapes[0]) == len(shapes[1]) == 2 and shapes[0][0] == shapes[1][1] == rank
    if not fits or not 0 < rank <= _MAX_RANK or any(info.dtype.data_type not in SCALES for info in infos):
        raise ModelFileError(
            f"{file.path}: lora_A and lora_B of {module!r} are {infos[0].dtype_name} of {shapes[0]} and "
            f"{infos[1].dtype_name} of {shapes[1]}, must be floats of (rank, in) and (out, rank) with rank {rank:g}",
            str(file.path),
        )
    alpha = _of_module(fields, "alpha_pattern", "lora_alpha", module)
    scale = alpha / (math.sqrt(rank) if fields.flag("use_rslora") else rank)
    down, up = (convert(file.array(info.name), info.dtype.data_type, float32) for info in infos)
    return LowRank(np.array(down), up * np.float32(scale))


def _of_module(fields: Fields, pattern: str, name: str, module: str) -> float:
    """A field, or what the pattern says of a module whose name ends so."""
    for ending, value in (fields.object(pattern) or {}).items():
        if not _PLAIN.fullmatch(ending):
            raise fields.error("may name modules, not expressions of a stranger's file", pattern)
        if f".{module}".endswith(f".{ending}"):
            return Fields({name: value}, f"{pattern}: {ending}").number(name) or 0.0
    number = fields.number(name)
    if number is None:
        raise fields.missing("an adapter", name)
    return number
