"""Products by single blocks on SM 9.0, whose groups take turns: right at edges, and a row's bits its own; on the
simulator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from device_facts import Facts

import pygpukit as gp
from pygpukit.ops import host
from pygpukit.ops.matmul import choose
from pygpukit.ops.matmul.problem import Problem
from pygpukit.ops.matmul.sm90 import cluster, pingpong
from pygpukit.ops.matmul.tile.tiling import Tile


@pytest.fixture(autouse=True)
def kernels(facts: Facts) -> Iterator[None]:
    facts(sm_count=2)  # blocks make tiles one after the other
    with host.built_in_kernels():
        yield


def numbers(dtype: str, *shape: int) -> gp.GPUArray:
    return gp.from_numpy(np.random.default_rng().uniform(-3, 3, shape).astype(np.float32)).astype(dtype)


def product(a: gp.GPUArray, b: gp.GPUArray, one: Tile) -> gp.GPUArray:
    out = gp.full((*a.shape[:-1], b.shape[-1]), float("nan"), a.dtype)
    pingpong.product(a, b, out, one)
    return out


def is_right(found: gp.GPUArray, a: gp.GPUArray, b: gp.GPUArray) -> None:
    x, y, z = (one.astype("float32").to_numpy().astype(np.float64) for one in (a, b, found))
    bits = 2.0**-8 if a.dtype == "bfloat16" else 2.0**-11
    np.testing.assert_allclose(z, x @ y, rtol=bits, atol=1e-4 * a.shape[-1])


@pytest.mark.parametrize("one", pingpong.tiles(), ids=str)
def test_edges_long_sums_and_any_layout(one: Tile) -> None:
    a, b = numbers("bfloat16", 301, 520), numbers("bfloat16", 520, 200)  # more steps than are in shared memory
    is_right(product(a, b, one), a, b)
    a, b = numbers("float16", 131, 72), numbers("float16", 67, 72).T  # rows of no whole 16 bytes, one is copied
    is_right(product(a, b, one), a, b)
    a, b = numbers("bfloat16", 24, 136).T, numbers("bfloat16", 24, 136)
    if one.general:
        is_right(product(a, b, one), a, b)


@pytest.mark.parametrize("one", pingpong.tiles(), ids=str)
def test_a_rows_bits_are_its_own_and_those_of_pairs_of_blocks(one: Tile) -> None:
    a, b = numbers("bfloat16", 3, 150, 328), numbers("bfloat16", 328, 264)
    found = product(a, gp.broadcast_to(b, (3, 328, 264)), one)
    alone = product(a[1, 149:], b, one)
    assert found[1, 149:].to_numpy().tobytes() == alone.to_numpy().tobytes()
    pairs = gp.full(found.shape, float("nan"), "bfloat16")
    cluster._launch("half", a, gp.broadcast_to(b, found.shape[:1] + b.shape), *(cluster._NO_SCALE,) * 2, pairs, 0)
    assert found.to_numpy().tobytes() == pairs.to_numpy().tobytes()


def test_a_result_with_steps_and_an_odd_place() -> None:
    a, b = numbers("bfloat16", 70, 64), numbers("bfloat16", 64, 64)
    wide = gp.full((70, 200), float("nan"), "bfloat16")
    pingpong.product(a, b, wide[:, 3:67], pingpong.tiles()[0])
    is_right(wide[:, 3:67].clone(), a, b)
    assert np.isnan(wide[:, 67:].astype("float32").to_numpy()).all()
    wide = gp.full((4481,), float("nan"), "bfloat16")
    pingpong.product(a, b, wide[1:].reshape(70, 64), pingpong.tiles()[0])  # no multiple of 16 bytes
    is_right(wide[1:].reshape(70, 64), a, b)


def test_plans_take_them_where_they_are_faster(facts: Facts) -> None:
    facts(sm_count=132)

    def tile(batches: int, m: int, n: int, k: int) -> Tile:
        a, b = gp.empty((batches, m, k), "bfloat16"), gp.empty((batches, k, n), "bfloat16")
        plan = choose.by_name("", "hopper", Problem.of("half", a, b, a.dtype))
        assert plan is not None
        return plan.tile

    assert tile(64, 512, 512, 512) in pingpong.tiles()
    assert tile(1, 8192, 8192, 8192) not in pingpong.tiles()
    assert tile(8, 1000, 1000, 1000) not in pingpong.tiles(), "rows of no whole 128 bytes"


def test_the_products_by_name_take_them() -> None:
    a, b = numbers("bfloat16", 2, 64, 64), numbers("bfloat16", 2, 64, 64)
    assert gp.matmul_plan(a, b, backend="hopper").tile in pingpong.tiles()
    is_right(gp.matmul(a, b, backend="hopper"), a, b)
