"""Built-in functions of device code against exact models: integers, lanes of a word, rounding modes, Bessel etc."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from device_code import check, check_close

pytestmark = pytest.mark.usefixtures("backend_name")


def words(count: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32) for _ in range(3))
    a[:6] = 0, 0xFFFFFFFF, 0x80008000, 0x7FFF7FFF, 0x80808080, 0x00FF00FF
    b[:6] = 0, 0xFFFFFFFF, 0x80008000, 0x80008000, 0x7F7F7F7F, 0x01020304
    return a, b, c


def lanes(x: np.ndarray, bits: int, signed: bool) -> np.ndarray:
    return x.view(f"{'i' if signed else 'u'}{bits // 8}").reshape(-1, 32 // bits).astype(np.int64)


def packed(values: np.ndarray, bits: int) -> np.ndarray:
    return np.ascontiguousarray(values.astype(np.int64) % (1 << bits)).astype(f"u{bits // 8}").view(np.uint32).ravel()


def test_infinity_nan_and_named_constants() -> None:
    a = np.ones(3, np.float32)
    names = {"INFINITY": np.inf, "NAN": np.nan, "CUDART_INF_F": np.inf, "CUDART_NAN_F": np.nan}
    names |= {"CUDART_PI_F": np.pi, "CUDART_SQRT_TWO_F": np.sqrt(2), "CUDART_MAX_NORMAL_F": np.finfo(np.float32).max}
    names |= {"CUDART_MIN_DENORM_F": 2.0**-149, "1 / CUDART_NEG_ZERO_F": -np.inf, "(float)CUDART_PIO4": np.pi / 4}
    expected = {f"a * ({text})": np.full(3, value, np.float32) for text, value in names.items()}
    check(expected, a, head="#include <math_constants.h>\n")


def test_bits_and_bytes() -> None:
    a, b, _ = words()
    u, v = [int(x) for x in a], [int(x) for x in b]

    def select(x: int, y: int, selector: int) -> int:
        whole = (y << 32 | x).to_bytes(8, "little")
        return sum(whole[selector >> 4 * i & 7] << 8 * i for i in range(4))

    def nth(mask: int, base: int, offset: int) -> int:
        order = range(base, 32) if offset >= 0 else range(base, -1, -1)
        if offset == 0:
            return base if mask >> base & 1 else 0xFFFFFFFF
        found = [at for at in order if mask >> at & 1]
        return found[abs(offset) - 1] if abs(offset) <= len(found) else 0xFFFFFFFF

    cases = {
        "__popc(a)": [x.bit_count() for x in u],
        "__clz(a)": [32 - x.bit_length() for x in u],
        "__ffs(a)": [(x & -x).bit_length() for x in u],
        "__brev(a)": [int(f"{x:032b}"[::-1], 2) for x in u],
        "__byte_perm(a, b, 0x9c41)": [select(x, y, 0x9C41) for x, y in zip(u, v, strict=True)],
        "__funnelshift_l(a, b, 37)": [(y << 32 | x) << 5 >> 32 & 0xFFFFFFFF for x, y in zip(u, v, strict=True)],
        "__funnelshift_rc(a, b, 40)": v,
        "__umulhi(a, b)": [x * y >> 32 for x, y in zip(u, v, strict=True)],
        "__umul24(a, b)": [(x & 0xFFFFFF) * (y & 0xFFFFFF) & 0xFFFFFFFF for x, y in zip(u, v, strict=True)],
        "__usad(a, b, 3u)": [abs(x - y) + 3 & 0xFFFFFFFF for x, y in zip(u, v, strict=True)],
        "__uhadd(a, b)": [x + y >> 1 for x, y in zip(u, v, strict=True)],
        "__urhadd(a, b)": [x + y + 1 >> 1 for x, y in zip(u, v, strict=True)],
        "__nv_bswap32(a)": [int.from_bytes(x.to_bytes(4, "big"), "little") for x in u],
        "__fns(a, 3, 4)": [nth(x, 3, 4) for x in u],
        "__fns(a, 20, -3)": [nth(x, 20, -3) for x in u],
        "__fns(a, 7, 0)": [nth(x, 7, 0) for x in u],
    }
    check({text: np.array(expected, np.uint32) for text, expected in cases.items()}, a, b, result="u4")
    s, t = a.view(np.int32), b.view(np.int32)
    p, q = s.astype(np.int64), t.astype(np.int64)

    def wrapped(x: np.ndarray) -> np.ndarray:
        return x.astype(np.uint64).astype(np.uint32).view(np.int32)

    low24 = (p << 40 >> 40) * (q << 40 >> 40)
    check(
        {
            "__mulhi(a, b)": p * q >> 32, "__hadd(a, b)": (p + q) >> 1, "__rhadd(a, b)": (p + q + 1) >> 1,
            "(int)__sad(a, b, 1)": wrapped(np.abs(p - q) + 1), "__mul24(a, b)": wrapped(low24),
            "min(a, b)": np.minimum(s, t), "max(a, 7)": np.maximum(s, 7), "abs(a)": wrapped(np.abs(p)),
        },
        s, t, result="i4",
    )  # fmt: skip
    wide = (a.astype(np.uint64) << np.uint64(32) | b).view(np.int64)
    check(
        {
            "__mul64hi(a, 1LL << 40)": wide >> 24,
            "__clzll(a)": [64 - int(x).bit_length() if x >= 0 else 0 for x in wide],
            "__popcll(a)": [int(x).bit_count() for x in wide.view(np.uint64)],
            "__ffsll(a)": [(int(x) & -int(x)).bit_length() for x in wide],
            "(long long)__nv_bswap64(a)": wide.byteswap(), "llmax(a, 5)": np.maximum(wide, 5),
        },
        wide, result="i8",
    )  # fmt: skip


def test_dot_products_of_bytes() -> None:
    a, b, c = words()
    x8, y8, x8u, y8u = lanes(a, 8, True), lanes(b, 8, True), lanes(a, 8, False), lanes(b, 8, False)
    x16, x16u = lanes(a, 16, True), lanes(a, 16, False)
    start = c.view(np.int32).astype(np.int64)
    signed = {
        "__dp4a((int)a, (int)b, (int)c)": start + (x8 * y8).sum(1),
        "__dp2a_lo((int)a, (int)b, (int)c)": start + (x16 * y8[:, :2]).sum(1),
        "__dp2a_hi((int)a, (int)b, (int)c)": start + (x16 * y8[:, 2:]).sum(1),
    }
    check({text: packed(value, 32).view(np.int32) for text, value in signed.items()}, a, b, c, result="i4")
    unsigned = {
        "__dp4a(a, b, c)": c.astype(np.int64) + (x8u * y8u).sum(1),
        "__dp2a_lo(a, b, c)": c.astype(np.int64) + (x16u * y8u[:, :2]).sum(1),
        "__dp2a_hi(a, b, c)": c.astype(np.int64) + (x16u * y8u[:, 2:]).sum(1),
    }
    check({text: packed(value, 32) for text, value in unsigned.items()}, a, b, c, result="u4")


Lanes = Callable[[np.ndarray, np.ndarray], np.ndarray]
SIGNED: dict[str, Lanes] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "avgs": lambda x, y: (x + y + (x + y >= 0)) >> 1,
    "absdiffs": lambda x, y: abs(x - y), "maxs": np.maximum, "mins": np.minimum,
    "cmpeq": lambda x, y: -(x == y).astype(int), "cmpne": lambda x, y: -(x != y).astype(int),
    "cmpges": lambda x, y: -(x >= y).astype(int), "cmpgts": lambda x, y: -(x > y).astype(int),
    "cmples": lambda x, y: -(x <= y).astype(int), "cmplts": lambda x, y: -(x < y).astype(int),
    "seteq": lambda x, y: x == y, "setne": lambda x, y: x != y, "setges": lambda x, y: x >= y,
    "setgts": lambda x, y: x > y, "setles": lambda x, y: x <= y, "setlts": lambda x, y: x < y,
}  # fmt: skip
UNSIGNED: dict[str, Lanes] = {
    "avgu": lambda x, y: (x + y + 1) >> 1, "haddu": lambda x, y: (x + y) >> 1, "absdiffu": lambda x, y: abs(x - y),
    "maxu": np.maximum, "minu": np.minimum, "cmpgeu": lambda x, y: -(x >= y).astype(int),
    "cmpgtu": lambda x, y: -(x > y).astype(int), "cmpleu": lambda x, y: -(x <= y).astype(int),
    "cmpltu": lambda x, y: -(x < y).astype(int), "setgeu": lambda x, y: x >= y, "setgtu": lambda x, y: x > y,
    "setleu": lambda x, y: x <= y, "setltu": lambda x, y: x < y,
}  # fmt: skip


@pytest.mark.parametrize("bits", [16, 8])
def test_lanes_of_a_word(bits: int) -> None:
    a, b, _ = words()
    suffix = 32 // bits
    cases = {}
    for table, signed in ((SIGNED, True), (UNSIGNED, False)):
        x, y = lanes(a, bits, signed), lanes(b, bits, signed)
        for name, function in table.items():
            cases[f"__v{name}{suffix}(a, b)"] = packed(function(x, y), bits)
    x, y, half = lanes(a, bits, True), lanes(b, bits, True), 1 << (bits - 1)
    cases |= {
        f"__vaddss{suffix}(a, b)": packed(np.clip(x + y, -half, half - 1), bits),
        f"__vsubss{suffix}(a, b)": packed(np.clip(x - y, -half, half - 1), bits),
        f"__vabs{suffix}(a)": packed(abs(x), bits),
        f"__vabsss{suffix}(a)": packed(np.minimum(abs(x), half - 1), bits),
        f"__vneg{suffix}(a)": packed(-x, bits),
        f"__vnegss{suffix}(a)": packed(np.minimum(-x, half - 1), bits),
        f"__vsads{suffix}(a, b)": abs(x - y).sum(1),
    }
    x, y = lanes(a, bits, False), lanes(b, bits, False)
    cases |= {
        f"__vaddus{suffix}(a, b)": packed(np.minimum(x + y, 2 * half - 1), bits),
        f"__vsubus{suffix}(a, b)": packed(np.maximum(x - y, 0), bits),
        f"__vsadu{suffix}(a, b)": abs(x - y).sum(1),
    }
    check(cases, a, b, result="u4")


def test_minima_and_maxima_of_three() -> None:
    a, b, c = words()
    cases = {}
    for lane, signed in (("s16x2", True), ("u16x2", False), ("s32", True), ("u32", False)):
        bits = 16 if "16" in lane else 32
        x, y, z = (lanes(w, bits, signed) for w in (a, b, c))
        sum_ = lanes(packed(x + y, bits), bits, signed)
        top, bottom = np.maximum, np.minimum
        some = {
            f"__vimax3_{lane}(a, b, c)": top(top(x, y), z), f"__vimin3_{lane}(a, b, c)": bottom(bottom(x, y), z),
            f"__viaddmax_{lane}(a, b, c)": top(sum_, z), f"__viaddmin_{lane}(a, b, c)": bottom(sum_, z),
        }  # fmt: skip
        if signed:
            some |= {
                f"__vimax3_{lane}_relu(a, b, c)": top(top(top(x, y), z), 0),
                f"__vimin3_{lane}_relu(a, b, c)": top(bottom(bottom(x, y), z), 0),
                f"__vimax_{lane}_relu(a, b)": top(top(x, y), 0), f"__vimin_{lane}_relu(a, b)": top(bottom(x, y), 0),
                f"__viaddmax_{lane}_relu(a, b, c)": top(top(sum_, z), 0),
                f"__viaddmin_{lane}_relu(a, b, c)": top(bottom(sum_, z), 0),
            }  # fmt: skip
        cases |= {text: packed(value, bits) for text, value in some.items()}
    check(cases, a, b, c, result="u4")
    head = """
__device__ unsigned which(unsigned a, unsigned b) {
  bool p;
  unsigned m = __vibmax_u32(a, b, &p);
  return m == a ? p : !p;
}
__device__ unsigned lows(unsigned a, unsigned b) { bool h, l; __vibmin_s16x2(a, b, &h, &l); return 2 * h + l; }
"""
    x, y = lanes(a, 16, True), lanes(b, 16, True)
    expected = 2 * (x[:, 1] <= y[:, 1]) + (x[:, 0] <= y[:, 0])
    check({"which(a, b)": np.ones_like(a), "lows(a, b)": expected}, a, b, result="u4", head=head)


# ---- rounding modes


def rounded(value: Fraction, mode: str, kind: type[np.floating]) -> np.floating:
    """The float next to an exact value in one direction."""
    near = kind(float(value)) if kind is np.float64 else kind(np.float64(float(value)))
    while Fraction(float(near)) > value:
        near = np.nextafter(near, kind(-np.inf))
    while Fraction(float(np.nextafter(near, kind(np.inf)))) <= value:
        near = np.nextafter(near, kind(np.inf))
    above = near if Fraction(float(near)) == value else np.nextafter(near, kind(np.inf))
    return {"rd": near, "ru": above, "rz": near if value > 0 else above}[mode]


@pytest.mark.parametrize(("kind", "code", "f"), [(np.float32, "f4", "f"), (np.float64, "f8", "d")])
def test_directed_rounding(kind: type[np.floating], code: str, f: str) -> None:
    rng = np.random.default_rng(4)
    a, b, c = ((rng.standard_normal(250) * 2.0 ** rng.integers(-8, 8, 250)).astype(kind) for _ in range(3))
    exact = [tuple(Fraction(float(v)) for v in row) for row in zip(a, b, c, strict=True)]
    fma = "__fmaf" if f == "f" else "__fma"
    operations: dict[str, Callable[[Fraction, Fraction, Fraction], Fraction]] = {
        f"__{f}add_{{}}(a, b)": lambda x, y, z: x + y,
        f"__{f}sub_{{}}(a, b)": lambda x, y, z: x - y,
        f"__{f}mul_{{}}(a, b)": lambda x, y, z: x * y,
        f"__{f}div_{{}}(a, b)": lambda x, y, z: x / y,
        f"__{f}rcp_{{}}(a)": lambda x, y, z: 1 / x,
        f"{fma}_{{}}(a, b, c)": lambda x, y, z: x * y + z,
    }
    cases = {
        text.format(mode): np.array([rounded(operation(*row), mode, kind) for row in exact])
        for text, operation in operations.items()
        for mode in ("rz", "ru", "rd")
    }
    check(cases, a, b, c, result=code)
    roots = np.abs(a)
    got = {f"__{f}sqrt_{mode}(a)": np.empty(0) for mode in ("rz", "ru", "rd")}
    for mode in ("rz", "ru", "rd"):
        near = [math.sqrt(float(x)) for x in roots]
        column = []
        for x, root in zip(roots, near, strict=True):
            low = kind(root)
            while Fraction(float(low)) ** 2 > Fraction(float(x)):
                low = np.nextafter(low, kind(0))
            while Fraction(float(np.nextafter(low, kind(np.inf)))) ** 2 <= Fraction(float(x)):
                low = np.nextafter(low, kind(np.inf))
            exact_root = Fraction(float(low)) ** 2 == Fraction(float(x))
            column.append(np.nextafter(low, kind(np.inf)) if mode == "ru" and not exact_root else low)
        got[f"__{f}sqrt_{mode}(a)"] = np.array(column)
    check(got, roots, result=code)


def test_conversions_in_every_direction() -> None:
    rng = np.random.default_rng(9)
    wide = rng.integers(-(2**63), 2**63, 300, dtype=np.int64) >> rng.integers(0, 40, 300)
    for kind, code, target in (("ll", "i8", "float"), ("ll", "i8", "double"), ("int", "i4", "float")):
        whole = wide.astype(code) if code == "i8" else (wide >> 31).astype(code)
        made = np.float32 if target == "float" else np.float64
        cases = {
            f"__{kind}2{target}_{mode}(a)": np.array([rounded(Fraction(int(x)), mode, made) for x in whole])
            for mode in ("rz", "ru", "rd")
        }
        check(cases, whole, result="f4" if target == "float" else "f8")
    doubles = rng.standard_normal(300)
    check(
        {
            f"__double2float_{mode}(a)": np.array([rounded(Fraction(float(x)), mode, np.float32) for x in doubles])
            for mode in ("rz", "ru", "rd")
        },
        doubles,
    )
    wild = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, 2.5, -2.5, 3.5, -0.5, 4e9, -1], np.float32)
    limits = {"int": "i4", "uint": "u4", "ll": "i8", "ull": "u8"}
    for values, name in ((wild, "float"), (wild.astype(np.float64), "double")):
        for kind, code in limits.items():
            info = np.iinfo(code)
            top = -(1 << info.bits - 1) if info.min else 1 << info.bits - 1
            nan = 0 if name == "float" and info.bits == 32 else top
            cases = {}
            for mode, rounding in (("rn", np.rint), ("rz", np.trunc), ("ru", np.ceil), ("rd", np.floor)):
                numbers = [
                    nan if math.isnan(v) else info.max if v == np.inf else info.min if v == -np.inf
                    else min(max(int(rounding(v)), info.min), info.max)
                    for v in values.astype(np.float64)
                ]  # fmt: skip
                cases[f"__{name}2{kind}_{mode}(a)"] = np.array(numbers, object).astype(code)
            check(cases, values, result=code)


# ---- special functions


def test_functions_that_the_c_library_lacks() -> None:
    x = np.linspace(-2.9, 2.9, 401)
    y = np.linspace(0.001, 1.999, 401)
    erfc = np.array([math.erfc(v) for v in x])
    series = [sum((0.25 * v * v) ** k / math.factorial(k) ** 2 for k in range(40)) for v in x]
    series1 = [
        sum(0.5 * v * (0.25 * v * v) ** k / (math.factorial(k) * math.factorial(k + 1)) for k in range(40)) for v in x
    ]
    check_close(
        {
            "erfcx(a)": np.exp(x * x) * erfc, "cyl_bessel_i0(a)": np.array(series),
            "cyl_bessel_i1(a)": np.array(series1), "rhypot(a, 2.0)": 1 / np.hypot(x, 2), "norm3d(a, 2.0, 3.0)":
            np.sqrt(x * x + 13), "norm4d(a, 1.0, 2.0, 3.0)": np.sqrt(x * x + 14), "rnorm3d(a, 2.0, 3.0)":
            1 / np.sqrt(x * x + 13), "normcdfinv(normcdf(a))": x, "rcbrt(a + 3.0)": 1 / np.cbrt(x + 3),
            "sinpi(a)": np.sin(np.pi * x), "exp10(a)": 10**x, "erfcinv(erfc(a))": x,
        },
        1e-11, x, result="f8",
    )  # fmt: skip
    check_close({"erfc(erfcinv(a))": y}, 1e-13, y, result="f8")
    single = np.linspace(0.1, 20, 301, dtype=np.float32)
    check_close(
        {
            "j0f(a) * y1f(a) - j1f(a) * y0f(a)": -2 / (np.pi * single.astype(np.float64)),  # their Wronskian
            "jnf(0, a) - j0f(a)": np.zeros(301), "lgammaf(a)": np.array([math.lgamma(v) for v in single]),
            "ldexpf(a, 3)": 8 * single.astype(np.float64),
            "scalbnf(a, -2)": single / 4, "logbf(a)": np.floor(np.log2(single)),
            "fdimf(a, 3.0f)": np.maximum(single.astype(np.float64) - 3, 0), "__powf(a, 0.5f)": np.sqrt(single),
            "remainderf(a, 2.0f)": np.array([math.remainder(float(v), 2) for v in single]),
            "fmodf(a, 2.0f)": np.fmod(single, np.float32(2)), "truncf(-a)": -np.trunc(single),
        },
        3e-5, single,
    )  # fmt: skip
