"""The kernels of matrix products, run by the simulator in checked mode: right, and a row's bits its own.

One type of each: the sweep has all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pygpukit as gp


def normal(dtype: str, *shape: int) -> tuple[gp.GPUArray, np.ndarray[Any, Any]]:
    """Fresh normal numbers: on the device, and their values in float64."""
    array = gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32)).astype(dtype)
    return array, array.astype("float64").to_numpy()


def test_scaled_products(kernels_on_sim: None) -> None:
    (a, x), (b, y), (c, z) = normal("bfloat16", 2, 67, 9), normal("bfloat16", 9, 70), normal("bfloat16", 2, 67, 70)
    gp.matmul(a, b, alpha=0.5, beta=2, out=c)
    np.testing.assert_allclose(c.astype("float64").to_numpy(), 0.5 * (x @ y) + 2 * z, rtol=2.0**-8, atol=1e-5)
    single = gp.matmul(a[0, 40:41], b, alpha=0.5)
    whole = gp.matmul(a[0], b, alpha=0.5)
    assert single.to_numpy().tobytes() == whole[40:41].to_numpy().tobytes()
    poisoned = gp.full((67, 70), float("nan"), dtype="bfloat16")
    gp.matmul(a[0, :, :0], b[:0], alpha=0.5, out=poisoned)
    assert not poisoned.to_numpy().any()


def test_a_rows_bits_depend_on_no_other_row(kernels_on_sim: None) -> None:
    """Of an epilogue, of groups, and of scales: computed alone, in a group, or among others."""
    x, w, bias = normal("float32", 130, 150)[0], normal("float32", 18, 150)[0], normal("float32", 18)[0]
    whole = gp.linear(x, w, bias, "swiglu").to_numpy()
    assert gp.linear(x[65:66], w, bias, "swiglu").to_numpy().tobytes() == whole[65:66].tobytes()
    counts = gp.from_numpy(np.array([0, 70, 60], np.int32))
    grouped = gp.grouped_matmul(x, gp.stack([w.T, w.T, w.T]), counts).to_numpy()
    alone = gp.grouped_matmul(x[75:76], w.T[None], counts[1:2]).to_numpy()
    assert grouped[75:76].tobytes() == alone.tobytes()
    a, b, scales = x.astype("float8_e4m3"), w.T.astype("float8_e5m2"), gp.abs(x[:, :2])
    scaled = gp.matmul_fp8(a, b, scales).to_numpy()
    assert gp.matmul_fp8(a[64:65], b, scales[64:65]).to_numpy().tobytes() == scaled[64:65].tobytes()
