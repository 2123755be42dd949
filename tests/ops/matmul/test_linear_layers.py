"""Linear layers with epilogues, batched and grouped products, int8 and fp8, against float64, on both backends."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rounded import TOLERANCE, agree, normal, to_float64

import pygpukit as gp
from pygpukit import ops
from pygpukit.ops.matmul.linear import ACTIVATIONS

pytestmark = pytest.mark.usefixtures("operation_backend")

Values = np.ndarray[Any, Any]
FLOATS = ("float16", "bfloat16", "float32", "float64")
_erf = np.vectorize(math.erf, otypes=[float])
FORMULAS: dict[str | None, Callable[[Values], Values]] = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "swiglu": lambda x: np.split(x, 2, -1)[0] / (1 + np.exp(-np.split(x, 2, -1)[0])) * np.split(x, 2, -1)[1],
}


@pytest.mark.parametrize("act", ACTIVATIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_linear(dtype: str, act: Any) -> None:
    (x, a), (w, b), (bias, c) = normal(dtype, 3, 5, 11), normal(dtype, 18, 11), normal(dtype, 36)
    columns = 9 if act == "swiglu" else 18
    residual, d = normal(dtype, 3, columns, 5)
    agree(gp.linear(x, w, act=act), FORMULAS[act](a @ b.T), 4)
    found = gp.linear(x, w, bias[::2], act, residual.transpose(0, 2, 1))
    agree(found, FORMULAS[act](a @ b.T + c[::2]) + d.transpose(0, 2, 1), 4)
    assert gp.linear(x[:0], w, bias[::2], act).shape == (0, 5, columns)
    agree(gp.linear(x[1, ::-2, ::3], w[:, ::3], act=act), FORMULAS[act](a[1, ::-2, ::3] @ b[:, ::3].T), 4)
    agree(gp.linear(x[0, 0], w, act=act), FORMULAS[act](a[0, 0] @ b.T), 4)
    assert np.isnan(to_float64(gp.linear(gp.full((1, 11), float("nan"), dtype=dtype), w, act=act))).all()


def test_linear_refusals() -> None:
    x, w = gp.ones((2, 3)), gp.ones((5, 3))
    unknown: Any = ("tanh", ["relu"], {}, 1)
    for act in unknown:
        with pytest.raises(ValueError, match=f"act={re.escape(repr(act))}; it is one of None, 'relu'"):
            gp.linear(x, w, act=act)
    with pytest.raises(gp.ShapeError, match="halves the 5 rows"):
        gp.linear(x, w, act="swiglu")
    with pytest.raises(gp.ShapeError, match=r"residual has shape \(2, 4\), the result \(2, 5\)"):
        gp.linear(x, w, residual=gp.ones((2, 4)))
    with pytest.raises(gp.ShapeError, match=r"bias has shape \(3,\)"):
        gp.linear(x, w, gp.ones(3))
    with pytest.raises(gp.DTypeError, match="w is float64"):
        gp.linear(x, w.astype("float64"))


def test_batched_matmul() -> None:
    (a, x), (b, y) = normal("float32", 4, 3, 7), normal("float32", 4, 5, 7)
    agree(gp.batched_matmul(a, b.transpose(0, 2, 1)), x @ y.transpose(0, 2, 1), 4)
    agree(gp.batched_matmul(a[::2], b.transpose(0, 2, 1)[::2]), (x @ y.transpose(0, 2, 1))[::2], 4)
    assert gp.batched_matmul(a[:0], b[:0].transpose(0, 2, 1)).shape == (0, 3, 5)
    with pytest.raises(gp.ShapeError, match="batch axes must be the same"):
        gp.batched_matmul(a, b[0].T)
    for given, name in (((a[0], None), "b"), ((None, b), "a")):
        with pytest.raises(gp.DTypeError, match=f"batched_matmul: {name}: expected a GPUArray, got a NoneType"):
            gp.batched_matmul(*given)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "counts",
    [
        [3, 0, 70, 2],
        [0, 0, 0, 0],
        [80, 0, 0, 0],
        [-5, 64, 64, 9],
        [100, 1, 1, 1],
        [-(2**32) + 3, 7, 2**32 + 1, 5],
        [2**31, 1, 1, 1],
    ],
    ids=str,
)
def test_grouped_matmul(dtype: str, counts: list[int]) -> None:
    (x, a), (w, b) = normal(dtype, 9, 80), normal(dtype, 4, 13, 9)
    given = gp.from_numpy(np.array(counts))
    found = gp.grouped_matmul(x.T, w.transpose(0, 2, 1), given)
    wanted, first = np.zeros((80, 13)), 0
    for group, count in enumerate(counts):
        end = min(80, first + max(count, 0))
        wanted[first:end] = a.T[first:end] @ b[group].T
        first = end
    agree(found, wanted, 4)


def test_grouped_refusals_and_empty() -> None:
    counts = gp.from_numpy(np.array([1, 1], np.int32))
    assert gp.grouped_matmul(gp.ones((0, 3)), gp.ones((2, 3, 4)), counts).shape == (0, 4)
    np.testing.assert_array_equal(gp.grouped_matmul(gp.ones((3, 0)), gp.ones((2, 0, 4)), counts).to_numpy(), 0)
    with pytest.raises(gp.ShapeError, match=r"counts \(2,\)"):
        gp.grouped_matmul(gp.ones((5, 3)), gp.ones((3, 3, 4)), counts)
    with pytest.raises(gp.DTypeError, match="counts float32"):
        gp.grouped_matmul(gp.ones((5, 3)), gp.ones((2, 3, 4)), gp.ones(2))


@pytest.mark.parametrize("k", [0, 1, 129, 1001])
def test_int8_is_exact(k: int) -> None:
    rng = np.random.default_rng()
    x, y = rng.integers(-128, 128, (2, 3, k), np.int8), rng.integers(-128, 128, (2 * k, 7), np.int8)
    found = gp.matmul_int8(gp.from_numpy(x), gp.from_numpy(y)[::2])
    assert found.dtype == "int32"
    np.testing.assert_array_equal(found.to_numpy(), x.astype(np.int64) @ y[::2].astype(np.int64))
    out = gp.full((2, 3), -1, dtype="int64")
    assert gp.matmul_int8(gp.from_numpy(x), gp.from_numpy(y)[::2, 0], out=out) is out
    np.testing.assert_array_equal(out.to_numpy(), x.astype(np.int64) @ y[::2, 0].astype(np.int64))
    with pytest.raises(gp.DTypeError, match="both must be int8"):
        gp.matmul_int8(found, found)


def fp8(dtype: str, *shape: int) -> tuple[gp.GPUArray, Values]:
    array = normal("float32", *shape)[0].astype(dtype)
    return array, to_float64(array)


@pytest.mark.parametrize("types", ["float8_e4m3 float8_e4m3", "float8_e5m2 float8_e4m3", "bfloat16 float8_e5m2"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 130, 300), (200, 3, 128), (5, 4, 0)], ids=str)
def test_fp8_scales(shape: tuple[int, int, int], types: str) -> None:
    m, n, k = shape
    (a, x), (b, y) = fp8(types.split()[0], m, k), fp8(types.split()[1], n, k)
    blocks, rng = -(-k // 128), np.random.default_rng()

    def scales(*extents: int) -> tuple[gp.GPUArray, Values]:
        values = rng.uniform(0.25, 4, extents).astype(np.float32)
        return gp.from_numpy(values), values.astype(np.float64)

    def spread(values: Values, lines: int) -> Values:
        """Scales (lines or blocks of them, blocks of k), one for each element."""
        along = values if values.shape[0] == lines else values.repeat(128, 0)[:lines]
        return along.repeat(128, 1)[:, :k]

    def near(found: gp.GPUArray, expected: Values) -> None:
        agree(found, expected, max(4, few_bits / TOLERANCE[found.dtype.name]))

    # What tensor cores sum of fp8 has fewer bits than float32.
    few_bits = 2.0**-7 if gp.ops.matmul_fp8_plan(a, b.T).backend in ("tile", "hopper") else 0.0
    wide = "float32" if "bfloat16" not in types else "bfloat16"
    found = gp.matmul_fp8(a, b.T)
    assert found.dtype == wide
    near(found, x @ y.T)
    near(gp.matmul_fp8(a, b.T, 0.5, 3, out_dtype="float32"), 1.5 * (x @ y.T))
    (p, s), (q, t) = scales(m), scales(n)
    near(gp.matmul_fp8(a, b.T, p, q, out_dtype="float16"), s[:, None] * (x @ y.T) * t)
    for (p, s), (q, t) in [
        (scales(m, blocks), scales(-(-n // 128), blocks)),
        (scales(-(-m // 128), blocks), scales(n, blocks)),
    ]:
        out = gp.full((m, n), float("nan"), dtype="float32")
        assert gp.matmul_fp8(a, b.T, p, q.T, out=out) is out
        near(out, (x * spread(s, m)) @ (y * spread(t, n)).T)


def test_fp8_refusals() -> None:
    a, b = fp8("float8_e4m3", 3, 200)[0], fp8("float8_e5m2", 200, 5)[0]
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"matmul_fp8: scale_b={bad}; give a finite number"):
            gp.matmul_fp8(a, b, scale_b=bad)
    wrong: Any = (1e300, 10**400, "2", "abc", [1.0], 1j)
    for one in wrong:
        with pytest.raises(ValueError, match=re.escape(f"matmul_fp8: scale_a={one!r}; give a finite number")):
            gp.matmul_fp8(a, b, one)
    with pytest.raises(ValueError, match=r"matmul_fp8: scale_a \* scale_b=.*e\+60; give a finite number"):
        gp.matmul_fp8(a, b, 1e30, 1e30)
    for two in (np.array(2.0), np.float32(2)):
        assert gp.matmul_fp8(a, b, two).to_numpy().tobytes() == gp.matmul_fp8(a, b, 2.0).to_numpy().tobytes()
    assert np.isnan(gp.matmul_fp8(a, b, gp.full((), float("nan"), dtype="float32")).to_numpy()).all()
    with pytest.raises(gp.ShapeError, match=r"scale_a has shape \(4,\); it must be \(\), \(3,\), \(3, 2\) or \(1, 2\)"):
        gp.matmul_fp8(a, b, gp.ones(4))
    with pytest.raises(gp.DTypeError, match="scales are float32"):
        gp.matmul_fp8(a, b, gp.ones(3, "float64"))
    with pytest.raises(gp.DTypeError, match="one at least must be float8"):
        gp.matmul_fp8(gp.ones((2, 2)), gp.ones((2, 2)))
    with pytest.raises(gp.DTypeError, match="contradict"):
        gp.matmul_fp8(a, b, out_dtype="float16", out=gp.ones((3, 5)))


def test_documented_names_of_small_types() -> None:
    (a, x), (w, y) = normal("bfloat16", 2, 200), fp8("float8_e4m3", 130, 200)
    scale = gp.from_numpy(np.random.default_rng().uniform(0.5, 2, (2, 2)).astype(np.float32))
    wanted = x @ (y * scale.to_numpy().repeat(128, 0)[:130].repeat(128, 1)[:, :200]).T
    agree(ops.gemv_fp8_bf16_batched(a, w.view("uint8"), scale), wanted, 4)
    out = gp.zeros(130, "bfloat16")
    assert ops.gemv_fp8_bf16(a[1], w, scale, out=out) is out
    agree(out, wanted[1], 4)
    with pytest.raises(gp.DTypeError, match="gemv_fp8_bf16: out: expected a GPUArray, got a list"):
        ops.gemv_fp8_bf16(a[1], w, scale, out=[1])  # type: ignore[arg-type]
    assert ops.fp8_available() and ops.int8_native_gemm_available()
    for name, versions in [("matmul_fp8_sm100", "10.0"), ("matmul_fp8_sm120", "12.0")]:
        assert not getattr(ops, f"{name.removeprefix('matmul_')}_available")()
        with pytest.raises(RuntimeError, match=f"{name}: .* are instructions of SM {versions}; this device is SM"):
            getattr(ops, name)(a, w)
