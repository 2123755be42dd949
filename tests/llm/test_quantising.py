"""quantize= at load: the nearest numbers of few bits, their errors told, and a model that runs with them."""

from __future__ import annotations

import numpy as np
import pytest
from llm.tiny import MemoryCheckpoint
from llm.tiny_weights import CONFIGS, tensors

from pygpukit.llm.weights import from_checkpoint, load
from pygpukit.models.quantised.quantise import NAMES, QuantisingCheckpoint
from pygpukit.nn.linear.blocks import Blocks

BOUNDS = {"int8": 0.007, "int4": 0.1, "fp8": 0.035}  # of normal numbers, relative


@pytest.mark.parametrize("quantize", NAMES)
@pytest.mark.parametrize("shape", [(5, 256), (3, 96)])
def test_codes_are_the_nearest_and_errors_are_told(quantize: str, shape: tuple[int, int]) -> None:
    values = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    values[2] = 0
    checkpoint = QuantisingCheckpoint(MemoryCheckpoint({}, {"a.q_proj.weight": values}), quantize)
    found = checkpoint.read("a.q_proj.weight")
    change = np.abs(found - values)
    groups, changes = values.reshape(-1, 32), change.reshape(-1, 32)
    step = {"int8": np.abs(groups).max(-1) / 127, "int4": np.ptp(groups, axis=-1) / 15}.get(quantize)
    if step is not None:
        assert (changes <= 0.55 * step[:, None] + np.abs(groups).max(-1, keepdims=True) * 2e-3).all()
    assert not found[2].any()
    error = checkpoint.errors["a.q_proj.weight"]
    np.testing.assert_allclose(error, np.sqrt((change.astype(float) ** 2).sum() / (values.astype(float) ** 2).sum()))
    assert 0 < error < BOUNDS[quantize]
    stored = checkpoint.stored("a.q_proj.weight")
    assert stored is not None and not stored.is_transposed
    assert stored.kind.startswith({"int8": "Q8_0", "int4": "Q4_1", "fp8": "FP8"}[quantize])


@pytest.mark.parametrize("quantize", NAMES)
@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_model_runs_with_rounded_weights(quantize: str, name: str) -> None:
    config = {**CONFIGS[name], **({"intermediate_size": 64} if name == "llama" else {})}
    checkpoint = MemoryCheckpoint(config, {k.removeprefix("transformer."): v for k, v in tensors(config).items()})
    model, plain = from_checkpoint(checkpoint, quantize=quantize), from_checkpoint(checkpoint)
    assert len(model.quantisation_errors) == {"llama": 14, "gpt2": 8}[name]
    assert all(0 < error < BOUNDS[quantize] for error in model.quantisation_errors.values())
    assert not plain.quantisation_errors
    assert isinstance(model.blocks[0].attn.o_proj.weight, Blocks) == (quantize != "fp8")  # which the host expands
    ours, theirs = (m.get_logits(m([1, 2, 3])[0]).to_numpy() for m in (model, plain))
    assert 0 < np.abs(ours - theirs).max() < 8 * BOUNDS[quantize] * np.abs(theirs).max()


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe"])
def test_experts_are_rounded_and_routers_are_not(name: str) -> None:
    size = "intermediate_size" if name == "mixtral" else "moe_intermediate_size"
    config = {**CONFIGS[name], size: 64}
    model = from_checkpoint(MemoryCheckpoint(config, tensors(config)), quantize="int8")
    errors = model.quantisation_errors
    assert not [name for name in errors if name.endswith(".gate.weight")]
    count = config.get("num_experts") or config["num_local_experts"]
    layers = len([block for block in model.blocks if hasattr(block.mlp, "experts")])
    assert len([name for name in errors if ".experts." in name]) == 3 * count * layers
    assert isinstance(model.blocks[0].mlp.experts.down.weight, Blocks)  # type: ignore[union-attr]
    assert len(model.generate([1, 2, 3], max_new_tokens=3)) == 6


def test_another_name_is_refused_before_anything_is_opened() -> None:
    with pytest.raises(ValueError, match="'int3'; give 'int8', 'int4', 'fp8'"):
        load("nowhere", quantize="int3")
