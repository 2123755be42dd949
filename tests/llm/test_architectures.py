"""Every field that an architecture alone has counts: it changes the logits, is refused by name, or has a default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llm import tiny
from llm.tiny_weights import CONFIGS, LONGROPE, tensors

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.models import ARCHITECTURES, detect_model_spec, read_config
from pygpukit.llm.weights import from_checkpoint

IDS = [int(x) for x in np.random.default_rng(3).integers(0, 99, 60)]


def logits_of(name: str, changes: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Of a small model with fields of its configuration changed; a field that is ... is left out."""
    config = {field: value for field, value in {**CONFIGS[name], **changes}.items() if value is not ...}
    model = from_checkpoint(tiny.MemoryCheckpoint(config, tensors(CONFIGS[name])), dtype="float32")  # type: ignore
    return model.get_logits(model(IDS)[0]).to_numpy()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("gemma2", {"attn_logit_softcapping": 5.0}),
        ("gemma2", {"attn_logit_softcapping": None}),
        ("gemma2", {"final_logit_softcapping": 30.0}),
        ("gemma2", {"final_logit_softcapping": None}),
        ("gemma2", {"query_pre_attn_scalar": 16}),
        ("gemma2", {"sliding_window": 25}),
        ("gemma2", {"layer_types": ["full_attention", "sliding_attention", "full_attention"]}),
        ("smollm3", {"no_rope_layer_interval": 2}),
        ("smollm3", {"no_rope_layers": [0, 1, 1, 1]}),
        ("smollm3", {"rope_theta": ...}),
        ("smollm3", {"use_sliding_window": True, "sliding_window": 9}),
        ("granite", {"embedding_multiplier": 2.0}),
        ("granite", {"attention_multiplier": ...}),
        ("granite", {"residual_multiplier": ...}),
        ("granite", {"logits_scaling": ...}),
        ("phi4", {"original_max_position_embeddings": 500}),
        ("phi4", {"rope_scaling": LONGROPE | {"attention_factor": 1.5}}),
        ("phi4", {"rope_scaling": LONGROPE | {"factor": 7.0}}),
        ("phi4_short", {"rope_scaling": LONGROPE | {"short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]}}),
        ("phi3", {"partial_rotary_factor": 0.5}),
        ("mistral_nemo", {"sliding_window": 9}),
    ],
)
def test_a_field_changes_what_is_computed(name: str, changes: dict[str, Any]) -> None:
    plain, result = logits_of(name, {}), logits_of(name, changes)
    assert np.abs(plain - result).max() > 1e-3 * np.abs(plain).max()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("gemma2", {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}),
        ("gemma2", {"hidden_act": "gelu", "cache_implementation": "hybrid", "sliding_window_size": 7}),
        ("smollm3", {"no_rope_layers": [1, 1, 0, 1], "no_rope_layer_interval": 4}),
        ("smollm3", {"sliding_window": 9, "max_window_layers": 1}),
        ("phi4", {"rope_scaling": LONGROPE | {"rope_type": "su"}}),
        ("phi4", {"rope_scaling": LONGROPE | {"factor": 16.0}}),
        ("phi4", {"partial_rotary_factor": ..., "rope_scaling": LONGROPE | {"partial_rotary_factor": 0.75}}),
        ("phi4_short", {"rope_scaling": LONGROPE | {"long_factor": [9.0] * 6}}),
    ],
)
def test_other_forms_mean_the_same(name: str, changes: dict[str, Any]) -> None:
    assert logits_of(name, changes).tobytes() == logits_of(name, {}).tobytes()


@pytest.mark.parametrize(
    ("name", "changes", "named"),
    [
        ("gemma2", {"use_bidirectional_attention": True}, "use_bidirectional_attention"),
        ("gemma2", {"hidden_activation": "silu"}, "hidden_activation"),
        ("gemma2", {"attn_logit_softcapping": 0.0}, "attn_logit_softcapping"),
        ("gemma2", {"attention_bias": True}, "attention_bias"),
        ("smollm3", {"no_rope_layers": [1, 0]}, "no_rope_layers"),
        ("smollm3", {"no_rope_layers": [1, 0, 2, 1]}, "no_rope_layers"),
        ("olmo2", {"mlp_bias": True}, "mlp_bias"),
        ("olmo2", {"clip_qkv": 8.0}, "clip_qkv"),
        ("granite", {"logits_scaling": -1.0}, "logits_scaling"),
        ("granite", {"num_local_experts": 8}, "num_local_experts"),
        ("phi4", {"partial_rotary_factor": 0.7}, "rotary_dim"),  # 11 elements: no pairs
        ("phi4", {"partial_rotary_factor": 1.5}, "rotary_dim"),
        ("phi4", {"rope_scaling": LONGROPE | {"long_factor": [1.0] * 5}}, "long_factor"),
        ("phi4", {"rope_scaling": {"rope_type": "longrope", "long_factor": [1.0] * 6}}, "short_factor"),
        ("phi4", {"rope_scaling": LONGROPE | {"short_mscale": 1.2}}, "short_mscale"),
        ("llama", {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(name: str, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidSpecError) as error:
        logits_of(name, changes)
    assert named in str(error.value) or error.value.field == named


def test_defaults_are_those_of_the_reference() -> None:
    smallest = {"vocab_size": 99, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 32}
    result = {
        name: read_config(ARCHITECTURES[name], smallest | {"max_position_embeddings": 8192})
        for name in ("gemma2", "smollm3", "olmo2", "granite", "phi3")
    }
    gemma, smol, olmo, granite, phi = result.values()
    assert (gemma.attention_cap, gemma.logit_cap, gemma.attention_scale) == (50.0, 30.0, 1 / 16)
    assert (gemma.head_dim, gemma.kv_heads, gemma.sliding_window) == (256, 4, 4096)
    assert gemma.windowed == (True, False, True, False)
    assert (smol.rotated, smol.rope_theta, smol.kv_heads) == ((True, True, True, False), 2e6, 4)
    assert (olmo.norm_eps, olmo.rope_theta, olmo.kv_heads) == (1e-5, 10000.0, 32)
    assert (granite.attention_scale, granite.logit_scale, granite.residual_scale) == (1.0, 1.0, 1.0)
    assert (phi.rotary_dim, phi.rope_scaling, phi.sliding_window) == (None, None, None)


def test_yarn_reaches_as_far_as_its_factor() -> None:
    """Qwen's files name the context of the training in both fields."""
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
    config = read_config(ARCHITECTURES["qwen2"], {**CONFIGS["qwen2"], "rope_scaling": scaling})
    assert config.max_position_embeddings == 2048
    assert read_config(ARCHITECTURES["qwen2"], CONFIGS["qwen2_yarn"]).max_position_embeddings == 512


@pytest.mark.parametrize("name", ["gemma2", "gemma3", "olmo2", "qwen3", "phi4"])
def test_they_are_recognised_by_their_tensors(name: str) -> None:
    assert detect_model_spec(tensors(CONFIGS[name])).name == CONFIGS[name]["model_type"]


def test_the_frequencies_of_longrope_are_those_of_the_context() -> None:
    """A model that was loaded with the context of its training rotates as within it, whatever its file allows."""
    config, values = CONFIGS["phi4"] | {"original_max_position_embeddings": 64}, tensors(CONFIGS["phi4"])
    short, long = (
        from_checkpoint(tiny.MemoryCheckpoint(config, values), dtype="float32", context=context) for context in (64, 65)
    )
    cos, _ = short.engine.network.rope_tables or (None, None)
    assert cos is not None
    rates = 10000.0 ** (-np.arange(0, 12, 2) / 12) / np.asarray(LONGROPE["short_factor"])
    strength = np.sqrt(1 + np.log(8) / np.log(64))
    np.testing.assert_allclose(cos.to_numpy(), strength * np.cos(np.arange(64)[:, None] * rates), atol=1e-6)
    assert short.get_logits(short(IDS)[0]).to_numpy().tobytes() != long.get_logits(long(IDS)[0]).to_numpy().tobytes()
