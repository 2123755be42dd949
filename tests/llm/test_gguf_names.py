"""Small models as GGUF files: llama.cpp's names by the `gguf` package, its order of rows and its metadata give the
logits of the same model under Hugging Face's names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gguf
import model_files
import numpy as np
import pytest
from llm import tiny
from llm.tiny_weights import CONFIGS, LONGROPE, tensors

import pygpukit as gp
from pygpukit.core.errors import ModelFileError
from pygpukit.llm.weights import from_checkpoint

IDS = [int(x) for x in np.random.default_rng(3).integers(0, 99, 60)]
PAIRED = ("smollm3", "granite", "mistral")  # rows of q and k are ordered for rotation of neighbours
# Beside what all have; what a file cannot say has llama.cpp's value.
METADATA: dict[str, dict[str, Any]] = {
    "gemma2": {
        "attention.key_length": 16,
        "attention.value_length": 16,
        "attention.sliding_window": 24,
        "attn_logit_softcapping": 4.0,
        "final_logit_softcapping": 9.0,
    },
    "gemma3": {"attention.key_length": 16, "attention.value_length": 16, "attention.sliding_window": 24}
    | {"rope.freq_base": 500000.0, "rope.scaling.type": "linear", "rope.scaling.factor": 2.0},
    "smollm3": {"rope.dimension_count": 8},
    "olmo2": {},
    "granite": {"embedding_scale": 3.0, "attention.scale": 0.21, "residual_scale": 0.4, "logit_scale": 1.5},
    "qwen3": {"attention.key_length": 16, "attention.value_length": 16},
    "mistral_nemo": {"attention.key_length": 24, "attention.value_length": 24, "rope.dimension_count": 24},
    "phi3": {"attention.sliding_window": 24, "rope.dimension_count": 8},
    "phi4": {
        "attention.sliding_window": 0,
        "rope.dimension_count": 12,
        "rope.scaling.original_context_length": 32,
        "rope.scaling.attn_factor": math.sqrt(1 + math.log(16) / math.log(32)),
    },
}
SAME_AS: dict[str, dict[str, Any]] = {
    "gemma2": {"query_pre_attn_scalar": 16},
    "gemma3": {"query_pre_attn_scalar": 16, "layer_types": None},
    "smollm3": {"no_rope_layer_interval": 4},
}


def write(path: Path, name: str, without: tuple[str, ...] = (), **more: Any) -> Path:
    """The small model as llama.cpp's converter writes it."""
    config = CONFIGS[name]
    arch = config["model_type"].removesuffix("_text")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper() if arch != "mistral" else "LLAMA"], 9)
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    result = {}
    for theirs, value in tensors(config).items():
        base, end = theirs.rsplit(".", 1)
        part = base.split(".")[-1]
        if arch in PAIRED and part in heads:
            halves = value.reshape(heads[part], 2, -1, *value.shape[1:])
            value = halves.swapaxes(1, 2).reshape(value.shape)
        if arch in ("gemma2", "gemma3") and base.endswith("norm"):
            value = value + np.float32(1)
        result[f"{names.get_name(base)}.{end}"] = value
    if name == "phi4":
        for kind in ("short", "long"):
            result[f"rope_factors_{kind}.weight"] = np.asarray(LONGROPE[f"{kind}_factor"], np.float32)
    if arch == "mistral":
        arch = "llama"  # which is what the converter makes of it
    own = {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "rope.freq_base": config["rope_theta"],
        **METADATA[name],
        **more,
    }
    fields = {"general.architecture": arch} | {f"{arch}.{key}": value for key, value in own.items()}
    stored = {
        key: ("F32", value.shape, value.astype("<f4").tobytes()) for key, value in result.items() if key not in without
    }
    path.write_bytes(model_files.gguf(fields | model_files.tokenizer_fields(), stored))
    return path


def logits(model: Any) -> np.ndarray[Any, Any]:
    return model.get_logits(model(IDS)[0]).to_numpy()


@pytest.mark.parametrize("name", sorted(METADATA))
def test_a_file_of_llama_cpp_gives_the_logits_of_the_model(tmp_path: Path, name: str) -> None:
    result = logits(gp.llm.load(write(tmp_path / "m.gguf", name), progress=False, dtype="float32"))
    config = {**CONFIGS[name], **SAME_AS.get(name, {})}
    plain = from_checkpoint(tiny.MemoryCheckpoint(config, tensors(CONFIGS[name])), dtype="float32")  # type: ignore
    np.testing.assert_allclose(result, logits(plain), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("gemma2", {"attn_logit_softcapping": 5.0}),
        ("gemma2", {"attention.sliding_window": 9}),
        ("granite", {"residual_scale": 0.0}),
        ("granite", {"attention.scale": 0.0}),
        ("phi4", {"rope.scaling.attn_factor": 1.5}),
    ],
)
def test_its_metadata_count(tmp_path: Path, name: str, more: dict[str, Any]) -> None:
    plain, changed = (
        logits(gp.llm.load(write(tmp_path / "m.gguf", name, **one), progress=False, dtype="float32"))
        for one in ({}, more)
    )
    assert np.abs(plain - changed).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "without", "more", "named"),
    [
        ("phi4", ("rope_factors_long.weight",), {}, "rope_factors_long"),
        ("phi4", (), {"rope.dimension_count": 18}, "rotary_dim"),
        ("qwen3", (), {"rope.dimension_count": 8}, r"rope\.dimension_count"),
        ("olmo2", ("blk.1.attn_q_norm.weight",), {}, "q_norm"),
        ("granite", (), {"attention.clamp_kqv": 8.0}, r"attention\.clamp_kqv"),
    ],
)
def test_what_is_not_whole_is_refused(
    tmp_path: Path, name: str, without: tuple[str, ...], more: dict[str, Any], named: str
) -> None:
    path = write(tmp_path / "m.gguf", name, without, **more)
    with pytest.raises((ModelFileError, gp.InvalidSpecError), match=named):
        gp.llm.load(path, progress=False, dtype="float32")


@pytest.mark.parametrize(("name", "layers", "width"), [("gemma2", 46, 32), ("gemma3", 62, 32)])
def test_the_largest_gemmas_scale_scores_by_another_size(
    tmp_path: Path, name: str, layers: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONFIGS[name], "num_hidden_layers", layers)
    monkeypatch.setitem(METADATA[name], "attention.sliding_window", 24)
    from pygpukit.models import open_checkpoint

    monkeypatch.delitem(CONFIGS[name], "layer_types", raising=False)
    names = gguf.get_tensor_name_map
    monkeypatch.setattr(gguf, "get_tensor_name_map", lambda arch, _: names(arch, layers))
    checkpoint = open_checkpoint(write(tmp_path / "m.gguf", name))
    assert checkpoint.config["query_pre_attn_scalar"] == width // CONFIGS[name]["num_attention_heads"]
    checkpoint.close()
