"""Every function of the array API standard against array-api-strict on random inputs, and the documented deviations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_api_help import (
    ALL,
    BOOL,
    COMPLEX,
    DTYPES,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMERIC,
    REAL,
    RNG,
    SIGNED,
    Case,
    call,
    compare,
    strict,
    values,
)

from pygpukit import array_api as xp

pytestmark = pytest.mark.usefixtures("backend_name")

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "array_api.md"


def some(*dtypes: str) -> list[str]:
    """A few of many types, others on every run; each group is covered over time, single ones always."""
    return list(dtypes) if len(dtypes) <= 4 else [str(x) for x in RNG.choice(dtypes, 4, replace=False)]


def unary(*dtypes: str, low: float = -8, high: float = 8, edges: bool = True) -> Iterator[Case]:
    for dtype in some(*dtypes):
        yield (values((3, 5), dtype, low, high),), {}
        if edges and dtype in FLOATS:
            yield (np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 0.5, -2.5, 1.5], dtype),), {}
    yield (values((), dtypes[-1], low, high),), {}
    yield (values((0, 2), dtypes[-1]),), {}


def binary(*dtypes: str, low: float = -8, high: float = 8, scalar: Any = 2) -> Iterator[Case]:
    for dtype in some(*dtypes):
        yield (values((3, 5), dtype, low, high), values((5,), dtype, low, high)), {}
    wide, narrow = dtypes[-1], dtypes[0]
    number = scalar if wide not in BOOL else True
    yield (values((4,), wide, low, high), number), {}
    yield (number, values((4,), wide, low, high)), {}
    if {wide, narrow} <= set(FLOATS) or {wide, narrow} <= set(SIGNED):
        yield (values((4,), narrow, low, high), values((2, 1), wide, low, high)), {}


def over_axes(*dtypes: str, low: float = -8, high: float = 8, empty: bool = True, **more: Any) -> Iterator[Case]:
    for dtype in some(*dtypes):
        for axis in (None, 0, -1, (0, 2)):
            yield (values((3, 4, 5), dtype, low, high),), {"axis": axis, "keepdims": bool(RNG.integers(2)), **more}
    if empty:
        yield (values((0, 3), dtypes[-1]),), {"axis": 0, **more}


def over_one_axis(*dtypes: str, **more: Any) -> Iterator[Case]:
    for dtype in some(*dtypes):
        for axis in (None, 0, -1):
            yield (values((3, 4, 5), dtype),), {"axis": axis, "keepdims": bool(RNG.integers(2)), **more}


def ordered(*dtypes: str) -> Iterator[Case]:
    for dtype in some(*dtypes):
        for axis, descending in ((-1, False), (0, True), (1, False)):
            yield (values((3, 40, 2), dtype),), {"axis": axis, "descending": descending}
    yield (np.array([3.0, 1.0, 2.0, 1.0]),), {}


def cumulative(*dtypes: str) -> Iterator[Case]:
    for dtype in some(*dtypes):
        yield (values((7,), dtype, 1, 3),), {"include_initial": True}
        yield (values((3, 4), dtype, 1, 3),), {"axis": 1}
    yield (values((3, 4), "int8", 1, 3),), {"axis": 0, "dtype": "float64"}


def sets(*dtypes: str) -> Iterator[Case]:
    for dtype in some(*dtypes):
        yield (values((4, 6), dtype, -3, 3) if dtype not in INEXACT else np.round(values((4, 6), dtype, -3, 3)),), {}


def cases() -> dict[str, Callable[[], Iterator[Case] | list[Case]]]:
    """Standard's name -> makes the calls to compare: arguments with NumPy arrays for arrays, names for types."""
    a, b = values((3, 4), "float64"), values((3, 4), "float64")
    i = values((2, 3, 4), "int32")
    line = np.sort(values((9,), "float64"))
    found: dict[str, Callable[[], Iterator[Case] | list[Case]]] = {
        # element-wise
        "abs": lambda: unary(*NUMERIC),
        "acos": lambda: unary(*INEXACT, low=-1, high=1),
        "acosh": lambda: unary(*INEXACT, low=1),
        "add": lambda: binary(*NUMERIC),
        "asin": lambda: unary(*INEXACT, low=-1, high=1),
        "asinh": lambda: unary(*INEXACT),
        "atan": lambda: unary(*INEXACT),
        "atan2": lambda: binary(*FLOATS),
        "atanh": lambda: unary(*INEXACT, low=-1, high=1),
        "bitwise_and": lambda: binary(*BOOL, *INTEGERS),
        "bitwise_invert": lambda: unary(*BOOL, *INTEGERS),
        "bitwise_left_shift": lambda: binary(*INTEGERS, low=0, high=6),
        "bitwise_or": lambda: binary(*BOOL, *INTEGERS),
        "bitwise_right_shift": lambda: binary(*INTEGERS, low=0, high=6),
        "bitwise_xor": lambda: binary(*BOOL, *INTEGERS),
        "ceil": lambda: unary(*REAL),
        "clip": lambda: [
            ((a, -1.0, 2.0), {}),
            ((a,), {"max": 0.5}),
            ((a,), {"min": 0.5}),
            ((i, -2, 3), {}),
            ((a, np.minimum(a, b), np.maximum(a, b)), {}),
        ],
        "conj": lambda: unary(*COMPLEX),
        "copysign": lambda: binary(*FLOATS, scalar=-0.0),
        "cos": lambda: unary(*INEXACT),
        "cosh": lambda: unary(*INEXACT),
        "divide": lambda: binary(*INEXACT),
        "equal": lambda: binary(*ALL),
        "exp": lambda: unary(*INEXACT),
        "expm1": lambda: unary(*INEXACT),
        "floor": lambda: unary(*REAL),
        "floor_divide": lambda: binary(*REAL, low=1),
        "greater": lambda: binary(*REAL),
        "greater_equal": lambda: binary(*REAL),
        "hypot": lambda: binary(*FLOATS),
        "imag": lambda: unary(*COMPLEX),
        "isfinite": lambda: unary(*NUMERIC),
        "isinf": lambda: unary(*NUMERIC),
        "isnan": lambda: unary(*NUMERIC),
        "less": lambda: binary(*REAL),
        "less_equal": lambda: binary(*REAL),
        "log": lambda: unary(*INEXACT),
        "log10": lambda: unary(*INEXACT),
        "log1p": lambda: unary(*INEXACT),
        "log2": lambda: unary(*INEXACT),
        "logaddexp": lambda: binary(*FLOATS),
        "logical_and": lambda: binary(*BOOL),
        "logical_not": lambda: unary(*BOOL),
        "logical_or": lambda: binary(*BOOL),
        "logical_xor": lambda: binary(*BOOL),
        "maximum": lambda: binary(*REAL),
        "minimum": lambda: binary(*REAL),
        "multiply": lambda: binary(*NUMERIC),
        "negative": lambda: unary(*SIGNED, *INEXACT),
        "nextafter": lambda: binary(*FLOATS),
        "not_equal": lambda: binary(*ALL),
        "positive": lambda: unary(*NUMERIC),
        "pow": lambda: binary(*INTEGERS, *FLOATS, low=0, high=4),
        "real": lambda: unary(*COMPLEX),
        "reciprocal": lambda: unary(*INEXACT),
        "remainder": lambda: binary(*REAL, low=1),
        "round": lambda: unary(*NUMERIC),
        "sign": lambda: unary(*NUMERIC),
        "signbit": lambda: unary(*FLOATS),
        "sin": lambda: unary(*INEXACT),
        "sinh": lambda: unary(*INEXACT),
        "sqrt": lambda: unary(*INEXACT),
        "square": lambda: unary(*NUMERIC),
        "subtract": lambda: binary(*NUMERIC),
        "tan": lambda: unary(*INEXACT),
        "tanh": lambda: unary(*INEXACT),
        "trunc": lambda: unary(*REAL),
        # creation
        "arange": lambda: [((5,), {}), ((2, 9, 3), {}), ((1.0, 2.0, 0.25), {}), ((7,), {"dtype": "float32"})],
        "asarray": lambda: [(([[1, 2], [3, 4]],), {}), ((1.5,), {"dtype": "float32"}), ((True,), {}), ((a,), {})],
        "empty": lambda: [(((2, 3),), {}), ((4,), {"dtype": "int8"})],
        "empty_like": lambda: [((i,), {}), ((i,), {"dtype": "float32"})],
        "eye": lambda: [((3,), {}), ((3, 5), {"k": 1}), ((4, 2), {"k": -1, "dtype": "int32"}), ((0,), {})],
        "full": lambda: [(((2, 3), 7), {}), ((4, 1.5), {}), ((3, True), {}), ((3, 2), {"dtype": "complex64"})],
        "full_like": lambda: [((i, 3), {}), ((a, 2), {"dtype": "int16"})],
        "linspace": lambda: [
            ((0.0, 1.0, 7), {}),
            ((2, 9, 4), {"endpoint": False}),
            ((0.0, 1.0, 5), {"dtype": "float32"}),
        ],
        "meshgrid": lambda: [((line, line[:3]), {}), ((line, line[:3], line[:2]), {"indexing": "ij"}), ((line,), {})],
        "ones": lambda: [(((2, 3),), {}), ((4,), {"dtype": "bool"})],
        "ones_like": lambda: [((i,), {}), ((a,), {"dtype": "uint8"})],
        "tril": lambda: [((a,), {}), ((i,), {"k": 1}), ((values((3, 3), "bool"),), {"k": -1})],
        "triu": lambda: [((a,), {}), ((i,), {"k": 1}), ((values((3, 3), "bool"),), {"k": -1})],
        "zeros": lambda: [(((2, 3),), {}), ((4,), {"dtype": "complex64"}), (((),), {})],
        "zeros_like": lambda: [((i,), {}), ((a,), {"dtype": "uint8"})],
        # data types
        "astype": lambda: [
            ((a, "float32"), {}),
            ((i, "float64"), {}),
            ((a, "int64"), {}),
            ((a, "float64"), {"copy": False}),
        ],
        "result_type": lambda: [
            (("int8", "int32"), {}),
            (("uint8", "int8"), {}),
            (("float32", "complex128"), {}),
            ((i, 3), {}),
            ((a, "float32", 2), {}),
            (("float32", 1.5), {}),
        ],
        # linear algebra
        "matmul": lambda: [
            ((values(s, d), values(t, d)), {})
            for d in NUMERIC
            for s, t in (((3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)))
        ],
        "matrix_transpose": lambda: [((i,), {}), ((a,), {})],
        "tensordot": lambda: [
            ((i, values((4, 2), "int32")), {"axes": 1}),
            ((a, b), {}),
            ((a, b), {"axes": ((1,), (1,))}),
            ((a, b), {"axes": 0}),
        ],
        "vecdot": lambda: [
            ((a, b), {}),
            ((a, b), {"axis": -2}),
            ((values((3, 4), "complex128"), values((4,), "complex128")), {}),
        ],
        # shapes
        "broadcast_arrays": lambda: [((a, a[:1], i), {})],
        "broadcast_shapes": lambda: [(((2, 1), (3,)), {}), (((),), {})],
        "broadcast_to": lambda: [((a, (2, 3, 4)), {}), ((a[:1], (0, 4)), {})],
        "concat": lambda: [
            (([a, b],), {}),
            (([i, i],), {"axis": -1}),
            (([a, b[0]],), {"axis": None}),
            (([a, a.astype("float32")],), {}),
        ],
        "expand_dims": lambda: [((a, 0), {}), ((a, -1), {}), ((a, (0, 3)), {})],
        "flip": lambda: [((i,), {"axis": axis}) for axis in (None, 0, (0, -1))],
        "moveaxis": lambda: [((i, 0, -1), {}), ((i, (0, 1), (2, 0)), {})],
        "permute_dims": lambda: [((i, (2, 0, 1)), {}), ((values((), "float32"), ()), {})],
        "repeat": lambda: [((a, 2), {}), ((i, 3), {"axis": 1}), ((a, np.array([0, 2, 1])), {"axis": 0})],
        "reshape": lambda: [((i, (4, -1)), {}), ((i, (24,)), {"copy": True}), ((i, (6, 4)), {"copy": False})],
        "roll": lambda: [((a, 2), {}), ((i, -1), {"axis": 1}), ((i, (1, -2)), {"axis": (0, 2)})],
        "squeeze": lambda: [((a[:1], 0), {}), ((i[:1, :1], (0, 1)), {})],
        "stack": lambda: [(([a, b],), {}), (([i, i, i],), {"axis": -1})],
        "tile": lambda: [((a, (2, 1)), {}), ((a, (3,)), {}), ((i, (1, 2, 1, 2)), {})],
        "unstack": lambda: [((i,), {}), ((i,), {"axis": -1})],
        # searching, sorting, sets
        "argmax": lambda: over_one_axis(*REAL),
        "argmin": lambda: over_one_axis(*REAL),
        "argsort": lambda: ordered(*REAL),
        "count_nonzero": lambda: over_axes(*ALL, low=-2, high=2),
        "isin": lambda: [((i, i[0, 0]), {}), ((i, 3), {}), ((3, i), {}), ((i, i[:0]), {})],
        "nonzero": lambda: [((values((3, 4), d, -1, 2),), {}) for d in ALL],
        "searchsorted": lambda: [
            ((line, a), {}),
            ((line, line), {"side": "right"}),
            ((line[::-1].copy(), a), {"sorter": np.arange(8, -1, -1)}),
            ((np.arange(9), i), {}),
            ((line, 0.5), {}),
        ],
        "sort": lambda: ordered(*REAL),
        "take": lambda: [
            ((line, np.array([3, 0, 3])), {}),
            ((i, np.array([1, 0, 2])), {"axis": 1}),
            ((a, np.array([-1, 0])), {"axis": 0}),
        ],
        "take_along_axis": lambda: [((a, np.argsort(a, axis=1)), {}), ((a, np.array([[0, 2, 1, 0]])), {"axis": 0})],
        "unique_all": lambda: sets(*NUMERIC),
        "unique_counts": lambda: sets(*NUMERIC),
        "unique_inverse": lambda: sets(*NUMERIC),
        "unique_values": lambda: sets(*NUMERIC),
        "where": lambda: [
            ((a > 0, a, b), {}),
            ((a[0] > 0, a, 2.5), {}),
            ((i > 0, 1, i), {}),
            ((a > 0, a, b.astype("float32")), {}),
        ],
        # statistics and more
        "all": lambda: over_axes(*ALL, low=0, high=3),
        "any": lambda: over_axes(*ALL, low=0, high=2),
        "cumulative_prod": lambda: cumulative(*NUMERIC),
        "cumulative_sum": lambda: cumulative(*NUMERIC),
        "diff": lambda: [
            ((a,), {}),
            ((i,), {"axis": 1, "n": 2}),
            ((a,), {"prepend": a[:, :1], "append": b}),
            ((a,), {"n": 0}),
        ],
        "max": lambda: over_axes(*REAL, empty=False),
        "mean": lambda: over_axes(*FLOATS, empty=False),
        "min": lambda: over_axes(*REAL, empty=False),
        "prod": lambda: over_axes(*NUMERIC, low=1, high=2.5),
        "std": lambda: over_axes(*FLOATS, empty=False, correction=float(RNG.integers(2))),
        "sum": lambda: [*over_axes(*NUMERIC), ((i,), {"dtype": "float32"})],
        "var": lambda: over_axes(*FLOATS, empty=False, correction=float(RNG.integers(2))),
    }
    return found


TESTED_APART = {"__array_namespace_info__", "can_cast", "finfo", "from_dlpack", "iinfo", "isdtype"}
CONSTANTS = {"e", "inf", "nan", "newaxis", "pi"}
NOT_THE_STANDARDS = {"ArrayAPIStrictFlags", "Device", "ModuleType"}  # and functions for its own flags


def standard_names() -> set[str]:
    names = {name for name in dir(strict) if not name.startswith("_") and "flags" not in name} - NOT_THE_STANDARDS
    return names | {"__array_namespace_info__"}


# ---- deviations ----


def documented() -> dict[str, str]:
    """Function -> reason, from the table in docs/array_api.md."""
    section = GUIDE.read_text().partition("## Deviations")[2]
    return dict(re.findall(r"^\| `(\w+)` \| (.+?) \|$", section, flags=re.MULTILINE))


def deviations() -> dict[str, Case]:
    """Function -> a call whose result is not the reference's. The guide says why."""
    whole = values((3, 4), "int32", -3, 3)
    return {"isin": ((whole, whole[0]), {"invert": True})}


def test_at_most_fifteen_deviations_are_documented_with_reasons() -> None:
    assert set(documented()) == set(deviations()) and len(deviations()) <= 15


@pytest.mark.parametrize("name", sorted(deviations()))
def test_documented_deviations_are_still_there(name: str) -> None:
    case = deviations()[name]
    result = call(name, xp, case)
    with pytest.raises(AssertionError):
        compare(name, result, call(name, strict, case), case)
    if name == "isin":
        np.testing.assert_array_equal(result.to_numpy(), np.isin(case[0][0], case[0][1], invert=True))


def test_the_standard_is_covered_name_by_name() -> None:
    names = standard_names()
    assert names == set(cases()) | TESTED_APART | CONSTANTS | DTYPES
    assert names <= set(xp.__all__)
    assert set(dir(xp)) == set(xp.__all__)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(cases()))
def test_function_equals_the_reference(name: str) -> None:
    for case in cases()[name]():
        result = call(name, xp, case)
        compare(name, result, call(name, strict, case), case)
