"""Mixtures of experts as GGUF files, all experts of a layer in one tensor: the logits of the same model under Hugging
Face's names, with experts in blocks, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import model_files
import numpy as np
import pytest
from llm import tiny
from llm.test_gguf_names import logits
from llm.test_models_in_blocks import packed
from llm.tiny_weights import CONFIGS, tensors

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError, ModelFileError
from pygpukit.llm.weights import from_checkpoint
from pygpukit.models.dequantise import named
from pygpukit.nn.linear.blocks import Blocks

NAMES = {"mixtral": "llama", "qwen3_moe": "qwen3moe", "olmoe": "olmoe"}


def config_of(name: str) -> dict[str, Any]:
    config = {**CONFIGS[name], "intermediate_size": 64}
    if name == "qwen3_moe":
        config |= {"moe_intermediate_size": 64, "mlp_only_layers": []}
    return config if name == "mixtral" else {**config, "norm_topk_prob": name == "qwen3_moe"}


def write(
    path: Path, name: str, kind: str = "F32", without: str = "", more: dict[str, Any] | None = None
) -> tuple[Path, dict[str, np.ndarray[Any, Any]]]:
    """The small model as llama.cpp's converter writes it, and its values. kind: of the experts."""
    config, arch = config_of(name), NAMES[name]
    values, stacks = tensors(config), {}
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], 9)
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    stored: dict[str, tuple[str, tuple[int, ...], bytes]] = {}
    for ours, value in values.items():
        base, end = ours.rsplit(".", 1)
        part = base.split(".")[-1]
        if ".experts." in ours:
            stem, number = base.split(".experts.")[0], base.split(".experts.")[1].split(".")[0]
            stacks.setdefault((f"{stem}.experts.{part}", part), {})[int(number)] = ours
            continue
        if name == "mixtral" and part in heads:
            value = value.reshape(heads[part], 2, -1, value.shape[1]).swapaxes(1, 2).reshape(value.shape)
        stored[f"{names.get_name(base)}.{end}"] = "F32", value.shape, value.astype("<f4").tobytes()
    parts = {"w1": "gate", "w2": "down", "w3": "up", "gate_proj": "gate", "up_proj": "up", "down_proj": "down"}
    for (stem, part), experts in stacks.items():
        all_of_them = np.stack([values[experts[number]] for number in sorted(experts)])
        raw = all_of_them.astype("<f4")
        if kind != "F32":
            rows = packed(all_of_them.reshape(-1, all_of_them.shape[2]), kind)
            block = named(kind)
            decoded = block.decoded(rows.reshape(-1, block.bytes)).reshape(all_of_them.shape)
            values |= {experts[number]: decoded[number] for number in experts}
            raw = rows
        layer = stem.split(".")[2]
        stored[f"blk.{layer}.ffn_{parts[part]}_exps.weight"] = kind, all_of_them.shape, raw.tobytes()
    own = {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "rope.freq_base": config.get("rope_theta", 10000.0),
        "expert_count": config.get("num_local_experts") or config["num_experts"],
        "expert_used_count": config["num_experts_per_tok"],
    }
    if name == "qwen3_moe":
        dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        own |= {"attention.key_length": dim, "attention.value_length": dim, "expert_feed_forward_length": 64}
    own |= more or {}
    fields = {"general.architecture": arch} | {f"{arch}.{key}": value for key, value in own.items()}
    stored = {key: value for key, value in stored.items() if not without or without not in key}
    path.write_bytes(model_files.gguf(fields | model_files.tokenizer_fields(), stored))
    return path, values


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["F32", "Q8_0"])
def test_a_mixture_has_the_logits_of_the_model(tmp_path: Path, name: str, kind: str) -> None:
    path, values = write(tmp_path / "m.gguf", name, kind)
    model = gp.llm.load(path, progress=False, dtype="float32")
    plain = from_checkpoint(tiny.MemoryCheckpoint(config_of(name), values), dtype="float32")  # type: ignore[arg-type]
    assert model.spec.name == name
    experts = model.blocks[0].mlp.experts  # type: ignore[union-attr]
    assert isinstance(experts.gate_up.weight, Blocks) == (kind == "Q8_0") and not model.expanded
    bound = 2e-5 if kind == "F32" else 2e-3  # before products with blocks rows have 16 bits
    np.testing.assert_allclose(logits(model), logits(plain), rtol=1e-5, atol=bound)


@pytest.mark.parametrize(
    ("without", "more", "naming"),
    [
        ("blk.1.ffn_up_exps", {}, r"up_proj|w3"),
        ("", {"expert_count": 3}, "ffn_.*_exps.*3 experts"),
        ("", {"expert_count": 1 << 30}, "_exps"),
        ("", {"expert_used_count": 99}, "99|num_experts_per_tok"),
        ("", {"expert_gating_func": 2}, "expert_gating_func"),
        ("", {"expert_weights_scale": 2.5}, "expert_weights_scale"),
        ("", {"expert_shared_count": 1}, "expert_shared_count"),
    ],
)
@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe"])
def test_what_is_no_such_mixture_is_refused(
    tmp_path: Path, name: str, without: str, more: dict[str, Any], naming: str
) -> None:
    path, _ = write(tmp_path / "m.gguf", name, without=without, more=more)
    with pytest.raises((ModelFileError, InvalidSpecError), match=naming):
        gp.llm.load(path, progress=False, dtype="float32")
