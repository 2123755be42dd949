"""Results of products cast to another float, or over a scale quantised to fp8 or int8: against the definitions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import ops

pytestmark = pytest.mark.usefixtures("operation_backend")
Values = np.ndarray[Any, Any]
LARGEST = {"float8_e4m3": 448.0, "float8_e5m2": 57344.0}


def wanted(x: Values, dtype: str, scale: float = 1.0) -> Values:
    """x / scale in float32, saturated and rounded once: by Python's rule for int8, by the conversion of fp8."""
    with np.errstate(all="ignore"):
        values = x.astype(np.float32) / np.float32(scale)
    if dtype == "int8":
        return np.array([0 if v != v else round(min(max(v, -128.0), 127.0)) for v in values.ravel().tolist()]).reshape(
            x.shape
        )
    top = LARGEST[dtype]
    return gp.from_numpy(np.clip(values, -top, top)).astype(dtype).astype("float32").to_numpy()


def numbers(x: gp.GPUArray) -> Values:
    return x.to_numpy() if x.dtype == "int8" else x.astype("float32").to_numpy()


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2", "int8"])
def test_quantize(source: str, dtype: str) -> None:
    x = np.random.default_rng().standard_normal((7, 37)) * 40
    x.ravel()[:12] = 0.5, 1.5, -2.5, 126.5, -128.5, 448, 500, -1e4, 6e4, np.inf, -np.inf, np.nan
    whole = gp.from_numpy(x).astype(source)
    for array in (whole, whole.T, whole[::-1, 1::2], whole.reshape(-1)[1:]):
        given = array.astype("float32").to_numpy()
        np.testing.assert_array_equal(numbers(ops.quantize(array, dtype)), wanted(given, dtype))
        for scale in (0.3, np.float64(0.3), np.array(0.3), gp.full((1,), 0.3, "float32")):
            np.testing.assert_array_equal(numbers(ops.quantize(array, dtype, scale)), wanted(given, dtype, 0.3))
        out = gp.zeros((*array.shape, 2), dtype)[..., 1]
        assert ops.quantize(array, dtype, 3, out=out) is out
        np.testing.assert_array_equal(numbers(out), wanted(given, dtype, 3))
    assert ops.quantize(whole[:0], dtype).shape == (0, 37)


def test_results_of_products() -> None:
    rng = np.random.default_rng()
    x, w, bias = (gp.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in ((2, 9, 40), (24, 40), 24))
    scale = gp.full((), 0.05, "float32")
    for source in ("float32", "bfloat16"):
        a, b, c = (one.astype(source) for one in (x, w, bias))
        layer, product = gp.linear(a, b, c, "gelu"), gp.matmul(a, b.T, alpha=0.5)
        for dtype in ("float8_e4m3", "float8_e5m2", "int8"):
            for got, of in (
                (gp.linear(a, b, c, "gelu", out_dtype=dtype, out_scale=scale), layer),
                (gp.matmul(a, b.T, alpha=0.5, out_dtype=dtype, out_scale=0.05), product),
            ):
                assert got.dtype == dtype
                np.testing.assert_array_equal(numbers(got), wanted(of.astype("float32").to_numpy(), dtype, 0.05))
        for dtype in ("float16", "float64", source):
            for got, of in (
                (gp.linear(a, b, c, "gelu", out_dtype=dtype), layer),
                (gp.matmul(a, b.T, alpha=0.5, out_dtype=dtype), product),
            ):
                assert got.dtype == dtype and got.to_numpy().tobytes() == of.astype(dtype).to_numpy().tobytes()
        out = gp.zeros((24, 2, 9), "int8").transpose(1, 2, 0)
        assert gp.matmul(a, b.T, out=out, out_dtype="int8", out_scale=0.1) is out
        plain = gp.matmul(a, b.T).astype("float32").to_numpy()
        np.testing.assert_array_equal(numbers(out), wanted(plain, "int8", 0.1))
    settings: Any = {"out_dtype": "int8", "out_scale": 0.1}
    assert str(gp.matmul_plan(x, w.T, **settings)).endswith(
        "divided by its scale and quantised to int8 by another launch"
    )
    assert gp.matmul_plan(x, w.T, out_dtype="float16").reason.endswith("; then cast to float16 by another launch")
    assert gp.matmul(x[0, 0], w[0], out_dtype="float16").shape == ()


def test_what_cannot_be_asked_for() -> None:
    x, i = gp.ones((3, 4)), gp.ones((3, 4), "int8")
    for wrong, error, message in [
        (lambda: gp.matmul(x, x.T, out_scale=2), ValueError, "matmul: out_scale=2 without out_dtype="),
        (lambda: gp.linear(x, x, out_dtype="bool"), gp.DTypeError, "result of float32 cannot become out_dtype=bool"),
        (lambda: gp.matmul(i, i.T, out_dtype="float16"), gp.DTypeError, "result of int8 cannot become"),
        (lambda: gp.linear(x, x, out_dtype="float16", out_scale=1), ValueError, "only float8 and int8 have a scale"),
        (
            lambda: gp.linear(x, x, out_dtype="int8", out_scale=0),
            ValueError,
            "linear: out_scale=0; give a finite",
        ),
        (lambda: gp.matmul(x, x.T, out_dtype="int8", out_scale=x), gp.DTypeError, "it is one element of float32"),
        (lambda: gp.matmul(x, x.T, out_dtype="int8", out=x[:, :3]), gp.DTypeError, "out"),
        (lambda: gp.matmul(x, x.T, out_dtype="int8", out=i), gp.ShapeError, r"out has shape \(3, 4\)"),
        (lambda: gp.matmul(x, x.T, out_dtype="float16", beta=1), ValueError, "beta=1 without out="),
        (lambda: gp.matmul_plan(x, x.T, out_scale=2), ValueError, "matmul_plan: out_scale=2 without"),
        (lambda: ops.quantize(x, "float16"), gp.DTypeError, "quantize: dtype=float16; it is float8_e4m3"),
        (lambda: ops.quantize(i, "int8"), gp.DTypeError, "a result of int8 cannot become"),
    ]:
        with pytest.raises(error, match=message):
            wrong()
    numbers: Any = (1e-50, 1e300, 10**400, -1, float("nan"), "2", "abc", [1.0], 1j)
    for number in numbers:
        said = re.escape(f"scale={number!r}; give a finite number above 0")
        for name, call in (
            ("quantize: ", lambda scale: ops.quantize(x, "float8_e4m3", scale)),
            ("matmul: out_", lambda scale: gp.matmul(x, x.T, out_dtype="int8", out_scale=scale)),
            ("linear: out_", lambda scale: gp.linear(x, x, out_dtype="int8", out_scale=scale)),
            ("matmul_plan: out_", lambda scale: gp.matmul_plan(x, x.T, out_dtype="int8", out_scale=scale)),
        ):
            with pytest.raises(gp.InvalidSpecError, match=name + said):
                call(number)
