"""Data types: codes, spellings, NumPy counterparts, promotion against NumPy, elements as bytes."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pygpukit as gp
from pygpukit.array import promotion, scalars
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY, DataType, DataTypeKind, as_dtype

NUMPY_ONES = [dtype for dtype in DTYPES if dtype not in STORAGE_ONLY and dtype != "bfloat16"]
HEADER = Path(__file__).resolve().parents[2] / "native/include/pygpukit/dtype.h"


def test_codes_are_those_of_the_header() -> None:
    listed = re.findall(r"PK_(\w+) = (\d+)", HEADER.read_text())
    codes = {name.lower(): int(code) for name, code in listed if name != "DTYPE_COUNT"}
    assert codes == {dtype.name: dtype.code for dtype in DTYPES}
    sizes = re.search(r"bytes\[PK_DTYPE_COUNT\] = \{([^}]*)\}", HEADER.read_text())
    assert sizes is not None
    assert [int(size) for size in sizes.group(1).split(",")] == [dtype.itemsize for dtype in DTYPES]


def test_documented_members() -> None:
    assert isinstance(gp.float32, DataType)
    assert (gp.float32.kind, gp.float32.itemsize, gp.float32.name) == (DataTypeKind.FLOAT32, 4, "float32")
    assert DataTypeKind.BFLOAT16.value == "bfloat16"
    assert DataType.from_string("float16") is gp.float16
    assert DataType.from_numpy_dtype(np.dtype("int8")) is gp.int8
    assert gp.int4.itemsize == 1
    with pytest.raises(AttributeError):
        gp.float32.itemsize = 8  # type: ignore[misc]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numpy_counterparts(dtype: DataType) -> None:
    host = dtype.to_numpy_dtype()
    assert host.itemsize == dtype.itemsize
    if dtype in NUMPY_ONES:
        assert host.name == dtype.name
        assert DataType.from_numpy_dtype(host) is dtype
    assert pickle.loads(pickle.dumps(dtype)) == dtype
    assert hash(pickle.loads(pickle.dumps(dtype))) == hash(dtype)


@pytest.mark.parametrize(
    ("spelling", "dtype"),
    [
        ("float32", gp.float32), ("f4", gp.float32), ("<f8", gp.float64), ("half", gp.float16), ("bf16", gp.bfloat16),
        ("bool", gp.bool_), (bool, gp.bool_), (int, gp.int64), (float, gp.float64), (complex, gp.complex128),
        (np.float32, gp.float32), (np.dtype("uint16"), gp.uint16), (np.bool_, gp.bool_), (gp.int8, gp.int8),
        ("float8_e4m3fn", gp.float8_e4m3),
    ],
    ids=repr,
)  # fmt: skip
def test_spellings(spelling: object, dtype: DataType) -> None:
    assert as_dtype(spelling) is dtype
    assert gp.empty(2, spelling).dtype is dtype
    assert dtype == spelling


@pytest.mark.parametrize(
    "spelling", ["floaty", "O", None, [], pytest.param(object(), id="object"), "M8[s]", np.dtype("V3"), 7], ids=repr
)
def test_unknown_spellings_list_the_known(spelling: object) -> None:
    with pytest.raises(gp.DTypeError, match="is not supported; use one of bool, int8"):
        as_dtype(spelling)
    with pytest.raises(gp.DTypeError):
        gp.empty(2, spelling)
    assert (gp.float32 == spelling) is False


def test_equality() -> None:
    assert gp.float32 != gp.float64
    assert gp.float32 != "float64"
    assert np.dtype("float32") == gp.float32
    assert gp.float32 in [gp.float64, gp.float32]


# ---- promotion ----


@pytest.mark.parametrize("a", NUMPY_ONES, ids=str)
@pytest.mark.parametrize("b", NUMPY_ONES, ids=str)
def test_promotion_is_numpys(a: DataType, b: DataType) -> None:
    left, right = a.to_numpy_dtype(), b.to_numpy_dtype()
    assert promotion.promote(a, b) == np.result_type(left, right)
    assert promotion.true_divide(promotion.promote(a, b)) == np.true_divide(np.ones(1, left), np.ones(1, right)).dtype
    assert promotion.can_store(a, b) == np.can_cast(left, right, "same_kind")


@pytest.mark.parametrize("dtype", NUMPY_ONES, ids=str)
@pytest.mark.parametrize("scalar", [True, 1, 1.5, 1j], ids=repr)
def test_promotion_with_a_number_is_numpys(dtype: DataType, scalar: complex) -> None:
    expected = (np.ones(1, dtype.to_numpy_dtype()) + scalar).dtype
    assert promotion.with_scalar(dtype, scalar) == expected


def test_promotion_of_bfloat16() -> None:
    for other, expected in {
        "bool": "bfloat16", "int8": "bfloat16", "uint8": "bfloat16", "int16": "float32", "int64": "float64",
        "float16": "float32", "bfloat16": "bfloat16", "float32": "float32", "complex64": "complex64",
    }.items():  # fmt: skip
        assert promotion.promote(gp.bfloat16, as_dtype(other)) == expected
        assert promotion.promote(as_dtype(other), gp.bfloat16) == expected
    assert promotion.with_scalar(gp.bfloat16, 2.5) == "bfloat16"


@pytest.mark.parametrize("dtype", sorted(STORAGE_ONLY, key=str), ids=str)
def test_storage_types_do_not_promote(dtype: DataType) -> None:
    with pytest.raises(gp.DTypeError, match="storage type"):
        promotion.promote(dtype, gp.float32)
    with pytest.raises(gp.DTypeError, match="storage type"):
        promotion.with_scalar(dtype, 1)


@pytest.mark.parametrize("dtype", [d for d in NUMPY_ONES if promotion.is_integer(d)], ids=str)
def test_integers_out_of_range_are_refused(dtype: DataType) -> None:
    limits = np.iinfo(dtype.to_numpy_dtype())
    for inside in (limits.min, limits.max):
        assert promotion.with_scalar(dtype, int(inside)) == dtype
    for outside in (int(limits.min) - 1, int(limits.max) + 1):
        with pytest.raises(OverflowError, match=f"{outside} does not fit {dtype}"):
            promotion.with_scalar(dtype, outside)


# ---- elements as bytes ----


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@given(value=st.floats())
def test_floats_are_encoded_as_numpy_converts(dtype: str, value: float) -> None:
    with np.errstate(over="ignore"):
        expected = np.array(value).astype(dtype)
    found = scalars.encode(value, as_dtype(dtype))
    np.testing.assert_array_equal(np.frombuffer(found, dtype)[0], expected)
    np.testing.assert_array_equal(scalars.decode(found, as_dtype(dtype)), float(expected))


@given(value=st.floats(width=32))
def test_bfloat16_is_rounded_to_nearest_even(value: float) -> None:
    bits = int(np.float32(value).view(np.uint32))
    found = int.from_bytes(scalars.encode(value, gp.bfloat16), "little")
    if np.isnan(value):
        assert np.isnan(scalars.decode(found.to_bytes(2, "little"), gp.bfloat16))
    else:
        assert found == (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


@pytest.mark.parametrize("dtype", NUMPY_ONES, ids=str)
def test_elements_come_back(dtype: DataType) -> None:
    for value in (0, 1, True):
        encoded = scalars.encode(value, dtype)
        assert len(encoded) == dtype.itemsize
        assert encoded == np.array(value).astype(dtype.to_numpy_dtype()).tobytes()
        assert scalars.decode(encoded, dtype) == value


def test_numbers_that_do_not_fit_their_type() -> None:
    with pytest.raises(OverflowError):
        scalars.encode(256, gp.uint8)
    with pytest.raises(ValueError, match="NaN"):
        scalars.encode(float("nan"), gp.int32)
    with pytest.raises(gp.DTypeError, match="complex"):
        scalars.encode(1j, gp.float64)
