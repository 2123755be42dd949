"""Element-wise operations against NumPy: every type, special values, outputs, layouts, refusals; on both backends."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("operation_backend")

FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = ["bool", *INTEGERS, *FLOATS, *COMPLEX]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -1.5, 3.5, np.inf, -np.inf, np.nan, 1e-3, -7.25, 60000.0]
# Of each kind and width one: what kernels on the simulator are tested with here. The sweep has them all.
REPRESENTATIVE = ("bool", "int8", "int64", "uint16", "float16", "float32", "complex64")
# Units in the last place that a device's function may be away from the exact value, in terms of the result's type.
ULPS = {"float16": 1.0, "float32": 8.0, "float64": 8.0, "complex64": 40.0, "complex128": 40.0}


@pytest.fixture
def dtypes(operation_backend: str) -> list[str]:
    """The types that a test goes through."""
    return [*REPRESENTATIVE] if operation_backend == "kernels" else DTYPES


def sample(dtype: str, shape: tuple[int, ...] = (7, 30), small: bool = False) -> np.ndarray[Any, Any]:
    """Fresh numbers of a type; floats with every special value among them."""
    rng = np.random.default_rng()
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        info = np.iinfo(dtype)
        if small:
            return rng.integers(max(info.min, -9), 10, shape).astype(dtype)
        values = rng.integers(info.min, info.max, shape, endpoint=True, dtype=dtype)
        values.flat[:5] = [info.min, info.max, 0, 1, info.max // 2]
        return values
    values = rng.standard_normal(shape) * (1 if small else 3)
    if kind == "c":
        return (values + 1j * rng.standard_normal(shape)).astype(dtype)
    values.flat[: len(SPECIAL)] = SPECIAL
    return values.astype(dtype)


def agree(found: gp.GPUArray, expected: Any, wide: Any = None) -> None:
    """found has expected's shape and type, and its values: exactly, or within ULPS of wide."""
    expected = np.asarray(expected)
    assert (found.shape, found.dtype.name) == (expected.shape, expected.dtype.name)
    values = found.to_numpy()
    if wide is None:
        np.testing.assert_array_equal(values, expected)
        return
    info = np.finfo(expected.dtype)
    name = expected.dtype.name
    with np.errstate(all="ignore"):
        rounded = np.asarray(wide).astype(expected.dtype)
        np.testing.assert_allclose(
            values, rounded, rtol=ULPS[name] * info.eps, atol=ULPS[name] * info.smallest_subnormal
        )
        if not np.iscomplexobj(values):
            finite = ~np.isnan(rounded)
            np.testing.assert_array_equal(np.signbit(values)[finite], np.signbit(rounded)[finite])


def wide_of(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a.astype(np.clongdouble if a.dtype.kind == "c" else np.longdouble)


MATH = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip


NEAR_ZERO = {"asin", "acos", "atan", "acosh", "atanh", "asinh", "tanh", "tan", "log1p"}


@pytest.mark.parametrize("name", MATH)
def test_functions_of_every_type(name: str, dtypes: list[str]) -> None:
    function = MATH[name]
    for dtype in dtypes:
        a = sample(dtype, small=np.dtype(dtype).kind == "i")
        if np.dtype(dtype).kind == "c" and name in NEAR_ZERO:
            a = a[np.abs(a) > 0.1]  # near zeros and branch points only a small absolute error is promised
        with np.errstate(all="ignore"):
            expected = function(a)
            wide = function(wide_of(a.astype(expected.dtype)))
            if np.iscomplexobj(a):
                found = getattr(gp, name)(gp.from_numpy(a)).to_numpy()
                np.testing.assert_allclose(found, wide.astype(found.dtype), rtol=ULPS[dtype] * np.finfo(dtype).eps)
            else:
                agree(getattr(gp, name)(gp.from_numpy(a)), expected, wide)


def test_names_of_numpy_are_the_same_functions() -> None:
    for ours, numpys in (("asin", "arcsin"), ("acosh", "arccosh"), ("atan2", "arctan2"), ("sub", "subtract"),
                         ("mul", "multiply"), ("div", "divide"), ("neg", "negative"), ("abs", "absolute"),
                         ("power", "pow"), ("remainder", "mod"), ("conj", "conjugate"),
                         ("bitwise_invert", "invert"), ("bitwise_left_shift", "left_shift")):  # fmt: skip
        assert getattr(gp, ours) is getattr(gp, numpys)


@pytest.mark.parametrize("name", ["abs", "sign", "square", "reciprocal", "positive", "conj"])
def test_simple_functions_of_every_type(name: str, dtypes: list[str]) -> None:
    for dtype in dtypes:
        a = sample(dtype)
        x = gp.from_numpy(a)
        if dtype == "bool" and name in ("positive", "sign"):
            with pytest.raises(gp.DTypeError, match="not defined for bool"):
                getattr(gp, name)(x)
            continue
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a)
            if name == "reciprocal" and a.dtype.kind in "iub":
                expected = np.where((expected > 1) | (expected < -1), 0, expected).astype(
                    expected.dtype
                )  # NumPy's own result of 1 / 0 is undefined
        agree(getattr(gp, name)(x), expected, wide_of(expected) if dtype in COMPLEX else None)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "logical_not"])
def test_rounding_and_tests_of_every_type(name: str, dtypes: list[str]) -> None:
    for dtype in dtypes:
        a = sample(dtype)
        if dtype in COMPLEX:
            if name in ("floor", "ceil", "trunc"):
                with pytest.raises(gp.DTypeError, match="not defined for complex"):
                    getattr(gp, name)(gp.from_numpy(a))
                continue
            a[0, :3] = [complex(np.nan, 1), complex(0, np.inf), 0]
        found = getattr(gp, name)(gp.from_numpy(a))
        expected = getattr(np, name)(a)
        agree(found, expected)
        if a.dtype.kind == "f" and found.dtype.name == dtype:
            np.testing.assert_array_equal(np.signbit(found.to_numpy()), np.signbit(expected))


def test_signbit_real_and_imaginary_parts() -> None:
    a = sample("float32")
    agree(gp.signbit(gp.from_numpy(a)), np.signbit(a))
    agree(gp.signbit(gp.from_numpy(sample("int16") * 0 - 3)), np.ones((7, 30), bool))
    z = sample("complex64")
    x = gp.from_numpy(z)
    agree(gp.real(x[::2, ::-1]), z.real[::2, ::-1])
    agree(x.imag, z.imag)
    x.real[...] = 1
    agree(x, 1 + 1j * z.imag.astype("complex64"))
    agree(gp.imag(gp.from_numpy(a)), np.zeros_like(a))


def test_erf_and_rsqrt() -> None:
    import math

    for dtype in FLOATS:
        a = sample(dtype)
        exact = np.array([math.erf(float(v)) for v in a.flat]).reshape(a.shape)
        agree(gp.erf(gp.from_numpy(a)), exact.astype(dtype), exact)
        with np.errstate(all="ignore"):
            agree(gp.rsqrt(gp.from_numpy(a)), (1 / np.sqrt(a)).astype(dtype), 1 / np.sqrt(wide_of(a)))


# ---- two operands ----


def pairs(dtype: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    a, b = sample(dtype), sample(dtype)
    if np.dtype(dtype).kind == "f":
        special = np.array(SPECIAL, dtype)
        a = np.concatenate([a.ravel(), np.repeat(special, len(special))])
        b = np.concatenate([b.ravel(), np.tile(special, len(special))])
    return a, b


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "maximum", "minimum", "fmax", "fmin"])
def test_exact_binary_operations_of_every_type(name: str, dtypes: list[str]) -> None:
    for dtype in set(dtypes) - {*COMPLEX}:
        if name in ("fmax", "fmin") and dtype not in FLOATS:
            continue
        a, b = pairs(dtype)
        if dtype.startswith("int"):
            b = np.where(np.arange(b.size).reshape(b.shape) % 3 == 0, -1, b).astype(dtype)
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a, b)
            agree(getattr(gp, name)(gp.from_numpy(a), gp.from_numpy(b)), expected)
            agree(getattr(gp, name)(gp.from_numpy(a), 3 if dtype != "bool" else True),
                  getattr(np, name)(a, 3 if dtype != "bool" else True))  # fmt: skip
            agree(getattr(gp, name)(True, gp.from_numpy(b)), getattr(np, name)(True, b))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"])
def test_bits_of_every_type(name: str, dtypes: list[str]) -> None:
    for dtype in set(dtypes) & {"bool", *INTEGERS}:
        a, b = sample(dtype), sample(dtype)
        if "shift" in name:
            b = (b % 80).astype(dtype) - (3 if dtype.startswith("int") else 0)
            b = b.astype(dtype) if dtype != "bool" else b.astype(bool)
        x, y = gp.from_numpy(a), gp.from_numpy(b)
        agree(getattr(gp, name)(x, y), getattr(np, name)(a, b))
        one: Any = True if dtype == "bool" else 1
        agree(getattr(gp, name)(x, one), getattr(np, name)(a, one))
        agree(getattr(gp, name)(one, y), getattr(np, name)(one, b))
        agree(gp.invert(x), np.invert(a))
    with pytest.raises(gp.DTypeError, match="not defined for float32"):
        getattr(gp, name)(gp.ones(3), 1)
    with pytest.raises(gp.DTypeError, match="not defined for float32"):
        ~gp.ones(3)


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical_operations_of_every_type(name: str, dtypes: list[str]) -> None:
    for dtype in dtypes:
        a, b = sample(dtype, small=True), sample("int8", small=True)
        agree(getattr(gp, name)(gp.from_numpy(a), gp.from_numpy(b)), getattr(np, name)(a, b))
        agree(getattr(gp, name)(gp.from_numpy(a), 0), getattr(np, name)(a, 0))


@pytest.mark.parametrize("name", ["arctan2", "hypot", "copysign", "nextafter", "logaddexp"])
def test_binary_functions_of_every_type(name: str, dtypes: list[str]) -> None:
    for dtype in set(dtypes) - {*COMPLEX}:
        a, b = pairs(dtype)
        if name == "logaddexp":  # near log(1) the result has no more digits than its operands
            a, b = np.abs(a), np.abs(b)
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a, b)
            exact = name in ("copysign", "nextafter")
            wide = None if exact else getattr(np, name)(wide_of(a), wide_of(b))
            agree(getattr(gp, name)(gp.from_numpy(a), gp.from_numpy(b)), expected, wide)


def test_power(dtypes: list[str]) -> None:
    for dtype in dtypes:
        a, b = sample(dtype, small=True), np.abs(sample("int8", small=True)).astype(dtype)
        x, y = gp.from_numpy(a), gp.from_numpy(b)
        inexact = dtype in (*FLOATS, *COMPLEX)
        with np.errstate(all="ignore"):
            agree(x**y, a**b, np.power(wide_of(a), wide_of(b)) if inexact else None)
            for exponent in (2, 3, *([-2, 0.5] if inexact else [])):
                expected = a**exponent if dtype != "bool" else np.power(a, np.int8(exponent))
                if dtype == "bool":
                    assert (x**exponent).to_numpy().tolist() == expected.tolist()
                else:
                    wide = np.sqrt(wide_of(a)) if exponent == 0.5 else wide_of(a) ** exponent
                    agree(x**exponent, expected, wide if inexact else None)
    with pytest.raises(ValueError, match="negative power -1"):
        gp.ones(3, "int32") ** -1
    bases, exponents = np.array([1, -1, -1, 2, 0], np.int32), np.array([-3, -3, -2, -1, -1], np.int32)
    with pytest.raises(ValueError, match="negative power -3"):
        (gp.from_numpy(bases) ** gp.from_numpy(exponents)).to_numpy()
    assert (gp.from_numpy(bases) ** gp.from_numpy(-exponents)).to_numpy().tolist() == [1, -1, 1, 2, 0]
    agree(2 ** gp.from_numpy(np.arange(70)), 2 ** np.arange(70))


@pytest.mark.parametrize("name", ["nextafter", "maximum", "floor_divide", "remainder", "copysign"])
def test_bfloat16_rounds_once(name: str) -> None:
    a, b = (sample("float32").astype("float32") for _ in range(2))
    x, y = gp.from_numpy(a).astype("bfloat16"), gp.from_numpy(b).astype("bfloat16")
    a, b = x.astype("float32").to_numpy(), y.astype("float32").to_numpy()
    found = getattr(gp, name)(x, y)
    assert found.dtype == "bfloat16"
    if name == "nextafter":
        found = found.astype("float32").to_numpy()
        same = (a == b) | np.isnan(a) | np.isnan(b)
        np.testing.assert_array_equal(found[same], np.nextafter(a, b)[same])
        moved = np.where(a == 0, np.copysign(2.0**-133, b), 0)
        bits = a.view(np.uint32) + np.where((a < b) == (a > 0), 0x10000, -0x10000).astype(np.int64)
        expected = np.where(a == 0, moved, bits.astype(np.uint32).view(np.float32))
        np.testing.assert_array_equal(found[~same], expected[~same].astype(np.float32))
        return
    with np.errstate(all="ignore"):
        expected = gp.from_numpy(getattr(np, name)(a, b)).astype("bfloat16")
    np.testing.assert_array_equal(found.astype("float32").to_numpy(), expected.astype("float32").to_numpy())


# ---- three operands ----


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_where_and_clamp(dtype: str) -> None:
    host = "float32" if dtype == "bfloat16" else dtype
    a, b = sample(host, small=True), sample(host, small=True)
    x, y = gp.from_numpy(a).astype(dtype), gp.from_numpy(b).astype(dtype)
    if dtype == "bfloat16":
        a, b = x.astype("float32").to_numpy(), y.astype("float32").to_numpy()

    def check(found: gp.GPUArray, expected: Any) -> None:
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.astype(host).to_numpy(), expected)

    c = sample("bool")
    condition = gp.from_numpy(c)
    check(gp.where(condition, x, y), np.where(c, a, b))
    check(gp.where(condition, x, False), np.where(c, a, 0))
    check(gp.where(condition[:, :1], x, y[0]), np.where(c[:, :1], a, b[0]))
    check(gp.where(condition.T, x.T, y.T[::-1]), np.where(c.T, a.T, b.T[::-1]))
    if dtype in COMPLEX:
        with pytest.raises(gp.DTypeError, match="no order"):
            gp.clamp(x, 0, 1)
        return
    low, high = (False, True) if dtype == "bool" else (1, 4)
    check(gp.clamp(x, low, high), np.clip(a, low, high))
    check(gp.clamp(x[:, ::2], y[:, ::2], high), np.clip(a[:, ::2], b[:, ::2], high))
    check(gp.clip(x, min=low), np.maximum(a, low))
    check(gp.clip(x, max=high), np.minimum(a, high))
    check(gp.clip(x), a)


def test_where_promotes_and_takes_any_condition() -> None:
    c = np.array([0.0, -0.0, 2.5, np.nan], np.float32)
    x = gp.from_numpy(c)
    agree(gp.where(x, 1, 2), np.where(c, 1, 2))
    agree(gp.where(x, 1.5, 2), np.where(c, 1.5, 2))
    agree(gp.where(x, gp.ones(4, "int8"), gp.ones(4, "float16")), np.where(c, np.ones(4, "i1"), np.ones(4, "f2")))
    agree(gp.where(x, gp.ones(4, "int8"), 2.5), np.where(c, np.ones(4, "i1"), 2.5))
    with pytest.raises(gp.ShapeError, match="where: shapes"):
        gp.where(x, gp.ones(3), 0)
    agree(gp.where(True, x, 0), np.where(True, c, 0))
    with pytest.raises(gp.DTypeError, match="where: expected a GPUArray"):
        gp.where("yes", x, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lower bound"):
        gp.clamp(x)


# ---- outputs, layouts, operators ----


def test_out_everywhere() -> None:
    a = np.abs(sample("float32", small=True)) + 1
    a[~np.isfinite(a)] = 1
    x = gp.from_numpy(a)
    for name in (*MATH, "abs", "floor", "round", "sign", "square", "reciprocal", "positive", "erf", "rsqrt", "clip"):
        out = gp.zeros((7, 60))
        expected = getattr(gp, name)(x)
        assert getattr(gp, name)(x, out=out[:, ::-2]).block == out.block
        np.testing.assert_array_equal(out.to_numpy()[:, ::-2], expected.to_numpy())
        np.testing.assert_array_equal(out.to_numpy()[:, ::2], 0)
        wide = gp.zeros(x.shape, "float64")
        assert getattr(gp, name)(x, out=wide) is wide
        np.testing.assert_array_equal(wide.to_numpy(), expected.to_numpy())
    for name in ("isnan", "isfinite", "logical_not"):
        flags = gp.zeros(x.shape, "bool")
        assert getattr(gp, name)(x, out=flags) is flags
        agree(flags, getattr(np, name)(a))
    y = gp.from_numpy(a)
    gp.maximum(y[:-1], y[1:], out=y[1:])
    agree(y[1:], np.maximum(a[:-1], a[1:]))
    gp.where(y > 1.5, y, y[::-1], out=y)
    with pytest.raises(gp.ShapeError, match="exp: out has shape"):
        gp.exp(x, out=gp.zeros(3))
    with pytest.raises(gp.DTypeError, match="cannot be stored"):
        gp.exp(x, out=gp.zeros(x.shape, "int32"))


@pytest.mark.parametrize("view", [np.s_[::2, ::-3], np.s_[:, 1:], np.s_[:0], np.s_[3, 5], np.s_[None, :, :1]], ids=str)
def test_every_layout(view: Any) -> None:
    a, b = sample("float32"), sample("float32")
    x, y = gp.from_numpy(a)[view], gp.from_numpy(b)[view]
    a, b = a[view], b[view]
    with np.errstate(all="ignore"):
        agree(gp.floor(x), np.floor(a))
        agree(gp.maximum(x, y), np.maximum(a, b))
        agree(gp.maximum(x, 1), np.maximum(a, 1))
        agree(gp.maximum(x.T, y.T), np.maximum(a.T, b.T))
        agree(gp.isnan(x), np.isnan(a))


INPLACE = [
    (operator.ifloordiv, 3), (operator.imod, 5), (operator.ipow, 2), (operator.iand, 6), (operator.ior, 9),
    (operator.ixor, 7), (operator.ilshift, 2), (operator.irshift, 1),
]  # fmt: skip


@pytest.mark.parametrize(("op", "operand"), INPLACE, ids=lambda v: getattr(v, "__name__", str(v)))
def test_in_place_operators(op: Callable[[Any, Any], Any], operand: int) -> None:
    a = sample("int32", small=True)
    x = gp.from_numpy(a)
    same = x
    x = op(x, operand)
    assert x is same
    agree(x, op(a.copy(), operand))
    part = x[::2, 1:]
    op(part, gp.full(29, operand, "int32"))
    expected = op(a.copy(), operand)
    op(expected[::2, 1:], operand)
    agree(x, expected)


def test_operators() -> None:
    a, b = sample("int32", small=True), sample("int32", small=True)
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    with np.errstate(all="ignore"):
        for op in (operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor):
            agree(op(x, y), op(a, b))
            agree(op(7, y), op(7, b))
        for op in (operator.lshift, operator.rshift):
            agree(op(x, 3), op(a, 3))
            agree(op(100, gp.abs(y)), op(100, np.abs(b)))
        agree(abs(x), abs(a))
        agree(+x, +a)
        agree(~x, ~a)
        agree(~(x > 0) & (y > 0), ~(a > 0) & (b > 0))
    floats = gp.ones(3)
    with pytest.raises(gp.DTypeError, match="not defined for float32"):
        floats &= 1
    for refused in ([1, 2], np.ones(3, np.float32)):
        with pytest.raises(gp.DTypeError, match="from_numpy"):
            gp.ones(3) % refused
    with pytest.raises(gp.DTypeError, match="storage type"):
        gp.exp(gp.empty(3, "float8_e4m3"))


def test_numbers_beyond_the_type_are_refused() -> None:
    with pytest.raises(OverflowError, match="300 does not fit int8"):
        gp.maximum(gp.ones(3, "int8"), 300)
    with pytest.raises(OverflowError, match="-1 does not fit uint8"):
        gp.clamp(gp.ones(3, "uint8"), 4, -1)


def test_where_with_one_argument_gives_places() -> None:
    a = np.random.default_rng().integers(0, 2, (5, 7))
    found = gp.where(gp.from_numpy(a))
    for axis, expected in zip(found, np.where(a), strict=True):
        np.testing.assert_array_equal(axis.to_numpy(), expected)
    with pytest.raises(TypeError, match="both values"):
        gp.where(gp.from_numpy(a), 1.0)  # type: ignore[call-overload]
