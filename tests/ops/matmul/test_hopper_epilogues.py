"""What follows a product on SM 9.0 is in its launch, with the bits of two launches; on the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from device_facts import Facts

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.dtypes import as_dtype, float8_e4m3, float32, float64
from pygpukit.ops import host
from pygpukit.ops.matmul.choose import MatmulPlan
from pygpukit.ops.matmul.epilogue import fused
from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
from pygpukit.ops.matmul.epilogue.quantise import Conversion
from pygpukit.ops.matmul.problem import Problem
from pygpukit.ops.matmul.sm90 import cluster
from pygpukit.ops.matmul.tile.tiling import cluster_tiles


@pytest.fixture(autouse=True)
def kernels() -> Iterator[None]:
    with host.built_in_kernels():
        yield


def problem(a: gp.GPUArray, b: gp.GPUArray) -> Problem:
    return Problem.of("half", a, b, a.dtype)


def numbers(dtype: str, *shape: int) -> gp.GPUArray:
    return gp.from_numpy(np.random.default_rng().uniform(-3, 3, shape).astype(np.float32)).astype(dtype)


def launches(call: Any) -> int:
    before = native.device_counters()["launches"]
    call()
    return int(native.device_counters()["launches"] - before)


def product(a: gp.GPUArray, b: gp.GPUArray, out: gp.GPUArray, after: Epilogue) -> None:
    fused.run(cluster, problem(a, b), a, b, out, after)


@pytest.mark.parametrize("act", [None, "relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_one_launch_has_the_bits_of_two(dtype: str, act: str | None) -> None:
    m, n, k = 19, 72, 40
    a, b, bias, residual = numbers(dtype, m, k), numbers(dtype, n, k).T, numbers(dtype, n), numbers(dtype, m, n)
    for after in (
        Epilogue(0.5, act=act),
        Epilogue(act=act, bias=bias),
        Epilogue(act=act, residual=residual, beta=-2.0),
        Epilogue(3.0, bias, act, residual),
    ):
        sums, wanted, found = (gp.full((m, n), float("nan"), dtype) for _ in range(3))
        cluster.product(a, b, sums)
        fused.finish(sums, wanted, after)
        assert launches(lambda found=found, after=after: fused.run(cluster, problem(a, b), a, b, found, after)) == 1
        assert found.to_numpy().tobytes() == wanted.to_numpy().tobytes()


def in_turn(a: gp.GPUArray, b: gp.GPUArray, after: Epilogue, shape: tuple[int, ...]) -> gp.GPUArray:
    """The product, what comes after it, and its conversion: a launch each."""
    made = gp.full((*shape[:-1], b.shape[-1]), float("nan"), a.dtype)
    cluster.product(a, b, made)
    if not after.is_nothing():
        sums, made = made, gp.full(shape, float("nan"), a.dtype)
        fused.finish(sums, made, after)
    return made if after.conversion is None else after.conversion.of(made)


# Columns of a tile, and what it is made of; b lies along n.
TILINGS = [(256, "bfloat16", False), (256, "float16", True), (192, "float16", False), (128, "bfloat16", True)]


@pytest.fixture
def tiles(columns: int, monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    """One pair of blocks makes all tiles, of so many columns."""
    (one,) = (one for one in cluster_tiles("half") if one.columns == columns)
    facts(sm_count=2)
    monkeypatch.setattr(cluster, "_fastest", lambda *_: one)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize(("columns", "dtype", "along_n"), TILINGS)
def test_a_gate_is_in_the_launch(dtype: str, along_n: bool) -> None:
    """Tiles with edges of both kinds: of the gates' half and of the other."""
    for m, n, k in ((19, 72, 40), (261, 136, 24), (3, 8, 136)):
        a, bias, residual = numbers(dtype, m, k), numbers(dtype, 2 * n), numbers(dtype, m, n)
        b = numbers(dtype, k, 2 * n) if along_n else numbers(dtype, 2 * n, k).T
        for after in (Epilogue(act="swiglu"), Epilogue(0.5, bias, "swiglu", residual, beta=-2.0)):
            found = gp.full((m, n), float("nan"), dtype)
            assert launches(lambda a=a, b=b, found=found, after=after: product(a, b, found, after)) == 1
            assert found.to_numpy().tobytes() == in_turn(a, b, after, (m, n)).to_numpy().tobytes()


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize(("columns", "dtype", "along_n"), TILINGS)
@pytest.mark.parametrize("wanted", ["float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2", "int8"])
def test_a_conversion_is_in_the_launch(dtype: str, along_n: bool, wanted: str) -> None:
    if dtype == wanted:
        pytest.skip("nothing is converted")
    m, n, k = 19, 208, 40
    a, b = numbers(dtype, m, k), numbers(dtype, k, n) if along_n else numbers(dtype, n, k).T
    a[0, 0], a[1, 0], b[0, 0] = float("nan"), float("inf"), 60000.0
    scale = gp.full((), 0.3, "float32")
    small = wanted in ("float8_e4m3", "float8_e5m2", "int8")
    asked = Conversion(as_dtype(wanted), scale if small else 1.0)
    for after in (
        Epilogue(conversion=asked),
        Epilogue(conversion=asked._replace(scale=0.7 if small else 1.0)),
        Epilogue(0.5, numbers(dtype, n), "gelu", numbers(dtype, m, n), 2.0, asked),
    ):
        found = gp.full((m, n), 77.0, "float32").astype(wanted)
        assert launches(lambda found=found, after=after: product(a, b, found, after)) == 1
        assert found.to_numpy().tobytes() == in_turn(a, b, after, (m, n)).to_numpy().tobytes()


def test_what_cannot_be_in_the_launch_follows_it() -> None:
    """Rows of no whole 16 bytes, arrays with steps, a left operand along m: with the same bits."""
    a, w, bias = numbers("bfloat16", 16, 24), numbers("bfloat16", 32, 24), numbers("bfloat16", 20)
    wide, turned = numbers("bfloat16", 16, 40), numbers("bfloat16", 24, 16).T
    fp8, plain = Conversion(float8_e4m3, 0.5), Conversion(float32, 1.0)
    for left, n, after in (
        (a, 20, Epilogue(bias=bias)),
        (a, 16, Epilogue(residual=wide[:, :16])),
        (a, 10, Epilogue(act="swiglu")),
        (a, 16, Epilogue(act="swiglu", residual=wide[:, 8:24])),
        (turned, 16, Epilogue(act="swiglu")),
        (a, 16, Epilogue(act="swiglu", conversion=plain)),
        (a, 24, Epilogue(conversion=fp8)),
        (a, 20, Epilogue(conversion=plain)),
        (turned, 16, Epilogue(act="relu", conversion=fp8)),
        (a, 16, Epilogue(conversion=Conversion(float64, 1.0))),
    ):
        right = w[: 2 * n if after.act == "swiglu" else n].T
        found = gp.full((16, n), 77.0, "float32").astype(after.conversion.dtype if after.conversion else "bfloat16")
        assert not cluster.finishes(left, right, found, after)
        product(left, right, found, after)
        assert found.to_numpy().tobytes() == in_turn(left, right, after, (16, n)).to_numpy().tobytes()


def test_plans_say_where_results_are_converted() -> None:
    a, w = numbers("bfloat16", 5, 24), numbers("bfloat16", 32, 24)
    for n, launch in ((32, "in that launch"), (20, "by another launch")):
        reason = gp.matmul_plan(a, w[:n].T, backend="hopper", out_dtype="int8").reason
        assert reason.endswith(f"; then divided by its scale and quantised to int8 {launch}")
    few_bits = numbers("float32", 5, 24).astype("int8")  # multiplied as bfloat16, of which 8 are whole 16 bytes
    reason = gp.matmul_plan(few_bits, w[:8].T, backend="hopper", out_dtype="float32").reason
    assert reason.endswith("in that launch")


def test_linear_and_beta_are_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("gemm", "linear"):  # ops.matmul.linear itself is the function
        module = import_module(f"pygpukit.ops.matmul.{path}")
        monkeypatch.setattr(module, "choose", lambda p: MatmulPlan("hopper", "", None, cluster, p))
    x, w, bias, residual = (numbers("bfloat16", *shape) for shape in ((2, 3, 24), (16, 24), (16,), (2, 3, 16)))
    values = [one.astype("float32").to_numpy() for one in (x, w, bias, residual)]
    assert launches(lambda: gp.linear(x, w, bias, "relu", residual)) == 1
    found = gp.linear(x, w, bias, "relu", residual).astype("float32").to_numpy()
    wanted = np.maximum(values[0] @ values[1].T + values[2], 0) + values[3]
    np.testing.assert_allclose(found, wanted, atol=2**-7 * np.abs(wanted).max())
    assert launches(lambda: gp.linear(x, w, act="swiglu")) == 1
    gates, ups = np.split(values[0] @ values[1].T, 2, -1)
    wanted = gates / (1 + np.exp(-gates)) * ups
    found = gp.linear(x, w, act="swiglu").astype("float32").to_numpy()
    np.testing.assert_allclose(found, wanted, atol=2**-6 * np.abs(wanted).max())
    assert launches(lambda: gp.linear(x, w, bias, "relu", residual, out_dtype="int8", out_scale=0.3)) == 1
    assert launches(lambda: gp.matmul(x, w.T, out_dtype="float8_e4m3")) == 1
    out, before = residual.clone(), values[3]
    assert launches(lambda: gp.matmul(x, w.T, out=out, alpha=0.5, beta=2.0)) == 1
    wanted = 0.5 * (values[0] @ values[1].T) + 2.0 * before
    np.testing.assert_allclose(out.astype("float32").to_numpy(), wanted, atol=2**-7 * np.abs(wanted).max())
