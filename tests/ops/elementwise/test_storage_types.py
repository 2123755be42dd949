"""astype to and from fp8, fp4 and int4: every code, every float16, against the definitions in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY

pytestmark = pytest.mark.usefixtures("operation_backend")

# Bits of exponent and mantissa, and the exponent's bias, as the OCP specifications give them.
FORMATS = {"float8_e4m3": (4, 3, 7), "float8_e5m2": (5, 2, 15), "float4_e2m1": (2, 1, 1)}
NUMBERS = [dtype.name for dtype in DTYPES if dtype not in STORAGE_ONLY]


def decode(name: str, code: int) -> float:
    """The specifications' formula, and their lists of codes that are no numbers."""
    if name == "int4":
        return float(code & 7) - (8 if code & 8 else 0)
    exponent_bits, mantissa_bits, bias = FORMATS[name]
    sign = -1.0 if code >> (exponent_bits + mantissa_bits) & 1 else 1.0
    exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = code & ((1 << mantissa_bits) - 1)
    if name == "float8_e4m3" and (exponent, mantissa) == (15, 7):
        return math.nan
    if name == "float8_e5m2" and exponent == 31:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * 2.0 ** (1 - bias) * mantissa / 2**mantissa_bits
    return sign * 2.0 ** (exponent - bias) * (1 + mantissa / 2**mantissa_bits)


@cache
def ladder(name: str) -> list[tuple[Fraction, int]]:
    """The numbers that are not negative, with their codes, and then the one that would come next: it is too large."""
    half = 1 << (sum(FORMATS[name][:2]))
    found = [(Fraction(value), code) for code in range(half) if math.isfinite(value := decode(name, code))]
    top = 2 * found[-1][0] - found[-2][0]  # in the same exponent, or the first of the next
    return [*found, (top, {"float8_e4m3": 0x7F, "float8_e5m2": 0x7C, "float4_e2m1": 7}[name])]


def encode(name: str, value: float) -> int | None:
    """The code of the nearest number, of two the one with an even code; None for any NaN."""
    if math.isnan(value):
        return 7 if name == "float4_e2m1" else None
    sign = (1 << sum(FORMATS[name][:2])) if math.copysign(1, value) < 0 else 0
    steps = ladder(name)
    if math.isinf(value) or abs(value) >= steps[-1][0]:
        code = steps[-1][1]
    else:
        exact = Fraction(abs(value))
        low, high = 0, len(steps) - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if steps[middle][0] <= exact else (low, middle)
        below, above = exact - steps[low][0], steps[high][0] - exact
        # Positions are codes, but for the last one's: an even position is an even code.
        code = steps[low if below < above or (below == above and low % 2 == 0) else high][1]
    return None if math.isnan(decode(name, code)) else code | sign


def check(name: str, values: np.ndarray[Any, Any], found: gp.GPUArray) -> None:
    codes = found.to_numpy().reshape(-1).tolist()
    for value, code in zip(values.reshape(-1).tolist(), codes, strict=True):
        wanted = encode(name, value)
        if wanted is None:
            assert math.isnan(decode(name, code)), (value, code)
        else:
            assert code == wanted, (value, code, wanted)


@pytest.mark.parametrize("name", [*FORMATS, "int4"])
def test_every_code_stands_for_its_number(name: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    stored = gp.from_numpy(codes).view(name)
    wanted = np.array([decode(name, code) for code in range(256)])
    for target in ("float32", "float64", "float16", "bfloat16"):
        found = stored.astype(target).astype("float64").to_numpy()
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted) | (np.isnan(wanted) & np.signbit(found)))
    numbers = np.isfinite(wanted)
    small = gp.from_numpy(codes[numbers]).view(name)
    for target in ("int8", "int32", "int64", "complex64", "bool"):
        if target == "int8" and name.startswith("float8"):
            continue  # out of range
        np.testing.assert_array_equal(small.astype(target).to_numpy(), wanted[numbers].astype(target))


@pytest.mark.parametrize("name", FORMATS)
def test_every_float16_is_rounded_to_the_nearest(name: str) -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    check(name, halves.astype(np.float64), gp.from_numpy(halves).astype(name))


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_beside_every_middle(name: str) -> None:
    """Where one rounding too many would show: neighbours of each number and of each middle, in every wide type."""
    steps = [float(value) for value, _ in ladder(name)]
    exact = np.array([*steps, *((a + b) / 2 for a, b in pairwise(steps))])
    exact = np.concatenate([exact, -exact, [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-300, 1e300, -1e39]])
    for dtype in ("float64", "float32"):
        with np.errstate(over="ignore"):
            own = exact.astype(dtype)
        beside = np.concatenate(
            [own, np.nextafter(own, np.array(np.inf, dtype)), np.nextafter(own, np.array(-1, dtype))]
        )
        check(name, beside, gp.from_numpy(beside).astype(name))
    rough = gp.from_numpy(exact).astype("bfloat16")
    check(name, rough.astype("float64").to_numpy(), rough.astype(name))
    complex_numbers = np.full(exact.shape, 2j)
    complex_numbers.real = exact
    check(name, exact, gp.from_numpy(complex_numbers).astype(name))
    whole = np.array([0, 1, -1, 2, 5, 7, 17, 19, 100, 464, 465, -3000, 61439, 61440, 2**40, -(2**63)], np.int64)
    check(name, whole.astype(np.float64), gp.from_numpy(whole).astype(name))
    check(name, whole % 256, gp.from_numpy((whole % 256).astype(np.uint8)).astype(name))


@pytest.mark.parametrize("source", [name for name in NUMBERS if "int" in name])
def test_integers_wrap_to_int4(source: str) -> None:
    info = np.iinfo(source)
    values = np.unique(np.array([*range(40), info.min, info.max, info.max - 7], source))
    wanted = ((values.astype(np.int64, casting="unsafe") & 15) ^ 8) - 8
    np.testing.assert_array_equal(gp.from_numpy(values).astype("int4").to_numpy(), wanted)


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64", "float8_e5m2", "bool"])
def test_floats_are_truncated_and_saturate_to_int4(source: str) -> None:
    values = np.array([0, -0.0, 0.9, -0.9, 1.5, -7.5, -8, -9, 7.9, 8, 1e4, -1e4, np.inf, -np.inf, np.nan, 1])
    x = gp.from_numpy(values).astype(source)
    own = x.astype("float64").to_numpy()
    wanted = np.nan_to_num(np.clip(np.trunc(own), -8, 7))
    np.testing.assert_array_equal(x.astype("int4").to_numpy(), wanted)


def test_layouts_assignment_and_each_other() -> None:
    values = np.random.default_rng().uniform(-6, 6, (9, 14)).astype(np.float32)
    x = gp.from_numpy(values)
    stored = x.astype("float8_e4m3")
    assert (stored.dtype, stored.shape) == ("float8_e4m3", (9, 14))
    check("float8_e4m3", values[::-2, 1::3], x[::-2, 1::3].astype("float8_e4m3"))
    check("float8_e4m3", values.T, x.T.astype("float8_e4m3"))
    target = gp.empty((14, 9), "float8_e5m2")
    target[:, ::-1] = x.T
    check("float8_e5m2", values.T[:, ::-1], target)
    assert x[:0].astype("int4").shape == (0, 14)
    small = stored.astype("float4_e2m1")
    check("float4_e2m1", stored.astype("float64").to_numpy(), small)
    back = small.astype("float8_e5m2").astype("float4_e2m1")  # has all of its numbers
    np.testing.assert_array_equal(back.to_numpy(), small.to_numpy())
    assert stored.astype("float8_e4m3").to_numpy().tolist() == stored.to_numpy().tolist()
    with pytest.raises(gp.DTypeError, match="storage type"):
        stored + 1
