"""Keys and values in fp8: what is written beside the rule in float64, attention beside a float64 reading of the cache,
on the host and by kernels; bytes, names, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from llm import tiny

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.weights import load
from pygpukit.nn.attention import codes
from pygpukit.nn.attention.buffers import AttentionBuffers
from pygpukit.nn.attention.kv_write import write_kv
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.batch import Batch, Span
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.kv_cache import KVCache, LayerCache
from pygpukit.ops import host
from pygpukit.ops.storage import decoded as e4m3

GRID = np.sort(e4m3(np.arange(127, dtype=np.uint8), gp.float8_e4m3).astype(np.float64))  # 0 to 448
SIZE, BLOCKS = 64, 3  # positions of a block, blocks of a sequence


@pytest.fixture(params=[False, True], ids=["host", "kernels"])
def by_kernels(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the simulator runs the kernels."""
    if request.param:
        request.getfixturevalue("kernels_on_sim")
    yield request.param


def array(values: Any, dtype: str = "float32") -> gp.GPUArray:
    return gp.from_numpy(np.ascontiguousarray(values, np.float32)).astype(dtype)


def numbers(x: gp.GPUArray) -> np.ndarray[Any, Any]:
    with host.built_in_kernels():
        return x.astype("float32").to_numpy().astype(np.float64)


def stored(cache: LayerCache) -> list[np.ndarray[Any, Any]]:
    with host.built_in_kernels():
        return [x.to_numpy() for x in cache.arrays]


def reading(cache: LayerCache) -> list[np.ndarray[Any, Any]]:
    """What keys and values stand for, in float64."""
    k, v, *scales = stored(cache)
    factors = [np.where(s == 255, np.nan, np.ldexp(1.0, s.astype(int) - 127))[..., None] for s in scales]
    return [e4m3(x, gp.float8_e4m3).astype(np.float64) * f for x, f in zip((k, v), factors, strict=True)]


def rule(head: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A head as it is stored, in float64: the nearest of 448 and less times the least power of two that is enough."""
    if not np.isfinite(head).all():
        return np.full(head.shape, np.nan)
    size = np.abs(head).max()
    scale = 2.0 ** max(-15, next(e for e in range(-200, 200) if size <= 448 * 2.0**e))
    x = np.abs(head) / scale
    above = np.minimum(np.searchsorted(GRID, x), len(GRID) - 1)
    below = np.maximum(above - 1, 0)
    near = np.where(x - GRID[below] < GRID[above] - x, below, above)
    tie = (x - GRID[below] == GRID[above] - x) & (above % 2 == 1)
    return np.copysign(GRID[np.where(tie, below, near)], head) * scale


def heads_of_all_sizes(count: int, dim: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng()
    heads = random.standard_normal((count, dim)) * 2.0 ** random.integers(-12, 12, (count, 1))
    heads[0], heads[1] = 0, 2.0**-24
    heads[2, :3], heads[3, 0] = [448, 449, -464], 480 * 2.0**-3
    heads[4], heads[5, 1], heads[6, 2] = 464 * 2.0**-15, np.inf, np.nan
    heads[7] = (np.arange(dim) % 17 - 8) * 2.0**-16 + 2.0**-14  # ties
    return heads.astype(np.float32)


def test_codes_on_the_host_are_the_rules() -> None:
    heads = heads_of_all_sizes(60, 24)
    np.testing.assert_array_equal(
        codes.decoded(*codes.encoded(heads)), np.array([rule(h.astype(np.float64)) for h in heads])
    )
    large = np.float32([[3e38, -3.2e38, 1.0, 0.0]])
    np.testing.assert_array_equal(codes.decoded(*codes.encoded(large)), [rule(large[0].astype(np.float64))])


def layer_of(heads: int, kv_heads: int, dim: int, window: int | None, dtype: str) -> Attention:
    config = TransformerConfig(
        hidden_size=32, num_layers=1, num_heads=heads, num_kv_heads=kv_heads, _head_dim=dim, sliding_window=window
    )
    weights = gp.zeros(((heads + 2 * kv_heads) * dim, 32), dtype), gp.zeros((32, heads * dim), dtype)
    return Attention(weights[0], None, None, weights[1], config)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_what_is_written_is_the_rule_of_each_head(by_kernels: bool, dtype: str) -> None:
    layer, rows = layer_of(3, 3, 24, None, dtype), 20
    qkv = array(np.concatenate([np.ones((rows, 72)), heads_of_all_sizes(rows * 6, 24).reshape(rows, 144)], 1), dtype)
    cache = KVCache(layer.config, 4, SIZE, "fp8", "t").layers[0]
    positions = np.random.default_rng().permutation(SIZE)[:rows].astype(np.int32)
    blocks = np.full((rows, 1), 2, np.int32)
    batch = Batch(*(gp.from_numpy(x) for x in (positions, positions, blocks)), (Span(0, rows, 0),))
    before = numbers(qkv)
    write_kv(layer, batch, cache, None, qkv)
    np.testing.assert_array_equal(numbers(qkv), before)
    expected = before[:, 72:].reshape(rows, 2, 3, 24)
    for part, found in enumerate(reading(cache)):
        assert not found[[0, 1, 3]].any()
        for row, position in enumerate(positions):
            np.testing.assert_array_equal(found[2, :, position], [rule(head) for head in expected[row, part]])


@pytest.mark.parametrize(
    ("heads", "kv_heads", "dim", "window", "dtype"),
    [(4, 2, 24, None, "float32"), (6, 2, 64, 50, "bfloat16"), (3, 3, 128, None, "float16")],
)
@pytest.mark.parametrize("prompt", [False, True], ids=["step", "prompt"])
def test_attention_is_that_over_what_the_cache_stands_for(
    by_kernels: bool, heads: int, kv_heads: int, dim: int, window: int | None, dtype: str, prompt: bool
) -> None:
    random = np.random.default_rng()
    layer, rows = layer_of(heads, kv_heads, dim, window, dtype), 5
    cache = KVCache(layer.config, 10, SIZE, "fp8", "t").layers[0]
    poisoned = [np.full(x.shape, 0x7F if x.ndim == 4 else 255, np.uint8) for x in cache.arrays]
    tables = random.permutation(10)[: 3 * BLOCKS].reshape(3, BLOCKS).astype(np.int32)
    where = np.arange(130, 135) if prompt else np.array([0, 63, 64, 150, 191])[random.permutation(5)]
    owners = [0] * rows if prompt else [0, 1, 2, 0, 1]
    if not prompt:  # a sequence has one row of a step
        tables = np.stack([random.permutation(10)[:BLOCKS] for _ in range(rows)]).astype(np.int32)
        owners, where = list(range(rows)), np.sort(where)
        tables = tables[:1].repeat(rows, 0)  # all read what one wrote
    for position in range(192):
        block, place = tables[owners[0], position // SIZE], position % SIZE
        for part in range(2):
            poisoned[part][block, :, place] = random.integers(0, 0x7F, (kv_heads, dim)) + random.choice([0, 128])
            poisoned[2 + part][block, :, place] = random.integers(116, 119, kv_heads)
    for target, values in zip(cache.arrays, poisoned, strict=True):
        native.copy_from_host(target, values)
    q = array(random.standard_normal((rows, heads * dim)), dtype)
    buffers = AttentionBuffers.of(rows, (heads + 2 * kv_heads) * dim, heads * dim, heads, dtype)
    buffers.qkv[:, : heads * dim] = q
    buffers.out[...] = np.nan
    positions = where.astype(np.int32)
    spans = (Span(0, rows, int(where[0])),) if prompt else ()
    batch = Batch(*(gp.from_numpy(x) for x in (positions, positions, np.ascontiguousarray(tables[owners]))), spans)
    layer.attend(batch, cache, buffers)
    k, v = (x[tables[owners[0]]].transpose(1, 0, 2, 3).reshape(kv_heads, -1, dim) for x in reading(cache))
    found, queries = numbers(buffers.out), numbers(q)
    bound = {"float32": 3e-6, "float16": 2e-3, "bfloat16": 1.6e-2}[dtype]
    for row, position in enumerate(where):
        low = 0 if window is None else max(0, position + 1 - window)
        for head in range(heads):
            own, at = head // (heads // kv_heads), slice(head * dim, head * dim + dim)
            scores = layer.scale * (k[own, low : position + 1] @ queries[row, at])
            weights = np.exp(scores - scores.max())
            expected = weights @ v[own, low : position + 1] / weights.sum()
            np.testing.assert_allclose(found[row, at], expected, atol=bound * np.abs(v[own, : position + 1]).max())


def test_a_model_counts_and_shows_half_the_bytes_and_goes_on_from_a_snapshot() -> None:
    model = tiny.model("llama", context=128, kv_dtype="fp8")
    config = model.config
    each = 2 * config.num_layers * config.kv_heads * (config.head_dim + 1)
    answer = model.stream([3, 4, 5], 20, ignore_eos=True).complete().token_ids
    assert model.cache.bytes_per_token == each and model.cache.nbytes == each * 128
    assert f"keys and values in fp8: {each} bytes a position" in repr(model.describe())
    assert tiny.model("llama", context=128).describe().kv_token_bytes == 4 * each * 8 // 9
    names = {array.name.rpartition("/")[2] for array in model.cache.layers[1].arrays}
    assert names == {"kv.k", "kv.v", "kv.k_scales", "kv.v_scales"}
    before = model.snapshot_kv_cache()
    model.generate([9] * 70, 30)
    model.restore_kv_cache(before)
    assert [[x.tobytes() for x in layer] for layer in model.snapshot_kv_cache()] == [
        [x.tobytes() for x in layer] for layer in before
    ]
    assert model.stream([3, 4, 5], 20, ignore_eos=True).complete().token_ids == answer
    with pytest.raises(InvalidSpecError, match="another shape"):
        tiny.model("llama", context=128).restore_kv_cache(before)


def test_a_share_of_memory_holds_nearly_twice_as_many_positions() -> None:
    each = 64 * tiny.model("llama").describe().kv_token_bytes
    blocks = [
        tiny.model("llama", context=128, kv_memory=9 * each, kv_dtype=x).engine.occupancy.blocks for x in (None, "fp8")
    ]
    assert blocks == [9, 9 * 32 // 9]  # heads of 8 numbers: 32 bytes, or 9


@pytest.mark.parametrize("kv_dtype", ["int8", "float8_e5m2", "", 8])
def test_another_type_is_refused_before_a_file_is_read(kv_dtype: Any) -> None:
    with pytest.raises(InvalidSpecError, match="kv_dtype="):
        load("nowhere", kv_dtype=kv_dtype)
    with pytest.raises(InvalidSpecError, match="kv_dtype="):
        tiny.model("llama", context=64, kv_dtype=kv_dtype)


def test_looking_sees_the_keys_that_the_model_sees() -> None:
    for kv_dtype, same in ((None, False), ("fp8", True)):
        _, keys = tiny.model("llama", context=128, kv_dtype=kv_dtype).engine.attention([5, 6, 7, 8] * 9, 1)
        found = keys.to_numpy()
        assert found.shape == (2, 36, 8) and found.any()
        assert (codes.decoded(*codes.encoded(found)) == found).all() == same
