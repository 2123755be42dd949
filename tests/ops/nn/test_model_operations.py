"""What models put around attention: caches, joint projections, positions without rotation."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import ops
from pygpukit.core.errors import InvalidSpecError, ShapeError

RANDOM = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_rows_go_into_a_cache_by_position(backend_name: str, dtype: str) -> None:
    cache, new = gp.zeros((9, 2, 5), dtype), gp.from_numpy(floats(4, 2, 5)).astype(dtype)
    ops.kv_cache_prefill(new, cache, 3)
    ops.kv_cache_update(new[1:2], cache, 0)
    expected = np.zeros((9, 2, 5), np.float32)
    expected[3:7] = new.astype("float32").to_numpy()
    expected[0] = expected[4]
    assert np.array_equal(cache.astype("float32").to_numpy(), expected)
    for call in (lambda: ops.kv_cache_prefill(new, cache, 6), lambda: ops.kv_cache_update(new[:1], cache, 9)):
        with pytest.raises(InvalidSpecError, match="9 positions"):
            call()
    with pytest.raises(ShapeError):
        ops.kv_cache_update(new, cache, 0)


def test_rows_go_into_a_cache_by_query_head(backend_name: str) -> None:
    cache, new = gp.zeros((6, 9, 5)), floats(4, 2, 5)
    ops.kv_cache_prefill_gqa(gp.from_numpy(new), cache, 6, 2)
    ops.kv_cache_update_gqa(gp.from_numpy(new[:1]), cache, 6, 8)
    place = gp.from_numpy(np.array([7], np.int32))
    ops.kv_cache_update_gqa_ptr(gp.from_numpy(new[3:]), cache, 6, place)
    expected = np.zeros((6, 9, 5), np.float32)
    for position, row in ((2, 0), (3, 1), (4, 2), (5, 3), (8, 0), (7, 3)):
        expected[:, position] = np.repeat(new[row], 3, axis=0)
    assert np.array_equal(cache.to_numpy(), expected)
    with pytest.raises(ShapeError, match="multiple"):
        ops.kv_cache_update_gqa(gp.from_numpy(new[:1]), cache, 5, 0)


def test_a_captured_graph_follows_positions_on_the_device(backend_name: str) -> None:
    cache, new, place = gp.zeros((2, 6, 4)), gp.from_numpy(floats(1, 1, 4)), gp.zeros(1, "int32")
    table, out = gp.from_numpy(floats(9, 4)), gp.zeros((2, 4))
    ops.kv_cache_update_gqa_ptr(new, cache, 2, place)
    ops.slice_rows_range_ptr(table, out, place, 2)
    stream = gp.Stream()
    with stream.capture() as graph:
        ops.kv_cache_update_gqa_ptr(new, cache, 2, place)
        ops.slice_rows_range_ptr(table, out, place, 2)
    place[...] = 4
    graph.launch()
    assert np.array_equal(cache.to_numpy()[:, 4], np.repeat(new.to_numpy()[0], 2, axis=0))
    assert np.array_equal(out.to_numpy(), table.to_numpy()[4:6])


def test_joint_projections_are_split(backend_name: str) -> None:
    qkv = floats(3, 11)
    outs = [gp.zeros(shape) for shape in ((3, 6), (3, 1, 3), (3, 2))]
    ops.split_qkv_batch(gp.from_numpy(qkv), *outs, 6, 3, 2)
    for out, part in zip(outs, (qkv[:, :6], qkv[:, 6:9], qkv[:, 9:]), strict=True):
        assert np.array_equal(out.to_numpy().reshape(3, -1), part)
    with pytest.raises(ShapeError, match="11"):
        ops.split_qkv_batch(gp.from_numpy(qkv[:, 1:]), *outs, 6, 3, 2)


def test_rmsnorm_of_a_sum(backend_name: str) -> None:
    x, y, gamma = floats(3, 40), floats(3, 40), floats(40)
    found = ops.rmsnorm_residual(*(gp.from_numpy(a) for a in (x, y, gamma))).to_numpy()
    total = x.astype(np.float64) + y
    np.testing.assert_allclose(found, total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-5) * gamma, atol=1e-5)


def test_positions_that_are_added(backend_name: str) -> None:
    encoding = ops.pope_init_encoding(20, 6, 100.0)
    angle = 7 / 100.0 ** (2 / 6)
    np.testing.assert_allclose(encoding.to_numpy()[7, 2:4], [np.sin(angle), np.cos(angle)], atol=1e-7)
    q, k = floats(4, 3, 6), floats(4, 1, 6)
    arrays = gp.from_numpy(q), gp.from_numpy(k)
    ops.pope_inplace(*arrays, encoding, 5)
    for array, before in zip(arrays, (q, k), strict=True):
        np.testing.assert_allclose(array.to_numpy(), before + encoding.to_numpy()[5:9, None], atol=1e-7)
    with pytest.raises(InvalidSpecError, match="20"):
        ops.pope_inplace(*arrays, encoding, 17)


def test_alibi(backend_name: str) -> None:
    slopes = ops.alibi_init_slopes(4)
    assert slopes.to_numpy().tolist() == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8]
    bias = ops.alibi_compute_bias(5, 4, slopes).to_numpy()
    assert bias[1, 4, 1] == -3 * 2.0**-4
    assert (bias[:, 1, 2] <= -1e9).all()
    assert ops.alibi_compute_bias(5, 4, slopes, causal=False).to_numpy()[0, 1, 4] == 3 * 2.0**-2
    scores = floats(2, 4, 3, 5)
    array = gp.from_numpy(scores)
    ops.alibi_add_bias(array, slopes, 2)
    np.testing.assert_allclose(array.to_numpy(), scores + bias[None, :, 2:5], rtol=1e-6, atol=1e-6)


def test_irope(backend_name: str) -> None:
    q, k, v = floats(3, 4, 8), floats(7, 2, 8), floats(7, 2, 8)
    places = np.array([0, 9, 100], np.int64)
    scale = np.log1p(np.floor((places + 1) / 10.0)) * 0.5 + 1
    found = ops.irope_scale_q(gp.from_numpy(q), gp.from_numpy(places), 0.5, 10.0).to_numpy()
    np.testing.assert_allclose(found, q * scale[:, None, None], rtol=1e-6)
    arrays = [gp.from_numpy(x) for x in (q, k, v, places)]
    attended = ops.sdpa_irope(*arrays, 0.5, 10.0, 2).to_numpy()
    for i in range(3):
        for h in range(4):
            scores = k[: i + 3, h // 2] @ (q[i, h] * scale[i]) / np.sqrt(8)
            weights = np.exp(scores - scores.max())
            np.testing.assert_allclose(attended[i, h], weights @ v[: i + 3, h // 2] / weights.sum(), atol=1e-5)
