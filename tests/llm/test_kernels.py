"""The kernels of models on the simulator, in checked mode, beside the same operations in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from device_facts import Facts
from llm import tiny
from llm.stepping import logits_of

import pygpukit as gp
from pygpukit.llm.engine.sampling import Choice, Sampling
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.norm import Norm
from pygpukit.ops import host

RANDOM = np.random.default_rng(11)
TOLERANCE = {"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3}


def array(values: np.ndarray, dtype: str = "float32") -> gp.GPUArray:
    return gp.from_numpy(values.astype(np.float32)).astype(dtype)


def doubles(a: gp.GPUArray) -> np.ndarray:
    return a.astype("float32").to_numpy().astype(np.float64)


def reference(x: np.ndarray, norm: Norm | None, linear: LinearBF16, epilogue: str, out: np.ndarray) -> np.ndarray:
    if norm is not None:
        if norm.norm_type == "layernorm":
            x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + norm.eps) * doubles(norm.weight)
        x = x if norm.bias is None else x + doubles(norm.bias)
    y = x @ doubles(linear.weight).T
    y = y if linear.bias is None else y + doubles(linear.bias)
    if epilogue == "add":
        return out + y
    if epilogue == "gelu":
        return 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
    if epilogue == "silu":
        gate, up = np.split(y, 2, axis=1)
        return gate / (1 + np.exp(-gate)) * up
    return y


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("rows", "n", "k", "kind", "biased", "epilogue", "first"),
    [
        (1, 21, 64, "rmsnorm", False, "store", None),
        (1, 18, 1032, "layernorm", True, "gelu", None),
        (1, 22, 264, "rmsnorm", True, "silu", None),
        (1, 9, 56, None, True, "add", None),
        (11, 13, 48, "rmsnorm", True, "silu", None),
        (3, 17, 32, None, False, "add", None),
        (5, 12, 40, "layernorm", True, "gelu", 7),
        (4, 10, 24, None, True, "add", 0),
        (0, 10, 24, None, True, "add", None),
    ],
)
def test_products(
    kernels_on_sim: None,
    dtype: str,
    rows: int,
    n: int,
    k: int,
    kind: str | None,
    biased: bool,
    epilogue: str,
    first: int | None,
) -> None:
    x = array(RANDOM.standard_normal((rows, k)), dtype if kind is None else "float32")
    weights = 2 * n if epilogue == "silu" else n
    bias = array(RANDOM.standard_normal(weights), dtype) if biased else None
    linear = LinearBF16(array(RANDOM.standard_normal((weights, k)) / np.sqrt(k), dtype), bias)
    shift = array(RANDOM.standard_normal(k), dtype) if kind == "layernorm" else None
    norm = None if kind is None else Norm(array(RANDOM.standard_normal(k), dtype), shift, kind, 1e-5)  # type: ignore
    before = RANDOM.standard_normal((rows, n))
    out = array(before, "float32" if epilogue == "add" else dtype)
    expected = reference(doubles(x), norm, linear, epilogue, doubles(out))
    linear.project(x, out, first, norm=norm, epilogue=epilogue)  # type: ignore[arg-type]
    np.testing.assert_allclose(doubles(out), expected, rtol=0, atol=TOLERANCE[dtype] * 8)


def run(name: str, dtype: str, prompt: list[int], steps: int) -> tuple[np.ndarray, list[int]]:
    """The logits of a small model after a prompt and after each of some greedy tokens, and the tokens."""
    model = tiny.model(name, dtype=dtype, context=64)
    logits, tokens = logits_of(model, prompt, steps, chunk=24)
    return logits.astype(np.float64), tokens


@pytest.mark.turns(2)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [("llama", "float16"), ("qwen2", "float32"), ("qwen3", "bfloat16"), ("mistral", "float32"), ("gpt2", "bfloat16")]
    + [("phi3", "float16"), ("phi4", "float32"), ("gemma3", "float32"), ("gemma3", "bfloat16"), ("gemma2", "float32")]
    + [("gemma2", "bfloat16"), ("smollm3", "float32"), ("olmo2", "bfloat16"), ("granite", "float16")]
    + [("mixtral", "float32"), ("gpt_oss", "bfloat16"), ("llama4", "bfloat16"), ("mamba2", "bfloat16")],
)
def test_whole_models_say_the_same_as_in_numpy(kernels_on_sim: None, name: str, dtype: str) -> None:
    prompt = [int(x) for x in np.random.default_rng(11).integers(0, 99, 29)]
    found, tokens = run(name, dtype, prompt, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "_through_kernels", False)
        expected, others = run(name, dtype, prompt, 3)
    same = next((i for i, (a, b) in enumerate(zip(tokens, others, strict=True)) if a != b), 3)
    bound = TOLERANCE[dtype] * 10 * np.abs(expected).max()
    assert np.abs(found - expected)[: same + 1].max() <= bound  # after the same tokens
    assert abs(expected[same, tokens[same]] - expected[same, others[same]]) <= 2 * bound


@pytest.mark.parametrize(("cap", "has_sinks"), [(None, False), (1.5, False), (None, True)])
def test_each_row_of_a_step_sees_the_keys_up_to_its_place(
    kernels_on_sim: None, cap: float | None, has_sinks: bool
) -> None:
    from pygpukit.nn.attention.buffers import AttentionBuffers
    from pygpukit.nn.batch import Batch
    from pygpukit.nn.kv_cache import KVCache

    model = tiny.model("llama", context=512, num_attention_heads=8, head_dim=24)
    attention = model.blocks[0].attn
    attention.cap = cap
    sinks = RANDOM.standard_normal(8).astype(np.float32) * 3 if has_sinks else np.full(8, -np.inf)
    attention.sinks = array(sinks) if has_sinks else None
    cache = KVCache(model.config, 2, 512, "float32", "t").layers[0]
    for target in (cache.k, cache.v):
        target[...] = array(RANDOM.standard_normal(target.shape))
    places = [0, 3, 63, 64, 300, 511]
    qkv = array(RANDOM.standard_normal((len(places), attention.q_dim + 2 * attention.k_dim)))
    numbers = [gp.from_numpy(np.asarray(x, np.int32)) for x in ([0] * len(places), places, [1] * len(places))]
    buffers = AttentionBuffers.of(len(places), qkv.shape[1], attention.q_dim, 8, "float32")
    buffers.qkv[...] = qkv
    attention.attend(Batch(*numbers), cache, buffers)
    found = buffers.out.to_numpy()
    k, v = (doubles(x)[1] for x in (cache.k, cache.v))
    for row, place in enumerate(places):
        q = doubles(qkv)[row, : attention.q_dim].reshape(8, 24)
        for head in range(8):
            scores = k[head // 4, : place + 1] @ q[head] / np.sqrt(24)
            scores = scores if cap is None else cap * np.tanh(scores / cap)
            largest = max(scores.max(), sinks[head])
            weights = np.exp(scores - largest)
            expected = weights @ v[head // 4, : place + 1] / (weights.sum() + np.exp(sinks[head] - largest))
            np.testing.assert_allclose(found[row, head * 24 : head * 24 + 24], expected, atol=2e-6)


@pytest.mark.parametrize(("name", "kv_dtype"), [("llama", "bfloat16"), ("qwen3", "bfloat16"), ("qwen3", "fp8")])
def test_a_step_in_one_launch_or_two_and_heads_together_or_apart_give_the_same_bits(
    kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch, name: str, kv_dtype: str
) -> None:
    """One launch turns heads, fills the cache and attends; or the prompt's kernel turns and fills first. Parts of one
    chunk of keys and of several."""
    from pygpukit.nn.attention import decode
    from pygpukit.nn.attention.buffers import AttentionBuffers
    from pygpukit.nn.attention.kv_write import write_kv
    from pygpukit.nn.batch import Batch
    from pygpukit.nn.kv_cache import KVCache

    model = tiny.model(name, dtype="bfloat16", max_position_embeddings=4500, context=4500)
    layer, places = model.blocks[0].attn, [0, 63, 64, 300, 4400]
    count = len(places)
    qkv = array(RANDOM.standard_normal((count, layer.q_dim + 2 * layer.k_dim)), "bfloat16")
    numbers = [gp.from_numpy(np.asarray(x, np.int32)) for x in ([0] * count, places, range(count))]
    rows, found = Batch(*numbers), []
    values = [
        array(RANDOM.standard_normal((count, model.config.kv_heads, 4500, layer.head_dim)), "bfloat16") for _ in "kv"
    ]
    for enough, placed in ((1, False), (10**6, False), (1, True)):
        monkeypatch.setattr(decode, "ENOUGH_BLOCKS", enough)
        cache = KVCache(model.config, count, 4500, kv_dtype, "t").layers[0]
        for target, scales, value in zip((cache.k, cache.v), cache.arrays[2:] or (None, None), values, strict=True):
            target[...] = value if scales is None else value * 100.0
            if scales is not None:
                scales[...] = 127 - 6
        buffers = AttentionBuffers.of(count, qkv.shape[1], layer.q_dim, model.config.num_heads, "bfloat16")
        buffers.qkv[...] = qkv
        if placed:
            write_kv(layer, rows, cache, model.engine.network.rope_tables, buffers.qkv)
            layer.attend(rows, cache, buffers)
        else:
            layer.write_and_attend(rows, cache, model.engine.network.rope_tables, buffers)
        found.append([doubles(x).tobytes() for x in (buffers.out, *cache.arrays)])
        assert not buffers.counters.to_numpy().any()
    assert found[0] == found[1] == found[2]


def test_a_row_has_the_same_bits_by_the_kernel_for_one_and_by_that_for_several(
    kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch, facts: Facts
) -> None:
    """Of float32: of 16 bits one row and several have one kernel (tests/nn/test_tensor_rows.py)."""
    from pygpukit.nn.linear import layer as linear

    facts(sm_count=2)
    n, k = 75, 1160  # more columns than warps, more pieces than a stage
    norm = Norm(array(RANDOM.standard_normal(k)))
    product = LinearBF16(array(RANDOM.standard_normal((2 * n, k))), array(RANDOM.standard_normal(2 * n)))
    x = array(RANDOM.standard_normal((1, k)))
    for epilogue, before in (("store", norm), ("silu", norm), ("add", None)):
        found = []
        for stages in ((6,), (4,), ()):
            monkeypatch.setattr(linear, "STAGES", stages)
            out = array(np.ones((1, n if epilogue == "silu" else 2 * n)))
            product.project(x, out, None, norm=before, epilogue=epilogue)  # type: ignore[arg-type]
            found.append(out.to_numpy().tobytes())
        assert found[0] == found[1] == found[2], epilogue
        assert (product.new_bests() is None) == (stages == ())


def test_a_greedy_choice_by_what_the_product_found_is_that_among_all_logits(kernels_on_sim: None, facts: Facts) -> None:
    from pygpukit.llm.engine.sampling import Sampler
    from pygpukit.nn.batch import new_batch

    facts(sm_count=4)
    count, hidden = 90, 8  # more columns than warps: some take several
    norm = Norm(array(np.ones(hidden)))
    x = array(RANDOM.standard_normal((1, hidden)))
    weight = RANDOM.standard_normal((count, hidden)).astype(np.float32)
    largest = int((weight @ x.to_numpy()[0]).argmax())
    for case in ("one", "two alike", "not a number", "none is a number"):
        if case == "two alike":
            weight[[85, 4]] = weight[largest]
        elif case == "not a number":
            weight[4] = np.nan
        elif case == "none is a number":
            weight[:] = np.nan
        head, sampler, rows = LinearBF16(array(weight)), Sampler(1, count, False, 0), new_batch(1)
        sampler.load(0, Sampling(), [1], [])
        bests = head.new_bests()
        assert bests is not None and bests.size == 4
        head.project(x, sampler.logits, None, norm=norm, bests=bests)
        sampler.choose(rows)
        expected = rows.tokens.to_numpy()[0]
        rows.tokens[...] = -1
        sampler.choose(rows, bests)
        assert rows.tokens.to_numpy()[0] == expected, case


def test_a_step_is_five_launches_a_layer_and_three(kernels_on_sim: None) -> None:
    model = tiny.model("llama", context=64)
    assert model.engine.loop.steps.capture().launches == 5 * len(model.blocks) + 3


SETTINGS = [
    Sampling(),
    Sampling(top=5),
    Sampling(temperature=0.7, top_k=9, seed=3, top=3),
    Sampling(temperature=1.3, top_p=0.8, min_p=0.01, seed=2**64 - 1, request=12),
    Sampling(
        temperature=0.9,
        repetition_penalty=1.3,
        presence_penalty=0.4,
        frequency_penalty=0.2,
        logit_bias={5: 3.0, 7: -np.inf},
        seed=1,
        top=20,
    ),
]


def chosen(settings: list[Sampling], logits: np.ndarray) -> list[list[Choice]]:
    from pygpukit.llm.engine.sampling import Sampler
    from pygpukit.nn.batch import new_batch

    told = max(0 if s.top is None else max(2, s.top) for s in settings)
    sampler = Sampler(len(settings), logits.shape[1], any(s.adjusts for s in settings), told)
    rows = new_batch(len(settings))
    found = []
    for row, setting in enumerate(settings):
        sampler.load(row, setting, [1, 5, 9], [9, 9, 11])
    for _ in range(4):
        sampler.logits[...] = array(logits)
        sampler.choose(rows)
        found.append(sampler.read(rows, [s.top for s in settings]))
    assert rows.positions.to_numpy().tolist() == [4] * len(settings)
    return found


def test_choices_are_the_same_as_in_numpy(kernels_on_sim: None) -> None:
    logits = RANDOM.standard_normal((len(SETTINGS), 1500)).astype(np.float32) * 3
    logits[1, 40] = logits[1, 30] = logits[1].max() + 1
    logits[2, 17] = np.nan
    for settings in (SETTINGS, SETTINGS[:1]):
        found = chosen(settings, logits[: len(settings)])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host, "_through_kernels", False)
            expected = chosen(settings, logits[: len(settings)])
        for ours, theirs in zip(found, expected, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                assert a.token == b.token
                assert [t for t, _ in a.top] == [t for t, _ in b.top]
                numbers = [x for x in (a.logprob, a.margin, *(p for _, p in a.top)) if x is not None]
                others = [x for x in (b.logprob, b.margin, *(p for _, p in b.top)) if x is not None]
                np.testing.assert_allclose(numbers, others, atol=2e-5)
