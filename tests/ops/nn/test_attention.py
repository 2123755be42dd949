"""Causal attention against a float64 reference, and the properties that a wrong mask would break."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rounded import agree, normal

import pygpukit as gp
from pygpukit import ops

pytestmark = pytest.mark.usefixtures("operation_backend")

Values = np.ndarray[Any, Any]


def attention(q: Values, k: Values, v: Values, scale: float | None = None, offset: int | None = None) -> Values:
    """One query at a time, in float64."""
    offset = k.shape[-2] - q.shape[-2] if offset is None else offset
    out = np.zeros(q.shape)
    for at in np.ndindex(q.shape[:-1]):
        *batch, head, i = at
        own = (*batch, head * k.shape[-3] // q.shape[-3])
        seen = min(max(i + offset + 1, 0), k.shape[-2])
        if seen:
            scores = k[own][:seen] @ q[at] * (q.shape[-1] ** -0.5 if scale is None else scale)
            weights = np.exp(scores - scores.max())
            out[at] = weights @ v[own][:seen] / weights.sum()
    return out


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("q", "k"),
    [
        ((4, 37, 64), (4, 37, 64)), ((6, 1, 128), (2, 75, 128)), ((2, 4, 9, 5), (2, 1, 70, 5)),
        ((1, 18, 200), (1, 33, 200)), ((3, 1, 1), (3, 1, 1)), ((2, 40, 80), (2, 40, 80)),
    ],
)  # fmt: skip
def test_attention(dtype: str, q: tuple[int, ...], k: tuple[int, ...]) -> None:
    (x, a), (y, b), (z, c) = normal(dtype, *q), normal(dtype, *k), normal(dtype, *k)
    found = gp.sdpa_causal(x, y, z)
    assert found.dtype == dtype
    agree(found, attention(a, b, c), scale=2)
    agree(gp.sdpa_causal(x, y, z, 0.3, offset=-3), attention(a, b, c, 0.3, -3), scale=2)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    ("q", "k"), [((3, 700, 16), (3, 33, 16)), ((2, 4, 3, 40), (2, 2, 70, 40)), ((1, 5, 8), (1, 1, 8))]
)
def test_every_query_may_see_every_key(dtype: str, q: tuple[int, ...], k: tuple[int, ...]) -> None:
    (x, a), (y, b), (z, c) = normal(dtype, *q), normal(dtype, *k), normal(dtype, *k)
    agree(gp.sdpa(x, y, z), attention(a, b, c, offset=k[-2]), scale=2)
    out = gp.full(q, float("nan"), dtype)
    agree(gp.sdpa(x[..., ::-1, :], y, z, 0.3, out=out), attention(a[..., ::-1, :], b, c, 0.3, k[-2]), scale=2)
    many = gp.sdpa(x, y, z).to_numpy()
    few = gp.sdpa(x[..., :2, :], y, z).to_numpy()
    assert few.tobytes() == many[..., :2, :].tobytes()


def test_queries_without_keys_give_zeros() -> None:
    keys = gp.zeros((2, 0, 8))
    assert not gp.sdpa(gp.ones((2, 3, 8)), keys, keys).to_numpy().any()
    assert gp.sdpa(gp.ones((2, 0, 8)), keys, keys).shape == (2, 0, 8)


def test_every_visible_value_counts_alike_when_scores_are_equal() -> None:
    queries, keys = 70, 101
    v, c = normal("float32", 2, keys, 64)
    found = gp.sdpa_causal(gp.zeros((2, queries, 64)), gp.zeros((2, keys, 64)), v)
    means = np.cumsum(c, axis=1) / np.arange(1, keys + 1)[:, None]
    agree(found, means[:, keys - queries :], scale=3)


def test_what_is_not_visible_is_not_read() -> None:
    (q, a), (k, b), (v, c) = (normal("float32", 2, 50, 16) for _ in range(3))
    poison = float("nan")
    cache_k, cache_v = (gp.full((2, 64, 16), poison, "float32") for _ in range(2))
    cache_k[:, :50], cache_v[:, :50] = k, v
    out = gp.empty((2, 50, 16))
    ops.sdpa_causal_fixed_cache(q, cache_k, cache_v, out, 50)
    agree(out, attention(a, b, c), scale=2)
    early = gp.sdpa_causal(q[:, :20], cache_k, cache_v, offset=0)
    agree(early, attention(a[:, :20], b, c, offset=0), scale=2)
    cache_v[:, 10:] = poison
    agree(gp.sdpa_causal(q[:, :10], cache_k, cache_v, offset=0), attention(a[:, :10], b, c, offset=0), scale=2)


def test_length_from_the_device() -> None:
    (q, a), (k, b), (v, c) = normal("float32", 2, 3, 8), normal("float32", 2, 40, 8), normal("float32", 2, 40, 8)
    length, out = gp.zeros(1, "int32"), gp.empty((2, 3, 8))
    for given, used in ((5, 5), (33, 33), (40, 36), (1, 1), (0, 0), (-7, 0)):
        length[0] = given
        ops.sdpa_causal_fixed_cache_ptr(q, k, v, out, length, 36)
        agree(out, attention(a, b[:, :used], c[:, :used]), scale=2)


def test_a_query_gives_the_same_bits_alone_and_among_others() -> None:
    (q, _), (k, _), (v, _) = (normal("float16", 3, 65, 32) for _ in range(3))
    whole = gp.sdpa_causal(q, k, v).to_numpy()
    for i in (0, 31, 32, 64):
        alone = gp.sdpa_causal(q[:, i : i + 1], k[:, : i + 1], v[:, : i + 1]).to_numpy()
        assert alone.tobytes() == whole[:, i : i + 1].tobytes()
        last = gp.sdpa_causal(q[:, i:], k, v).to_numpy()
        assert last[:, :1].tobytes() == whole[:, i : i + 1].tobytes()


def test_strides_and_out() -> None:
    (q, a), (k, b), (v, c) = normal("float32", 9, 4, 20), normal("float32", 12, 2, 20), normal("float32", 2, 20, 12)
    views = q.transpose(1, 0, 2)[:, ::-1, ::2], k.transpose(1, 0, 2)[..., ::2], v.transpose(0, 2, 1)[:, ::-1, ::2]
    expected = attention(
        a.transpose(1, 0, 2)[:, ::-1, ::2], b.transpose(1, 0, 2)[..., ::2], c.transpose(0, 2, 1)[:, ::-1, ::2]
    )
    out = gp.zeros((9, 4, 10))
    assert gp.sdpa_causal(*views, out=out.transpose(1, 0, 2)).block == out.block
    agree(out, expected.transpose(1, 0, 2), scale=2)
    same = views[0].clone()
    gp.sdpa_causal(same, *views[1:], out=same)
    agree(same, expected, scale=2)
    wide = gp.zeros((4, 9, 10), "float64")
    agree(gp.sdpa_causal(*views, out=wide).astype("float32"), expected, scale=2)


def test_large_scores_and_empty_arrays() -> None:
    (q, a), (k, b), (v, c) = (normal("float32", 1, 40, 64) for _ in range(3))
    agree(gp.sdpa_causal(q * 50, k, v), attention(a * 50, b, c), scale=60)
    assert gp.sdpa_causal(q[:, :0], k, v).shape == (1, 0, 64)
    assert not gp.sdpa_causal(q, k[:, :0], v[:, :0]).to_numpy().any()
    spoiled = k.clone()
    spoiled[0, 7] = float("nan")
    found = np.isnan(gp.sdpa_causal(q, spoiled, v).to_numpy()).all(axis=(0, 2))
    np.testing.assert_array_equal(found, np.arange(40) >= 7)


def test_refusals() -> None:
    q, k = gp.zeros((4, 3, 8)), gp.zeros((3, 5, 8))
    with pytest.raises(gp.ShapeError, match="multiple of K's"):
        gp.sdpa_causal(q, k, k)
    with pytest.raises(gp.ShapeError, match="K and V alike"):
        gp.sdpa_causal(k, k, k[:, :4])
    with pytest.raises(gp.ShapeError, match="head dimension is 300"):
        gp.sdpa_causal(*[gp.zeros((1, 2, 300))] * 3)
    with pytest.raises(gp.DTypeError, match="Q is float32, K float16"):
        gp.sdpa_causal(k, k.astype("float16"), k)
    with pytest.raises(gp.ShapeError, match="out has shape"):
        gp.sdpa_causal(k, k, k, out=gp.zeros((3, 5, 7)))
    with pytest.raises(gp.InvalidSpecError, match="context_len is 6"):
        ops.sdpa_causal_fixed_cache(k, k, k, gp.zeros((3, 5, 8)), 6)
    with pytest.raises(gp.DTypeError, match="must be one int32"):
        ops.sdpa_causal_fixed_cache_ptr(k, k, k, gp.zeros((3, 5, 8)), gp.zeros(1), 5)
    length, out = gp.zeros(1, "int32"), gp.zeros((3, 5, 8))
    with pytest.raises(gp.ShapeError, match="share no memory"):
        ops.sdpa_causal_fixed_cache_ptr(k, k, k, k, length, 5)
    with pytest.raises(gp.ShapeError, match="sdpa_causal_fixed_cache_ptr: out: a broadcast view"):
        ops.sdpa_causal_fixed_cache_ptr(k, k, k, gp.broadcast_to(gp.zeros((1, 5, 8)), (3, 5, 8)), length, 5)
    for wrong in ("3", None, 3.0, [3], True):
        with pytest.raises(gp.InvalidSpecError, match=r"sdpa_causal_fixed_cache: context_len=.*; give a whole number"):
            ops.sdpa_causal_fixed_cache(k, k, k, out, wrong)  # type: ignore[arg-type]
        with pytest.raises(gp.InvalidSpecError, match=r"sdpa_causal_fixed_cache_ptr: max_kv_len=.*; give a whole"):
            ops.sdpa_causal_fixed_cache_ptr(k, k, k, out, length, wrong)  # type: ignore[arg-type]
    for offset in ("1", 1.7, True, [1], float("nan"), float("inf"), gp.ones(1)):
        with pytest.raises(gp.InvalidSpecError, match=r"sdpa_causal: offset=(.|\n)*; give a whole number of keys"):
            gp.sdpa_causal(k, k, k, offset=offset)  # type: ignore[arg-type]
