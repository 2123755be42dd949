"""Rows of several prompts, and of steps, in one pass: the bits of each by itself, and what NumPy says of attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llm import tiny

from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.engine.prefill import Part, Prefill
from pygpukit.llm.engine.room import BLOCK
from pygpukit.nn.kv_cache import KVCache


def expected(
    q: np.ndarray[Any, Any], where: Any, tables: Any, k: Any, v: Any, scale: float, window: int, cap: float
) -> np.ndarray[Any, Any]:
    """In float64."""
    heads, size, dim = k.shape[1:]
    out = np.empty(q.shape)
    for row, (position, table) in enumerate(zip(where, tables, strict=True)):
        seen = range(max(0, position + 1 - window) if window else 0, position + 1)
        for head in range(q.shape[1] // dim):
            own = head // (q.shape[1] // dim // heads)
            keys, values = (np.array([x[table[p // size], own, p % size] for p in seen], np.float64) for x in (k, v))
            scores = scale * (keys @ q[row, head * dim : (head + 1) * dim].astype(np.float64))
            scores = cap * np.tanh(scores / cap) if cap else scores
            weights = np.exp(scores - scores.max())
            out[row, head * dim : (head + 1) * dim] = weights @ values / weights.sum()
    return out


@pytest.mark.parametrize(
    ("heads", "kv_heads", "size", "dim", "window", "cap"),
    [(4, 2, 16, 24, 0, 0.0), (3, 1, 5, 64, 7, 0.0), (4, 4, 8, 40, 0, 1.5)],
)
def test_attention_of_rows_anywhere_is_numpys(
    heads: int, kv_heads: int, size: int, dim: int, window: int, cap: float
) -> None:
    random = np.random.default_rng()
    k, v = (random.standard_normal((9, kv_heads, size, dim)).astype(np.float32) for _ in "kv")
    tables = np.array([random.permutation(9)[:4] for _ in range(6)], np.int32)
    where = random.integers(0, 4 * size, 6).astype(np.int32)
    for row, position in enumerate(where):
        tables[row, position // size + 1 :] = 10**6  # not read
    q = random.standard_normal((6, heads * dim)).astype(np.float32)
    out = np.full(q.shape, np.nan, np.float32)
    native.host_attend(q, where, tables, k, v, out, 0.3, window, cap)
    np.testing.assert_allclose(out, expected(q, where, tables, k, v, 0.3, window, cap), rtol=2e-5, atol=2e-6)
    for row in range(6):
        alone = np.empty((1, heads * dim), np.float32)
        one = slice(row, row + 1)
        native.host_attend(q[one], where[one], tables[one], k, v, alone, 0.3, window, cap)
        assert alone.tobytes() == out[one].tobytes()


def test_a_sink_takes_its_part_of_the_weights() -> None:
    random = np.random.default_rng()
    k, v = (random.standard_normal((4, 1, 8, 16)).astype(np.float32) for _ in "kv")
    q = random.standard_normal((3, 2 * 16)).astype(np.float32)
    tables, where = np.int32([[0, 1], [2, 3], [1, 0]]), np.int32([0, 9, 15])
    plain, out = np.empty_like(q), np.full_like(q, np.nan)
    native.host_attend(q, where, tables, k, v, plain, 0.25)
    never = np.full(2, -np.inf, np.float32)
    native.host_attend(q, where, tables, k, v, out, 0.25, sinks=never)
    assert out.tobytes() == plain.tobytes()
    sinks = np.float32([3.0, -1.0])
    native.host_attend(q, where, tables, k, v, out, 0.25, sinks=sinks)
    for row, head in np.ndindex(3, 2):
        own, part = q[row, 16 * head : 16 * head + 16].astype(np.float64), slice(16 * head, 16 * head + 16)
        keys = np.concatenate([k[block, 0] for block in tables[row]])[: where[row] + 1].astype(np.float64)
        sum_of_weights = np.exp(keys @ own * 0.25).sum()
        share = sum_of_weights / (sum_of_weights + np.exp(float(sinks[head])))
        np.testing.assert_allclose(out[row, part], plain[row, part] * share, rtol=2e-5, atol=1e-6)
    with pytest.raises(ValueError, match="one for each head"):
        native.host_attend(q, where, tables, k, v, out, 0.25, sinks=np.zeros(3, np.float32))


def test_a_block_that_is_not_there_is_refused() -> None:
    k = np.zeros((2, 1, 4, 8), np.float32)
    q, out = np.zeros((1, 8), np.float32), np.zeros((1, 8), np.float32)
    for position, block in ((8, 0), (-1, 0), (0, 2), (0, -1)):
        with pytest.raises(InvalidSpecError, match="position or in a slot"):
            native.host_attend(q, np.int32([position]), np.int32([[block, 0]]), k, k, out, 1.0)
    with pytest.raises(ValueError, match="q has another type or shape"):
        native.host_attend(q.astype(np.float64), np.int32([0]), np.int32([[0]]), k, k, out, 1.0)
    with pytest.raises(ValueError, match="fit each other"):
        native.host_attend(q, np.int32([0, 0]), np.int32([[0]]), k, k, out, 1.0)


def passes(name: str, dtype: str, passes: list[list[tuple[int, int, int]]]) -> dict[tuple[int, int], bytes]:
    """The last layer's outputs by (sequence, position) of (sequence, first, end) in each pass."""
    network = tiny.model(name, dtype=dtype, context=256).engine.network
    cache, found = KVCache(network.config, 12, BLOCK, dtype, "t"), {}
    prefill = Prefill(network, cache, 256, 4)
    random = np.random.default_rng(5)
    prompts = [[int(x) for x in random.integers(0, 99, 200)] for _ in range(3)]
    blocks = np.random.default_rng(6).permutation(12).reshape(3, 4)
    for parts in passes:
        x = prefill.compute([Part(prompts[s][first:end], first, blocks[s].tolist()) for s, first, end in parts])
        rows = iter(x.to_numpy())
        for sequence, first, end in parts:
            found.update({(sequence, position): next(rows).tobytes() for position in range(first, end)})
    return found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["llama", "gemma3", "gpt2", "gemma2", "phi4", "smollm3", "olmo2", "granite"])
def test_parts_of_prompts_in_one_pass_are_what_each_is_alone(name: str, dtype: str) -> None:
    alone = passes(name, dtype, [[(0, 0, 70)], [(1, 0, 1)], [(2, 0, 65)], [(0, 70, 90)], [(1, 1, 2)]])
    together = passes(name, dtype, [[(2, 0, 3), (0, 0, 66), (1, 0, 1)], [(1, 1, 2), (0, 66, 90), (2, 3, 65)]])
    assert together == alone


@pytest.mark.slow
def test_by_kernels_parts_of_prompts_in_one_pass_are_what_each_is_alone(kernels_on_sim: None) -> None:
    alone = passes("llama", "bfloat16", [[(0, 0, 70)], [(1, 0, 3)], [(0, 70, 80)]])
    together = passes("llama", "bfloat16", [[(1, 0, 3), (0, 0, 66)], [(0, 66, 80)]])
    assert together == alone
