"""describe(): every weight once, what a token costs by hand, and what was expanded."""

from __future__ import annotations

import pytest
from device_facts import Facts
from llm import tiny
from llm.test_models_in_blocks import KINDS, BlocksCheckpoint
from llm.tiny_weights import CONFIGS, tensors

from pygpukit.llm.weights import from_checkpoint


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "gemma3", "gemma2", "phi4", "olmo2", "granite", "gpt2"])
def test_every_weight_counts_once(name: str) -> None:
    model = tiny.model(name)
    said = model.describe()
    joined = {key: value.size for key, value in tensors(CONFIGS[name]).items()}
    assert sum(line.count for line in said.lines) == sum(joined.values())
    assert said.nbytes == 4 * sum(joined.values())
    assert sum(said.bytes_by_kind.values()) == said.nbytes
    assert said.context == 0
    tied = CONFIGS[name]["tie_word_embeddings"]
    table = "transformer.wpe.weight" if name == "gpt2" else "model.embed_tokens.weight"
    unread = [joined[table]] if name == "gpt2" or not tied else []
    assert said.token_bytes == said.nbytes - 4 * sum(unread)
    assert said.token_operations == 2 * (sum(joined.values()) - sum(unread))


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe", "olmoe"])
def test_of_experts_a_token_reads_those_that_it_goes_to(name: str) -> None:
    model = tiny.model(name)
    said, config = model.describe(), model.config
    sizes = {key: value.nbytes for key, value in tensors(CONFIGS[name]).items()}
    of_experts = sum(size for key, size in sizes.items() if ".experts." in key)
    assert said.nbytes == sum(sizes.values())
    unread = of_experts * (1 - config.num_experts_per_tok / config.num_experts)
    assert said.active_bytes == round(said.nbytes - unread) - sizes["model.embed_tokens.weight"]
    assert said.token_bytes == said.active_bytes
    assert "a token goes to few" in repr(said)
    assert "a token goes to few" not in repr(tiny.model("llama").describe())


def test_keys_and_values_count_within_their_window() -> None:
    model = tiny.model("gemma3")  # two of three layers see 24 positions
    config = model.config
    said, none = model.describe(context=100), model.describe()
    each = 2 * config.kv_heads * config.head_dim * 4
    assert said.token_bytes - none.token_bytes == each * (24 + 100 + 24)
    assert said.token_operations - none.token_operations == 4 * config.num_heads * config.head_dim * (24 + 100 + 24)


def test_the_floor_is_bytes_by_bandwidth(facts: Facts) -> None:
    model = tiny.model("llama")
    facts(bandwidth=1e9, name="A Card")
    said = model.describe()
    assert said.floor_s == said.token_bytes / 1e9
    assert "A Card" in repr(said) and "tokens/s at most" in repr(said)
    facts(bandwidth=0.0)
    assert model.describe().floor_s is None and "at most" not in repr(model.describe())


def test_kinds_and_what_was_expanded() -> None:
    config = {**CONFIGS["qwen2"], "intermediate_size": 64}
    kept, expanded = (
        from_checkpoint(BlocksCheckpoint(config, KINDS), dtype=dtype) for dtype in ("float32", "bfloat16")
    )
    said = kept.describe()
    assert not said.expanded
    line = next(line for line in said.lines if line.name == "qkv")
    assert (line.kind, line.layers, line.shape) == ("Q8_0, Q5_0", (0, 1), (64, 32))
    assert line.nbytes == 2 * (48 * 34 + 16 * 22)
    assert "qkv of layers 0 to 1" in repr(said)
    said = expanded.describe()
    assert set(said.bytes_by_kind) == {"bfloat16"}
    v = 2 * 16 * 32  # numbers of v_proj in two layers
    assert said.expanded["Q5_0"] == (v // 32 * 22, 2 * v)
    assert "expanded from Q5_0" in repr(said)
