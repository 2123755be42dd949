"""Every field and tensor of a model counts: it is computed as the reference has it, refused by name, or told once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llm import reference, tiny
from llm.tiny_weights import CONFIGS, tensors

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.models import ARCHITECTURES, read_config
from pygpukit.llm.weights import from_checkpoint

IDS = [5, 17, 3, 88, 41, 7, 61, 20, 9, 33, 12]


def check(config: dict[str, Any], values: dict[str, np.ndarray], **means: Any) -> None:
    """The model's logits are those of the reference, told what the fields mean; the fields make a difference."""
    model = from_checkpoint(tiny.MemoryCheckpoint(config, values), dtype="float32")
    found = model.get_logits(model(IDS)[0]).to_numpy()
    want = reference.logits({**config, **means}, values, IDS)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=2e-4 * np.abs(want).max())
    ids = list(IDS)
    for _ in range(4):  # steps, which other code computes
        ids.append(int(reference.logits({**config, **means}, values, ids)[-1].argmax()))
    assert model.generate(list(IDS), 4, temperature=0.0, ignore_eos=True) == ids


def biased(config: dict[str, Any], *names: str) -> dict[str, np.ndarray]:
    rng, values = np.random.default_rng(1), tensors(config)
    for name, value in list(values.items()):
        if any(f".{part}_proj.weight" in name for part in names):
            values[name.replace("weight", "bias")] = rng.standard_normal(value.shape[0], dtype=np.float32)
    return values


@pytest.mark.parametrize("parts", [("gate", "up", "down"), ("down",), ("gate",)])
def test_biases_of_feed_forward_layers(parts: tuple[str, ...]) -> None:
    config = {**CONFIGS["llama"], "mlp_bias": True}
    values = biased(config, *parts)
    check(config, values)
    plain = reference.logits(config, tensors(config), IDS)
    assert np.abs(plain - reference.logits(config, values, IDS)).max() > 0.1


def test_biases_of_attention() -> None:
    for kind in ("llama", "qwen3"):
        config = {**CONFIGS[kind], "attention_bias": True}
        check(config, biased(config, "q", "k", "v", "o"))


@pytest.mark.parametrize("field", ["attention_bias", "mlp_bias"])
def test_biases_that_one_side_lacks(field: str) -> None:
    config = dict(CONFIGS["llama"])
    parts = ("q", "o") if field == "attention_bias" else ("up",)
    with pytest.raises(InvalidSpecError, match=r"no use for the tensor '.*\.bias'"):
        from_checkpoint(tiny.MemoryCheckpoint(config, biased(config, *parts)))
    with pytest.raises(InvalidSpecError, match=f"{field} is true"):
        from_checkpoint(tiny.MemoryCheckpoint({**config, field: True}, tensors(config)))


@pytest.mark.parametrize(
    "fields",
    [
        {"scale_attn_weights": False},
        {"scale_attn_by_inverse_layer_idx": True},
        {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True},
        {"activation_function": "gelu"},
        {"reorder_and_upcast_attn": True, "n_ctx": 512, "summary_type": "mean"},
    ],
)
def test_fields_of_gpt2(fields: dict[str, Any]) -> None:
    config = {**CONFIGS["gpt2"], **fields}
    check(config, tensors(config))


def test_a_gpt2_whose_head_is_its_own() -> None:
    config = {**CONFIGS["gpt2"], "tie_word_embeddings": False}
    values = {name.removeprefix("transformer."): value for name, value in tensors(config).items()}
    values["lm_head.weight"] = np.random.default_rng(2).standard_normal((99, 32), dtype=np.float32)
    check(config, values)


def test_a_head_that_is_missing_or_there_twice() -> None:
    config = dict(CONFIGS["llama"])
    values = tensors(config)
    del values["lm_head.weight"]
    for changed in ({}, {"tie_word_embeddings": False}):
        given = {name: value for name, value in config.items() if name != "tie_word_embeddings"} | changed
        with pytest.raises(InvalidSpecError, match=r"no tensor 'lm_head\.weight'"):
            from_checkpoint(tiny.MemoryCheckpoint(given, values))
    tied = {**config, "tie_word_embeddings": True}
    check(tied, values)
    check(tied, {**values, "lm_head.weight": values["model.embed_tokens.weight"].copy()})
    with pytest.raises(InvalidSpecError, match="tie_word_embeddings"):
        from_checkpoint(tiny.MemoryCheckpoint(tied, tensors(config)))


@pytest.mark.parametrize(
    ("kind", "fields", "windowed"),
    [
        ("mistral", {"sliding_window": 4}, [True, True]),
        ("mistral", {"sliding_window": None}, [False, False]),
        ("qwen2", {"sliding_window": 4}, [False, False]),
        ("qwen2", {"sliding_window": 4, "use_sliding_window": False, "max_window_layers": 0}, [False, False]),
        ("qwen2", {"sliding_window": 4, "use_sliding_window": True, "max_window_layers": 1}, [False, True]),
        ("qwen2", {"sliding_window": 4, "use_sliding_window": True}, [False, False]),
        ("qwen3", {"sliding_window": 4, "use_sliding_window": True, "max_window_layers": 0}, [True, True]),
        (
            "qwen3",
            {
                "sliding_window": 4,
                "use_sliding_window": True,
                "layer_types": ["sliding_attention", "full_attention"],
            },
            [True, False],
        ),
    ],
)
def test_windows_by_layer(kind: str, fields: dict[str, Any], windowed: list[bool]) -> None:
    config = {**CONFIGS[kind], **fields}
    check(config, tensors(config), window=4, windowed=windowed)


def test_defaults_are_those_of_the_reference() -> None:
    least = {"vocab_size": 99, "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 32}
    least["max_position_embeddings"] = 512
    found = {name: read_config(ARCHITECTURES[name], least) for name in ("llama", "mistral", "qwen2", "qwen3")}
    assert [config.kv_heads for config in found.values()] == [32, 8, 32, 32]
    assert [config.head_dim for config in found.values()] == [8, 8, 8, 128]
    assert [config.sliding_window for config in found.values()] == [None, 4096, None, None]
    for config in found.values():
        assert (config.norm_eps, config.rope_theta, config.tie_word_embeddings) == (1e-6, 10000.0, False)


def test_dynamic_scaling_is_none_within_the_context() -> None:
    config = {**CONFIGS["llama"], "rope_scaling": {"type": "dynamic", "factor": 4.0}}
    check(config, tensors(config))


@pytest.mark.parametrize(
    ("kind", "fields", "named"),
    [
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ("llama", {"logits_scaling": 8.0}, "logits_scaling"),
        ("qwen3", {"final_logit_softcapping": 30.0}, "final_logit_softcapping"),
        ("qwen3", {"num_experts": 128}, "num_experts"),
        ("mistral", {"attention_bias": True}, "attention_bias"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention"),
        ("gpt2", {"activation_function": "quick_gelu"}, "activation"),
        ("llama", {"hidden_act": "relu"}, "activation"),
        ("llama", {"rope_scaling": {"rope_type": "longrope", "factor": 2.0}}, "longrope"),
        ("llama", {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "truncate": False}}, "truncate"),
        (
            "llama",
            {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "attention_factor": 3.0}},
            "attention_factor",
        ),
        ("llama", {"rope_scaling": {"rope_type": "linear"}}, "factor"),
        ("llama", {"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "full_attention"),
        (
            "llama",
            {
                "rope_parameters": {"rope_type": "linear", "factor": 2.0},
                "rope_scaling": {"type": "linear", "factor": 4.0},
            },
            "rope_scaling says factor is 4.0",
        ),
        (
            "gemma3",
            {
                "rope_parameters": {
                    "full_attention": {"rope_theta": 1e6},
                    "sliding_attention": {"rope_type": "linear", "factor": 2.0},
                }
            },
            "sliding_attention: rope_type is 'linear'",
        ),
        ("qwen2", {"layer_types": ["chunked_attention"] * 2}, "chunked_attention"),
        ("llama", {"num_hidden_layers": True}, "num_hidden_layers"),
        ("llama", {"hidden_size": 32.0}, "hidden_size"),
        ("llama", {"rms_norm_eps": "small"}, "rms_norm_eps"),
        ("llama", {"rope_theta": float("inf")}, "rope_theta"),
        ("llama", {"tie_word_embeddings": "no"}, "tie_word_embeddings"),
        ("llama", {"model_type": ["llama"]}, "not there yet"),
    ],
)
def test_what_would_change_the_arithmetic_is_refused_by_name(kind: str, fields: dict[str, Any], named: str) -> None:
    config = {**CONFIGS[kind], **fields}
    with pytest.raises(InvalidSpecError, match=named):
        from_checkpoint(tiny.MemoryCheckpoint(config, tensors(CONFIGS[kind])))


def test_neutral_values_and_harmless_fields_stop_nobody(recwarn: pytest.WarningsRecorder) -> None:
    more = {"logits_scaling": 1.0, "num_experts": 0, "partial_rotary_factor": 1.0, "torch_dtype": "bfloat16"}
    more |= {"_name_or_path": "x", "final_logit_softcapping": None, "attention_dropout": 0.1, "pretraining_tp": 2}
    check({**CONFIGS["llama"], **more}, tensors(CONFIGS["llama"]))
    assert not recwarn.list


def test_a_field_that_nobody_knows_is_told_once() -> None:
    config = {**CONFIGS["llama"], "frobnication": 7}
    with pytest.warns(UserWarning, match="'frobnication'"):
        tiny.from_checkpoint(tiny.MemoryCheckpoint(config, tensors(config)))
    tiny.from_checkpoint(tiny.MemoryCheckpoint(config, tensors(config)))


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.2.mlp.up_proj.weight",
        "model.layers.01.mlp.up_proj.weight",
        "model.layers.0.self_attn.q_norm.weight",
        "model.layers.0.mlp.up_proj.weight_scale",
        "score.weight",
        "vision.embed.weight",
    ],
)
def test_a_tensor_without_use_is_an_error(name: str) -> None:
    values = tensors(CONFIGS["llama"]) | {name: np.ones(3, np.float32)}
    with pytest.raises(InvalidSpecError, match=f"no use for the tensor '{name}'"):
        from_checkpoint(tiny.MemoryCheckpoint(CONFIGS["llama"], values))


def test_tensors_that_are_computed_here_are_no_error() -> None:
    values = tensors(CONFIGS["llama"])
    for layer in range(2):
        values[f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"] = np.ones(4, np.float32)
    check(dict(CONFIGS["llama"]), values)
    values = tensors(CONFIGS["gpt2"])
    for layer in range(2):
        values[f"transformer.h.{layer}.attn.bias"] = np.ones((1, 1, 4, 4), np.float32)
    check(dict(CONFIGS["gpt2"]), {name.removeprefix("transformer."): value for name, value in values.items()})


@pytest.mark.parametrize("wrong", [["2"], 1.5, "2", {"a": 1}, [None], -2, True])
@pytest.mark.parametrize("place", ["config", "generation"])
def test_end_tokens_that_are_none(wrong: Any, place: str) -> None:
    checkpoint = tiny.MemoryCheckpoint(dict(CONFIGS["llama"]), tensors(CONFIGS["llama"]))
    getattr(checkpoint, place)["eos_token_id"] = wrong
    with pytest.raises(InvalidSpecError, match="eos_token_id"):
        from_checkpoint(checkpoint)


def test_end_tokens_of_every_file_count() -> None:
    checkpoint = tiny.MemoryCheckpoint({**CONFIGS["llama"], "eos_token_id": [3, 4]}, tensors(CONFIGS["llama"]))
    checkpoint.generation = {"eos_token_id": 5}
    model = from_checkpoint(checkpoint)
    for token in (3, 4, 5):
        assert model.stream([1, 2], 9, logit_bias={token: 1e4}).complete().token_ids == [token]


@pytest.mark.parametrize("newer", [{}, {"rope_theta": 10000.0}, {"rope_theta": 10000.0, "rope_type": "linear"}])
def test_a_rotation_that_newer_and_older_fields_say_together(newer: dict[str, Any]) -> None:
    config = {**CONFIGS["llama"], "rope_parameters": newer, "rope_scaling": {"type": "linear", "factor": 4.0}}
    check(config, tensors(config), divisors=4.0)
