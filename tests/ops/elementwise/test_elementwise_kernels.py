"""The element-wise CUDA kernels themselves, run by the simulator in checked mode: no findings, NumPy's results."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.dtypes import DataType
from pygpukit.jit.cache.image import Image
from pygpukit.kernels import KernelSpec, builder
from pygpukit.kernels.registry import Unit
from pygpukit.ops import elementwise
from pygpukit.ops.elementwise import operations, pointwise

pytestmark = pytest.mark.usefixtures("kernels_on_sim")

VIEWS = [np.s_[:], np.s_[:, 1:], np.s_[::-1, ::3], np.s_[:0], np.s_[2, 3], np.s_[:, :1]]
# Relative and absolute, for results that the host computes by other functions of the same accuracy.
CLOSE = {"float16": (2e-3, 1e-6), "bfloat16": (1.6e-2, 1e-37), "float32": (2e-5, 1e-6), "float64": (1e-13, 1e-14),
         "complex64": (2e-4, 1e-5), "complex128": (1e-11, 1e-12)}  # fmt: skip


@pytest.mark.usefixtures("compiled_together")
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_add_dense_strided_and_scalar(dtype: str) -> None:
    a = np.random.default_rng().integers(-9, 9, (5, 14)).astype(dtype)
    x = gp.from_numpy(a)
    for view in (np.s_[:], np.s_[:, 1:], np.s_[::-1, ::3]):
        np.testing.assert_array_equal((x[view] + x[view]).to_numpy(), a[view] + a[view])
        np.testing.assert_array_equal((3 - x[view]).to_numpy(), 3 - a[view])


@cache
def _together(ctype: str) -> Image:
    """All kernels for operands of one type in one unit, which compiles in a fraction of the time; no conversions."""
    found = [expression for unit in pointwise.instantiations() for expression in unit if "Copy" not in expression]
    wanted = [e for e in found if e.partition("<")[2].startswith(f"{ctype},")]
    return builder.compile_unit(Unit(pointwise.SOURCE, tuple(wanted)), check=True)


@pytest.fixture
def compiled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = builder.image

    def image(spec: KernelSpec) -> Image:
        if spec.family is not pointwise.SOURCE or "Copy" in spec.expression:
            return alone(spec)
        return _together(spec.expression.partition("<")[2].partition(",")[0])

    monkeypatch.setattr(builder, "image", image)


def _inputs(dtype: DataType) -> list[Any]:
    """Two operands as the host computes with them, special values included."""
    rng = np.random.default_rng()
    made = []
    for _ in range(2):
        values = rng.integers(0 if dtype.name.startswith("u") else -9, 10, (5, 14)) / 4
        if dtype.name.startswith("complex"):
            values = values + 1j * rng.standard_normal((5, 14)) + 0.1
        elif dtype in operations.promotion.FLOATS:
            values[0, :5] = [np.inf, -np.inf, np.nan, -0.0, 1e4]
            rng.shuffle(values[0])
        else:
            values = np.rint(values * 4)
        made.append(gp.from_numpy(values.astype("complex64" if np.iscomplexobj(values) else "float32")).astype(dtype))
    return made


def _host(array: gp.GPUArray) -> np.ndarray[Any, Any]:
    return (array.astype("float32") if array.dtype == "bfloat16" else array).to_numpy()


def _check(op: operations.Op, dtype: DataType, found: gp.GPUArray, *operands: Any) -> None:
    with np.errstate(all="ignore"):
        expected = pointwise.host_function(op, dtype)(*operands)
    values = _host(found)
    assert found.dtype == op.result_dtype(dtype)
    if dtype.name not in CLOSE or op.result == "bool":
        np.testing.assert_array_equal(values, expected, op.name)
        return
    rtol, atol = CLOSE[dtype.name]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(values, np.asarray(expected).astype(values.dtype), rtol, atol, err_msg=op.name)


@pytest.mark.usefixtures("compiled_together")
@pytest.mark.parametrize("name", ["bool", "int8", "bfloat16", "float32", "complex64"])
def test_every_operation_in_every_layout(name: str) -> None:
    dtype = DataType.from_string(name)
    x, y = _inputs(dtype)
    a, b = _host(x), _host(y)
    for view in VIEWS:
        for op in operations.UNARY:
            if name in op.computed():
                _check(op, dtype, elementwise.unary(op, x[view], None), a[view])
        for op in operations.BINARY:
            if name in op.computed() and not op.by_size:
                one = dtype.name == "bool" or 1
                _check(op, dtype, elementwise.binary(op, x[view], y[view], None), a[view], b[view])
                _check(op, dtype, elementwise.binary(op, x[view], one, None), a[view], np.array(1, b.dtype))
                _check(op, dtype, elementwise.binary(op, one, y[view], None), np.array(1, a.dtype), b[view])
        c = gp.from_numpy(np.random.default_rng().integers(0, 2, (5, 14)).astype(bool))
        picked = np.where(c.to_numpy()[view], a[view], b[view])
        np.testing.assert_array_equal(_host(gp.where(c[view], x[view], y[view])), picked)
        np.testing.assert_array_equal(
            _host(gp.where(c[view], x[view], False)), np.where(c.to_numpy()[view], a[view], 0)
        )
        if name in operations.CLAMP.computed():
            _check(operations.CLAMP, dtype, gp.clamp(x[view], False, y[view]), a[view], np.array(0, a.dtype), b[view])


@pytest.mark.parametrize("dtype", ["uint8", "int64"])
def test_bits(dtype: str) -> None:
    a = np.random.default_rng().integers(0, 99, (5, 14)).astype(dtype)
    x = gp.from_numpy(a)
    for view in VIEWS:
        np.testing.assert_array_equal((x[view] & 13).to_numpy(), a[view] & 13)
        np.testing.assert_array_equal((1 << x[view]).to_numpy(), np.left_shift(np.array(1, dtype), a[view]))


def test_fused_kernel() -> None:
    a, b = np.random.default_rng().standard_normal((2, 6, 22)).astype(np.float32)
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    fused = gp.fuse(lambda x, y, s: (gp.maximum(x * s, y) - x, x > y))
    for view in VIEWS:
        found, flags = fused(x[view], y[view], 0.5)
        np.testing.assert_array_equal(found.to_numpy(), np.maximum(a[view] * np.float32(0.5), b[view]) - a[view])
        np.testing.assert_array_equal(flags.to_numpy(), a[view] > b[view])
    scaled = gp.fuse(lambda x, s: (x * s).astype("float16"))
    np.testing.assert_array_equal(scaled(x, y[0, 0]).to_numpy(), (a * b[0, 0]).astype(np.float16))
