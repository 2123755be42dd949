"""Attention of a step whose heads share keys, on tensor cores: beside float64, and by the bit among other rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.nn.attention import decode
from pygpukit.nn.attention.buffers import AttentionBuffers
from pygpukit.nn.attention.kv_write import write_kv
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.batch import Batch
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.kv_cache import LayerCache
from pygpukit.nn.norm import Norm

Array = np.ndarray[Any, Any]
BLOCK, POSITIONS = 64, 64 * 70  # more chunks than parts
PLACES = [0, 5, 63, 64, 130, 1999, 4470]


def rounded(values: Array, dtype: str) -> tuple[gp.GPUArray, Array]:
    array = gp.from_numpy(np.asarray(values, np.float32)).astype(dtype)
    return array, array.astype("float32").to_numpy().astype(np.float64)


class Case:
    """A layer, the cache of some sequences in shuffled blocks, and rows that are the next of these."""

    def __init__(self, dtype: str, heads: int, kv: int, dim: int, places: list[int], **more: Any) -> None:
        rng = np.random.default_rng(heads + dim)
        self.dtype, self.heads, self.kv, self.dim, self.places = dtype, heads, kv, dim, places
        self.sinks = more.pop("sinks", False)
        normed = more.pop("normed", False)
        self.config = TransformerConfig(
            hidden_size=32, num_heads=heads, num_kv_heads=kv, _head_dim=dim, sliding_window=more.pop("window", None),
            attention_chunk=more.pop("chunk", None),
        )  # fmt: skip
        self.norm = Norm(rounded(rng.uniform(0.5, 1.5, dim), dtype)[0]) if normed else None
        width = (heads + 2 * kv) * dim
        weights = gp.zeros((width, 32), dtype), gp.zeros((32, heads * dim), dtype)
        self.layer = Attention(weights[0], None, None, weights[1], self.config, q_norm=self.norm, k_norm=self.norm)
        self.layer.cap = more.pop("cap", None)
        assert not more
        scores = rng.standard_normal(heads).astype(np.float32) * 3
        self.layer.sinks = gp.from_numpy(scores) if self.sinks else None
        self.sink = scores if self.sinks else np.full(heads, -np.inf)
        self.qkv, self.wide = rounded(rng.standard_normal((len(places), width)), dtype)
        count = POSITIONS // BLOCK
        self.table = rng.permutation(len(places) * count).astype(np.int32).reshape(len(places), count)
        shape = len(places) * count, kv, BLOCK, dim
        self.keys, self.values = (rounded(rng.standard_normal(shape), dtype)[0] for _ in "kv")
        angles = np.outer(np.arange(POSITIONS), 100.0 ** (-np.arange(0, dim, 2) / dim))
        self.tables = tuple(gp.from_numpy(turn(angles).astype(np.float32)) for turn in (np.cos, np.sin))

    def run(self, rows: list[int], placed: bool = False) -> tuple[Array, LayerCache]:
        """Results of some of the rows, and the cache after that. placed: by two launches."""
        numbers = [np.zeros(len(rows)), np.array(self.places)[rows], self.table[rows]]
        batch = Batch(*(gp.from_numpy(np.asarray(x, np.int32)) for x in numbers))
        cache = LayerCache(self.keys.clone(), self.values.clone())
        buffers = AttentionBuffers.of(len(rows), self.qkv.shape[1], self.heads * self.dim, self.heads, self.dtype)
        buffers.qkv[...] = gp.take(self.qkv, gp.from_numpy(np.array(rows, np.int32)), 0)
        buffers.out[...] = gp.full(buffers.out.shape, float("nan"), self.dtype)
        assert decode.on_tensor_cores(self.layer, cache, self.dtype)
        if placed:
            write_kv(self.layer, batch, cache, self.tables, buffers.qkv)
            self.layer.attend(batch, cache, buffers)
        else:
            self.layer.write_and_attend(batch, cache, self.tables, buffers)
        assert not buffers.counters.to_numpy().any()
        return buffers.out.astype("float32").to_numpy(), cache

    def expected(self, row: int, cache: LayerCache) -> Array:
        """The row's heads in float64, of the query as the cache's kernel would have rounded it."""
        place = self.places[row]
        turned = write_of(self, row)
        k, v = (
            x.astype("float32").to_numpy()[self.table[row]].swapaxes(0, 1).reshape(self.kv, -1, self.dim)
            for x in (cache.k, cache.v)
        )
        low = 0 if self.config.sliding_window is None else max(0, place + 1 - self.config.sliding_window)
        if self.config.attention_chunk is not None:
            low = max(low, place // self.config.attention_chunk * self.config.attention_chunk)
        found = []
        for head in range(self.heads):
            of = head // (self.heads // self.kv)
            scores = k[of, low : place + 1].astype(np.float64) @ turned[head] / np.sqrt(self.dim)
            cap = self.layer.cap
            scores = scores if cap is None else cap * np.tanh(scores / cap)
            high = max(scores.max(), self.sink[head])
            weights = np.exp(scores - high)
            found.append(weights @ v[of, low : place + 1] / (weights.sum() + np.exp(self.sink[head] - high)))
        return np.concatenate(found)


def write_of(case: Case, row: int) -> Array:
    """The row's queries, normalised and turned, rounded as kernels round them."""
    q = case.wide[row, : case.heads * case.dim].reshape(case.heads, case.dim)
    if case.norm is not None:
        scale = case.norm.weight.astype("float32").to_numpy()
        q = q / np.sqrt((q * q).mean(-1, keepdims=True) + case.norm.eps) * scale
        q = rounded(q, case.dtype)[1]
    half = case.dim // 2
    cosine, sine = (x.to_numpy()[case.places[row]].astype(np.float64) for x in case.tables)
    a, b = q[:, :half], q[:, half:]
    return rounded(np.concatenate([a * cosine - b * sine, b * cosine + a * sine], axis=1), case.dtype)[1]


CASES = [
    ("bfloat16", 8, 1, 128, {}),
    ("bfloat16", 14, 2, 64, {"normed": True}),
    ("float16", 8, 2, 16, {"window": 290, "sinks": True}),
    ("bfloat16", 12, 1, 96, {"chunk": 74, "cap": 4.0}),
]


@pytest.mark.parametrize(("dtype", "heads", "kv", "dim", "more"), CASES)
def test_rows_are_those_of_float64(
    kernels_on_sim: None, dtype: str, heads: int, kv: int, dim: int, more: dict[str, Any]
) -> None:
    case = Case(dtype, heads, kv, dim, PLACES[:5], **more)
    found, cache = case.run(list(range(5)))
    for row in range(5):
        bound = 2.0**-8 if dtype == "bfloat16" else 2.0**-10
        np.testing.assert_allclose(found[row], case.expected(row, cache), rtol=bound, atol=bound / 4)


def test_a_row_has_the_same_bits_among_others_and_by_two_launches(kernels_on_sim: None) -> None:
    """Parts of several chunks, and of one."""
    case = Case("bfloat16", 10, 2, 32, PLACES, sinks=True)
    whole, cache = case.run(list(range(len(PLACES))))
    apart, placed = case.run(list(range(len(PLACES))), placed=True)
    np.testing.assert_array_equal(apart, whole)
    for one, other in zip(cache.arrays, placed.arrays, strict=True):
        assert one.to_numpy().tobytes() == other.to_numpy().tobytes()
    for row in (0, 3, 5, 6):
        alone, _ = case.run([row])
        np.testing.assert_array_equal(alone[0], whole[row])
        np.testing.assert_allclose(alone[0], case.expected(row, cache), rtol=2.0**-8, atol=2.0**-10)


def test_a_row_that_is_not_there_writes_nothing(kernels_on_sim: None) -> None:
    case = Case("bfloat16", 4, 1, 16, [-1, 7])
    found, cache = case.run([0, 1])
    assert np.isnan(found[0]).all() and not np.isnan(found[1]).any()
    changed = cache.k.to_numpy() != case.keys.to_numpy()
    assert changed.any(axis=(1, 3)).sum() == 1
