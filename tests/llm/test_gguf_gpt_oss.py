"""gpt-oss as a GGUF file, experts in MXFP4 and sinks: the logits of the same model under Hugging Face's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import model_files
import numpy as np
import pytest
from llm import tiny
from llm.stepping import logits_of
from llm.test_gguf_names import logits
from llm.tiny_weights import CONFIGS, tensors

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError, ModelFileError
from pygpukit.llm.weights import from_checkpoint
from pygpukit.nn.linear.blocks import Blocks
from pygpukit.ops import host

_NAMES = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GPT_OSS, 9)
_MXFP4 = gguf.GGMLQuantizationType.MXFP4


def config_of() -> dict[str, Any]:
    """Heads of gpt-oss' own size, and rows of experts that are no whole blocks of 128."""
    return {**CONFIGS["gpt_oss"], "hidden_size": 96, "intermediate_size": 160, "swiglu_limit": 7.0, "head_dim": 64} | {
        "layer_types": ["sliding_attention", "full_attention"],
        "num_hidden_layers": 2,
    }


def write(
    path: Path, kind: str = "F32", without: str = "", more: dict[str, Any] | None = None, exponent: int | None = None
) -> tuple[Path, dict[str, np.ndarray[Any, Any]]]:
    """The small model as llama.cpp's converter writes it, and its values. kind: of the experts; exponent: of
    a block."""
    config = config_of()
    values = tensors(config)
    stored: dict[str, tuple[str, tuple[int, ...], bytes]] = {}
    for ours in list(values):
        value = values[ours]
        if ".experts." not in ours:
            base, end = (ours, "weight") if ours.endswith("sinks") else ours.rsplit(".", 1)
            stored[f"{_NAMES.get_name(base)}.{end}"] = "F32", value.shape, value.astype("<f4").tobytes()
            continue
        layer, is_bias = ours.split(".")[2], ours.endswith("_bias")
        below = value if is_bias else value.swapaxes(1, 2)
        joined = "gate_up" in ours
        parts = {"gate": below[:, ::2], "up": below[:, 1::2]} if joined else {"down": below}
        made = {}
        for part, rows in parts.items():
            name, rows = f"blk.{layer}.ffn_{part}_exps", np.ascontiguousarray(rows, np.float32)
            if is_bias or kind == "F32":
                stored[f"{name}.{'bias' if is_bias else 'weight'}"] = "F32", rows.shape, rows.tobytes()
                made[part] = rows
                continue
            packed = gguf.quants.quantize(rows, _MXFP4)
            if exponent is not None:
                packed[0, 0, 0] = exponent
            with np.errstate(over="ignore"):
                made[part] = gguf.quants.dequantize(packed, _MXFP4).reshape(rows.shape)
            stored[f"{name}.weight"] = "MXFP4 of GGUF", rows.shape, packed.tobytes()
        whole = np.stack([made["gate"], made["up"]], 2).reshape(below.shape) if joined else made["down"]
        values[ours] = whole if is_bias else np.ascontiguousarray(whole.swapaxes(1, 2))
    scaling = config["rope_parameters"]
    own = {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "expert_feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.key_length": config["head_dim"],
        "attention.value_length": config["head_dim"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "attention.sliding_window": config["sliding_window"],
        "rope.freq_base": scaling["rope_theta"],
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": scaling["factor"],
        "rope.scaling.original_context_length": scaling["original_max_position_embeddings"],
        "expert_count": config["num_local_experts"],
        "expert_used_count": config["num_experts_per_tok"],
    } | (more or {})
    fields = {"general.architecture": "gpt-oss"} | {f"gpt-oss.{key}": value for key, value in own.items()}
    stored = {key: value for key, value in stored.items() if not without or without not in key}
    path.write_bytes(model_files.gguf(fields | model_files.tokenizer_fields(), stored))
    return path, values


def of_hugging_face(values: dict[str, np.ndarray[Any, Any]], dtype: str) -> Any:
    return from_checkpoint(tiny.MemoryCheckpoint(config_of(), values), dtype=dtype, context=64)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["F32", "MXFP4"])
def test_the_logits_of_the_model(tmp_path: Path, kind: str) -> None:
    path, values = write(tmp_path / "m.gguf", kind)
    model = gp.llm.load(path, progress=False, dtype="float32")
    plain = of_hugging_face(values, "float32")
    assert model.spec.name == "gpt_oss" and model.config.windowed == plain.config.windowed
    assert (model.config.rope_scaling or {})["truncate"] is False
    assert np.ptp(model.blocks[0].attn.sinks.to_numpy()) > 0
    np.testing.assert_allclose(logits(model), logits(plain), rtol=1e-5, atol=2e-5)


def test_experts_stay_in_blocks_on_a_device(kernels_on_sim: None, tmp_path: Path) -> None:
    path, values = write(tmp_path / "m.gguf", "MXFP4")
    model = gp.llm.load(path, progress=False, dtype="bfloat16", context=64)
    for block in model.blocks:
        for linear in block.mlp.experts.linears:  # type: ignore[union-attr]
            assert isinstance(linear.weight, Blocks)
            assert [part.kind for part in linear.weight.parts] == ["MXFP4"]
            assert linear.weight.parts[0].array.shape[1] == 68 * -(-linear.weight.columns // 128)
    assert not model.expanded
    prompt = [int(x) for x in np.random.default_rng(3).integers(0, 99, 9)]
    found, _ = logits_of(model, prompt, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "_through_kernels", False)
        exact, rounded = (logits_of(of_hugging_face(values, dtype), prompt, 1)[0] for dtype in ("float32", "bfloat16"))
    assert np.abs(found - exact).max() <= 2 * np.abs(rounded - exact).max()


@pytest.mark.parametrize(
    ("without", "more", "naming"),
    [
        ("blk.1.ffn_up_exps.weight", {}, "up_proj"),
        ("blk.1.attn_sinks", {}, "sinks"),
        ("", {"expert_count": 3}, "ffn_.*_exps.*3 experts"),
        ("", {"expert_gating_func": 2}, "expert_gating_func"),
    ],
)
def test_what_is_no_such_model_is_refused(tmp_path: Path, without: str, more: dict[str, Any], naming: str) -> None:
    path, _ = write(tmp_path / "m.gguf", without=without, more=more)
    with pytest.raises((ModelFileError, InvalidSpecError), match=naming):
        gp.llm.load(path, progress=False, dtype="float32")


def test_an_exponent_of_no_number_is_refused(kernels_on_sim: None, tmp_path: Path) -> None:
    path, _ = write(tmp_path / "m.gguf", "MXFP4", exponent=255)
    with pytest.raises(ModelFileError, match="exponent of MXFP4"):
        gp.llm.load(path, progress=False, dtype="bfloat16", context=64)
