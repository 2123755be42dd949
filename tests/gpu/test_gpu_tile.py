"""Tile kernels on a device: right at odd sizes, in a stream of their own, in a graph, and from a cell's options."""

from __future__ import annotations

import numpy as np
import pytest
from jit.test_tile import MATMUL

import pygpukit as gp
from pygpukit.core.errors import KernelArgumentError
from pygpukit.jit import toolchain

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(toolchain.tileiras() is None, reason="needs tileiras: the extra `tile`"),
]


@pytest.fixture(scope="module")
def product() -> gp.JITKernel:
    return gp.jit(MATMUL, func="product")


@pytest.mark.parametrize("m, n, k", [(64, 64, 32), (200, 72, 96), (1, 8, 8), (129, 257, 1000)])
def test_a_product_of_odd_sizes(product: gp.JITKernel, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    a, b = (gp.from_numpy(rng.standard_normal(s).astype(np.float32)).astype("bfloat16") for s in ((m, k), (k, n)))
    c = gp.full((m, n), float("nan"), dtype="float32")
    product[-(-m // 64), -(-n // 64)](a, b, c, m, n, k)
    want = a.astype("float64").to_numpy() @ b.astype("float64").to_numpy()
    assert np.linalg.norm(c.to_numpy() - want) <= 1e-6 * np.linalg.norm(want)


def test_a_stream_and_a_graph_give_the_same_bits(product: gp.JITKernel) -> None:
    a = gp.from_numpy(np.random.default_rng(1).standard_normal((256, 256)).astype(np.float32)).astype("bfloat16")
    direct, streamed, captured = (gp.zeros((256, 256)) for _ in range(3))
    product[4, 4](a, a, direct, 256, 256, 256)
    stream = gp.Stream()
    stream.wait_event(gp.current_stream().record_event())
    product[(4, 4), stream](a, a, streamed, 256, 256, 256)
    stream.synchronize()
    with stream.capture() as graph:
        product[4, 4](a, a, captured, 256, 256, 256)
    graph.launch()
    stream.synchronize()
    assert direct.to_numpy().tobytes() == streamed.to_numpy().tobytes() == captured.to_numpy().tobytes()


def test_a_broken_assumption_is_refused(product: gp.JITKernel) -> None:
    a = gp.zeros((64, 64), dtype="bfloat16")
    with pytest.raises(KernelArgumentError, match="divisible by 8, and it is 63"):
        product[1](a, a, gp.zeros((64, 64)), 64, 64, 63)
