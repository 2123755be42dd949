"""Decoding by hand: the documented strategies give the logits and tokens of the model's own answers, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from llm import stepping, tiny

import pygpukit as gp
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.llm.model import CausalTransformerModel

CONTEXT = 160
RANDOM = np.random.default_rng(11)
PROMPT = [int(x) for x in RANDOM.integers(0, 99, 70)]  # beyond a block
SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.9, "seed": 5},
    {"temperature": 1.2, "top_k": 9, "seed": 3, "request": 2, "repetition_penalty": 1.2, "frequency_penalty": 0.3},
]


def model(name: str = "llama", **options: Any) -> CausalTransformerModel:
    made = tiny.model(name, context=CONTEXT, **options)
    for block in made.blocks:
        block.attn.init_fixed_cache(CONTEXT)
    return made


@cache
def plain(name: str, steps: int = 6, dtype: str = "float32") -> tuple[np.ndarray, list[int]]:
    return stepping.logits_of(tiny.model(name, context=CONTEXT, dtype=dtype), PROMPT, steps)


def answer_of(strategy: Any, count: int) -> list[int]:
    """Tokens by a strategy that gives several a step."""
    tokens = [strategy.prefill(PROMPT)]
    position = len(PROMPT)
    step = strategy.step_jacobi if isinstance(strategy, gp.llm.DecodeJacobi) else strategy.step_speculative
    while len(tokens) < count:
        new, following, _ = step(tokens[-1], position, position + 1)
        assert following == position + len(new)
        tokens, position = tokens + new, following
    return tokens[:count]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("llama", "float32"), ("gemma3", "float32"), ("gpt2", "float32"), ("qwen3", "bfloat16"), ("olmoe", "bfloat16")],
)
def test_steps_of_one_token_have_the_logits_of_an_answer(name: str, dtype: str) -> None:
    logits, tokens = plain(name, dtype=dtype)
    own = model(name, dtype=dtype)
    m1, graph = gp.llm.DecodeM1(), gp.llm.DecodeM1Graph()
    for strategy in (m1, graph):
        strategy.bind(own)
        if strategy is graph:
            assert not graph.has_graph() and graph.buffers is None
            graph.init_graph(CONTEXT)
        assert strategy.prefill(PROMPT) == tokens[0]
        for index, token in enumerate(tokens[:-1]):
            position = len(PROMPT) + index
            found = strategy.step(token, position, position + 1, None)
            np.testing.assert_array_equal(own.get_logits(found).to_numpy()[0], logits[index + 1])
    assert graph.has_graph()
    again = graph.step_graph(tokens[2], len(PROMPT) + 2, len(PROMPT) + 3).to_numpy()  # back, and on from there
    np.testing.assert_array_equal(again[0], logits[3])


def test_rows_that_follow_each_other_have_the_logits_of_steps_of_one() -> None:
    logits, tokens = plain("llama")
    own = model()
    batch = gp.llm.DecodeBatch(4)
    batch.bind(own)
    batch.prefill(PROMPT)
    hidden = batch.step_batch(tokens[:4], len(PROMPT), len(PROMPT) + 4, None)
    np.testing.assert_array_equal(own.get_logits(hidden).to_numpy(), logits[1:5])
    assert not batch.has_graph() and batch.batch_size == 4
    batch.init_graph(CONTEXT)
    found = batch.step_graph(tokens[1:5], len(PROMPT) + 1, len(PROMPT) + 5).to_numpy()
    np.testing.assert_array_equal(found, logits[2:6])
    kept = batch.buffers
    assert kept is not None and kept.logits_batch is not None and kept.token_ids_batch_buf is not None
    np.testing.assert_array_equal(kept.logits_batch.to_numpy(), found)
    assert kept.token_ids_batch_buf.to_numpy().tolist() == tokens[1:5]
    hidden = batch.step(tokens[5], len(PROMPT) + 5, len(PROMPT) + 6, None)
    np.testing.assert_array_equal(own.get_logits(hidden).to_numpy()[0], logits[6])


def test_a_prompt_may_be_stepped_through_and_any_step_be_taken_again() -> None:
    own, m1 = model(), gp.llm.DecodeM1()
    m1.bind(own)
    seen = []
    for position in [*range(20), 7, 8, 3]:
        hidden = m1.step(PROMPT[position], position, position + 1, None)
        seen.append(own.get_logits(hidden).to_numpy()[0])
    for again, first in ((20, 7), (21, 8), (22, 3)):
        np.testing.assert_array_equal(seen[again], seen[first])
    with pytest.raises(InvalidSpecError, match="position=5, and 4 positions have keys"):
        m1.step(1, 5, 6, None)
    expected, _ = own(PROMPT[:20])
    np.testing.assert_allclose(seen[19], own.get_logits(expected).to_numpy()[19], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("settings", SETTINGS, ids=["greedy", "seeded", "penalties"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: gp.llm.DecodeSpeculative(4, 1),
        lambda: gp.llm.DecodeSpeculative(1, 1),
        lambda: gp.llm.DecodeJacobi(),
        lambda: gp.llm.DecodeJacobi(1, 1),
        lambda: gp.llm.DecodeJacobi(5, 6, "ngram"),
        lambda: gp.llm.DecodeJacobi(4, 1, "greedy"),
    ],
)
def test_tokens_are_those_of_plain_decoding(make: Callable[[], Any], settings: dict[str, Any]) -> None:
    own = model()
    expected = list(own.stream(PROMPT, 24, **settings).complete().token_ids)
    strategy = make()
    strategy.bind(own, **settings)
    assert answer_of(strategy, 24) == expected


def test_guesses_that_are_right_are_taken_at_once() -> None:
    own = model()
    jacobi = gp.llm.DecodeJacobi(6, 3, "greedy")
    jacobi.bind(own)
    tokens = [jacobi.prefill(PROMPT)]
    new, position, figures = jacobi.step_jacobi(tokens[-1], len(PROMPT), len(PROMPT) + 1)
    assert (len(new), position) == (6, len(PROMPT) + 6)
    assert figures == {"iterations": 1, "converged": True, "accepted_count": 6}


def test_lookahead_begins_at_the_confirmed_positions_and_confirms_what_it_accepts() -> None:
    own = model()
    expected = list(own.stream(PROMPT, 20).complete().token_ids)
    own.init_jacobi_decode(lookahead_k=4, max_seq_len=CONTEXT)
    m1 = gp.llm.DecodeM1()
    m1.bind(own)
    tokens = [m1.prefill(PROMPT)]
    assert own.get_lookahead_confirmed_pos() == len(PROMPT)
    while len(tokens) < 20:
        if len(tokens) % 2:
            new, figures = own.decode_step_jacobi_lookahead(tokens[-1], n_tokens=4)
            assert set(figures) == {"iterations", "converged", "accepted_count"}
        else:
            new, figures = own.decode_step_self_speculative_lookahead(tokens[-1], 3, draft_layers=1)
            assert figures["draft_count"] == 3 and figures["accepted_count"] == len(new) - 1
        tokens += new
        assert own.get_lookahead_confirmed_pos() == len(PROMPT) + len(tokens) - 1
    assert tokens[:20] == expected


def test_positions_are_confirmed_only_where_they_were_computed() -> None:
    own, batch = model(), gp.llm.DecodeBatch()
    batch.bind(own)
    batch.prefill(PROMPT[:10])
    batch.step_batch([1, 2, 3], 10, 13, None)
    own.commit_lookahead_all(2)
    assert [block.attn.get_confirmed_pos() for block in own.blocks] == [12] * len(own.blocks)
    with pytest.raises(InvalidSpecError, match="n_accepted=2; give 0 to 1"):
        own.commit_lookahead_all(2)
    own.reset_lookahead_all()
    with pytest.raises(InvalidSpecError, match="n_accepted=1; give 0 to 0"):
        own.commit_lookahead_all(1)
    with pytest.raises(InvalidSpecError, match="pos=13; give 0 to 12"):
        own.set_lookahead_confirmed_pos(13)
    own.set_lookahead_confirmed_pos(11)
    assert own.get_lookahead_confirmed_pos() == 11


def test_at_the_end_of_the_cache_drafts_take_the_room_that_is_left() -> None:
    own = model()
    prompt = PROMPT[: CONTEXT - 4] + PROMPT[: CONTEXT - 4 - len(PROMPT)]
    for strategy in (gp.llm.DecodeJacobi(8), gp.llm.DecodeSpeculative(8, 1)):
        strategy.bind(own)
        expected = list(own.stream(prompt, 4).complete().token_ids)
        tokens, position = [strategy.prefill(prompt)], len(prompt)
        step = strategy.step_jacobi if isinstance(strategy, gp.llm.DecodeJacobi) else strategy.step_speculative
        while position < CONTEXT:
            new, position, _ = step(tokens[-1], position, position + 1)
            tokens += new
        assert tokens[:4] == expected and position == CONTEXT
        with pytest.raises(InvalidSpecError, match=f"beyond max_seq_len={CONTEXT}"):
            step(tokens[-1], position, position + 1)


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "qwen2"])
def test_layers_called_one_by_one_give_the_models_logits(name: str) -> None:
    logits, tokens = plain(name)
    own = model(name)
    table = own.embed_tokens.to_numpy()
    places = None if own.position_embed is None else own.position_embed.to_numpy()
    ids = [*PROMPT, *tokens[:3]]

    def computed(begin: int, end: int) -> np.ndarray:
        x = table[ids[begin:end]] if places is None else table[ids[begin:end]] + places[begin:end]
        hidden = gp.from_numpy(np.ascontiguousarray(x))
        for block in own.blocks:
            rows = block.attn_norm(hidden)
            if end - begin == 1:
                hidden = hidden + block.attn.forward_fixed_cache(rows, begin, end)
            else:
                hidden = hidden + block.attn.forward_fixed_cache_batch(rows, begin, end)
            hidden = hidden + block.mlp(block.mlp_norm(hidden))
        return own.get_logits(hidden).to_numpy()

    first = computed(0, len(PROMPT))
    np.testing.assert_allclose(first[-1], logits[0], rtol=2e-3, atol=2e-4)
    for index in range(3):
        position = len(PROMPT) + index
        np.testing.assert_allclose(computed(position, position + 1)[0], logits[index + 1], rtol=2e-3, atol=2e-4)


def test_parts_of_joined_weights_are_the_rows_they_were_joined_of() -> None:
    own = model("qwen2")
    x = gp.from_numpy(RANDOM.standard_normal((3, own.config.hidden_size)).astype(np.float32))
    attention, mlp = own.blocks[0].attn, own.blocks[0].mlp
    both = np.concatenate([p(x).to_numpy() for p in (attention.q_proj, attention.k_proj, attention.v_proj)], axis=1)
    np.testing.assert_array_equal(both, attention.qkv_proj(x).to_numpy())
    gate, up = mlp.gate_proj(x).to_numpy(), mlp.up_proj(x).to_numpy()
    np.testing.assert_array_equal(np.concatenate([gate, up], axis=1), mlp.gate_up_proj(x).to_numpy())
    assert mlp.fc1 is None and mlp.fc2 is None
    between = gp.from_numpy(gate / (1 + np.exp(-gate)) * up)
    np.testing.assert_allclose(mlp.down_proj(between).to_numpy(), mlp(x).to_numpy(), rtol=1e-5, atol=1e-5)
    plain_mlp = model("gpt2").blocks[0].mlp
    assert plain_mlp.gate_proj is None and plain_mlp.down_proj is None
    assert plain_mlp.fc1 is not None and plain_mlp.fc2 is not None


def test_a_fixed_cache_in_fp8_steps_as_an_answer_with_fp8_keys() -> None:
    own = tiny.model("llama", context=CONTEXT, kv_dtype="fp8")
    for block in own.blocks:
        block.attn.init_fixed_cache(CONTEXT, dtype="fp8")
    strategy = gp.llm.DecodeJacobi()
    strategy.bind(own)
    assert answer_of(strategy, 20) == list(own.stream(PROMPT, 20).complete().token_ids)


def test_buffers_get_the_results_of_steps() -> None:
    own, m1 = model("qwen3"), gp.llm.DecodeM1()
    m1.bind(own)
    buffers = gp.llm.DecodeBuffers.allocate(own.config, "float32", use_qk_norm=True, vocab_size=own.config.vocab_size)
    token = m1.prefill(PROMPT)
    hidden = m1.step(token, len(PROMPT), len(PROMPT) + 1, buffers)
    np.testing.assert_array_equal(buffers.hidden.to_numpy(), hidden.to_numpy())
    assert buffers.logits is not None and buffers.token_id_buf is not None and buffers.position_buf is not None
    np.testing.assert_array_equal(buffers.logits.to_numpy(), own.get_logits(hidden).to_numpy())
    numbers = (buffers.token_id_buf, buffers.position_buf, buffers.context_len_buf)
    assert [int(array.to_numpy()[0]) for array in numbers] == [token, len(PROMPT), len(PROMPT) + 1]
    batch = gp.llm.DecodeBatch()
    batch.bind(own)
    with pytest.raises(InvalidSpecError, match="2 tokens, and buffers have max_batch_size=0"):
        batch.step_batch([1, 2], len(PROMPT) + 1, len(PROMPT) + 3, buffers)


def test_buffers_are_room_for_a_step_of_ones_own() -> None:
    logits, tokens = plain("qwen3")
    own = model("qwen3")
    c, position = own.config, len(PROMPT)
    b = gp.llm.DecodeBuffers.allocate(c, "float32", use_qk_norm=True, vocab_size=c.vocab_size)
    hidden, past = own.embed_tokens.to_numpy()[[*PROMPT, tokens[0]]], []
    cos, sin = gp.llm.precompute_freqs_cis(c.head_dim, CONTEXT, c.rope_theta)
    rows = gp.from_numpy(np.ascontiguousarray(hidden[:-1]))
    for block in own.blocks:  # keys and values of the prompt
        own_rows = block.attn_norm(rows)
        k = block.attn.k_norm(block.attn.k_proj(own_rows).reshape(-1, c.head_dim)).reshape(-1, c.kv_heads, c.head_dim)
        v = block.attn.v_proj(own_rows).reshape(-1, c.kv_heads, c.head_dim)
        q = k.clone()
        gp.rope_inplace(q, k, gp.from_numpy(cos[:position]), gp.from_numpy(sin[:position]))
        caches = tuple(gp.zeros((c.num_heads, CONTEXT, c.head_dim)) for _ in "kv")
        for new, kept in zip((k, v), caches, strict=True):
            gp.ops.kv_cache_prefill_gqa(new, kept, c.num_heads)
        past.append(caches)
        rows = rows + block.attn.forward_fixed_cache_batch(own_rows, 0, position)
        rows = rows + block.mlp(block.mlp_norm(rows))
    gp.ops.copy_to(gp.from_numpy(np.ascontiguousarray(hidden[-1:])), b.hidden)
    gp.ops.copy_to(gp.from_numpy(cos[position : position + 1]), b.cos)
    gp.ops.copy_to(gp.from_numpy(sin[position : position + 1]), b.sin)
    for block, (keys, values) in zip(own.blocks, past, strict=True):
        gp.rmsnorm(b.hidden, block.attn_norm.weight, block.attn_norm.eps, out=b.norm_out)
        block.attn.qkv_proj(b.norm_out, out=b.qkv_proj_out)
        for view, heads, flat, norm, target in (
            (b.q_view, c.num_heads, b.q_flat, block.attn.q_norm, b.q),
            (b.k_view, c.kv_heads, b.k_flat, block.attn.k_norm, b.k),
        ):
            gp.ops.reshape_copy(view, (heads, c.head_dim), out=flat)
            gp.ops.reshape_copy(norm(flat), (1, heads, c.head_dim), out=target)
        gp.ops.reshape_copy(b.v_view, (1, c.kv_heads, c.head_dim), out=b.v)
        gp.rope_inplace(b.q, b.k, b.cos, b.sin)
        gp.ops.kv_cache_update_gqa(b.k, keys, c.num_heads, position)
        gp.ops.kv_cache_update_gqa(b.v, values, c.num_heads, position)
        gp.ops.transpose_3d_021(b.q, out=b.q_t)
        gp.ops.sdpa_causal_fixed_cache(b.q_t, keys, values, b.attn_out, position + 1)
        gp.ops.transpose_3d_021(b.attn_out, out=b.q)
        gp.ops.reshape_copy(b.q, (1, c.num_heads * c.head_dim), out=b.q_proj_out)
        block.attn.o_proj(b.q_proj_out, out=b.o_proj_out)
        gp.ops.add_inplace(b.hidden, b.o_proj_out)
        gp.rmsnorm(b.hidden, block.mlp_norm.weight, block.mlp_norm.eps, out=b.norm_out)
        block.mlp.gate_up_proj(b.norm_out, out=b.gate_up_out)
        gp.ops.copy_to(gp.silu(b.gate_view) * b.up_view, b.mlp_gate)
        block.mlp.down_proj(b.mlp_gate, out=b.mlp_down)
        gp.ops.add_inplace(b.hidden, b.mlp_down)
    np.testing.assert_allclose(own.get_logits(b.hidden).to_numpy()[0], logits[1], rtol=2e-3, atol=2e-4)


def test_buffers_have_the_documented_shapes() -> None:
    c = tiny.model("qwen3_moe").config
    b = gp.llm.DecodeBuffers.allocate(c, vocab_size=9, max_batch_size=3, moe_config=c)
    assert (b.hidden.dtype.name, b.hidden.shape) == ("float16", (1, c.hidden_size))
    assert b.q_2d is None and b.max_batch_size == 3 and b.moe_num_experts == c.num_experts
    assert b.attn_out_batch is not None and b.attn_out_batch.shape == (c.num_heads, 3, c.head_dim)
    assert b.moe_expert_offsets is not None and b.moe_expert_offsets.shape == (c.num_experts + 1,)
    with pytest.raises(InvalidSpecError, match="moe_config has no experts"):
        gp.llm.DecodeBuffers.allocate(c, moe_config=tiny.model("llama").config)


def test_what_cannot_be_is_refused_with_the_remedy() -> None:
    own = tiny.model("llama", context=CONTEXT)
    m1 = gp.llm.DecodeM1()
    with pytest.raises(InvalidSpecError, match=r"call bind\(model\) first"):
        m1.step(1, 0, 1, None)
    m1.bind(own)
    with pytest.raises(InvalidSpecError, match="call init_fixed_cache"):
        m1.step(1, 0, 1, None)
    own = model()
    m1.bind(own)
    for arguments, message in (
        ((1, 0, 2), "context_len=2; give 1"),
        ((1, 1, 2), "position=1, and 0 tokens are known|position=1, and 0 positions have keys"),
        ((99, 0, 1), "token_id=99; give token ids of 0 to 98"),
        ((1, True, 2), "position=True"),
    ):
        with pytest.raises(InvalidSpecError, match=message):
            m1.step(*arguments, None)
    with pytest.raises(InvalidSpecError, match="DecodeM1 has no graph; DecodeM1Graph and DecodeBatch have"):
        m1.init_graph()
    graph = gp.llm.DecodeM1Graph()
    graph.bind(own)
    with pytest.raises(InvalidSpecError, match=r"call init_graph\(\) first"):
        graph.step_graph(1, 0, 1)
    speculative = gp.llm.DecodeSpeculative()
    speculative.bind(own)
    speculative.prefill(PROMPT)
    with pytest.raises(InvalidSpecError, match="draft_layers=8; give 1 to"):
        speculative.step_lookahead(1)
    with pytest.raises(InvalidSpecError, match="there is no setting 'heat'"):
        m1.bind(own, heat=1)
    with pytest.raises(InvalidSpecError, match="init_strategy='luck'"):
        gp.llm.DecodeJacobi(init_strategy="luck")  # type: ignore[arg-type]
    with pytest.raises(InvalidSpecError, match="batch_size=0"):
        gp.llm.DecodeBatch(0)
    attention = own.blocks[0].attn
    with pytest.raises(InvalidSpecError, match="dtype='int8'"):
        attention.init_fixed_cache(64, "int8")
    with pytest.raises(InvalidSpecError, match="max_seq_len=0"):
        attention.init_fixed_cache(0)
    with pytest.raises(ShapeError, match=r"must be \(1, hidden\)"):
        attention.forward_fixed_cache(gp.zeros((2, own.config.hidden_size)), 0, 1)
    with pytest.raises(ShapeError, match="must be"):
        attention.forward_fixed_cache_batch(gp.zeros((2, 3)), 0, 2)
    with pytest.raises(TypeError, match="abstract"):
        gp.llm.DecodeStrategy()  # type: ignore[abstract]


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_rows_into_arrays_of_the_caller_are_those_of_new_ones(name: str) -> None:
    own, other = model(name), model(name)
    c = own.config
    b = gp.llm.DecodeBuffers.allocate(c, "float32", vocab_size=c.vocab_size, max_batch_size=5)
    tables = [gp.from_numpy(table) for table in gp.llm.precompute_freqs_cis(c.head_dim, CONTEXT, c.rope_theta)]
    attention, plain_attention = own.blocks[1].attn, other.blocks[1].attn
    begin = 0
    for rows, where, rotation in ((5, "device", True), (5, "device", True), (1, "host", False), (3, "device", True)):
        x = gp.from_numpy(RANDOM.standard_normal((rows, c.hidden_size)).astype(np.float32))
        expected = plain_attention.forward_fixed_cache_batch(x, begin, begin + rows)
        start = gp.from_numpy(np.array([begin], np.int32)) if where == "device" else None
        for array in (b.qkv_proj_out_batch, b.attn_out_t_batch, b.o_proj_out_batch):
            array.fill(float("nan"))
        given = tables if rotation else (None, None)
        found = attention.forward_fixed_cache_batch_zero_alloc(x, begin, begin + rows, b, *given, start)
        np.testing.assert_array_equal(found.to_numpy(), expected.to_numpy())
        np.testing.assert_array_equal(b.o_proj_out_batch.to_numpy()[:rows], expected.to_numpy())
        begin += rows
    x = gp.zeros((6, c.hidden_size))
    with pytest.raises(InvalidSpecError, match="6 rows, and buffers have max_batch_size=5"):
        attention.forward_fixed_cache_batch_zero_alloc(x, begin, begin + 6, b, None, None, None)
    with pytest.raises(InvalidSpecError, match="give both"):
        attention.forward_fixed_cache_batch_zero_alloc(x[:2], begin, begin + 2, b, tables[0], None, None)
    half = gp.llm.DecodeBuffers.allocate(c, max_batch_size=2)
    with pytest.raises(DTypeError, match="is float16"):
        attention.forward_fixed_cache_batch_zero_alloc(x[:2], begin, begin + 2, half, None, None, None)


def test_a_graph_of_rows_reads_their_position_on_the_device() -> None:
    own, other = model(), model()
    c, attention = own.config, own.blocks[0].attn
    b = gp.llm.DecodeBuffers.allocate(c, "float32", max_batch_size=2)
    x, start = gp.zeros((2, c.hidden_size)), gp.zeros(1, "int32")
    stream = gp.Stream()
    attention.forward_fixed_cache_batch_zero_alloc(x, 0, 2, b, None, None, start)  # what it needs is there then
    with stream.capture() as graph:
        attention.forward_fixed_cache_batch_zero_alloc(x, 0, 2, b, None, None, start)
    for begin in (0, 2, 4):
        rows = RANDOM.standard_normal((2, c.hidden_size)).astype(np.float32)
        gp.ops.copy_to(gp.from_numpy(rows), x)
        gp.ops.copy_to(gp.from_numpy(np.array([begin], np.int32)), start)
        graph.launch()
        expected = other.blocks[0].attn.forward_fixed_cache_batch(gp.from_numpy(rows), begin, begin + 2)
        np.testing.assert_array_equal(b.o_proj_out_batch.to_numpy(), expected.to_numpy())


def test_buffers_of_a_prefill_are_room_for_a_pass_of_ones_own() -> None:
    own = model("qwen3")
    c, rows = own.config, 9
    b = gp.llm.PrefillBuffers.allocate(c, rows, "float32", use_qk_norm=True)
    block = own.blocks[0]
    x = gp.from_numpy(RANDOM.standard_normal((rows, c.hidden_size)).astype(np.float32))
    expected = block.attn.forward_fixed_cache_batch(block.attn_norm(x), 0, rows)
    gp.ops.copy_to(x, b.hidden)
    gp.rmsnorm(b.hidden, block.attn_norm.weight, block.attn_norm.eps, out=b.norm_out)
    attention = block.attn
    for linear, target in ((attention.q_proj, b.q_proj_out), (attention.k_proj, b.k_proj_out)):
        linear(b.norm_out, out=target)
    attention.v_proj(b.norm_out, out=b.v_proj_out)
    gp.ops.reshape_copy(b.v_proj_out, b.v.shape, out=b.v)
    for norm, flat, source, target in (
        (attention.q_norm, b.q_2d, b.q_proj_out, b.q),
        (attention.k_norm, b.k_2d, b.k_proj_out, b.k),
    ):
        gp.ops.reshape_copy(source, flat.shape, out=flat)
        gp.ops.reshape_copy(norm(flat), target.shape, out=target)
    for table, target in zip(gp.llm.precompute_freqs_cis(c.head_dim, rows, c.rope_theta), (b.cos, b.sin), strict=True):
        gp.ops.copy_to(gp.from_numpy(table), target)
    gp.rope_inplace(b.q, b.k, b.cos, b.sin)
    gp.ops.transpose_3d_021(b.q, out=b.q_t)
    for source, target in ((b.k, b.k_t), (b.v, b.v_t)):
        gp.ops.transpose_3d_021(gp.ops.repeat_interleave_axis1(source, c.num_kv_groups), out=target)
    gp.sdpa_causal(b.q_t, b.k_t, b.v_t, out=b.attn_out)
    gp.ops.transpose_3d_021(b.attn_out, out=b.attn_out_t)
    gp.ops.reshape_copy(b.attn_out_t, b.attn_out_2d.shape, out=b.attn_out_2d)
    attention.o_proj(b.attn_out_2d, out=b.o_proj_out)
    np.testing.assert_allclose(b.o_proj_out.to_numpy(), expected.to_numpy(), rtol=2e-3, atol=2e-4)
    assert b.max_seq_len == rows and gp.llm.PrefillBuffers.allocate(c, 2).q_2d is None
    with pytest.raises(InvalidSpecError, match="max_seq_len=0"):
        gp.llm.PrefillBuffers.allocate(c, 0)
