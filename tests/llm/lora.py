"""LoRA folders in PEFT's layout, of random numbers, and the weights that they are merged into."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from llm.tiny_weights import CONFIGS, tensors

ALL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "qkv_proj", "gate_up_proj")
GPT2 = ("c_attn", "c_proj", "c_fc")


def folder(
    path: Path,
    name: str,
    seed: int,
    modules: tuple[str, ...] = (*ALL, *GPT2),
    rank: int = 4,
    size: float = 0.3,
    config: dict[str, Any] | None = None,
    **fields: Any,
) -> tuple[Path, dict[str, np.ndarray]]:
    """An adapter for the small model of that name, and the model's tensors merged with it in float64. config: another
    one of the model."""
    from safetensors.numpy import save_file

    rng = np.random.default_rng(seed)
    merged = {key: value.astype(np.float64) for key, value in tensors(config or CONFIGS[name]).items()}
    said: dict[str, Any] = {"peft_type": "LORA", "r": rank, "lora_alpha": 6, "target_modules": list(modules), **fields}
    stored: dict[str, np.ndarray] = {}
    for key, value in merged.items():
        module = key.removesuffix(".weight")
        if module.rpartition(".")[2] not in modules or not key.endswith(".weight"):
            continue
        transposed = module.rpartition(".")[2] in GPT2
        out, columns = value.shape[::-1] if transposed else value.shape
        own = int(said.get("rank_pattern", {}).get(module.rpartition(".")[2], rank))
        alpha = float(said.get("alpha_pattern", {}).get(module.rpartition(".")[2], said["lora_alpha"]))
        a = rng.standard_normal((own, columns)).astype(np.float32) * np.float32(size / math.sqrt(columns))
        b = rng.standard_normal((out, own)).astype(np.float32) * np.float32(size)
        stored[f"base_model.model.{module}.lora_A.weight"] = a
        stored[f"base_model.model.{module}.lora_B.weight"] = b
        change = b.astype(np.float64) @ a * (alpha / (math.sqrt(own) if said.get("use_rslora") else own))
        merged[key] = value + (change.T if transposed else change)
    assert stored
    path.mkdir()
    save_file(stored, path / "adapter_model.safetensors")
    (path / "adapter_config.json").write_text(json.dumps(said))
    return path, merged
