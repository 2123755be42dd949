"""On the simulator: products of matrices that begin at any element are right, and have the bits of the tiles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from device_facts import Facts, having

import pygpukit as gp
from pygpukit._core import native
from pygpukit.ops.matmul import choose
from pygpukit.ops.matmul.mma import unaligned
from pygpukit.ops.matmul.problem import Problem
from pygpukit.ops.matmul.sm90 import cluster
from pygpukit.ops.matmul.tile import half

HALVES = ("bfloat16", "float16")


@pytest.fixture(autouse=True)
def _as_on_sm_90(kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    monkeypatch.delenv("PYGPUKIT_CHECK")  # the sweep has these kernels checked
    monkeypatch.setattr(choose, "is_sim", lambda: False)
    facts(sm_count=132, capability=90)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[unaligned.Block]:
    """The blocks of every product that mma/unaligned.py made."""
    blocks: list[unaligned.Block] = []
    product = unaligned.product

    def noted(a: gp.GPUArray, b: gp.GPUArray, out: gp.GPUArray, one: unaligned.Block) -> None:
        blocks.append(one)
        product(a, b, out, one)

    monkeypatch.setattr(unaligned, "product", noted)
    return blocks


@pytest.fixture
def prepared() -> Iterator[None]:
    native.forget_prepared()
    native.prepare_calls(True)
    yield
    native.prepare_calls(None)
    native.forget_prepared()


def normal(dtype: str, *shape: int) -> gp.GPUArray:
    """Fresh normal numbers."""
    return gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32)).astype(dtype)


def close(got: gp.GPUArray, a: gp.GPUArray, b: gp.GPUArray) -> None:
    x, y, found = (one.astype("float64").to_numpy() for one in (a, b, got))
    rounding = 2.0**-8 if got.dtype == gp.bfloat16 else 2.0**-11
    assert np.all(np.abs(found - x @ y) <= rounding * np.abs(x @ y) + (x.shape[-1] + 8) * 2.0**-24 * (abs(x) @ abs(y)))


@pytest.mark.parametrize("dtype", HALVES)
def test_rows_of_any_length_are_read_where_they_lie(dtype: str, taken: list[unaligned.Block]) -> None:
    a, b = normal(dtype, 35, 33), normal(dtype, 33, 37)
    views = [(a, b), (normal(dtype, 33, 35).T, b), (a, normal(dtype, 37, 33).T)]
    views += [(normal(dtype, 36, 40)[1:, 3:36], b), (normal(dtype, 4, 5, 33)[:, 1:], b), (a[:1], b), (a, b[:, :1])]
    views += [(normal(dtype, 3, 1, 5, 33), normal(dtype, 2, 33, 9)), (normal(dtype, 2, 5, 33), normal(dtype, 33))]
    for left, right in views:
        before = len(taken)
        close(gp.matmul(left, right), left, right)
        assert len(taken) == before + 1 and gp.matmul_plan(left, right).tile == taken[-1]


def test_other_strides_are_copied_first(taken: list[unaligned.Block]) -> None:
    a, b = normal("bfloat16", 20, 66)[:, ::2], normal("bfloat16", 33, 37)
    close(gp.matmul(a, b), a, b)
    assert not taken and not isinstance(gp.matmul_plan(a, b).tile, unaligned.Block)


def test_elsewhere_nothing_is_taken(taken: list[unaligned.Block], facts: Facts) -> None:
    facts(capability=80)
    a, b = normal("bfloat16", 20, 33), normal("bfloat16", 33, 37)
    close(gp.matmul(a, b), a, b)
    assert not taken


def test_without_tiles_it_is_taken_beside_the_kernels_for_sm_90(
    monkeypatch: pytest.MonkeyPatch, taken: list[unaligned.Block]
) -> None:
    """An H100 with an older NVRTC has those kernels, which copy what they cannot read."""
    monkeypatch.setattr(half, "missing", lambda: "there is no tileiras")
    monkeypatch.setattr(cluster, "refusal", lambda p: "")
    a, b = normal("bfloat16", 97, 41), normal("bfloat16", 41, 147)
    plan = gp.matmul_plan(a, b)
    assert plan.kernel is unaligned and "with the bits of the tile kernels: there is no tileiras" in plan.reason
    close(gp.matmul(a, b), a, b)
    assert len(taken) == 1
    whole = gp.matmul_plan(normal("bfloat16", 96, 48), normal("bfloat16", 48, 160))
    assert whole.kernel is not unaligned, "nothing is copied"
    monkeypatch.setattr(cluster, "refusal", lambda p: "for another device")
    p = Problem.of("half", normal("bfloat16", 95, 41), normal("bfloat16", 41, 145), gp.bfloat16)
    assert "on SM 9.0 alone" in unaligned.refusal(p), "nothing else here has the bits of tiles"


@pytest.mark.parametrize("dtype", HALVES)
def test_bits_are_those_of_every_block_and_tile(dtype: str) -> None:
    a, b = normal(dtype, 70, 203), normal(dtype, 203, 69)
    whole = gp.matmul(a, b).to_numpy()
    wanted = gp.empty((70, 69), dtype)
    with having(capability=80):
        half.product(a, b, wanted)
    assert whole.tobytes() == wanted.to_numpy().tobytes()
    for one in unaligned.blocks():
        for first in (0, 1, 69):
            out = gp.full((70 - first, 69), float("nan"), dtype)
            unaligned.product(a[first:], b, out, one)
            assert out.to_numpy().tobytes() == whole[first:].tobytes()


@pytest.mark.parametrize("columns", [37, 40])
def test_nothing_beside_the_result_is_written(columns: int) -> None:
    a, b = normal("bfloat16", 35, 33), normal("bfloat16", 33, columns)
    for one in unaligned.blocks():
        for beside in (8, 9, 11):
            around = gp.full(35 * columns + 20, 7, "bfloat16")
            out = around[beside:][: 35 * columns].reshape(35, columns)
            unaligned.product(a, b, out, one)
            close(out, a, b)
            found = around.astype("float32").to_numpy()
            assert np.all(found[:beside] == 7) and np.all(found[beside + 35 * columns :] == 7)


def test_the_second_call_of_a_layout_is_looked_up(prepared: None, taken: list[unaligned.Block]) -> None:
    for at in range(3):
        a, b = normal("bfloat16", 500)[3:498].reshape(15, 33), normal("bfloat16", 33, 17)
        before = native.prepared_calls()["used"]
        found = gp.matmul(a, b)
        assert native.prepared_calls()["used"] == before + (at > 0)
        close(found, a, b)
    assert len(taken) == 1
