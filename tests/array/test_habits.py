"""NumPy's habits: what arrays and the package have because NumPy's users try it first. Compared with NumPy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend_name")

RNG = np.random.default_rng(7)


def sample(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray[Any, Any]:
    if dtype == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return RNG.integers(0 if dtype[0] == "u" else -40, 40, shape).astype(dtype)
    values = RNG.standard_normal(shape) * 3
    return (values + 1j * RNG.standard_normal(shape) if dtype.startswith("complex") else values).astype(dtype)


def check(found: gp.GPUArray, expected: Any) -> None:
    expected = np.asarray(expected)
    assert (found.shape, found.dtype.name) == (expected.shape, expected.dtype.name)
    exact = expected.dtype.kind not in "fc"
    tolerance = {} if exact else {"rtol": 1e-3 if expected.dtype.itemsize == 2 else 2e-5, "atol": 1e-5}
    (np.testing.assert_array_equal if exact else np.testing.assert_allclose)(found.to_numpy(), expected, **tolerance)


# ---- making, and back ----


@pytest.mark.parametrize(
    "obj", [3, 2.5, [1, 2], [[1.0, 2], [3, 4]], [True, False], [1j], [], np.arange(6).reshape(2, 3)]
)
def test_array_makes_what_numpy_makes(obj: Any) -> None:
    check(gp.array(obj), np.array(obj))
    check(gp.array(obj, ndmin=3), np.array(obj, ndmin=3))
    if not np.iscomplexobj(np.array(obj)):
        check(gp.array(obj, "float32"), np.array(obj, "float32"))


def test_array_copies_unless_it_is_told_not_to() -> None:
    x = gp.array([1.0, 2.0])
    y = gp.array(x)
    y[0] = 5
    assert x.tolist() == [1, 2] and gp.array(x, copy=None) is x and gp.array(x, copy=False) is x
    with pytest.raises(ValueError, match="copy"):
        gp.array([1], copy=False)
    with pytest.raises(DTypeError):
        gp.array(["a"])
    assert callable(gp.array) and gp.array.factory.asarray is gp.asarray  # the sub-package is the function


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)])
def test_tolist_and_copy(dtype: str, shape: tuple[int, ...]) -> None:
    a = sample(shape, dtype)
    x = gp.from_numpy(a)
    assert x.tolist() == a.tolist() and x.T.tolist() == a.T.tolist()
    other = x.T.copy()
    assert other.is_contiguous() and other.tolist() == a.T.tolist() and copy.copy(x).tolist() == a.tolist()
    other.fill(1)
    assert x.tolist() == a.tolist()


def test_types_without_a_counterpart_list_their_values() -> None:
    x = gp.array([1.5, -2.0])
    for dtype in ("bfloat16", "float8_e4m3", "float4_e2m1"):
        assert x.astype(dtype).tolist() == [1.5, -2.0]
    assert gp.array([3, -4]).astype("int4").tolist() == [3, -4]


def test_a_0d_array_formats_as_its_number() -> None:
    x = gp.array([1.25, 2.5])
    assert f"{x.sum():.2f} {x.sum()} {x.sum():>8.1f}" == "3.75 3.75      3.8"
    assert f"{gp.array(255):x} {gp.array(True)} {gp.array(1 + 2j):.1f}" == "ff True 1.0+2.0j"
    assert f"{x}" == str(x)
    with pytest.raises(TypeError, match=r"shape \(2,\) has no format '.2f'"):
        f"{x:.2f}"


# ---- clip, round ----


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_clip_and_round(dtype: str) -> None:
    a = sample((5, 7), dtype)
    x = gp.from_numpy(a)
    check(x.clip(1, 3), a.clip(1, 3))
    check(x[::-1, ::2].clip(max=2), a[::-1, ::2].clip(max=2))
    check(x.round(), a.round())
    for decimals in (-1, 1, 2):
        check(x.round(decimals), a.round(decimals))
        check(gp.round(x, decimals), np.round(a, decimals))
    out = gp.empty(a.shape, dtype)
    assert x.round(1, out) is out and x.clip(0, 1, out) is out
    check(out, a.clip(0, 1))


def test_round_halves_to_even_and_of_complex_by_parts() -> None:
    halves = np.array([0.5, 1.5, 2.5, -0.5, 25, 35])
    check(gp.from_numpy(halves).round(), halves.round())
    check(gp.from_numpy(halves.astype("int64")).round(-1), halves.astype("int64").round(-1))
    check(gp.array([1.26 + 2.34j]).round(1), np.array([1.26 + 2.34j]).round(1))


# ---- products ----

DOTS = [((), (3,)), ((3,), ()), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 3)), ((3, 4), (4, 2)), ((2, 3, 4), (4,)),
        ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((4,), (2, 4, 5)), ((2, 0), (0, 3)),
        ((2, 0), (2, 0, 3))]  # fmt: skip
INNERS = [((), (3,)), ((4,), (4,)), ((3, 4), (4,)), ((3, 4), (2, 4)), ((2, 3, 4), (5, 4)), ((2, 0), (3, 0))]
TYPES = ["float32", "float64", "int32", "complex64"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("name", "left", "right"),
    [("dot", *pair) for pair in DOTS]
    + [("inner", *pair) for pair in INNERS]
    + [("outer", left, right) for left, right in [((3,), (4,)), ((2, 3), (2,)), ((), (3,)), ((0,), (2,))]]
    + [("vdot", shape, shape) for shape in [(), (5,), (2, 3), (0,)]],
)
def test_products(name: str, left: tuple[int, ...], right: tuple[int, ...], dtype: str) -> None:
    a, b = sample(left, dtype), sample(right, dtype)
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    expected = getattr(np, name)(a, b)
    check(getattr(gp, name)(x, y), expected)
    if name == "dot":
        check(x.dot(y), expected)
    if a.ndim:
        flipped = a[::-1] if name in ("outer", "vdot") or a.ndim > 1 else a
        check(getattr(gp, name)(x[::-1] if flipped is not a else x, y), getattr(np, name)(flipped, b))


def test_products_with_numbers_and_of_shapes_that_do_not_fit() -> None:
    x = gp.ones((2, 3))
    assert x.dot(2).tolist() == (x * 2).tolist() == gp.dot(2, x).tolist() == gp.inner(x, 2).tolist()
    for call in (lambda: gp.dot(x, x), lambda: gp.dot(x, gp.ones((2, 2, 3))), lambda: gp.inner(x, gp.ones(2)),
                 lambda: gp.vdot(x, gp.ones(5))):  # fmt: skip
        with pytest.raises(ShapeError, match=r"\(2, 3\)"):
            call()
    with pytest.raises(DTypeError, match="from_numpy"):
        gp.dot(x, np.ones(3))


# ---- differences and closeness ----


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "bool"])
@pytest.mark.parametrize(("n", "axis"), [(0, -1), (1, -1), (1, 0), (2, 1), (9, 0)])
def test_diff(dtype: str, n: int, axis: int) -> None:
    a = sample((4, 5), dtype)
    check(gp.diff(gp.from_numpy(a), n, axis), np.diff(a, n, axis))
    check(gp.diff(gp.from_numpy(a)[::-1, ::2], n, axis), np.diff(a[::-1, ::2], n, axis))


def test_diff_with_parts_and_refusals() -> None:
    a = sample((3, 4))
    x = gp.from_numpy(a)
    check(gp.diff(x, prepend=0.0, append=x), np.diff(a, prepend=0.0, append=a))
    check(gp.diff(x, axis=0, append=gp.array(1, "float32")), np.diff(a, axis=0, append=np.float32(1)))
    check(gp.diff(gp.zeros((0, 3)), axis=0), np.diff(np.zeros((0, 3), "float32"), axis=0))
    with pytest.raises(ValueError, match="n is -1"):
        gp.diff(x, -1)
    with pytest.raises(ShapeError, match="0-d"):
        gp.diff(gp.array(1.0))
    with pytest.raises(ShapeError, match="axis 2"):
        gp.diff(x, axis=2)


SPECIAL = [0.0, -0.0, 1.0, 1.000001, 1.0001, np.inf, -np.inf, np.nan, 1e-9]


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_isclose_of_every_pair(dtype: str, equal_nan: bool) -> None:
    a = np.array(SPECIAL, dtype)
    x = gp.from_numpy(a)
    expected = np.isclose(a[:, None], a[None, :], equal_nan=equal_nan)
    check(gp.isclose(x[:, None], x[None, :], equal_nan=equal_nan), expected)
    assert gp.allclose(x, x, equal_nan=equal_nan) is equal_nan
    assert gp.allclose(x[:2], 0.0) and not gp.allclose(1.0, x[:3]) and gp.allclose(x[2:4], 1.0, rtol=1e-3)


def test_closeness_of_integers_and_of_nothing() -> None:
    x = gp.array([0, 1, 255], "uint8")
    check(gp.isclose(x, x[::-1]), np.isclose(np.array([0, 1, 255], "uint8"), np.array([255, 1, 0], "uint8")))
    assert gp.allclose(gp.zeros((0, 3)), 5.0) and gp.allclose(gp.array([True]), 1)
    with pytest.raises(ShapeError):
        gp.allclose(gp.zeros(3), gp.zeros(4))
    with pytest.raises(DTypeError, match="from_numpy"):
        gp.allclose(gp.zeros(3), np.zeros(3))


@pytest.mark.parametrize("function", [np.dot, np.vdot, np.outer, np.inner])
def test_numpys_own_functions_dispatch(function: Callable[..., Any]) -> None:
    x = gp.array([1.0, 2.0])
    found = function(x, x)
    assert isinstance(found, gp.GPUArray) and np.asarray(found.tolist()).tolist() == function([1, 2], [1, 2]).tolist()
    assert np.allclose(x, x) is True and np.diff(x).tolist() == [1]


# ---- names ----


def test_dir_lists_public_names_only() -> None:
    names = dir(gp)
    assert not {"Any", "annotations", "import_module", "_HOMES"} & set(names)
    assert set(names) <= {*gp.__all__, *gp._SUBMODULES} and names == sorted(names)


@pytest.mark.parametrize(("wrong", "right"), [("arrray", "array"), ("linspce", "linspace"), ("Zeros", "zeros")])
def test_a_missing_name_says_what_is_nearest(wrong: str, right: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{wrong}'; did you mean .*\b{right}\b"):
        getattr(gp, wrong)


def test_a_name_that_is_like_nothing() -> None:
    with pytest.raises(AttributeError, match="'qqqqxxxx'; dir"):
        _ = gp.qqqqxxxx
    assert not hasattr(gp, "_ipython_display_")
