"""half, bfloat16 and the 8-bit floats in device code, against bit models in NumPy: the same bits on both backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_code import check, evaluate

EVERY_HALF = np.arange(1 << 16, dtype=np.uint16)
BF16 = "#include <cuda_bf16.h>\n"
FP8 = "#include <cuda_fp8.h>\n"

pytestmark = pytest.mark.usefixtures("backend_name")


# ---- models


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Bits of doubles rounded once to bfloat16, to nearest even."""
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        single = np.where(np.isnan(x), 0, x).astype(np.float32)
        # To odd first, so that rounding twice is rounding once.
        inexact = single.astype(np.float64) != x
        bits = single.view(np.uint32).copy()
        away = np.abs(single.astype(np.float64)) > np.abs(x)
        finite = np.isfinite(single)
        bits = np.where(inexact & finite, np.where(away, bits - 1, bits) | 1, bits)
    wide = bits.astype(np.uint64)
    rounded = ((wide + 0x7FFF + (wide >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), rounded)


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def widened(x: np.ndarray) -> np.ndarray:
    """As doubles; signalling NaNs, which NumPy warns of, too."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64)


def float8_values(mantissa_bits: int, bias: int, infinity: bool) -> np.ndarray:
    """The value of each of the 256 codes, as the formats define them."""
    code = np.arange(256)
    exponent, mantissa = (code & 0x7F) >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
    scale = 2.0**-mantissa_bits
    value = np.where(
        exponent == 0, mantissa * scale * 2.0 ** (1 - bias), (1 + mantissa * scale) * 2.0 ** (exponent - bias)
    )
    if infinity:
        top = exponent == (1 << (7 - mantissa_bits)) - 1
        value = np.where(top, np.where(mantissa == 0, np.inf, np.nan), value)
    else:
        value = np.where((code & 0x7F) == 0x7F, np.nan, value)
    return np.where(code & 0x80, -value, value)


E4M3, E5M2 = float8_values(3, 7, False), float8_values(2, 15, True)


def to_float8(x: np.ndarray, values: np.ndarray, saturate: bool) -> np.ndarray:
    """Codes by search: the nearest value, the even code of two as near."""
    x = np.asarray(x, np.float64)
    positive = np.where(np.isfinite(values[:128]))[0]
    grid = values[positive]
    size = np.where(np.isnan(x), 0, np.abs(x))
    upper = np.clip(np.searchsorted(grid, size), 1, len(grid) - 1)
    low, high = grid[upper - 1], grid[upper]
    with np.errstate(invalid="ignore"):
        take_high = (size - low > high - size) | ((size - low == high - size) & (upper % 2 == 0))
        code = np.where(take_high, upper, upper - 1)
        step = grid[-1] - grid[-2]
        last_even = (len(grid) - 1) % 2 == 0
        limit = grid[-1] + step / 2
        over = (size > limit) | ((size == limit) & (not last_even))
        code = np.where(size >= grid[-1], len(grid) - 1, code)
    beyond = len(grid) - 1 if saturate else len(grid)  # the code after the largest: infinity, or e4m3's NaN
    code = np.where(over, beyond, code)
    return np.where(np.isnan(x), 0x7F, code | np.where(np.signbit(x), 0x80, 0)).astype(np.uint8)


def wild_floats(count: int, low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(11)
    x = (rng.standard_normal(count) * 10.0 ** rng.uniform(low, high, count)).astype(np.float32)
    x[:8] = 0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, 1e-45, -1
    return x


# ---- half


def test_half_conversions_of_every_value() -> None:
    numbers = EVERY_HALF.view(np.float16)
    check({"(float)a": numbers}, numbers)
    wide = numbers.astype(np.float64)
    finite = np.isfinite(wide)
    cases = {}
    for kind, code in {"int": "i4", "uint": "u4", "short": "i2", "ushort": "u2", "ll": "i8", "ull": "u8"}.items():
        info = np.iinfo(code)
        nan = 0 if info.bits < 64 else (info.min if info.min else 1 << 63)
        for mode, rounding in MODES.items():
            whole = rounding(np.where(finite, wide, 0))
            exact = np.array([min(max(int(x), info.min), info.max) for x in whole], object)
            exact = np.where(wide == np.inf, info.max, np.where(wide == -np.inf, info.min, exact))
            exact = np.where(np.isnan(wide), nan, exact)
            cases[kind, code, mode] = exact
    for code in ("i4", "u4", "i2", "u2", "i8", "u8"):
        mine = {f"__half2{kind}_{mode}(a)": exact.astype(code) for (kind, c, mode), exact in cases.items() if c == code}
        check(mine, numbers, result=code)


MODES: dict[str, Callable[[Any], Any]] = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}


def directed_half(x: np.ndarray, mode: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        nearest = x.astype(np.float16)
        down, up = np.nextafter(nearest, np.float16(-np.inf)), np.nextafter(nearest, np.float16(np.inf))
    got = nearest.astype(np.float64)
    floor, ceiling = np.where(got > x, down, nearest), np.where(got < x, up, nearest)
    return {"rn": nearest, "rd": floor, "ru": ceiling, "rz": np.where(x < 0, ceiling, floor)}[mode]


def test_half_from_other_types_in_four_rounding_modes() -> None:
    x = wild_floats(1 << 14, -9, 6)
    x[4] = 1
    check({f"__float2half_{mode}(a)": directed_half(x.astype(np.float64), mode) for mode in MODES}, x, result="f2")
    rng = np.random.default_rng(2)
    for kind, code in {"int": "i4", "uint": "u4", "short": "i2", "ushort": "u2", "ll": "i8", "ull": "u8"}.items():
        info = np.iinfo(code)
        whole = (rng.uniform(-1, 1, 2000) * 2.0 ** rng.uniform(0, 18, 2000)).astype(np.int64)
        whole = np.clip(whole, info.min, min(info.max, 1 << 40)).astype(code)
        cases = {f"__{kind}2half_{mode}(a)": directed_half(whole.astype(np.float64), mode) for mode in MODES}
        check(cases, whole, result="f2")


def half_cases(x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    wx, wy = x.astype(np.float64), y.astype(np.float64)
    exact = (wx * wy + wx).astype(np.float16)
    largest, smallest = np.fmax(x, y), np.fmin(x, y)
    nan = np.isnan(x) | np.isnan(y)
    return {
        "a + b": x + y, "a - b": x - y, "a * b": x * y, "a / b": x / y, "__hfma(a, b, a)": exact,
        "__hadd_sat(a, b)": np.where(np.isnan(x + y), 0, np.clip(x + y, 0, 1)),
        "__hmax(a, b)": largest, "__hmin(a, b)": smallest, "__habs(a)": np.abs(x), "__hneg(a)": -x,
        "__hmax_nan(a, b)": np.where(nan, np.float16(np.nan), largest),
        "__hmin_nan(a, b)": np.where(nan, np.float16(np.nan), smallest),
        "__hfma_relu(a, b, a)": np.where(exact <= 0, np.float16(0), exact),
        "half(__heq(a, b) + 2 * __hequ(a, b) + 4 * __hne(a, b) + 8 * __hneu(a, b))":
            (x == y) + 2.0 * ((x == y) | nan) + 4 * ((x != y) & ~nan) + 8 * ((x != y) | nan),
        "half(__hlt(a, b) + 2 * __hltu(a, b) + 4 * __hge(a, b) + 8 * __hgeu(a, b))":
            (x < y) + 2.0 * ((x < y) | nan) + 4 * (x >= y) + 8 * ((x >= y) | nan),
        "half(__hisnan(a) + 2 * (__hisinf(a) != 0))": np.isnan(x) + 2 * np.isinf(x),
        "hfloor(a)": np.floor(x), "hceil(a)": np.ceil(x), "hrint(a)": np.rint(x), "htrunc(a)": np.trunc(x),
        "hsqrt(__habs(a))": np.sqrt(np.abs(x)),
    }  # fmt: skip


def test_half_arithmetic() -> None:
    rng = np.random.default_rng(5)
    x, y = (rng.permutation(EVERY_HALF).view(np.float16) for _ in range(2))
    with np.errstate(all="ignore"):
        cases = half_cases(x, y)
        check(cases, x, y, result="f2")
        masks = {
            "__heq2_mask(__half2(a, b), __half2(b, b))": (x == y) * 0xFFFF + (y == y) * np.uint32(0xFFFF0000),
            "__hgtu2_mask(__half2(a, b), __half2(b, a))":
                (~(x <= y)) * 0xFFFF + (~(y <= x)) * np.uint32(0xFFFF0000),
            "__hbne2(__half2(a, b), __half2(b, a)) + 2u * __hbneu2(__half2(a, b), __half2(b, a))":
                ((x != y) & (x == x) & (y == y)) + 2 * (x != y),
        }  # fmt: skip
        check(masks, x, y, result="u4")


def test_pairs_do_what_their_halves_do() -> None:
    rng = np.random.default_rng(6)
    x, y = ((rng.standard_normal(4096) * 4).astype(np.float16) for _ in range(2))
    wx, wy = x.astype(np.float64), y.astype(np.float64)

    def half(v: np.ndarray) -> np.ndarray:
        return v.astype(np.float16)

    real = half(-wy * wx + half(wx * wy + wx).astype(np.float64))
    imaginary = half(wy * wy + half(wx * wx + wy).astype(np.float64))
    cases = {
        "__low2half(__half2(a, b) + __half2(b, a))": x + y,
        "__high2half(__half2(a, b) / __half2(b, a))": y / x,
        "__low2half(__hfma2(__half2(a, b), __half2(b, a), __half2(a, a)))": half(wx * wy + wx),
        "__low2half(__hcmadd(__half2(a, b), __half2(b, a), __half2(a, b)))": real,
        "__high2half(__hcmadd(__half2(a, b), __half2(b, a), __half2(a, b)))": imaginary,
        "__low2half(__hmul2_sat(__half2(a, b), __half2(b, a)))": np.clip(x * y, 0, 1),
        "__high2half(__lows2half2(__half2(a, b), __half2(b, a)))": y,
        "__low2half(__hgt2(__half2(a, b), __half2(b, a)))": x > y,
        "half(__half2(a, b) == __half2(a, b)) + half(__half2(a, b) != __half2(b, a))": 1 + (x != y),
        "__low2half(__hmax2(__half2(a, b), __half2(b, a)))": np.maximum(x, y),
        "half(__half22float2(__half2(a, b)).y)": y,
    }
    check(cases, x, y, result="f2")


def test_half_mathematics_is_close() -> None:
    x = np.linspace(0.01, 8, 5000).astype(np.float16)
    wide = x.astype(np.float64)
    cases = {
        "hexp(a)": np.exp(wide), "hexp2(a)": 2**wide, "hlog(a)": np.log(wide), "hlog2(a)": np.log2(wide),
        "hsin(a)": np.sin(wide), "hcos(a)": np.cos(wide), "hrcp(a)": 1 / wide, "hrsqrt(a)": wide**-0.5,
        "htanh(a)": np.tanh(wide),
    }  # fmt: skip
    got = evaluate(list(cases), x, result="f2").astype(np.float64)
    for expression, row, expected in zip(cases, got, cases.values(), strict=True):
        assert np.allclose(row, expected, rtol=3e-3, atol=2e-3), expression


def test_atomic_sums_of_halves_and_pairs() -> None:
    import pygpukit as gp

    kernel = gp.jit(
        """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void k(half *h, unsigned *packed) {
  atomicAdd(h + threadIdx.x % 2, __float2half(1.0f));
  atomicAdd((__half2 *)packed, __floats2half2_rn(1.0f, 2.0f));
  atomicAdd((__nv_bfloat162 *)(packed + 1), __floats2bfloat162_rn(1.0f, 0.5f));
  half other = __shfl_xor_sync(~0u, __int2half_rn(threadIdx.x), 1);
  if (threadIdx.x == 6) h[2] = other;
}""",
        func="k",
    )
    h, packed = gp.from_numpy(np.zeros(3, np.float16)), gp.from_numpy(np.zeros(2, np.uint32))
    kernel[1, 64](h, packed)
    assert h.to_numpy().tolist() == [32, 32, 7]
    assert packed.to_numpy()[:1].view(np.float16).tolist() == [64, 128]
    assert from_bfloat16(packed.to_numpy()[1:].view(np.uint16)).tolist() == [64, 32]


# ---- bfloat16


def test_bfloat16_conversions() -> None:
    every = from_bfloat16(EVERY_HALF)
    check({"(float)__ushort_as_bfloat16(a)": every}, EVERY_HALF, head=BF16)
    x = wild_floats(1 << 16, -40, 38)
    wide = x.astype(np.float64)
    nearest = to_bfloat16(wide)
    got = from_bfloat16(nearest).astype(np.float64)
    up = np.where(nearest & 0x8000, nearest - 1, nearest + 1).astype(np.uint16)
    down = np.where(nearest & 0x8000, nearest + 1, nearest - 1).astype(np.uint16)
    with np.errstate(invalid="ignore"):
        ceiling, floor = np.where(got < wide, up, nearest), np.where(got > wide, down, nearest)
    cases = {"rn": nearest, "ru": ceiling, "rd": floor, "rz": np.where(wide < 0, ceiling, floor)}
    check(
        {f"__bfloat16_as_ushort(__float2bfloat16_{m}(a))": bits for m, bits in cases.items()}, x, result="u2", head=BF16
    )
    # Integers that a double, or a float, between would round twice.
    whole = np.array(
        [(1 << 62) + (1 << 54) + 1, (1 << 62) + (1 << 54), -(1 << 62) - (1 << 54) - 1, 3, 257, 259], np.int64
    )
    exact = np.array([0x5E81, 0x5E80, 0xDE81, 0x4040, 0x4380, 0x4382], np.uint16)
    check({"__bfloat16_as_ushort(__ll2bfloat16_rn(a))": exact}, whole, result="u2", head=BF16)
    doubles = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, -1 - 3 * 2.0**-8 - 2.0**-50])
    check({"__bfloat16_as_ushort(__double2bfloat16(a))": to_bfloat16(doubles)}, doubles, result="u2", head=BF16)


def test_bfloat16_arithmetic() -> None:
    rng = np.random.default_rng(8)
    x, y = (rng.permutation(EVERY_HALF) for _ in range(2))
    a, b = widened(from_bfloat16(x)), widened(from_bfloat16(y))
    keep = (np.abs(a) < 1e18) & (np.abs(b) < 1e18) & (np.abs(a) > 1e-18) & (np.abs(b) > 1e-18)  # products stay exact
    x, y, a, b = x[keep], y[keep], a[keep], b[keep]
    with np.errstate(all="ignore"):
        cases = {"A + B": a + b, "A - B": a - b, "A * B": a * b, "__hmax(A, B)": np.maximum(a, b)}
        text = {f"__bfloat16_as_ushort({e})": to_bfloat16(value) for e, value in cases.items()}
    head = BF16 + "#define A __ushort_as_bfloat16(a)\n#define B __ushort_as_bfloat16(b)\n"
    check(text, x, y, result="u2", head=head)


# ---- 8-bit floats


@pytest.mark.parametrize(("kind", "values"), [("E4M3", E4M3), ("E5M2", E5M2)])
def test_every_8_bit_float_widens(kind: str, values: np.ndarray) -> None:
    codes = np.arange(256, dtype=np.uint8)
    low = kind.lower()
    head = FP8 + f"__device__ __nv_fp8_{low} as8(unsigned char bits) {{ __nv_fp8_{low} x; x.__x = bits; return x; }}\n"
    check(
        {
            "(float)as8(a)": values, "(float)(__half)as8(a)": values, "(float)(__nv_bfloat16)as8(a)": values,
            f"(float)__half(__nv_cvt_fp8_to_halfraw(a, __NV_{kind}))": values, "(float)(bool)as8(a)": values != 0,
            f"(float)__half(__half_raw{{__nv_cvt_fp8x2_to_halfraw2(a << 8 | 1, __NV_{kind}).y}})": values,
        },
        codes, head=head,
    )  # fmt: skip
    whole = np.trunc(np.nan_to_num(values, nan=0, posinf=2**31 - 1, neginf=-(2**31)))
    check({"(int)as8(a)": whole}, codes, result="i4", head=head)
    check({"(signed char)as8(a)": np.clip(whole, -128, 127)}, codes, result="i1", head=head)


@pytest.mark.parametrize(("kind", "values"), [("E4M3", E4M3), ("E5M2", E5M2)])
def test_8_bit_floats_round_and_saturate(kind: str, values: np.ndarray) -> None:
    finite = np.unique(np.abs(values[np.isfinite(values)]))
    edges = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, [finite[-1] + (finite[-1] - finite[-2]) / 2]])
    edges = np.concatenate([np.nextafter(edges.astype(np.float32), np.float32(s)) for s in (0, np.inf)] + [edges])
    x = np.concatenate([edges, -edges, wild_floats(1 << 15, -8, 7)]).astype(np.float32)
    saturated, plain = to_float8(x, values, True), to_float8(x, values, False)
    low = kind.lower()
    check(
        {
            f"__nv_cvt_float_to_fp8(a, __NV_SATFINITE, __NV_{kind})": saturated,
            f"__nv_cvt_float_to_fp8(a, __NV_NOSAT, __NV_{kind})": plain,
            f"__nv_fp8_{low}(a).__x": saturated,
            f"(unsigned char)(__nv_fp8x2_{low}(make_float2(0.0f, a)).__x >> 8)": saturated,
            f"(unsigned char)(__nv_fp8x4_{low}(make_float4(1.0f, 1.0f, a, 1.0f)).__x >> 16)": saturated,
        },
        x, result="u1", head=FP8,
    )  # fmt: skip
    wide = x[~np.isnan(x)].astype(np.float64) * (1 + 2.0**-40)  # no float: rounding twice would be seen
    check({f"__nv_fp8_{low}(a).__x": to_float8(wide, values, True)}, wide, result="u1", head=FP8)
    halves = EVERY_HALF.view(np.float16)
    check(
        {
            f"__nv_fp8_{low}(a).__x": to_float8(widened(halves), values, True),
            f"__nv_cvt_halfraw_to_fp8(a, __NV_NOSAT, __NV_{kind})": to_float8(widened(halves), values, False),
        },
        halves, result="u1", head=FP8,
    )  # fmt: skip
    brains = widened(from_bfloat16(EVERY_HALF))
    check(
        {f"__nv_fp8_{low}(__ushort_as_bfloat16(a)).__x": to_float8(brains, values, True)},
        EVERY_HALF, result="u1", head=FP8,
    )  # fmt: skip
