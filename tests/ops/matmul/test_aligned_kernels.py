"""On the simulator: products by mma.sync of whole 16 bytes: right, a row's bits its own, epilogues inside."""

from __future__ import annotations

from itertools import product as product_of
from typing import Any

import numpy as np
import pytest
from device_facts import Facts, having

import pygpukit as gp
from pygpukit.kernels import KernelSpec, launcher
from pygpukit.ops.matmul import choose
from pygpukit.ops.matmul.epilogue import fused
from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
from pygpukit.ops.matmul.linear import ACTIVATIONS
from pygpukit.ops.matmul.mma import aligned, fallback, unaligned
from pygpukit.ops.matmul.tile import half

HALVES = ("bfloat16", "float16")
SMALL = aligned.blocks()[-2:]


@pytest.fixture(autouse=True)
def _as_on_sm_86(kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    monkeypatch.delenv("PYGPUKIT_CHECK")  # the sweep has these kernels checked
    monkeypatch.setattr(choose, "is_sim", lambda: False)
    monkeypatch.setattr(half, "missing", lambda: "there is no tileiras")
    monkeypatch.setattr(choose.lost, "tell", lambda *_: None)
    facts(sm_count=84, capability=86, shared_bytes=101376)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[aligned.Block]:
    """The blocks of every product that mma/aligned.py made."""
    blocks: list[aligned.Block] = []
    product = aligned.product

    def noted(
        a: gp.GPUArray, b: gp.GPUArray, out: gp.GPUArray, one: aligned.Block, after: Epilogue | None = None
    ) -> None:
        blocks.append(one)
        product(a, b, out, one, after)

    monkeypatch.setattr(aligned, "product", noted)
    return blocks


def normal(dtype: str, *shape: int) -> gp.GPUArray:
    """Fresh normal numbers."""
    return gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32)).astype(dtype)


def poisoned(dtype: str, *shape: int) -> gp.GPUArray:
    return gp.full(shape, float("nan"), dtype)


def bits(x: gp.GPUArray) -> bytes:
    return x.to_numpy().tobytes()


def close(got: gp.GPUArray, a: gp.GPUArray, b: gp.GPUArray) -> None:
    x, y, found = (one.astype("float64").to_numpy() for one in (a, b, got))
    rounding = 2.0**-8 if got.dtype == gp.bfloat16 else 2.0**-11
    assert np.all(np.abs(found - x @ y) <= rounding * np.abs(x @ y) + (x.shape[-1] + 8) * 2.0**-24 * (abs(x) @ abs(y)))


@pytest.mark.parametrize("dtype", HALVES)
def test_bits_are_those_of_unaligned_for_every_block_and_layout(dtype: str) -> None:
    m, n, k = 72, 136, 3 * 64 + 24
    a, b = normal(dtype, m, k), normal(dtype, k, n)
    wanted = poisoned(dtype, m, n)
    unaligned.product(a, b, wanted, unaligned.blocks()[0])
    close(wanted, a, b)
    down, across = a.T.clone().T, b.T.clone().T  # the same numbers, lying across
    for one in aligned.blocks():
        for left, right in product_of((a, down), (b, across)):
            out = poisoned(dtype, m, n)
            aligned.product(left, right, out, one)
            assert bits(out) == bits(wanted), (one, left.strides, right.strides)


@pytest.mark.parametrize("one", SMALL, ids=str)
def test_a_row_has_its_bits_among_any_rows(one: aligned.Block) -> None:
    a, b = normal("bfloat16", 150, 200), normal("bfloat16", 200, 40)
    whole = poisoned("bfloat16", 150, 40)
    aligned.product(a, b, whole, one)
    for first, last in ((0, 1), (5, 22), (63, 130), (149, 150)):
        part = poisoned("bfloat16", last - first, 40)
        aligned.product(a[first:last], b, part, one)
        assert bits(part) == bits(whole[first:last].clone())


def test_int8_is_exact_for_every_block() -> None:
    rng = np.random.default_rng()
    x, y = (rng.integers(-128, 128, shape, np.int8) for shape in ((72, 410), (410, 133)))
    a, b, wanted = gp.from_numpy(x), gp.from_numpy(y), x.astype(np.int32) @ y.astype(np.int32)
    for block in aligned.blocks(1):
        out = gp.full((72, 133), -1, "int32")
        aligned.product(a, b.T.clone().T, out, block)
        assert np.array_equal(out.to_numpy(), wanted), block
    for left, right in ((a, b), (a[3:, 1:], b[1:, :64]), (a[:1], b[:, ::2]), (a.reshape(2, 36, 410), b)):
        got = gp.matmul(left, right, dtype="int32", backend="mma").to_numpy()
        assert np.array_equal(got, left.to_numpy().astype(np.int32) @ right.to_numpy().astype(np.int32))


def test_tf32_is_rounded_once_and_a_row_has_its_bits() -> None:
    a, b = normal("float32", 72, 106), normal("float32", 106, 133)
    x, y = ((one.to_numpy().view(np.int32) + 0x1000 & ~0x1FFF).view(np.float32).astype(np.float64) for one in (a, b))
    whole = gp.matmul(a, b, tf32=True, backend="mma")
    for block in aligned.blocks(4):
        out = poisoned("float32", 72, 133)
        aligned.product(a, b, out, block)
        assert np.all(np.abs(out.to_numpy() - x @ y) <= 114 * 2.0**-23 * (abs(x) @ abs(y)))
        assert bits(out) == bits(whole), block
    for first, last in ((0, 1), (5, 40), (71, 72)):
        assert bits(gp.matmul(a[first:last], b, tf32=True, backend="mma")) == bits(whole[first:last].clone())
    scaled = gp.matmul(a, b, tf32=True, backend="mma", alpha=0.5).to_numpy()
    assert np.abs(scaled - 0.5 * whole.to_numpy()).max() <= 1e-6


@pytest.mark.parametrize("dtype", HALVES)
def test_views_stacks_and_odd_lengths(dtype: str, taken: list[aligned.Block]) -> None:
    a, b = normal(dtype, 40, 72), normal(dtype, 72, 48)
    pairs = [(a, b), (a[3:, 8:], b[8:]), (a[::2], b[:, 8:40]), (normal(dtype, 72, 40).T, normal(dtype, 48, 72).T)]
    pairs += [(normal(dtype, 3, 1, 5, 32), normal(dtype, 2, 32, 16)), (normal(dtype, 2, 5, 32), normal(dtype, 32, 8))]
    pairs += [(normal(dtype, 6, 5, 32)[::2], normal(dtype, 6, 32, 8)[1::2]), (a[:1], b), (a[0], b), (a, b[:, 0])]
    pairs += [(normal(dtype, 7, 9), normal(dtype, 9, 11)), (a[:, ::-1], b[::-1])]
    for left, right in pairs:
        close(gp.matmul(left, right, backend="mma"), left, right)
        plan = gp.matmul_plan(left, right, backend="mma")
        assert plan.backend == "mma" and plan.kernel in (aligned, fallback)
    assert len(taken) >= 5
    out = poisoned(dtype, 40, 96)[:, ::2]
    close(gp.matmul(a, b, out=out, backend="mma"), a, b)


def test_without_tiles_plans_take_the_faster_kernel_of_the_two() -> None:
    x = gp.zeros((4096, 4096), "bfloat16")
    assert gp.matmul_plan(x, x.T).kernel is aligned
    tiny = gp.zeros((20, 33), "bfloat16"), gp.zeros((33, 20), "bfloat16")
    assert gp.matmul_plan(*tiny).kernel is fallback
    with having(shared_bytes=40_000):
        assert all(aligned.shared_bytes(one) <= 40_000 for one in aligned.blocks())


def test_an_empty_product_and_empty_sums_are_no_launch(taken: list[aligned.Block]) -> None:
    for m, n, k in ((0, 8, 8), (8, 0, 8), (8, 8, 0)):
        got = gp.matmul(gp.zeros((m, k), "bfloat16"), gp.zeros((k, n), "bfloat16"), backend="mma")
        assert got.shape == (m, n) and not got.astype("float32").to_numpy().any()
    assert not taken


@pytest.mark.parametrize("columns", [33, 40])
def test_nothing_beside_the_result_is_written(columns: int) -> None:
    a, b = normal("bfloat16", 35, 40), normal("bfloat16", 40, columns)
    for one in SMALL:
        for beside in (8, 9, 11):
            around = gp.full(35 * columns + 20, 7, "bfloat16")
            out = around[beside:][: 35 * columns].reshape(35, columns)
            aligned.product(a, b, out, one)
            close(out, a, b)
            found = around.astype("float32").to_numpy()
            assert np.all(found[:beside] == 7) and np.all(found[beside + 35 * columns :] == 7)


@pytest.mark.parametrize("act", [one for one in ACTIVATIONS if one != "swiglu"])
def test_an_epilogue_in_the_launch_has_the_bits_of_a_second_one(act: str | None, taken: list[aligned.Block]) -> None:
    a, b = normal("bfloat16", 35, 72), normal("bfloat16", 72, 48)
    bias, residual = normal("bfloat16", 48), normal("bfloat16", 35, 48)
    for after in (Epilogue(0.5, bias, act, residual, -2.0), Epilogue(1.5, None, act), Epilogue(1.0, bias, act)):
        sums, wanted, out = poisoned("bfloat16", 35, 48), poisoned("bfloat16", 35, 48), poisoned("bfloat16", 35, 48)
        aligned.product(a, b, sums, SMALL[-1])
        fused.finish(sums, wanted, after)
        assert aligned.finishes(a, b, out, after)
        aligned.product(a, b, out, SMALL[-1], after)
        assert bits(out) == bits(wanted)
    assert not aligned.finishes(a, b[:, :33], out[:, :33], Epilogue(1.0, bias[:33], act))
    assert not aligned.finishes(a, b, out[:, :24], Epilogue(1.0, bias, "swiglu"))


def test_a_linear_layer_takes_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, bias = normal("float16", 24, 256), normal("float16", 128, 256), normal("float16", 128)
    launched: list[str] = []
    launch = launcher.launch

    def noted(spec: KernelSpec, *rest: Any) -> None:
        launched.append(spec.file)
        launch(spec, *rest)

    monkeypatch.setattr(aligned, "launch", noted)
    monkeypatch.setattr(fused.kernels, "launch", noted)
    monkeypatch.setattr(fallback, "refusal", lambda p: "not here")
    got = gp.linear(x, w, bias=bias, act="relu")
    assert launched == ["aligned.cu"]
    wanted = np.maximum(x.astype("float64").to_numpy() @ w.astype("float64").to_numpy().T + bias.to_numpy(), 0)
    assert np.abs(got.astype("float64").to_numpy() - wanted).max() <= 2e-3 * np.abs(wanted).max()


def test_the_backend_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    a = gp.zeros((32, 32), "bfloat16")
    plan = gp.matmul_plan(a, a, backend="mma")
    assert plan.backend == "mma" and "as backend='mma' asks" in plan.reason
    with pytest.raises(gp.GPUError, match=r"backend='mma': .*with tf32=True, not float32; leave backend out"):
        gp.matmul(a.astype("float32"), a.astype("float32"), backend="mma")
    monkeypatch.setattr(half, "missing", lambda: "")
    monkeypatch.setattr(choose, "_of_environment", lambda: "mma")
    assert "as PYGPUKIT_MATMUL=mma asks" in gp.matmul_plan(a, a).reason
    assert gp.matmul_plan(a.astype("float32"), a.astype("float32")).backend == "plain"
