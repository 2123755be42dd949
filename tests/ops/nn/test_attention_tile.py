"""Attention in half precision: which kernel takes it, what tile kernels read in place, every variant of theirs against
float64, and a query's own bits however a prompt is split."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_facts import Facts
from rounded import agree, normal

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.ops.nn.attention import choose, leaf, mma, simt, tile
from pygpukit.ops.nn.attention.extras import Extras
from pygpukit.ops.nn.attention.problem import Call, Problem

pytestmark = pytest.mark.usefixtures("backend_name")

Values = np.ndarray[Any, Any]
HALVES = ("bfloat16", "float16")


def attention(q: Values, k: Values, v: Values, window: int = 1 << 40, lengths: list[int] | None = None) -> Values:
    """Causal, (B, H, q, D), in float64: the last query of each batch element stands at its last key."""
    out = np.zeros(q.shape)
    for b in range(q.shape[0]):
        length = k.shape[2] if lengths is None else min(max(lengths[b], 0), k.shape[2])
        own_k, own_v = (np.repeat(x[b, :, :length], q.shape[1] // k.shape[1], 0) for x in (k, v))
        apart = np.arange(q.shape[2])[:, None] + length - q.shape[2] - np.arange(length)
        scores = own_k[:, None] @ q[b][..., None]
        scores = scores[..., 0] / np.sqrt(q.shape[3]) - np.where((apart >= 0) & (apart < window), 0, np.inf)
        largest = scores.max(-1, initial=-1e300, keepdims=True)
        weights = np.exp(scores - largest)
        total = weights.sum(-1, keepdims=True)
        out[b] = np.divide(weights @ own_v, total, out=out[b], where=total > 0)
    return out


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("dim", [8, 64, 80, 128, 200, 256])
def test_every_width(dtype: str, dim: int) -> None:
    lengths = [0, 300, 257, -3]
    (q, a), (k, b), (v, c) = (normal(dtype, 4, heads, n, dim) for heads, n in ((4, 131), (2, 300), (2, 300)))
    out = gp.full(q.shape, float("nan"), dtype)
    agree(gp.sdpa_causal(q, k, v, out=out), attention(a, b, c), scale=3)
    agree(gp.sdpa_causal(q, k, v, window=70), attention(a, b, c, 70), scale=3)
    given = gp.from_numpy(np.array(lengths, np.int32))
    agree(gp.sdpa_causal(q, k, v, lengths=given, window=200), attention(a, b, c, 200, lengths), scale=3)


@pytest.mark.parametrize("dtype", HALVES)
def test_rows_that_lie_apart_and_rows_that_are_copied(dtype: str) -> None:
    (q, a), (k, b), (v, c) = (normal(dtype, 1, n, heads, 64) for heads, n in ((4, 50), (2, 70), (2, 70)))
    views = [x.transpose(0, 2, 1, 3) for x in (q, k, v)]
    wanted = [x.transpose(0, 2, 1, 3) for x in (a, b, c)]
    agree(gp.sdpa_causal(*views), attention(*wanted), scale=3)
    agree(gp.sdpa_causal(*(x[..., ::-1, 8:56:2] for x in views)), attention(*(x[..., ::-1, 8:56:2] for x in wanted)), 3)
    assert not gp.sdpa_causal(*views, offset=-(1 << 40)).to_numpy().any()
    everything = gp.sdpa(*views).to_numpy()
    assert gp.sdpa_causal(*views, offset=1 << 40).to_numpy().tobytes() == everything.tobytes() or is_sim()
    out = gp.zeros((1, 4, 64, 50), dtype).swapaxes(2, 3)
    agree(gp.sdpa_causal(*views, out=out), attention(*wanted), scale=3)


def test_zero_keys_give_means_and_what_nobody_sees_is_not_read() -> None:
    for keys in (1, 255, 256, 257, 300):
        (v, c) = normal("bfloat16", 1, 2, keys, 64)
        zeros = gp.zeros((1, 2, keys, 64), "bfloat16")
        means = np.cumsum(c, axis=2) / np.arange(1, keys + 1)[:, None]
        agree(gp.sdpa_causal(zeros, zeros, v), means, scale=3)
        cache_k, cache_v = (gp.full((1, 2, 333, 64), float("nan"), "bfloat16") for _ in range(2))
        cache_k[:, :, :keys], cache_v[:, :, :keys] = zeros, v
        agree(gp.sdpa_causal(zeros, cache_k, cache_v, offset=0), means, scale=3)
        given = gp.from_numpy(np.array([keys], np.int32))
        agree(gp.sdpa_causal(zeros, cache_k, cache_v, lengths=given), means, scale=3)


@pytest.mark.parametrize(("dtype", "dim"), [("bfloat16", 128), ("float16", 64), ("bfloat16", 256)])
def test_a_querys_bits_are_its_own_however_a_prompt_is_split(dtype: str, dim: int) -> None:
    count = 200 if is_sim() else 1100
    (q, _), (k, _), (v, _) = (normal(dtype, 1, heads, count, dim) for heads in (4, 2, 2))
    whole = gp.sdpa_causal(q, k, v).to_numpy()
    windowed = gp.sdpa_causal(q, k, v, window=150).to_numpy()
    for step in (57, 128, 300):
        for start in range(0, count, step):
            end = min(start + step, count)
            part = q[:, :, start:end], k[:, :, :end], v[:, :, :end]
            assert gp.sdpa_causal(*part).to_numpy().tobytes() == whole[:, :, start:end].tobytes()
            assert gp.sdpa_causal(part[0], k, v, offset=start).to_numpy().tobytes() == whole[:, :, start:end].tobytes()
            assert gp.sdpa_causal(*part, window=150).to_numpy().tobytes() == windowed[:, :, start:end].tobytes()
    length = gp.from_numpy(np.array([count], np.int32))
    for again in (gp.sdpa_causal(q, k, v, lengths=length), gp.sdpa_causal(q[:, :2], k[:, :1], v[:, :1])):
        assert again.to_numpy().tobytes() == whole[:, : again.shape[1]].tobytes()


def plan(q: gp.GPUArray, k: gp.GPUArray, more: Extras) -> choose.AttentionPlan:
    return choose.choose(Problem.of(Call(q, k, k, q, 1.0, None, more)))


def test_types_and_options_choose_the_kernel(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    facts(sm_count=132)
    for module in (tile, choose):
        monkeypatch.setattr(module, "is_sim", lambda: False)
    monkeypatch.setattr(leaf, "refusal", lambda _: "kernels compute")
    monkeypatch.setattr(tile, "missing", lambda: "")
    half, odd, single = (gp.zeros((2, 3, d), t) for d, t in ((64, "bfloat16"), (60, "float16"), (64, "float32")))
    for queries in (1, 2, 3):
        found = plan(half[:, :queries], half, Extras())
        assert (found.backend, found.kernel, found.tile.keys) == ("tile", tile, 256) and "tensor cores" in found.reason
    assert plan(half, half, Extras(behind=5, lengths=gp.zeros(1, "int32"))).backend == "tile"
    for array, more, words in (
        (odd, Extras(), "no whole 16 bytes"), (single, Extras(), "float32 is computed as it is"),
        (half, Extras(cap=2.0), "capped scores"), (half, Extras(sinks=gp.zeros(2)), "sinks"),
        (half, Extras(mask=gp.zeros((2, 3, 3))), "masks"),
    ):  # fmt: skip
        found = plan(array, array, more)
        assert (found.backend, found.kernel, found.tile) == ("plain", simt, None) and words in found.reason
    huge = gp.broadcast_to(half[:, :1], (2, 1 << 25, 64))
    assert "more elements" in plan(half, huge, Extras()).reason
    assert plan(half, half[:, :0], Extras()).tile is None, "no key is seen"
    monkeypatch.setattr(tile, "missing", lambda: "no assembler")
    monkeypatch.setattr(choose.lost, "tell", lambda *_: None)
    found = plan(half, half, Extras())
    assert (found.backend, found.kernel) == ("mma", mma) and "by mma.sync: no assembler" in found.reason
    monkeypatch.setattr(mma, "missing", lambda: "no compiler")
    found = plan(half, half, Extras())
    assert (found.backend, found.reason) == ("plain", "no assembler")


def test_what_is_read_in_place() -> None:
    a = gp.zeros((2, 24, 4, 64), "float16")
    for view in (a, a[0], a.transpose(0, 2, 1, 3), a[:, :, 1:3], a[:, ::2], a[..., 8:40], a[1:, 5:6]):
        assert tile.readable(view)
    for view in (a[..., 1:57], a[..., ::2], a[:, ::-1], a.swapaxes(2, 3), gp.broadcast_to(a[:1], a.shape)):
        assert not tile.readable(view)
    assert tile.steps(a[:, 5:6]) == (24 * 4 * 64, 64, 64)
    assert tile.steps(a[0].transpose(1, 0, 2)) == (64, 64, 4 * 64)
