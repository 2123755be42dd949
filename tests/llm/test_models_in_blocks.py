"""A model whose weights stay in blocks on a device: beside the same model of their values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm.stepping import logits_of
from llm.tiny import MemoryCheckpoint
from llm.tiny_weights import CONFIGS, tensors
from models.quantised_folders import gptq
from models.test_quantised import folder  # with the spellings of all types

from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.weights import from_checkpoint, load
from pygpukit.models.dequantise import named
from pygpukit.models.stored import Stored
from pygpukit.nn.linear.blocks import Blocks
from pygpukit.ops import host

# Neighbours of one kind, and of two: joined products of one part and of several.
KINDS = {"q_proj": "Q8_0", "k_proj": "Q8_0", "v_proj": "Q5_0", "gate_proj": "Q4_0", "up_proj": "Q4_0"}
MIXED = {**KINDS, "up_proj": "Q8_0"}


def packed(weight: np.ndarray, kind: str) -> np.ndarray:
    """Rows in blocks of 32 values, scaled by the largest."""
    middle = {"Q4_0": 8, "Q5_0": 16, "Q8_0": 0}[kind]
    groups = weight.reshape(len(weight), -1, 32)
    scale = (np.abs(groups).max(-1, keepdims=True) / (middle or 127)).astype(np.float16)
    codes = np.rint(groups / scale.astype(np.float32)).astype(np.int64)
    codes = np.clip(codes + middle, 0 if middle else -127, 2 * middle - 1 if middle else 127)
    parts = [scale.view(np.uint8)]
    if kind == "Q8_0":
        parts.append(codes.astype(np.int8).view(np.uint8))
    else:
        if kind == "Q5_0":
            fifths = ((codes >> 4) << np.arange(32)).sum(-1, keepdims=True).astype(np.uint32)
            parts.append(fifths.view(np.uint8).reshape(*codes.shape[:2], 4))
        parts.append(((codes[..., :16] & 15) | (codes[..., 16:] & 15) << 4).astype(np.uint8))
    return np.concatenate(parts, axis=-1).reshape(len(weight), -1)


class BlocksCheckpoint(MemoryCheckpoint):
    """Weights of products and the embedding in blocks."""

    def __init__(self, config: dict[str, Any], kinds: dict[str, str]) -> None:
        values = tensors(config)
        self._rows: dict[str, tuple[str, np.ndarray]] = {}
        for name, value in values.items():
            if value.ndim == 2:
                kind = kinds.get(name.split(".")[-2], "Q8_0")
                rows = packed(value, kind)
                block = named(kind)
                self._rows[name] = kind, rows
                values[name] = block.decoded(rows.reshape(-1, block.bytes)).reshape(value.shape)
        super().__init__(config, values)

    def stored(self, name: str) -> Stored | None:  # type: ignore[override]
        rows = self._rows.get(name)
        return None if rows is None else Stored(rows[0], lambda: rows[1])

    def quantised_weight(self, name: str) -> tuple[str, int] | None:  # type: ignore[override]
        rows = self._rows.get(name)
        return None if rows is None else (rows[0], rows[1].nbytes)


def model(kinds: dict[str, str]) -> CausalTransformerModel:
    config = {**CONFIGS["qwen2"], "intermediate_size": 64, "tie_word_embeddings": True}
    return from_checkpoint(BlocksCheckpoint(config, kinds), dtype="bfloat16", context=64)


@pytest.mark.parametrize("kinds", [KINDS, MIXED])
def test_logits_are_those_of_the_values(kernels_on_sim: None, kinds: dict[str, str]) -> None:
    prompt = [int(x) for x in np.random.default_rng(11).integers(0, 99, 9)]
    ours = model(kinds)
    weights = [ours.embed_tokens, *(block.attn.qkv_proj.weight for block in ours.blocks)]
    assert all(isinstance(weight, Blocks) for weight in weights)
    assert [part.kind for part in weights[1].parts] == ["Q8_0", "Q5_0"]  # type: ignore[union-attr]
    found, tokens = logits_of(ours, prompt, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "_through_kernels", False)
        expected, others = logits_of(model(kinds), prompt, 2)
    same = next((i for i, (a, b) in enumerate(zip(tokens, others, strict=True)) if a != b), 2)
    assert np.abs(found - expected)[: same + 1].max() <= 0.08 * np.abs(expected).max()  # after the same tokens


def test_act_order_stays_in_blocks(kernels_on_sim: None, tmp_path: Path) -> None:
    """GPTQ of 8 bits: q, k and v in one order of columns, gate and up in one each; what was moved is told."""
    config = {**CONFIGS["llama"], "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1}
    rng, stored, method = np.random.default_rng(5), {}, {}
    for name, value in tensors(config).items():
        if "_proj" not in name:
            stored[name] = value
            continue
        seed = 7 if ".self_attn." in name else int(rng.integers(100))
        made, method, _ = gptq(name.removesuffix(".weight"), value.shape, np.random.default_rng(seed), 8)
        order = np.random.default_rng(seed).permutation(value.shape[1]) // (value.shape[1] // 2)
        stored |= {**made, name.replace("weight", "g_idx"): order.astype(np.int32)}
    folder(tmp_path / "m", stored)
    (tmp_path / "m" / "config.json").write_text(json.dumps({**config, "quantization_config": method}))
    ours = load(tmp_path / "m", dtype="bfloat16", context=64, progress=False)
    block = ours.blocks[0]
    linears = block.attn.qkv_proj, block.attn.o_proj, *block.mlp.linears
    parts = [part for linear in linears for part in linear.weight.parts]  # type: ignore[union-attr]
    assert [part.kind for part in parts] == ["I8Z_32"] * 2 + ["I8Z_32"] * 2 + ["I8Z_32"]
    assert all(part.order is not None for part in parts) and not ours.expanded
    assert ours.reordered == sum(part.array.nbytes for part in parts)
    assert "act-order" in repr(ours.describe())
    found, tokens = logits_of(ours, [5, 9, 60, 2], 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "_through_kernels", False)
        whole = load(tmp_path / "m", dtype="bfloat16", context=64, progress=False)
        assert not whole.reordered
        expected, others = logits_of(whole, [5, 9, 60, 2], 1)
    assert tokens[0] == others[0]
    assert np.abs(found - expected).max() <= 0.08 * np.abs(expected).max()


def test_experts_stay_in_blocks_on_the_host() -> None:
    config = {**CONFIGS["qwen3_moe"], "intermediate_size": 64, "moe_intermediate_size": 64}
    checkpoint = BlocksCheckpoint(config, {"gate_proj": "Q4_0", "up_proj": "Q8_0", "down_proj": "Q5_0"})
    plain = MemoryCheckpoint(config, {name: checkpoint.read(name) for name in checkpoint.names()})
    kept, values = (from_checkpoint(one, dtype="float32", context=64) for one in (checkpoint, plain))
    experts = kept.blocks[0].mlp.experts  # type: ignore[union-attr]
    assert isinstance(experts.gate_up.weight, Blocks) and isinstance(experts.down.weight, Blocks)
    assert [part.kind for part in experts.gate_up.weight.parts] == ["Q4_0", "Q8_0"] * 9
    assert [part.kind for part in experts.down.weight.parts] == ["Q5_0"]
    assert kept.expanded == {"Q8_0": (2 * 9 * 34, 2 * 9 * 32 * 4)}  # the routers of two layers
    prompt = [int(x) for x in np.random.default_rng(11).integers(0, 99, 9)]
    (found, tokens), (want, others) = (logits_of(one, prompt, 3) for one in (kept, values))
    assert tokens == others
    np.testing.assert_allclose(found, want, atol=2e-3)


def test_experts_stay_in_blocks_on_a_device_where_gate_and_up_are_of_one_kind(kernels_on_sim: None) -> None:
    config = {**CONFIGS["qwen3_moe"], "num_hidden_layers": 1, "intermediate_size": 64, "moe_intermediate_size": 64}
    mixed = BlocksCheckpoint(config, {"gate_proj": "Q4_0", "up_proj": "Q8_0", "down_proj": "Q5_0"})
    experts = from_checkpoint(mixed, dtype="bfloat16", context=64).blocks[0].mlp.experts  # type: ignore[union-attr]
    assert isinstance(experts.down.weight, Blocks) and not isinstance(experts.gate_up.weight, Blocks)
    checkpoint = BlocksCheckpoint(config, {"gate_proj": "Q4_0", "up_proj": "Q4_0", "down_proj": "Q5_0"})
    kept = from_checkpoint(checkpoint, dtype="bfloat16", context=64)
    weights = [linear.weight for linear in kept.blocks[0].mlp.experts.linears]  # type: ignore[union-attr]
    assert [part.kind for weight in weights for part in weight.parts] == ["Q4_0", "Q5_0"]  # type: ignore[union-attr]
    assert "Q4_0" not in kept.expanded and "Q5_0" not in kept.expanded
    prompt = [int(x) for x in np.random.default_rng(11).integers(0, 99, 9)]
    found, tokens = logits_of(kept, prompt, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "_through_kernels", False)
        expected, others = logits_of(from_checkpoint(checkpoint, dtype="bfloat16", context=64), prompt, 2)
    same = next((i for i, (a, b) in enumerate(zip(tokens, others, strict=True)) if a != b), 2)
    assert np.abs(found - expected)[: same + 1].max() <= 0.08 * np.abs(expected).max()


def test_stacked_experts_stay_in_blocks(kernels_on_sim: None, tmp_path: Path) -> None:
    """gpt-oss' MXFP4, with rows that are no whole blocks: no further from float32 than twice their values rounded."""
    config = {**CONFIGS["gpt_oss"], "hidden_size": 96, "intermediate_size": 160, "head_dim": 64}
    config |= {"layer_types": ["sliding_attention", "full_attention"], "num_hidden_layers": 2}
    rng, stored = np.random.default_rng(5), {}
    for name, value in tensors(config).items():
        if value.ndim < 3:
            stored[name] = value
            continue
        count, columns, rows = value.shape
        stored[f"{name}_blocks"] = rng.integers(0, 256, (count, rows, columns // 32, 16)).astype(np.uint8)
        stored[f"{name}_scales"] = rng.integers(120, 124, (count, rows, columns // 32)).astype(np.uint8)
    folder(tmp_path / "m", stored)
    method = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (tmp_path / "m" / "config.json").write_text(json.dumps({**config, "quantization_config": method}))
    ours = load(tmp_path / "m", dtype="bfloat16", context=64, progress=False)
    for block in ours.blocks:
        for linear in block.mlp.experts.linears:  # type: ignore[union-attr]
            assert isinstance(linear.weight, Blocks) and [part.kind for part in linear.weight.parts] == ["MXFP4"]
    assert not ours.expanded
    prompt = [int(x) for x in rng.integers(0, 99, 9)]
    found, _ = logits_of(ours, prompt, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "_through_kernels", False)
        exact, rounded = (
            logits_of(load(tmp_path / "m", dtype=dtype, context=64, progress=False), prompt, 1)[0]
            for dtype in ("float32", "bfloat16")
        )
    assert np.abs(found - exact).max() <= 2 * np.abs(rounded - exact).max()


def test_products_have_their_blocks_by_tiles(kernels_on_sim: None) -> None:
    """Where rows and columns are whole tiles, the tied table too, which is looked up there; what was moved is told."""
    config = {**CONFIGS["llama"], "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1,
              "vocab_size": 96, "tie_word_embeddings": True}  # fmt: skip
    prompt = [5, 9, 60, 2, 7]
    ours = from_checkpoint(BlocksCheckpoint(config, KINDS), dtype="bfloat16", context=64)
    weights = [ours.embed_tokens, *(linear.weight for linear in ours.blocks[0].linears)]
    parts = [part for weight in weights for part in weight.parts]  # type: ignore[union-attr]
    assert [(part.kind, part.tiled) for part in parts] == [
        ("Q8_0", True), ("Q8_0", True), ("Q5_0", False), ("Q8_0", True), ("Q4_0", True), ("Q8_0", True),
    ]  # fmt: skip
    size = sum(part.array.nbytes for part in parts if part.tiled)
    assert ours.describe().tiled == (size, 0)
    assert f"by tiles of 16 rows, not as in the file: {size / 1e3:.3g} kB" in repr(ours.describe())
    found, tokens = logits_of(ours, prompt, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "_through_kernels", False)
        whole = from_checkpoint(BlocksCheckpoint(config, KINDS), dtype="bfloat16", context=64)
        assert whole.describe().tiled == (0, 0)
        expected, others = logits_of(whole, prompt, 2)
    same = next((i for i, (a, b) in enumerate(zip(tokens, others, strict=True)) if a != b), 2)
    assert np.abs(found - expected)[: same + 1].max() <= 0.08 * np.abs(expected).max()  # after the same tokens
