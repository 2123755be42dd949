"""The kernels of matrix products, run by the simulator in checked mode: right, and a row's bits its own.

One type of each: tests/sweep has all.
"""

from __future__ import annotations

from rounded import agree, normal

import pygpukit as gp


def test_scaled_products(kernels_on_sim: None) -> None:
    (a, x), (b, y), (c, z) = normal("bfloat16", 2, 67, 9), normal("bfloat16", 9, 70), normal("bfloat16", 2, 67, 70)
    gp.matmul(a, b, alpha=0.5, beta=2, out=c)
    agree(c, 0.5 * (x @ y) + 2 * z, 4)
    single = gp.matmul(a[0, 40:41], b, alpha=0.5)
    whole = gp.matmul(a[0], b, alpha=0.5)
    assert single.to_numpy().tobytes() == whole[40:41].to_numpy().tobytes()
    poisoned = gp.full((67, 70), float("nan"), dtype="bfloat16")
    gp.matmul(a[0, :, :0], b[:0], alpha=0.5, out=poisoned)
    assert not poisoned.to_numpy().any()
