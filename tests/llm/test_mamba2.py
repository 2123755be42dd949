"""Mamba-2 as a language model: states in the place of keys, what needs keys refused by name, fields and defaults."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm import lora, tiny
from llm.stepping import logits_of
from llm.tiny_weights import CONFIGS, tensors

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.models import ARCHITECTURES, MODEL_SPECS, read_config
from pygpukit.llm.weights import from_checkpoint

CONFIG = CONFIGS["mamba2"]
IDS = [int(x) for x in np.random.default_rng(8).integers(0, 99, 90)]


def model(**changes: Any) -> gp.llm.CausalTransformerModel:
    return tiny.model("mamba2", context=128, **changes)


def test_a_state_takes_the_same_bytes_whatever_the_context() -> None:
    config = read_config(ARCHITECTURES["mamba2"], CONFIG)
    inner, channels, layers = 64, 64 + 2 * 2 * 12, 3
    each = layers * 4 * ((4 + 64) * channels + 64 * 8 + inner * 12)  # tail and rows, steps, the state
    for context in (128, 4096):
        own = tiny.model("mamba2", context=context, slots=3)
        assert own.cache.nbytes == 3 * each
        said = own.describe(context=100)
        assert (said.state_bytes, said.kv_bytes, said.kv_token_bytes) == (each, 0, 0)
        assert "states: " in repr(said) and "keys and values" not in repr(said)
        assert said.weight_bytes == sum(value.nbytes for value in tensors(CONFIG).values())
        embedding = tensors(CONFIG)["backbone.embeddings.weight"].nbytes
        assert said.token_bytes == said.weight_bytes - embedding + each
    answer = own.stream(IDS[:40], 5).complete()
    assert answer.figures.kv_bytes == each
    own = tiny.model("mamba2", context=128, kv_memory=2 * each + 5)
    assert own.engine.occupancy.blocks == 2
    with pytest.raises(InvalidSpecError, match=f"holds no block of 128 positions, which takes {each} bytes"):
        tiny.model("mamba2", context=128, kv_memory=each - 1)
    assert config.max_position_embeddings == 1 << 20


def test_prompts_that_begin_alike_find_no_state_again() -> None:
    own = model(slots=2)
    first = own.stream(IDS[:80], 4, top=2).complete()
    again = own.stream([*IDS[:80], 3], 4, top=2).complete()
    assert (first.figures.reused_tokens, again.figures.reused_tokens) == (0, 0)
    own.engine.loop.clear()
    alone = own.stream([*IDS[:80], 3], 4, top=2).complete()
    assert [token.logprob for token in again.tokens] == [token.logprob for token in alone.tokens]


def test_a_snapshot_brings_back_the_states() -> None:
    own = model()
    own.stream(IDS[:70], 3).complete()
    before = own.snapshot_kv_cache()
    own.stream(IDS[10:90], 3).complete()
    own.restore_kv_cache(before)
    for layer, arrays in zip(own.snapshot_kv_cache(), before, strict=True):
        for one, other in zip(layer, arrays, strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(InvalidSpecError, match="of a cache of another shape"):
        own.restore_kv_cache(model(slots=2).snapshot_kv_cache())


def test_layers_stream_with_the_same_bits() -> None:
    deep = {"num_hidden_layers": 6}
    whole = model(**deep)
    own = model(**deep, weights_memory=whole.describe().nbytes * 3 // 4)
    assert own.describe().streamed is not None
    np.testing.assert_array_equal(logits_of(own, IDS[:9], 5)[0], logits_of(whole, IDS[:9], 5)[0])


@pytest.mark.parametrize("way", ["ngram", "layers", "jacobi", "lookahead", "model"])
def test_drafts_are_refused(way: str) -> None:
    own = model()
    draft = tiny.model("llama", context=128) if way == "model" else way
    with pytest.raises(InvalidSpecError, match="tiny: speculate= needs layers with attention") as error:
        own.stream(IDS[:5], 3, speculate=draft)
    assert error.value.field == "speculate"
    with pytest.raises(InvalidSpecError, match="speculate= needs layers with attention"):
        own.generate_batch([IDS[:5]], 3, speculate=draft)


def test_what_needs_attention_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    own = model()
    expected = own.stream(IDS[:20], 4).complete().token_ids
    path, _ = lora.folder(tmp_path / "a", "mamba2", 3, modules=("in_proj", "out_proj"))
    strategy, graph = gp.llm.DecodeM1(), gp.llm.DecodeM1Graph()
    strategy.bind(own)
    graph.bind(own)
    refused = {
        "speculate": lambda: tiny.model("llama", context=128).stream([1], 3, speculate=own),
        "name": lambda: own.load_adapter("a", path),
        "layer": lambda: gp.llm.attention(own, IDS[:5], 1),
        "model": lambda: strategy.prefill(IDS[:5]),
        "positions": lambda: graph.init_graph(64),
        "lookahead": lambda: own.init_jacobi_decode(),
        "buffers": lambda: gp.llm.DecodeBuffers.of(own),
    }
    for name, ask in refused.items():
        with pytest.raises(InvalidSpecError, match="needs layers with attention"):
            ask()
        assert not own.adapters, name
    with pytest.raises(InvalidSpecError, match="has no mixtures of experts"):
        gp.llm.routing(own, IDS[:5])
    assert own.stream(IDS[:20], 4).complete().token_ids == expected


def test_keys_in_fp8_are_refused_before_a_weight_is_read() -> None:
    class Unread(tiny.MemoryCheckpoint):
        def read(self, name: str, dtype: Any = None) -> np.ndarray:
            raise AssertionError(f"{name} was read")

    with pytest.raises(InvalidSpecError, match="keeps states in their place; leave it out") as error:
        from_checkpoint(Unread(CONFIG, tensors(CONFIG)), kv_dtype="fp8", context=128)  # type: ignore[arg-type]
    assert error.value.field == "kv_dtype"
    with pytest.raises(InvalidSpecError, match="keeps states in their place; leave it out"):
        Loop(model().engine.network, 2, kv_dtype="fp8")


def test_fields_have_the_defaults_of_the_reference() -> None:
    smallest = {"vocab_size": 99, "hidden_size": 4096, "num_hidden_layers": 2}
    config = read_config(ARCHITECTURES["mamba2"], smallest)
    space = config.state_space
    assert space is not None
    assert (config.num_heads, config.head_dim, space.state, space.groups, space.conv) == (128, 64, 128, 8, 4)
    assert (space.min_step, space.max_step, config.norm_eps) == (0.0, math.inf, 1e-5)
    assert not config.tie_word_embeddings
    assert "mamba2" not in MODEL_SPECS and model().spec is None


def test_biases_are_there_as_the_configuration_says() -> None:
    def loaded(values: dict[str, np.ndarray], **fields: bool) -> gp.llm.CausalTransformerModel:
        return from_checkpoint(tiny.MemoryCheckpoint({**CONFIG, **fields}, values), context=128)  # type: ignore

    values, at = tensors(CONFIG), "backbone.layers.{}.mixer."
    without = {name: value for name, value in values.items() if not name.endswith("conv1d.bias")}
    zeros = values | {name: 0 * value for name, value in values.items() if name.endswith("conv1d.bias")}
    ours, theirs = logits_of(loaded(without, use_conv_bias=False), IDS[:9], 2), logits_of(loaded(zeros), IDS[:9], 2)
    np.testing.assert_array_equal(ours[0], theirs[0])
    rng = np.random.default_rng(3)
    for number in range(3):
        for name, rows in (("in_proj", 64 + 112 + 8), ("out_proj", 32)):
            values[f"{at.format(number)}{name}.bias"] = rng.standard_normal(rows).astype(np.float32)
    assert not np.array_equal(logits_of(loaded(values, use_bias=True), IDS[:9], 2)[0], theirs[0])
    with pytest.raises(InvalidSpecError, match="use_conv_bias is true, but the model has no such tensor"):
        loaded(without)
    with pytest.raises(InvalidSpecError, match=r"has no use for the tensor 'backbone.layers.0.mixer.in_proj.bias'"):
        loaded(values)
    with pytest.raises(InvalidSpecError, match="use_bias is true, but the model has no such tensor"):
        loaded(tensors(CONFIG), use_bias=True)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_heads", 9),
        ("head_dim", 16),
        ("expand", 3),
        ("n_groups", 3),
        ("conv_kernel", 9),
        ("conv_kernel", 1),
        ("state_size", 0),
        ("time_step_limit", [0.5]),
        ("time_step_limit", [0.5, 0.1]),
        ("time_step_limit", [math.nan, 1]),
        ("time_step_limit", [True, 1]),
        ("time_step_limit", "all"),
        ("hidden_act", "gelu"),
        ("rms_norm", False),
        ("norm_before_gate", True),
    ],
)
def test_what_cannot_be_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidSpecError) as error:
        read_config(ARCHITECTURES["mamba2"], {**CONFIG, field: value})
    assert error.value.field == ("num_heads" if field in ("head_dim", "expand") else field)
