"""What code written for NumPy relies on: types, any integer as axis or count, keywords, exact numbers."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.array import scalars
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY, DataType, DataTypeKind
from pygpukit.ops import storage

pytestmark = pytest.mark.usefixtures("backend_name")

KNOWN = [dtype for dtype in DTYPES if dtype not in STORAGE_ONLY and dtype != "bfloat16"]
LACKING = [dtype for dtype in DTYPES if dtype not in KNOWN]
I = np.int64  # noqa: E741
HOST = np.arange(12.0).reshape(3, 4) - 5
MASK = (np.arange(12) % 3 > 0).reshape(3, 4)
BYTES = np.array([1, 5, 200], np.uint8)
WHOLE = np.array([[3, 1, 2], [3, 1, 2], [0, 4, 2]])


def same(found: Any, expected: Any, check_type: bool = True) -> None:
    """Equal shapes, types and values; of tuples and lists each."""
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other, check_type)
        return
    values = found.to_numpy() if isinstance(found, gp.GPUArray) else np.asarray(found)
    assert values.shape == np.shape(expected)
    if check_type:
        assert values.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def calls(table: str) -> list[str]:
    """The calls of a table with | between them."""
    return [call.strip() for call in table.replace("\n", " | ").split(" | ") if call.strip()]


def both(call: str, **more: Any) -> tuple[Any, Any]:
    """The value of an expression over m (the module) and arrays, of ours and of NumPy's."""
    host = {"a": HOST, "w": MASK, "u": BYTES, "k": WHOLE, "v": HOST[0], **more}
    device = {name: gp.asarray(value) for name, value in host.items()}
    scope = {"I": I, "np": np}
    return eval(call, scope | device | {"m": gp}), eval(call, scope | host | {"m": np})


# ---- types ----


@pytest.mark.parametrize("dtype", KNOWN, ids=str)
def test_numpy_takes_types(dtype: DataType) -> None:
    theirs = np.dtype(dtype.name)
    assert np.dtype(dtype) == theirs and np.zeros(2, dtype).dtype == theirs
    assert dtype.kind == theirs.kind and dtype.kind in "biufc"
    assert (dtype.type, dtype.char, dtype.num) == (theirs.type, theirs.char, theirs.num)
    assert dtype in {theirs} and theirs in {dtype} and hash(dtype) == hash(theirs)
    assert type(dtype(1)) is theirs.type
    assert pickle.loads(pickle.dumps(dtype.kind)) is dtype.kind


def test_kinds_stay_what_they_are() -> None:
    assert DataTypeKind.FLOAT32 != DataTypeKind.FLOAT64 and DataTypeKind("float16") is DataTypeKind.FLOAT16
    assert len({dtype.kind for dtype in DTYPES}) == len(DTYPES)
    assert np.issubdtype(gp.float32, np.floating) and np.finfo(gp.float64).eps == 2.0**-52
    assert np.can_cast(gp.int8, np.int16) and not np.can_cast(gp.int16, np.int8)


@pytest.mark.parametrize("dtype", LACKING, ids=str)
def test_types_that_numpy_lacks_are_not_taken_for_their_bits(dtype: DataType) -> None:
    with pytest.raises(TypeError):
        np.dtype(dtype)
    assert dtype.kind == ("i" if dtype == "int4" else "f")


@pytest.mark.parametrize("other", ["x.py::t, a: b", "f4, i4", {"names": ["a"]}, "a" * 999, (), [1], 3.5, "O"], ids=str)
def test_nothing_makes_comparing_a_type_raise(other: Any) -> None:
    assert (gp.float32 == other) is False and (gp.float32 != other) is True


# ---- integers ----


@pytest.mark.parametrize(
    "call",
    calls(
        """
        m.flip(a, axis=I(1)) | m.roll(a, I(1)) | m.roll(a, (I(1), 2), axis=(0, I(1))) | m.roll(v, (1, 2))
        m.stack([a, a], axis=I(1)) | m.tile(a, I(2)) | m.tile(a, (I(2), 1)) | m.expand_dims(a, I(0))
        m.squeeze(a[None], axis=I(0)) | m.moveaxis(a, I(0), I(1)) | m.rot90(a, I(1)) | m.split(a, I(2), axis=I(1))
        m.array_split(a, I(2)) | m.tensordot(a, a, axes=(I(0), I(0))) | m.median(a, axis=I(1))
        m.quantile(a, 0.5, axis=I(1)) | m.gradient(a, axis=I(1)) | m.trapezoid(a, axis=I(1))
m.apply_along_axis(lambda row: row * 2, I(1), a) | m.linalg.norm(a, axis=I(1)) | m.linalg.vector_norm(a, axis=I(1))
m.fft.fftshift(a, axes=I(1)) | m.reshape(a, (I(4), I(3))) | m.zeros(I(3), dtype="f8") | m.repeat(a, I(2), axis=I(1))
        m.sum(a, axis=(I(0), I(1))) | m.triu(a, k=I(-1)) | m.linspace(0, 1, I(5)) | m.split(a, [I(1), 3], axis=1)
        """
    ),
)
def test_any_integer_is_an_axis_or_count(call: str) -> None:
    same(*both(call))


def test_device_integers_are_integers() -> None:
    two = gp.asarray(2)
    same(gp.roll(gp.asarray(HOST), two), np.roll(HOST, 2))
    assert gp.zeros(two).shape == (2,) and gp.zeros((two, 3)).shape == (2, 3)
    for wrong in (1.0, "1", True, None):
        with pytest.raises(TypeError):
            gp.flip(gp.asarray(HOST), axis=(wrong,))


@pytest.mark.parametrize(
    "call", ["sum(x, axis=5)", "flip(x, axis=7)", "sort(x, axis=-3)", "concatenate([x, x], axis=4)"]
)
def test_axes_out_of_range_raise_numpys_error_too(call: str) -> None:
    for kind in (np.exceptions.AxisError, IndexError, gp.ShapeError):
        with pytest.raises(kind, match="out of range"):
            eval(f"gp.{call}", {"gp": gp, "x": gp.asarray(HOST)})


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "eigh", "eigvalsh", "cholesky", "cond"])
def test_matrices_that_do_not_fit_raise_numpys_error_too(name: str) -> None:
    for shape in ((2, 3), (3,)):
        if name == "cond" and shape == (2, 3):
            continue  # any shape has one
        for kind in (np.linalg.LinAlgError, gp.ShapeError):
            with pytest.raises(kind):
                getattr(gp.linalg, name)(gp.ones(shape, "float64"))


# ---- exact comparisons ----


UNSIGNED = np.array([2**63 + 1, 2**53 + 1, 2**64 - 1, 5, 0, 2**63], np.uint64)
SIGNED = np.array([2**63 - 1, 2**53, -1, 5, 0, -(2**63)], np.int64)
OPERATORS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("compare", OPERATORS)
def test_unsigned_and_signed_compare_exactly(compare: Callable[[Any, Any], Any]) -> None:
    for signed in (SIGNED, SIGNED.astype(np.int32), SIGNED.astype(np.int8)):
        for a, b in ((UNSIGNED, signed), (signed, UNSIGNED)):
            x, y = gp.from_numpy(a), gp.from_numpy(b)
            expected = np.array([compare(int(p), int(q)) for p, q in zip(a, b, strict=True)])
            same(compare(x, y), expected)
            same(compare(x[:, None], y), np.array([[compare(int(p), int(q)) for q in b] for p in a]))
            same(gp.fuse(lambda p, q: compare(p, q))(x, y), expected)


@pytest.mark.parametrize("compare", OPERATORS)
def test_numbers_outside_of_a_type_compare(compare: Callable[[Any, Any], Any]) -> None:
    for dtype in ("uint8", "int8", "int64", "uint64", "bool"):
        values = np.array([0, 1, 1], dtype)
        x = gp.from_numpy(values)
        for number in (300, -300, 2**64, -(2**64), 2**70):
            same(compare(x, number), np.array([compare(int(value), number) for value in values]))
            same(compare(number, x), np.array([compare(number, int(value)) for value in values]))
    out = gp.empty(3, "bool")
    assert gp.less(gp.asarray(BYTES), 256, out=out) is out and out.tolist() == [True] * 3
    same(gp.clip(gp.asarray(BYTES), -1, 300), BYTES)
    with pytest.raises(OverflowError):
        gp.asarray(BYTES) + 300


def test_operators_leave_unknown_operands_to_them() -> None:
    class Other:
        __array_ufunc__ = None

        def __radd__(self, other: Any) -> str:
            return "added"

        def __rmatmul__(self, other: Any) -> str:
            return "multiplied"

        def __gt__(self, other: Any) -> str:
            return "compared"

    x = gp.asarray(WHOLE)
    assert (x + Other(), x @ Other(), x < Other()) == ("added", "multiplied", "compared")
    assert (x == object()) is False and (x != object()) is True
    with pytest.raises(TypeError, match="unsupported operand"):
        x + object()
    with pytest.raises(gp.DTypeError, match="from_numpy"):
        x + WHOLE
    same(x == [3, 1, 2], WHOLE == [3, 1, 2])
    assert 4 in x and 9 not in x and "x" not in x
    same(divmod(x, 2), divmod(WHOLE, 2))
    same(divmod(7, x + 1), divmod(7, WHOLE + 1))


# ---- keywords ----


@pytest.mark.parametrize(
    "call",
    calls(
        """
        m.reshape(a, (4, 3), order="F") | a.reshape(4, 3, order="F") | a.ravel(order="F") | a.flatten("F")
        a.copy(order="F") | a.T.reshape((3, 4), order="A") | a.astype("f4", order="F") | a.astype("f8", copy=False)
        m.zeros((2, 3), "f8", order="F") | m.ones((2, 3), dtype="f8", order="C") | m.full((2, 3), 7.0, order="F")
        m.full((2, 4), v, order="F") | m.zeros_like(a, shape=(2, 2)) | m.ones_like(a, order="F", dtype="i4")
        m.full_like(a, 3, shape=2) | m.sort(k, axis=0, kind="mergesort") | m.argsort(v, kind="stable")
        m.concatenate([a, a], dtype="f4") | m.stack([a, a], dtype="f4") | m.hstack([a, a], dtype="f4")
        m.vstack([k, k], dtype="f8") | m.linspace(0, 1, 5, retstep=True) | m.linspace([0, 1], [2, 3], 4, axis=1)
        m.unique(k, axis=0) | m.unique(k, axis=1)
        m.unique(k, axis=0, return_index=True, return_inverse=True, return_counts=True) | m.unique(k[:0], axis=0)
        a.view("i8") | a.view(dtype="f4") | m.dot(a, a.T, out=m.zeros((3, 3), "f8")) | m.add(a, a, dtype="f4")
        m.add(a, 1, m.ones((3, 4), "f8"), where=w) | m.less(a, 3, dtype=bool)
        m.multiply(a, a, out=m.zeros((3, 4), "i4"), casting="unsafe") | m.sqrt(u, dtype="f8")
        m.power(a, 2, where=w, out=m.ones((3, 4), "f8")) | m.sum(a, initial=3) | m.sum(a, axis=1, where=w, initial=2)
m.prod(a, axis=0, where=w) | m.max(a, initial=100) | m.max(a, axis=1, where=w, initial=-9) | m.max(a[:0], initial=5)
        m.max(a[:0], axis=0, initial=5) | m.min(a[:0], axis=1, initial=5) | m.any(a > 3, where=w, axis=1)
        m.all(a > -9, where=w) | m.mean(a, axis=1, where=w, keepdims=True) | m.var(a, where=w)
m.std(a, axis=0, where=w, ddof=1) | a.sum(initial=1, where=w) | a.max(axis=0, initial=3) | m.mean(k, dtype="i8")
        """
    ),
)
def test_keywords_of_numpy(call: str) -> None:
    same(*both(call))


def test_orders_are_layouts() -> None:
    for made in (gp.zeros((2, 3), order="F"), gp.empty((2, 3), order="F"), gp.asarray(HOST).copy(order="F")):
        assert made.T.is_contiguous() and not made.is_contiguous()
    for wrong in ("X", 3):
        for call in (gp.empty, gp.zeros, gp.ones):
            with pytest.raises(ValueError, match="order"):
                call((2, 3), order=wrong)
    x = gp.asarray(HOST)
    assert x.astype("float64", copy=False) is x
    with pytest.raises(gp.DTypeError, match="casting='safe'"):
        x.astype("float32", casting="safe")
    with pytest.raises(gp.ShapeError, match="copy"):
        x.T.reshape(12, copy=False)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("gp.sort(x, kind='bogo')", ValueError),
        ("gp.add(x, x, casting='any')", ValueError),
        ("gp.add(x, x, dtype='int32')", gp.DTypeError),
        ("gp.add(x, x, where=x)", gp.DTypeError),
        ("gp.max(x, where=x > 0)", gp.ShapeError),
        ("gp.sum(x, where=x)", gp.DTypeError),
        ("gp.concatenate([x, x], dtype='int8')", gp.DTypeError),
        ("gp.concatenate([x, x], dtype='f4', out=gp.zeros((6, 4)))", TypeError),
        ("gp.arange(3, dtype=bool)", TypeError),
        ("gp.asarray([x, x[0]])", gp.ShapeError),
        ("gp.corrcoef(x, dtype='int32')", gp.DTypeError),
        ("x.imag.fill(3)", gp.ShapeError),
        ("setattr(x, 'imag', 3)", TypeError),
        ("x.view('complex128')[:, :1].view('int8')", None),
    ],
)
def test_refusals(call: str, error: type[Exception] | None) -> None:
    scope = {"gp": gp, "x": gp.asarray(HOST)}
    if error is None:
        eval(call, scope)
        return
    with pytest.raises(error):
        eval(call, scope)


@pytest.mark.parametrize(
    "call",
    calls(
        """
        m.fmax(k, k) | m.fmin(k, 2) | m.tril(v) | m.triu(v, 1) | m.where(True, a, 0) | m.full(3, m.asarray(2.0))
        m.array([v, v]) | m.compress([1, 0, 1], a, axis=0) | m.cumulative_sum(m.asarray(3.0))
m.take(m.asarray(3.0), 0, axis=0) | m.squeeze(m.asarray(3.0), axis=0) | m.linalg.vector_norm(v[:0], ord=np.inf)
        m.digitize(v, m.asarray([np.nan, np.nan])) | m.digitize(v, m.asarray([-5.0, 0.0, np.nan])) | round(a[0, 0])
        a.item(2) | a.item((1, 2)) | m.angle(w) | m.conj(w) | m.round(w) | m.power(w, 2) | m.square(w) | a[1 :: 2**62]
        m.histogram2d(v.astype("f4"), v.astype("f4"), bins=3, range=[(-5, 0), (-9, 9)])[1:]
        m.quantile(u, m.asarray(np.float32(0.5)))
        m.bincount(k[:0, 0], weights=v[:0]) | m.einsum(a, np.arange(2), a.T, np.arange(1, 3), [0, 2])
        m.var(a + 1j * a[::-1]) | m.std(a + 1j * a, axis=1, ddof=1)
        """
    ),
)
def test_calls_and_result_types_of_numpy(call: str) -> None:
    same(*both(call))


def test_least_squares_with_machine_precision() -> None:
    a = np.vander(np.linspace(0, 1, 9), 8) @ np.diag(10.0 ** -np.arange(8))
    b = np.arange(9.0)
    found, expected = gp.linalg.lstsq(gp.asarray(a), gp.asarray(b), rcond=-1), np.linalg.lstsq(a, b, rcond=-1)
    assert found[2] == expected[2]
    narrow = gp.linalg.lstsq(gp.asarray(a[:, :3], "complex64"), gp.asarray(b, "complex64"))[0]
    np.testing.assert_allclose(narrow.to_numpy(), np.linalg.lstsq(a[:, :3].astype("c8"), b, rcond=None)[0], rtol=3e-7)


# ---- elements ----


def test_elements_of_storage_types_are_numbers() -> None:
    for dtype in STORAGE_ONLY:
        for code in range(256 if dtype.name.startswith("float8") else 16):
            number = scalars.decode(bytes([code]), dtype)
            np.testing.assert_equal(number, storage.decoded(np.array([code], np.uint8), dtype)[0].item())
    x = gp.asarray([1.5, -2.0]).astype("float8_e4m3")
    assert float(x[0]) == 1.5 and x[1].item() == -2.0 and "[ 1.5, -2. ]" in repr(x)
    assert gp.asarray(-3).astype("int4").item() == -3 and "-3" in repr(gp.asarray([-3, 7]).astype("int4"))


def _rounded_once(value: int | float) -> float:
    """The nearest bfloat16 of a number that is not subnormal, halves to even, exactly."""
    exact = abs(Fraction(value))
    if not exact:
        return 0.0
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > exact
    unit = Fraction(2) ** (exponent - 7)
    return float(round(exact / unit) * unit) * (-1 if value < 0 else 1)  # round() of a Fraction goes to even


def test_conversions_to_bfloat16_round_once() -> None:
    rng = np.random.default_rng(3)
    middles = (1 + rng.integers(0, 128, 200) / 128 + 1 / 256) * 2.0 ** rng.integers(-20, 20, 200)
    near = np.concatenate([middles, middles * (1 + 2.0**-40), -middles * (1 - 2.0**-40)])
    large = np.array([2**62 + 2**54 + 1, 2**62 + 2**54, -(2**62) - 2**54 - 1, 2**63 - 1, -(2**63), 257, -259], np.int64)
    unsigned = np.array([2**63 + 2**55 + 1, 2**64 - 1, 2**63 + 2**55], np.uint64)
    for values in (near, large, unsigned, large[-2:].astype(np.int32)):
        expected = [_rounded_once(value) for value in values.tolist()]
        assert gp.from_numpy(values).astype("bfloat16").astype("float64").tolist() == expected
    for value in near.tolist():
        assert gp.full((), value, "bfloat16").item() == _rounded_once(value)


def test_views_that_repeat_elements_cannot_be_written() -> None:
    for view, key in ((gp.broadcast_to(gp.ones(1), (3,)), 0), (gp.broadcast_to(gp.ones(2), (3, 2)), (0, slice(1)))):
        with pytest.raises(ValueError, match="broadcast view"):
            view[key] = 7
        assert (view == 1).all().item()


def test_generators_are_pickled_and_copied() -> None:
    generator = gp.random.default_rng(5)
    generator.random(3)
    others = pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator), copy.copy(generator)
    expected = generator.random(4).tolist()
    assert [other.random(4).tolist() for other in others] == [expected] * 3


@pytest.mark.parametrize("call", [lambda: gp.linspace(0, 1, 2**50), lambda: gp.arange(2.0**50)])
def test_values_that_no_host_holds(call: Callable[[], Any]) -> None:
    with pytest.raises(gp.OutOfMemoryError, match="do not fit"):
        call()


def test_views_of_another_size_divide_the_last_axis() -> None:
    whole = np.arange(12, dtype=np.int64).reshape(3, 4)
    x = gp.from_numpy(whole)
    for dtype in ("int32", "uint8", "complex128"):
        same(x.view(dtype), whole.view(dtype))
        same(x[1:, :2].view(dtype), whole[1:, :2].view(dtype))
    for wrong in (x.T, x[0, 0], x[:, ::2]):
        with pytest.raises(gp.ShapeError, match="view: int64 has 8 bytes, int32 has 4"):
            wrong.view("int32")
