"""Operations against NumPy: values, shapes, promotion, outputs, refusals; on both backends."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import KERNELS_ALONE, WITHOUT_KERNELS
from hypothesis import given, settings
from hypothesis import strategies as st

import pygpukit as gp
from pygpukit import _core, ops

pytestmark = pytest.mark.usefixtures("operation_backend")

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def sample(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        low = 0 if kind == "u" else -100
        return rng.integers(low, 120, shape).astype(dtype)
    values = rng.standard_normal(shape) * 10
    return (values + 1j * rng.standard_normal(shape)).astype(dtype) if kind == "c" else values.astype(dtype)


def agree(found: gp.GPUArray, expected: Any) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    tolerance = {"c8": 1e-6, "c16": 1e-14}.get(expected.dtype.str[1:], 0)  # complex products may fuse additions
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=tolerance, atol=tolerance)


@WITHOUT_KERNELS
@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_every_pair_of_types_is_numpys(name: str, left: str, right: str) -> None:
    check_pair(name, left, right)


@KERNELS_ALONE
@pytest.mark.parametrize(
    ("left", "right"), [("bool", "int8"), ("int8", "uint64"), ("uint16", "float16"), ("float32", "complex64")]
)
def test_pairs_of_types_by_kernels(left: str, right: str) -> None:
    for name in ARITHMETIC:
        check_pair(name, left, right)
        check_pair(name, right, right)


def check_pair(name: str, left: str, right: str) -> None:
    a, b = sample((3, 5), left, 1), sample((3, 5), right, 2)
    if name == "sub" and left == right == "bool":
        with pytest.raises(gp.DTypeError, match="not defined for bool"):
            gp.sub(gp.from_numpy(a), gp.from_numpy(b))
        return
    with np.errstate(all="ignore"):
        agree(getattr(gp, name)(gp.from_numpy(a), gp.from_numpy(b)), ARITHMETIC[name](a, b))


NUMBERS = [True, 3, 2.5, 1 + 2j]


@WITHOUT_KERNELS
@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scalar", NUMBERS, ids=repr)
def test_python_numbers_contribute_their_kind(name: str, dtype: str, scalar: Any) -> None:
    check_number(name, dtype, scalar)


@KERNELS_ALONE
@pytest.mark.parametrize("dtype", ["uint8", "float16", "complex64"])
def test_python_numbers_by_kernels(dtype: str) -> None:
    for name, scalar in zip(ARITHMETIC, NUMBERS, strict=True):
        check_number(name, dtype, scalar)


def check_number(name: str, dtype: str, scalar: Any) -> None:
    a = sample((17,), dtype)
    x, op = gp.from_numpy(a), ARITHMETIC[name]
    if name == "sub" and dtype == "bool" and scalar is True:
        with pytest.raises(gp.DTypeError, match="not defined for bool"):
            op(x, scalar)
        return
    with np.errstate(all="ignore"):
        agree(op(x, scalar), op(a, scalar))
        agree(op(scalar, x), op(scalar, a))


@pytest.mark.parametrize("scalar", [np.float64(2.5), np.float32(0.1), np.int8(3), np.bool_(True)], ids=repr)
def test_numpy_numbers_keep_their_type(scalar: Any) -> None:
    a = sample((9,), "float32")
    agree(gp.from_numpy(a) * scalar, a * scalar)
    agree(scalar * gp.from_numpy(a), scalar * a)


def test_integer_overflow_wraps_and_large_numbers_are_refused() -> None:
    a = np.array([127, -128, 100], np.int8)
    x = gp.from_numpy(a)
    agree(x + x, a + a)
    agree(x * 3, a * np.int8(3))
    agree(-x, -a)
    agree(-gp.from_numpy(a.view(np.uint8)), -a.view(np.uint8))
    with pytest.raises(OverflowError, match="300 does not fit int8"):
        x + 300
    with pytest.raises(OverflowError):
        gp.ones(2, "uint8") - (-1)


def test_division_is_true_division() -> None:
    a = np.array([7, -7, 0, 1], np.int32)
    with np.errstate(all="ignore"):
        agree(gp.from_numpy(a) / 2, a / 2)
        agree(gp.from_numpy(a) / gp.from_numpy(np.zeros(4, np.int32)), a / np.zeros(4, np.int32))
        agree(1 / gp.from_numpy(a), 1 / a)


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "bool"])
def test_neg(dtype: str) -> None:
    a = sample((4, 5), dtype)
    agree(gp.neg(gp.from_numpy(a)), -a)
    agree(-gp.from_numpy(a)[::-1, ::2].T, -a[::-1, ::2].T)
    if np.dtype(dtype).kind == "f":
        assert np.signbit((-gp.zeros(1, dtype)).to_numpy()).all()
    with pytest.raises(gp.DTypeError, match="not defined for bool"):
        gp.neg(gp.ones(2, "bool"))


@pytest.mark.parametrize("op", COMPARISONS)
@pytest.mark.parametrize("dtype", [name for name in DTYPES if not name.startswith("complex")])
def test_comparisons(op: Callable[[Any, Any], Any], dtype: str) -> None:
    a, b = sample((6, 7), dtype, 1), sample((7,), dtype, 2)
    agree(op(gp.from_numpy(a), gp.from_numpy(b)), op(a, b))
    agree(op(gp.from_numpy(a), 1), op(a, 1))
    agree(op(gp.from_numpy(a)[:, ::-2], gp.from_numpy(b)[::2]), op(a[:, ::-2], b[::2]))


def test_comparison_of_complex_nan_and_other_objects() -> None:
    a = np.array([1 + 1j, 2, complex("nan")])
    agree(gp.from_numpy(a) == gp.from_numpy(a), a == a)
    agree(gp.from_numpy(a) != 2, a != 2)
    with pytest.raises(gp.DTypeError, match="no order"):
        gp.from_numpy(a) < 1  # noqa: B015
    nan = np.array([np.nan, 1.0], np.float32)
    for op in COMPARISONS:
        agree(op(gp.from_numpy(nan), gp.from_numpy(nan)), op(nan, nan))
    assert (gp.ones(2) == None) is False  # noqa: E711
    assert (gp.ones(2) != "a") is True


@pytest.mark.parametrize("dtype", ["bfloat16"])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_bfloat16_rounds_each_result_once(name: str, dtype: str) -> None:
    def bf16(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
        return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint32) << 16).view(np.float32)

    a, b = bf16(sample((33,), "float32", 1)), bf16(sample((33,), "float32", 2))
    x, y = gp.from_numpy(a).astype(dtype), gp.from_numpy(b).astype(dtype)
    found = ARITHMETIC[name](x, y)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype("float32").to_numpy(), bf16(ARITHMETIC[name](a, b)))
    scaled = ARITHMETIC[name](x, 0.1)
    assert scaled.dtype == dtype
    np.testing.assert_array_equal(scaled.astype("float32").to_numpy(), bf16(ARITHMETIC[name](a, bf16(np.array(0.1)))))
    assert (x + gp.ones(33, "float16")).dtype == "float32"
    assert (x + gp.ones(33, "int32")).dtype == "float64"


# ---- broadcasting and layouts ----


BROADCAST = [
    ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 3)), ((2, 3), ()), ((5, 1, 7), (6, 1)), ((0, 3), (1, 3)), ((1,), (0,)),
    ((1, 1, 1), (2,)), ((1023,), (1023,)), ((1025, 3), (1025, 1)), ((2, 3, 4, 5), (3, 1, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), BROADCAST)
def test_broadcasting(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = sample(left, "float32", 1), sample(right, "float32", 2)
    agree(gp.from_numpy(a) - gp.from_numpy(b), a - b)
    agree(gp.from_numpy(b) - gp.from_numpy(a), b - a)


@pytest.mark.parametrize(("left", "right"), [((3,), (4,)), ((2, 3), (2,)), ((2, 1, 3), (4, 2))])
def test_shapes_that_do_not_broadcast_are_named(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    with pytest.raises(gp.ShapeError, match=r"add: shapes .*do not broadcast") as caught:
        gp.add(gp.ones(left), gp.ones(right))
    assert str(left) in str(caught.value)
    assert str(right) in str(caught.value)
    assert isinstance(caught.value, ValueError)


step = st.sampled_from([1, 1, 2, -1, -2, 3])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), step, step, step, st.booleans()), min_size=0, max_size=4), st.randoms())
def test_any_strides_agree_with_numpy(axes: list[tuple[int, int, int, int, bool]], random: Any) -> None:
    """Two operands and an output, each stepped, reversed and permuted in its own way, one of them broadcast."""
    shape = tuple(extent for extent, *_ in axes)
    order = list(range(len(axes)))
    random.shuffle(order)

    def strided(position: int, broadcast: bool, seed: int) -> tuple[np.ndarray[Any, Any], gp.GPUArray]:
        own = [1 if broadcast and axis[4] else axis[0] for axis in axes]
        base = sample(tuple(own[i] * abs(axes[i][position]) for i in order), "int32", seed)
        key = tuple(slice(None, None, axes[i][position]) for i in order)
        back = np.argsort(order) if order else []
        return base[key].transpose(*back), gp.from_numpy(base)[key].transpose(*back)

    (a, x), (b, y), (c, z) = strided(1, False, 1), strided(2, True, 2), strided(3, False, 3)
    assert x.shape == a.shape == shape
    agree(x * y, a * b)
    assert c.shape == z.shape
    assert gp.sub(x, y, out=z) is z
    agree(z, a - b)
    z[...] = x
    agree(z, a)


# ---- outputs ----


def test_out_is_written_and_returned() -> None:
    a, b = sample((4, 5), "float32", 1), sample((4, 5), "float32", 2)
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    out = gp.zeros((8, 5))
    assert gp.mul(x, y, out=out[::2]).block == out.block
    np.testing.assert_array_equal(out.to_numpy()[::2], a * b)
    np.testing.assert_array_equal(out.to_numpy()[1::2], 0)
    wide = gp.zeros((4, 5), "float64")
    agree(gp.add(x, y, out=wide), (a + b).astype(np.float64))
    narrow = gp.zeros((4, 5), "float16")
    agree(gp.add(x, y, out=narrow), (a + b).astype(np.float16))


def test_out_may_be_or_overlap_an_operand() -> None:
    a = sample((100,), "int32")
    x = gp.from_numpy(a)
    gp.add(x, 1, out=x)
    agree(x, a + 1)
    x = gp.from_numpy(a)
    gp.add(x[:-1], x[1:], out=x[1:])
    expected = a.copy()
    expected[1:] = a[:-1] + a[1:]
    agree(x, expected)
    x = gp.from_numpy(a)
    gp.sub(x, x[::-1], out=x)
    agree(x, a - a[::-1])


def test_out_of_the_wrong_shape_or_kind() -> None:
    x = gp.ones((2, 3))
    with pytest.raises(gp.ShapeError, match=r"out has shape \(3,\), the result has shape \(2, 3\)"):
        gp.add(x, x, out=gp.ones(3))
    with pytest.raises(gp.DTypeError, match="float32 result cannot be stored in an array of int32"):
        gp.add(x, x, out=gp.ones((2, 3), "int32"))


def test_in_place_operators() -> None:
    a = sample((6, 4), "float32")
    x = gp.from_numpy(a)
    same = x
    x += 2
    x *= gp.from_numpy(a[0])
    x -= x
    x[1:3] += 5
    x[:, 0] /= 2
    expected = np.zeros((6, 4), np.float32)
    expected[1:3] += 5
    expected[:, 0] /= 2
    assert x is same
    agree(x, expected)
    counts = gp.ones(3, "int32")
    with pytest.raises(gp.DTypeError):
        counts += 0.5
    with pytest.raises(gp.DTypeError):
        counts /= 2
    with pytest.raises(gp.ShapeError):
        counts += gp.ones((2, 3), "int32")


def test_documented_in_place_functions() -> None:
    x = gp.ones(4)
    assert ops.add_inplace(x, gp.full(4, 2.0, "float32")) is None
    assert ops.mul_inplace(x, gp.full(4, 3.0, "float32")) is None
    assert x.to_numpy().tolist() == [9] * 4
    y = gp.zeros(4)
    ops.copy_to(x, y)
    agree(y, x.to_numpy())


# ---- refusals ----


@pytest.mark.parametrize("operand", [np.ones(3, np.float32), [1, 2, 3]], ids=repr)
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.matmul])
def test_host_operands_are_refused_with_the_remedy(op: Callable[[Any, Any], Any], operand: Any) -> None:
    for a, b in ((gp.ones(3), operand), (operand, gp.ones(3))):
        with pytest.raises(gp.DTypeError, match="from_numpy"):
            op(a, b)


def test_two_numbers_are_no_operation() -> None:
    with pytest.raises(gp.DTypeError, match="must be a GPUArray"):
        gp.add(1, 2)


# ---- matmul ----


PRODUCTS = [
    ((3,), (3,)), ((0,), (0,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((1, 1), (1, 1)),
    ((65, 33), (33, 17)),
    ((64, 64), (64, 64)), ((130, 70), (70, 129)), ((5, 0), (0, 4)), ((0, 3), (3, 4)), ((3, 4), (4, 0)),
    ((1, 300), (300, 1)), ((4, 2, 3), (3, 5)), ((2, 3), (4, 3, 5)), ((4, 2, 3), (4, 3, 5)), ((4, 1, 2, 3), (6, 3, 5)),
    ((0, 2, 3), (3, 5)), ((4, 2, 3), (3,)), ((3,), (4, 3, 5)), ((2, 1, 3, 4), (1, 5, 4, 6)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_matmul_shapes(left: tuple[int, ...], right: tuple[int, ...], dtype: str) -> None:
    a, b = sample(left, dtype, 1), sample(right, dtype, 2)
    found, expected = gp.matmul(gp.from_numpy(a), gp.from_numpy(b)), np.matmul(a, b)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    wide = np.matmul(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(found.to_numpy(), expected if dtype == "int32" else wide, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul_types(dtype: str) -> None:
    a, b = sample((33, 20), dtype, 1), sample((20, 9), dtype, 2)
    found = gp.from_numpy(a) @ gp.from_numpy(b)
    assert found.dtype == dtype
    if np.dtype(dtype).kind in "biu":
        np.testing.assert_array_equal(found.to_numpy(), a @ b)
        return
    wide = a.astype(np.complex128) @ b.astype(np.complex128)
    rtol = {"float16": 1e-3, "float32": 1e-6, "complex64": 1e-6}.get(dtype, 1e-14)
    np.testing.assert_allclose(found.to_numpy(), wide, rtol=rtol, atol=rtol * np.abs(wide).max())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_are_summed_in_float32(dtype: str) -> None:
    n = 4096
    ones = gp.ones((1, n), dtype)
    assert (ones @ ones.T).item() == n, "a float16 or bfloat16 sum would stop growing at 2048 or 256"


def test_matmul_promotes() -> None:
    a, b = sample((3, 4), "int32", 1), sample((4, 5), "float32", 2)
    found = gp.from_numpy(a) @ gp.from_numpy(b)
    assert found.dtype == "float64"
    np.testing.assert_allclose(found.to_numpy(), a @ b, rtol=1e-14)


def test_matmul_reads_strided_operands_in_place() -> None:
    a, b = sample((40, 66), "float32", 1), sample((70, 66), "float32", 2)
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    before = _core.pool_stats().allocation_count
    found = x[::-1, ::2] @ y.T[::2]
    assert _core.pool_stats().allocation_count - before == 1, "only the result is allocated"
    wide = a.astype(np.float64)[::-1, ::2] @ b.astype(np.float64).T[::2]
    np.testing.assert_allclose(found.to_numpy(), wide, rtol=1e-5, atol=1e-3)


def test_matmul_out() -> None:
    a, b = sample((8, 8), "float32", 1), sample((8, 8), "float32", 2)
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    expected = gp.matmul(x, y).to_numpy()
    out = gp.zeros((8, 16))
    assert gp.matmul(x, y, out=out[:, ::-2]).block == out.block
    np.testing.assert_array_equal(out.to_numpy()[:, ::-2], expected)
    np.testing.assert_array_equal(out.to_numpy()[:, ::2], 0)
    x @= y
    np.testing.assert_array_equal(x.to_numpy(), expected)
    with pytest.raises(gp.ShapeError, match="out has shape"):
        gp.matmul(x, y, out=gp.zeros((8, 4)))


@pytest.mark.parametrize(
    ("left", "right"), [((2, 3), (2, 3)), ((3,), (4,)), ((2, 3), (4,)), ((2, 2, 3), (3, 3, 4)), ((), (3,))]
)
def test_matmul_refuses_shapes_by_name(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    with pytest.raises(gp.ShapeError, match=r"matmul.*shapes") as caught:
        gp.matmul(gp.ones(left), gp.ones(right))
    assert "dimension" in str(caught.value)


def test_same_bits_every_time() -> None:
    x, y = gp.from_numpy(sample((130, 200), "float32", 1)), gp.from_numpy(sample((200, 77), "float32", 2))
    first = (x @ y).to_numpy().tobytes()
    assert all((x @ y).to_numpy().tobytes() == first for _ in range(5))


def test_every_operation_passes_the_one_launch_function() -> None:
    x, y = gp.ones((8, 8)), gp.ones((8, 8))
    gp.synchronize()

    def launches() -> int:
        counted = _core.counters()
        return counted["launches"] + counted["host_launches"]

    for work in (
        lambda: x + y,
        lambda: x * 2,
        lambda: -x,
        lambda: x @ y,
        lambda: x.astype("int32"),
        lambda: x.T.clone(),
    ):
        work()
        before = launches()
        work()
        assert launches() == before + 1


def test_a_bad_output_is_refused_before_anything_is_converted() -> None:
    x, c, mask, short = gp.ones(4, "float32"), gp.ones(4, "complex64"), gp.ones(4, "int32"), gp.ones(3)
    launches = _core.counters()
    with pytest.raises(gp.DTypeError, match="cannot be stored"):
        gp.add(x, c, out=x)
    with pytest.raises(gp.ShapeError):
        gp.where(mask, x, 1j, out=short)
    assert _core.counters() == launches


@pytest.mark.parametrize("flip", [np.s_[::-1], np.s_[:, ::-1], np.s_[::-1, ::-2]])
def test_empty_operands_may_have_any_strides(flip: Any) -> None:
    a, b = np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    np.testing.assert_array_equal((x @ y[flip]).to_numpy(), a @ b[flip])
    np.testing.assert_array_equal((x[flip] @ y).to_numpy(), a[flip] @ b)
    np.testing.assert_array_equal(y[flip].sum(axis=0).to_numpy(), b[flip].sum(axis=0))
    assert (y[flip] + 1).shape == b[flip].shape
