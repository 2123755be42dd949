"""Windows, lengths, masks, caps and sinks of attention, by NumPy's leaf and by the kernel on the simulator: a float64
reference, and inputs of which every mistake of a mask shows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from rounded import agree, normal, to_float64

import pygpukit as gp
from pygpukit import ops

pytestmark = pytest.mark.usefixtures("operation_backend")

Values = np.ndarray[Any, Any]


def seen_by(queries: int, keys: int, causal: bool, window: int | None = None, offset: int | None = None) -> Values:
    """(queries, keys): True where a query sees a key."""
    places = np.arange(queries)[:, None] + (keys - queries if offset is None else offset)
    apart = places - np.arange(keys)
    seen = np.ones(apart.shape, bool) if not causal else apart >= 0
    return seen if window is None else seen & (np.abs(apart) < window)


def attention(
    q: Values,
    k: Values,
    v: Values,
    seen: Values,
    bias: Any = 0.0,
    cap: float | None = None,
    sinks: Values | None = None,
) -> Values:
    """In float64. seen, bias: broadcast to the scores."""
    k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], -3) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores = (scores if cap is None else cap * np.tanh(scores / cap)) + bias
    weights = np.where(seen, np.exp(scores - np.max(scores, where=np.isfinite(scores), initial=0)), 0)
    total = weights.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks[:, None, None] - np.max(scores, where=np.isfinite(scores), initial=0))
    return np.divide(weights @ v, total, out=np.zeros(q.shape), where=total > 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("q", "k"), [((4, 37, 40), (2, 51, 40)), ((2, 3, 5, 130), (2, 1, 70, 130))])
def test_all_together(dtype: str, q: tuple[int, ...], k: tuple[int, ...]) -> None:
    (x, a), (y, b), (z, c) = normal(dtype, *q), normal(dtype, *k), normal(dtype, *k)
    (mask, bias), (sinks, s) = normal("float32", q[-2], k[-2]), normal(dtype, q[-3])
    for operation, causal in ((gp.sdpa, False), (gp.sdpa_causal, True)):
        found = operation(x, y, z, window=20, mask=mask, soft_cap=1.5, sinks=sinks)
        assert found.dtype == dtype
        agree(found, attention(a, b, c, seen_by(q[-2], k[-2], causal, 20), bias, 1.5, s), scale=2)


def test_every_edge_of_a_window() -> None:
    """Zero keys: each result is the mean of what is seen; the identity as values: the weights themselves."""
    for queries, keys in ((1, 1), (3, 33), (33, 33), (40, 64), (70, 65)):
        q, k = gp.zeros((1, queries, 64)), gp.zeros((1, keys, 64))
        (v, c) = normal("float32", 1, keys, 64)
        for window in (1, 2, 31, 32, 33, 64, 1000):
            for operation, causal in ((gp.sdpa, False), (gp.sdpa_causal, True)):
                seen = seen_by(queries, keys, causal, window)
                means = seen / np.maximum(seen.sum(-1, keepdims=True), 1)
                agree(operation(q, k, v, window=window), means[None] @ c, scale=3)
                if keys <= 64:
                    one_hot = gp.from_numpy(np.eye(keys, 64, dtype=np.float32)[None])
                    weights = operation(q, k, one_hot, window=window).to_numpy()[0, :, :keys]
                    np.testing.assert_array_equal(weights > 0, seen)
                    np.testing.assert_allclose(weights, means, rtol=1e-6)


def test_offsets_and_windows_beyond_all_keys() -> None:
    (q, _), (k, _), (v, _) = normal("float32", 2, 3, 8), normal("float32", 2, 5, 8), normal("float32", 2, 5, 8)
    whole, prefix = (gp.sdpa_causal(q, k, v, offset=offset).to_numpy() for offset in (100, None))
    assert whole.any()
    for far in (2**31, 2**40 + 10, 2**63, 2**70):
        np.testing.assert_array_equal(gp.sdpa_causal(q, k, v, offset=far).to_numpy(), whole)
        assert not gp.sdpa_causal(q, k, v, offset=-far).to_numpy().any()
        agree(gp.sdpa_causal(q, k, v, window=far), prefix.astype(float), scale=2)
        agree(gp.sdpa(q, k, v, window=far), whole.astype(float), scale=2)


def test_lengths_of_their_own() -> None:
    """What lies beyond a length, or before a window, is not read: it is NaN there."""
    lengths = [0, 1, 5, 31, 32, 33, 40, 99, -3]
    batch, keys, queries = len(lengths), 40, 3
    (q, a), (_, b), (_, c) = (normal("float32", batch, 2, n, 16) for n in (queries, keys, keys))
    used = [min(max(length, 0), keys) for length in lengths]
    given = gp.from_numpy(np.array(lengths, np.int32))
    poisoned = b.copy(), c.copy()
    for i, count in enumerate(used):
        for values in poisoned:
            values[i, :, count:] = np.nan
    k, v = (gp.from_numpy(values.astype(np.float32)) for values in poisoned)
    for window in (None, 4):
        expected = np.zeros(a.shape)
        for i, count in enumerate(used):
            seen = seen_by(queries, count, True, window)
            expected[i] = attention(a[i], b[i, :, :count], c[i, :, :count], seen) if count else 0
        agree(gp.sdpa_causal(q, k, v, lengths=given, window=window), expected, scale=3)
    for i, count in enumerate(used):
        expected[i] = attention(a[i], b[i, :, :count], c[i, :, :count], np.True_) if count else 0
    agree(gp.sdpa(q, k, v, lengths=given), expected, scale=3)
    padded = gp.sdpa_causal(q, k, v, lengths=given, offset=1)
    for i, count in enumerate(used):
        seen = seen_by(queries, count, True, None, 1)
        expected[i] = attention(a[i], b[i, :, :count], c[i, :, :count], seen) if count else 0
    agree(padded, expected, scale=3)


@pytest.mark.parametrize("shape", [(5, 33), (1, 33), (5, 1), (33,), (2, 1, 33), (3, 1, 5, 33), (1, 2, 5, 1), ()])
def test_masks_of_every_shape(shape: tuple[int, ...]) -> None:
    (q, a), (k, b), (v, c) = (normal("float32", 3, 2, n, 8) for n in (5, 33, 33))
    mask, bias = normal("float16", *shape)
    agree(gp.sdpa(q, k, v, mask=mask), attention(a, b, c, np.True_, bias), scale=3)
    taken = bias > -0.7
    agree(gp.sdpa(q, k, v, mask=gp.from_numpy(np.asarray(taken))), attention(a, b, c, taken), scale=3)


def test_a_mask_hides_whole_rows_and_keys() -> None:
    (q, a), (k, b), (v, c) = (normal("float32", 2, 34, 8) for _ in range(3))
    taken = np.tri(34, dtype=bool) & (np.arange(34) % 3 != 1)
    taken[7] = False
    mask = gp.from_numpy(taken)
    found = gp.sdpa(q, k, v, mask=mask)
    agree(found, attention(a, b, c, taken), scale=3)
    assert not found.to_numpy()[:, 7].any()
    never = gp.sdpa_causal(q, k, v, mask=gp.full((34, 34), float("-inf"), "float32"), sinks=gp.zeros(2))
    assert not never.to_numpy().any()


def test_a_sink_takes_its_share() -> None:
    """Zero scores: n keys and a sink at log(s) leave n / (n + s) of the mean."""
    keys, share = 50, np.array([1.0, 3.0])
    v = gp.ones((2, keys, 8))
    sinks = gp.from_numpy(np.log(share).astype(np.float32))
    found = gp.sdpa_causal(gp.zeros((2, keys, 8)), gp.zeros((2, keys, 8)), v, sinks=sinks).to_numpy()
    count = np.arange(1, keys + 1)
    expected = np.repeat((count / (count + share[:, None]))[..., None], 8, -1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    none = gp.full(2, float("-inf"), "float32")
    (q, a), (k, b), (v, c) = (normal("float32", 2, 9, 8) for _ in range(3))
    agree(gp.sdpa_causal(q, k, v, sinks=none), attention(a, b, c, seen_by(9, 9, True)), scale=2)


def test_a_cap_bounds_scores() -> None:
    (q, a), (k, b), (v, c) = (normal("float32", 1, 40, 16) for _ in range(3))
    capped = attention(a * 500, b, c, seen_by(40, 40, True), cap=2.0)
    agree(gp.sdpa_causal(q * 500, k, v, soft_cap=2.0), capped, scale=5)


def test_a_query_gives_the_same_bits_alone_and_among_others() -> None:
    (q, _), (k, _), (v, _) = (normal("float16", 2, 4, 65, 32) for _ in range(3))
    sinks = gp.zeros(4)
    whole = gp.sdpa_causal(q, k, v, window=40, soft_cap=3.0, sinks=sinks).to_numpy()
    for i in (0, 31, 32, 64):
        alone = gp.sdpa_causal(
            q[1:, :, i : i + 1], k[1:, :, : i + 1], v[1:, :, : i + 1], window=40, soft_cap=3.0, sinks=sinks
        ).to_numpy()
        assert alone.tobytes() == whole[1:, :, i : i + 1].tobytes()


def test_nan_spoils_what_sees_it_and_nothing_else() -> None:
    (q, _), (k, _), (v, _) = (normal("float32", 1, 40, 64) for _ in range(3))
    k[0, 7] = float("nan")
    found = np.isnan(gp.sdpa_causal(q, k, v, window=5).to_numpy()).all(axis=(0, 2))
    np.testing.assert_array_equal(found, (np.arange(40) >= 7) & (np.arange(40) < 12))
    mask = gp.zeros((40, 40))
    mask[3, 2] = float("nan")
    k[0, 7] = 0.0
    found = np.isnan(gp.sdpa(q, k, v, mask=mask).to_numpy()).all(axis=(0, 2))
    np.testing.assert_array_equal(found, np.arange(40) == 3)


def test_caches_take_them() -> None:
    (q, a), (k, b), (v, c) = normal("float32", 2, 3, 8), normal("float32", 2, 40, 8), normal("float32", 2, 40, 8)
    out, length = gp.full((2, 3, 8), float("nan"), "float32"), gp.from_numpy(np.array([33], np.int32))
    (sinks, s) = normal("float32", 2)
    expected = attention(a, b[:, :33], c[:, :33], seen_by(3, 33, True, 9), 0.0, 4.0, s)
    ops.sdpa_causal_fixed_cache(q, k, v, out, 33, window=9, soft_cap=4.0, sinks=sinks)
    agree(out, expected, scale=2)
    once = to_float64(out)
    out[...] = float("nan")
    ops.sdpa_causal_fixed_cache_ptr(q, k, v, out, length, 36, window=9, soft_cap=4.0, sinks=sinks)
    np.testing.assert_array_equal(to_float64(out), once)


def test_refusals() -> None:
    q, k = gp.zeros((2, 4, 3, 8)), gp.zeros((2, 2, 5, 8))
    for window in (0, -1):
        with pytest.raises(gp.InvalidSpecError, match=f"sdpa_causal: window is {window}"):
            gp.sdpa_causal(q, k, k, window=window)
    for wrong in ("2", [2], 1.5, 2.0, float("nan"), float("inf"), True):
        with pytest.raises(gp.InvalidSpecError, match=re.escape(f"sdpa_causal: window={wrong!r}; give a whole")):
            gp.sdpa_causal(q, k, k, window=wrong)  # type: ignore[arg-type]
    for cap in (0.0, -1.0, 1e-50, 1e39, 3e38, float("nan"), float("inf"), "3", 1j):
        with pytest.raises(gp.InvalidSpecError, match=r"sdpa: soft_cap( log2.e.)?=.*give a finite number"):
            gp.sdpa(q, k, k, soft_cap=cap)  # type: ignore[arg-type]
    length, out = gp.ones(2, "int32"), gp.full((2, 4, 3, 8), 7.0, "float32")
    for scale in (float("nan"), float("inf"), 1e39, 3e38, 10**400, None, "3", [1], 1j):
        for call in (
            lambda scale=scale: gp.sdpa(q, k, k, scale, out=out),
            lambda scale=scale: gp.sdpa_causal(q, k, k, scale, out=out),
            lambda scale=scale: gp.sdpa_decode(q, k, k, length, scale=scale, out=out),
            lambda scale=scale: ops.sdpa_causal_fixed_cache(q, k, k, out, 4, scale),
            lambda scale=scale: ops.sdpa_causal_fixed_cache_ptr(q, k, k, out, length[:1], 4, scale),
        ):
            with pytest.raises(gp.InvalidSpecError, match=r"sdpa[a-z_]*: scale( log2.e.)?=.*; give a finite number"):
                call()
    assert (out.to_numpy() == 7).all()
    with pytest.raises(gp.ShapeError, match=r"mask has shape \(5, 5\), must broadcast to the scores' \(2, 4, 3, 5\)"):
        gp.sdpa(q, k, k, mask=gp.zeros((5, 5)))
    with pytest.raises(gp.DTypeError, match="mask is int32"):
        gp.sdpa(q, k, k, mask=gp.zeros((3, 5), "int32"))
    with pytest.raises(gp.DTypeError, match=r"lengths are int64 of shape \(2,\), must be int32 \(2,\)"):
        gp.sdpa(q, k, k, lengths=gp.zeros(2, "int64"))
    with pytest.raises(gp.DTypeError, match="lengths are int32 of shape"):
        gp.sdpa(q, k, k, lengths=gp.zeros(3, "int32"))
    with pytest.raises(gp.ShapeError, match=r"sinks have shape \(2,\), must be \(4,\)"):
        gp.sdpa(q, k, k, sinks=gp.zeros(2))
    with pytest.raises(gp.DTypeError, match="sinks are int32"):
        gp.sdpa(q, k, k, sinks=gp.zeros(4, "int32"))


def test_documented_names_answer_or_refuse() -> None:
    assert ops.get_sm_version() == gp.get_device_capabilities().sm_version
    assert ops.fa3_fp8_available() is True
    with pytest.raises(gp.BackendUnavailableError, match=r"no attention kernel for fp8 .*; sdpa_causal_fp8\(\)"):
        ops.nn.test_fp8_mma_direct()
