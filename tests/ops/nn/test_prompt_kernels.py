"""On the simulator: attention by mma.sync is right, and a query has its bits however a prompt is cut."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops.nn.attention import choose, mma, simt, tile

Values = np.ndarray[Any, Any]
HALVES = ("bfloat16", "float16")
FAR = 1 << 40


@pytest.fixture(autouse=True)
def _without_tiles(kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_CHECK")  # the sweep has these kernels checked
    monkeypatch.setattr(tile, "is_sim", lambda: False)
    monkeypatch.setattr(tile, "missing", lambda: "there is no tileiras")
    monkeypatch.setattr(choose.lost, "tell", lambda *_: None)


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The blocks of all attention that mma.py computed."""
    blocks: list[Any] = []
    run = mma.run

    def noted(p: Any, call: Any, tiling: Any) -> None:
        blocks.append(tiling)
        run(p, call, tiling)

    monkeypatch.setattr(mma, "run", noted)
    return blocks


def normal(dtype: str, *shape: int) -> gp.GPUArray:
    """Fresh normal numbers."""
    return gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32)).astype(dtype)


def attention(q: gp.GPUArray, k: gp.GPUArray, v: gp.GPUArray, ahead: int, behind: int, lengths: Any = None) -> Values:
    """(B, H, positions, D) in float64; the last query of each batch element stands at its last key."""
    x, y, z = (one.astype("float64").to_numpy() for one in (q, k, v))
    out = np.zeros(x.shape)
    for b in range(len(x)):
        keys = y.shape[2] if lengths is None else min(max(lengths[b], 0), y.shape[2])
        own_k, own_v = (np.repeat(one[b, :, :keys], x.shape[1] // y.shape[1], 0) for one in (y, z))
        apart = np.arange(keys) - np.arange(x.shape[2])[:, None] - keys + x.shape[2]
        scores = x[b] @ own_k.swapaxes(1, 2) / math.sqrt(x.shape[3])
        scores = np.where((apart <= ahead) & (apart >= -behind), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, initial=-1e300, keepdims=True))
        total = weights.sum(-1, keepdims=True)
        out[b] = np.divide(weights @ own_v, total, out=out[b], where=total > 0)
    return out


def agree(got: gp.GPUArray, wanted: Values) -> None:
    rounding = 2.0**-7 if got.dtype == gp.bfloat16 else 2.0**-10
    assert np.abs(got.astype("float64").to_numpy() - wanted).max() <= 2 * rounding * np.abs(wanted).max()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("dim", [8, 64, 72, 128, 200])
def test_every_width(dtype: str, dim: int, taken: list[Any]) -> None:
    q, k, v = normal(dtype, 2, 4, 131, dim), normal(dtype, 2, 2, 200, dim), normal(dtype, 2, 2, 200, dim)
    out = gp.full(q.shape, float("nan"), dtype)
    agree(gp.sdpa_causal(q, k, v, out=out), attention(q, k, v, 0, FAR))
    agree(gp.sdpa(q, k, v), attention(q, k, v, FAR, FAR))
    agree(gp.sdpa_causal(q, k, v, window=70), attention(q, k, v, 0, 69))
    for lengths in ([0, 77], [200, -3]):
        given = gp.from_numpy(np.array(lengths, np.int32))
        agree(gp.sdpa_causal(q, k, v, lengths=given, window=50), attention(q, k, v, 0, 49, lengths))
    assert len(taken) == 5


@pytest.mark.parametrize("dim", [64, 128])
def test_a_query_has_its_bits_however_a_prompt_is_cut(dim: int) -> None:
    q, k, v = (normal("bfloat16", 3, 150, dim) for _ in range(3))
    whole = gp.sdpa_causal(q, k, v).to_numpy()
    for first, last in ((0, 1), (5, 70), (63, 150), (149, 150)):
        part = gp.sdpa_causal(q[:, first:last], k[:, :last], v[:, :last]).to_numpy()
        assert part.tobytes() == np.ascontiguousarray(whole[:, first:last]).tobytes()
        part = gp.sdpa_causal(q[:, first:last], k, v, offset=first).to_numpy()
        assert part.tobytes() == np.ascontiguousarray(whole[:, first:last]).tobytes()


@pytest.mark.parametrize("width", [width for width, every in mma.BLOCKS.items() if len(every) > 1])
def test_every_block_of_a_width_gives_the_same_bits(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = (normal("bfloat16", 4, 150, width) for _ in range(3))
    found = []
    for one in mma.BLOCKS[width]:
        monkeypatch.setattr(mma, "block", lambda _, one=one: one)
        out = gp.full(q.shape, float("nan"), "bfloat16")
        found.append(gp.sdpa_causal(q, k, v, out=out).to_numpy().tobytes())
    assert len(set(found)) == 1


def test_views_copies_and_what_nobody_sees(taken: list[Any]) -> None:
    q, k, v = (normal("float16", 1, n, heads, 64).transpose(0, 2, 1, 3) for n, heads in ((50, 4), (70, 2), (70, 2)))
    agree(gp.sdpa_causal(q, k, v), attention(q, k, v, 0, FAR))
    views = [x[..., ::-1, 8:56:2] for x in (q, k, v)]
    agree(gp.sdpa_causal(*views), attention(*views, 0, FAR))
    out = gp.zeros((1, 4, 64, 50), "float16").swapaxes(2, 3)
    agree(gp.sdpa_causal(q, k, v, out=out), attention(q, k, v, 0, FAR))
    assert not gp.sdpa_causal(q, k, v, offset=-FAR).astype("float32").to_numpy().any()
    cache_k, cache_v = (gp.full((1, 2, 111, 64), float("nan"), "float16") for _ in range(2))
    cache_k[:, :, :70], cache_v[:, :, :70] = k, v
    agree(gp.sdpa_causal(q, cache_k, cache_v, offset=20), attention(q, k, v, 0, FAR))
    assert len(taken) == 6  # one of them once more, into dense memory


def test_the_plan_tells_the_kernel() -> None:
    x = gp.zeros((2, 8, 64), "bfloat16")
    far = simt.factor(0, 64)
    plan = choose.choose(choose.Problem.of(choose.Call(x, x, x, x, far, 0, _causal())))
    assert plan.backend == "mma" and "by mma.sync: there is no tileiras" in plan.reason and str(plan.tile) == "128x64"
    odd = gp.zeros((2, 8, 12), "bfloat16")
    plan = choose.choose(choose.Problem.of(choose.Call(odd, odd, odd, odd, far, 0, _causal())))
    assert plan.kernel is simt and "no whole 16 bytes" in plan.reason


def _causal() -> Any:
    from pygpukit.ops.nn.attention.extras import Extras

    return Extras(0, FAR, None, None, 0.0, None)
