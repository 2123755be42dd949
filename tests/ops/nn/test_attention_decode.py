"""Attention of a few queries on caches, by NumPy's leaf and by the kernel on the simulator: float64, and one set of
bits for every batch, cache and layout of pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rounded import agree, normal

import pygpukit as gp
from pygpukit.ops import host

pytestmark = pytest.mark.usefixtures("operation_backend")

Values = np.ndarray[Any, Any]
SPLIT = 256  # keys of a part


def attention(
    q: Values,
    k: Values,
    v: Values,
    lengths: list[int],
    window: int = 1 << 40,
    cap: float | None = None,
    sinks: Values | None = None,
) -> Values:
    """In float64, a sequence at a time."""
    out, queries = np.zeros(q.shape), q.shape[2]
    for b, length in enumerate(lengths):
        length = min(max(length, 0), k.shape[2])
        own_k, own_v = (np.repeat(x[b, :, :length], q.shape[1] // k.shape[1], 0) for x in (k, v))
        scores = q[b] @ own_k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        scores = scores if cap is None else cap * np.tanh(scores / cap)
        apart = np.arange(queries)[:, None] + length - queries - np.arange(length)
        weights = np.exp(scores) * ((apart >= 0) & (apart < window))
        total = weights.sum(-1, keepdims=True) + (0 if sinks is None else np.exp(sinks)[:, None, None])
        out[b] = np.divide(weights @ own_v, total, out=np.zeros(out[b].shape), where=total > 0)
    return out


def int32(*values: int) -> gp.GPUArray:
    return gp.from_numpy(np.array(values, np.int32))


@pytest.mark.parametrize(
    ("dtype", "heads", "shared", "queries", "dim"),
    [("float32", 6, 2, 1, 64), ("bfloat16", 18, 1, 1, 130), ("float16", 2, 1, 8, 101), ("bfloat16", 7, 1, 1, 64)],
)
def test_against_float64(dtype: str, heads: int, shared: int, queries: int, dim: int) -> None:
    lengths = [0, 3, SPLIT + 1, 9999, -5]
    size, room = len(lengths), 520
    (q, a), (k, b), (v, c) = (
        normal(dtype, size, heads, queries, dim), normal(dtype, size, shared, room, dim),
        normal(dtype, size, shared, room, dim),
    )  # fmt: skip
    (sinks, s) = normal("float32", heads)
    agree(gp.sdpa_decode(q, k, v, int32(*lengths)), attention(a, b, c, lengths), scale=3)
    found = gp.sdpa_decode(q, k, v, int32(*lengths), window=300, soft_cap=2.0, sinks=sinks)
    agree(found, attention(a, b, c, lengths, 300, 2.0, s), scale=3)


def test_zero_keys_give_means_at_every_edge() -> None:
    """Positions that are not seen hold NaN."""
    lengths = [1, 2, SPLIT - 1, SPLIT, SPLIT + 1, 2 * SPLIT, 2 * SPLIT + 3]
    values = np.random.default_rng().standard_normal((len(lengths), 1, 600, 64)).astype(np.float32)
    keys = np.zeros_like(values)
    for window in (1, 2, SPLIT, 600):
        hidden_k, hidden_v = keys.copy(), values.copy()
        expected = np.zeros((len(lengths), 2, 2, 64))
        for b, length in enumerate(lengths):
            hidden_k[b, :, length:] = hidden_v[b, :, length:] = np.nan
            for i, end in enumerate((length - 1, length)):
                if end:
                    expected[b, :, i] = values[b, 0, max(end - window, 0) : end].astype(np.float64).mean(0)
            first = max(length - 1 - window, 0)
            hidden_k[b, :, :first] = hidden_v[b, :, :first] = np.nan
        q, k, v = gp.zeros((len(lengths), 2, 2, 64)), gp.from_numpy(hidden_k), gp.from_numpy(hidden_v)
        agree(gp.sdpa_decode(q, k, v, int32(*lengths), window=window), expected, scale=3)


def test_a_later_query_alone_sees_the_newest_key() -> None:
    (q, _), (k, _), (v, _) = (normal("float32", 1, 1, n, 8) for n in (4, 50, 50))
    k[0, 0, 48] = float("nan")
    found = np.isnan(gp.sdpa_decode(q, k, v, int32(50)).to_numpy()).all(-1)
    assert found.tolist() == [[[False, False, True, True]]]
    one_hot = gp.from_numpy(np.eye(50, 64, dtype=np.float32)[None, None])
    weights = gp.sdpa_decode(gp.zeros((1, 1, 4, 64)), gp.zeros((1, 1, 50, 64)), one_hot, int32(50)).to_numpy()[0, 0]
    np.testing.assert_array_equal(weights[:, :50] > 0, np.tri(4, 50, 46, dtype=bool))


@pytest.mark.parametrize("page", [16, 40])
def test_pages_batch_and_room_leave_the_bits(page: int) -> None:
    lengths, room = [530, 17, 300], 640
    (q, _), (k, _), (v, _) = (normal("bfloat16", 3, heads, n, 32) for heads, n in ((4, 2), (2, room), (2, room)))
    whole = gp.sdpa_decode(q, k, v, int32(*lengths)).to_numpy()
    for b, length in enumerate(lengths):
        for size in (length, room):
            alone = gp.sdpa_decode(q[b : b + 1], k[b : b + 1, :, :size], v[b : b + 1, :, :size], int32(length))
            assert alone.to_numpy().tobytes() == whole[b : b + 1].tobytes()
    count = room // page
    order = np.random.default_rng().permutation(3 * count).astype(np.int32)
    pages = []
    for cache in (k, v):
        pool = gp.full((3 * count, 2, page, 32), float("nan"), "bfloat16")
        for at, number in enumerate(order.tolist()):
            start = at % count * page
            pool[number] = cache[at // count, :, start : start + page]
        pages.append(pool)
    table = order.reshape(3, count).copy()
    for b, length in enumerate(lengths):
        table[b, -(-length // page) :] = -1  # never read
    paged = gp.sdpa_decode(q, *pages, int32(*lengths), block_table=gp.from_numpy(table)).to_numpy()
    assert paged.tobytes() == whole.tobytes()
    for _ in range(3):
        assert gp.sdpa_decode(q, k, v, int32(*lengths)).to_numpy().tobytes() == whole.tobytes()


def test_parts_of_several_chunks() -> None:
    lengths = [2100, 1025, 64]
    (q, a), (k, b), (v, c) = (normal("bfloat16", 3, heads, n, 16) for heads, n in ((3, 1), (1, 2200), (1, 2200)))
    whole = gp.sdpa_decode(q, k, v, int32(*lengths))
    agree(whole, attention(a, b, c, lengths), scale=3)
    for n, length in enumerate(lengths):
        alone = gp.sdpa_decode(q[n : n + 1], k[n : n + 1, :, :length], v[n : n + 1, :, :length], int32(length))
        assert alone.to_numpy().tobytes() == whole[n : n + 1].to_numpy().tobytes()
    found = gp.sdpa_decode(q, k, v, int32(*lengths), window=1500)
    agree(found, attention(a, b, c, lengths, 1500), scale=3)


def test_the_newest_query_as_sdpa_causal_has_it() -> None:
    (q, a), (k, b), (v, c) = (normal("float32", 2, heads, n, 48) for heads, n in ((6, 5), (3, 290), (3, 290)))
    together = gp.sdpa_causal(q, k, v)
    agree(gp.sdpa_decode(q, k, v, int32(290, 290)), together.astype("float64").to_numpy(), scale=3)
    views = q[..., ::-1, :], k[..., ::2, :], v[..., ::2, :]
    out = gp.full((2, 5, 6, 48), float("nan"), "float32").transpose(0, 2, 1, 3)
    found = gp.sdpa_decode(*views, int32(145, 90), out=out, scale=48**-0.5)
    assert found is out
    agree(out, attention(a[..., ::-1, :], b[..., ::2, :], c[..., ::2, :], [145, 90]), scale=3)


def test_a_graph_follows_lengths() -> None:
    (q, a), (k, b), (v, c) = (normal("float32", 1, 2, n, 16) for n in (1, 520, 520))
    length, out, stream = int32(1), gp.empty((1, 2, 1, 16)), gp.Stream()
    gp.sdpa_decode(q, k, v, length, out=out)
    gp.synchronize()
    with stream.capture() as graph:
        gp.sdpa_decode(q, k, v, length, out=out)
    for given in (1, 300, 7, 520):
        length[...] = given
        gp.synchronize()
        graph.launch(stream)
        stream.synchronize()
        agree(out, attention(a, b, c, [given]), scale=3)


def test_pages_that_are_not_there_and_empty_arrays() -> None:
    q, k = gp.zeros((1, 2, 1, 8)), gp.zeros((3, 1, 16, 8))
    expected = "index {} is out of range for axis 0 with size 3"
    if host.computes():
        expected = "sdpa_decode: block_table has page {}; there are 3"
    for number in (3, -1):
        with pytest.raises(IndexError, match=expected.format(number)):
            gp.sdpa_decode(q, k, k, int32(20), block_table=int32(0, number)[None])
            gp.synchronize()
    assert gp.sdpa_decode(q[:0], k[:0], k[:0], int32()).shape == (0, 2, 1, 8)
    assert not gp.sdpa_decode(q, k[:1, :, :0], k[:1, :, :0], int32(5)).to_numpy().any()


def test_refusals() -> None:
    q, k, table = gp.zeros((2, 4, 1, 8)), gp.zeros((2, 2, 32, 8)), gp.zeros((2, 2), "int32")
    with pytest.raises(gp.ShapeError, match="9 queries, must be 1 to 8; sdpa_causal"):
        gp.sdpa_decode(gp.zeros((2, 4, 9, 8)), k, k, int32(1, 1))
    with pytest.raises(gp.DTypeError, match="lengths are int32 of shape"):
        gp.sdpa_decode(q, k, k, int32(1))
    with pytest.raises(gp.DTypeError, match="Q is float32, V float16"):
        gp.sdpa_decode(q, k, k.astype("float16"), int32(1, 1))
    with pytest.raises(gp.ShapeError, match="multiple of Hkv"):
        gp.sdpa_decode(q[:, :3], k, k, int32(1, 1))
    with pytest.raises(gp.ShapeError, match=r"alike \(B, Hkv, S, D\)"):
        gp.sdpa_decode(q[:1], k, k, int32(1))
    with pytest.raises(gp.DTypeError, match="block_table is int64"):
        gp.sdpa_decode(q, k, k, int32(1, 1), block_table=table.astype("int64"))
    with pytest.raises(gp.InvalidSpecError, match="pages of 8 positions, must be 16 or more"):
        gp.sdpa_decode(q, k[:, :, :8], k[:, :, :8], int32(1, 1), block_table=table)
    with pytest.raises(gp.ShapeError, match="share no memory"):
        gp.sdpa_decode(q, k, k, int32(1, 1), out=q)
    with pytest.raises(gp.ShapeError, match="65536 sequences, must be at most 65535"):
        gp.sdpa_decode(gp.zeros((65536, 1, 1, 1)), *[gp.zeros((65536, 1, 1, 1))] * 2, int32(1))
    with pytest.raises(gp.ShapeError, match="head dimension is 257"):
        gp.sdpa_decode(gp.zeros((1, 1, 1, 257)), *[gp.zeros((1, 1, 9, 257))] * 2, int32(1))
