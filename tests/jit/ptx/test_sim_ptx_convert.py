"""Inline PTX on the simulated device: cvt with every rounding, and comparisons."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from ptx_help import DTYPES, run
from test_sim_ptx_floats import BF16, F16, F32, F64, of_bits, rounded

LETTERS = {"16": "h", "32": "r", "64": "l"}
WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def wild(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    values = (rng.standard_normal(400) * 10.0 ** rng.uniform(-2, 22, 400)).astype(dtype)
    values[:14] = [0, -0.0, 0.5, 1.5, 2.5, -0.5, -2.5, np.inf, -np.inf, 2**31, -(2.0**31), 255.5, 65535.5, -128.5]
    return values


@pytest.mark.parametrize(("letter", "kind", "dtype"), [("f", "f32", "f4"), ("d", "f64", "f8")])
def test_to_integers(letter: str, kind: str, dtype: str) -> None:
    x = wild(dtype)
    for bits in ("16", "32", "64"):
        forms = {f"cvt.{mode}.{sign}{bits}.{kind} %0, %1;": (mode, sign) for mode in WHOLE for sign in "us"}
        got = run(f"{LETTERS[bits]}:{letter}", list(forms), x)
        for (text, (mode, sign)), row in zip(forms.items(), got, strict=True):
            low, high = (
                (-(1 << (int(bits) - 1)), (1 << (int(bits) - 1)) - 1) if sign == "s" else (0, (1 << int(bits)) - 1)
            )
            whole = WHOLE[mode](x.astype("f8"))
            exact = [low if v == -np.inf else high if v == np.inf else min(max(int(v), low), high) for v in whole]
            assert row.tolist() == [v & ((1 << int(bits)) - 1) for v in exact], text
    bytes_ = {f"cvt.{mode}.{sign}8.{kind} %0, %1;": (mode, sign) for mode in WHOLE for sign in "us"}
    for (text, (mode, sign)), row in zip(bytes_.items(), run(f"r:{letter}", list(bytes_), x), strict=True):
        low, high = (-128, 127) if sign == "s" else (0, 255)
        want = [int(min(max(v, low), high)) & 0xFFFFFFFF for v in WHOLE[mode](x.astype("f8"))]
        assert row.tolist() == want, text


def test_no_number_as_an_integer() -> None:
    nothing = np.array([np.nan], "f4")
    narrow = run("r:f", ["cvt.rni.s32.f32 %0, %1;", "cvt.rni.u32.f32 %0, %1;"], nothing)
    assert [int(one[0]) for one in narrow] == [0, 0]
    assert int(run("l:f", ["cvt.rni.s64.f32 %0, %1;"], nothing)[0][0]) == 1 << 63


@pytest.mark.parametrize(("to", "format"), [("f32", F32), ("f64", F64), ("f16", F16), ("bf16", BF16)])
def test_from_integers(to: str, format: tuple[int, int, str]) -> None:
    rng = np.random.default_rng(4)
    letter = {"f32": "f", "f64": "d"}.get(to, "h")
    for bits in ("16", "32", "64"):
        if to == "bf16" and bits == "16":
            continue
        wide = rng.integers(0, 1 << int(bits), 300, dtype="u8") >> rng.integers(0, int(bits), 300, dtype="u8")
        values = wide.astype(f"u{int(bits) // 8}")
        values[:3] = 0, (1 << int(bits)) - 1, 1 << (int(bits) - 1)
        modes = ("rn", "rz", "rm", "rp")
        forms = {f"cvt.{mode}.{to}.{sign}{bits} %0, %1;": (mode, sign) for mode in modes for sign in "us"}
        got = run(f"{letter}:{LETTERS[bits]}", list(forms), values)
        for (text, (mode, sign)), row in zip(forms.items(), got, strict=True):
            given = [int(v) for v in (values.view(f"i{int(bits) // 8}") if sign == "s" else values)]
            want = np.array([rounded(Fraction(v), mode, *format) for v in given])
            have = of_bits(row, to) if letter == "h" else row.astype("f8")
            assert np.array_equal(have, want), text


def test_between_floats() -> None:
    rng = np.random.default_rng(5)
    wide = rng.standard_normal(500) * 10.0 ** rng.uniform(-50, 45, 500)
    wide[250:] = rng.standard_normal(250)
    modes = ("rn", "rz", "rm", "rp")
    for mode, row in zip(modes, run("f:d", [f"cvt.{mode}.f32.f64 %0, %1;" for mode in modes], wide), strict=True):
        assert np.array_equal(row.astype("f8"), [rounded(Fraction(v), mode, *F32) for v in wide]), mode
    single = (rng.standard_normal(500) * 10.0 ** rng.uniform(-9, 6, 500)).astype("f4")
    for name, format in (("f16", F16), ("bf16", BF16)):
        some = ("rn", "rz") if name == "bf16" else modes
        for mode, row in zip(
            some, run("h:f", [f"cvt.{mode}.{name}.f32 %0, %1;" for mode in some], single), strict=True
        ):
            want = [rounded(Fraction(float(v)), mode, *format) for v in single]
            assert np.array_equal(of_bits(row, name), want), (name, mode)
        every = np.arange(1 << 16, dtype="u2")
        (widened,) = run("f:h", [f"cvt.f32.{name} %0, %1;"], every)
        with np.errstate(invalid="ignore"):
            assert np.array_equal(widened, of_bits(every, name).astype("f4"), equal_nan=True), name
    whole, sat, exact = run(
        "f:f", ["cvt.rni.f32.f32 %0, %1;", "cvt.sat.f32.f32 %0, %1;", "cvt.ftz.f32.f32 %0, %1;"], single
    )
    assert np.array_equal(whole, np.rint(single)) and np.array_equal(sat, np.clip(single, 0, 1))
    assert np.array_equal(exact, single)
    (halves,) = run("h:d", ["cvt.rn.f16.f64 %0, %1;"], wide)
    assert np.array_equal(of_bits(halves, "f16"), [rounded(Fraction(v), "rn", *F16) for v in wide])
    (relu,) = run("h:f", ["cvt.rn.relu.f16.f32 %0, %1;"], single)
    with np.errstate(over="ignore"):
        assert np.array_equal(relu.view("f2"), np.maximum(single.astype("f2"), 0))


def test_between_integers() -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 1 << 32, 200, dtype="u4")
    signed = x.view("i4")
    forms = {
        "cvt.s32.s8 %0, %1;": x.astype("i1").astype("i4").view("u4"),
        "cvt.u32.u8 %0, %1;": x & 255,
        "cvt.u32.u16 %0, %1;": x & 0xFFFF,
        "cvt.s32.s16 %0, %1;": x.astype("i2").astype("i4").view("u4"),
        "cvt.sat.u8.s32 %0, %1;": np.clip(signed, 0, 255).astype("u4"),
        "cvt.sat.s8.s32 %0, %1;": np.clip(signed, -128, 127).view("u4"),
        "cvt.sat.s32.u32 %0, %1;": np.minimum(x, 2**31 - 1),
        "cvt.sat.u32.s32 %0, %1;": np.maximum(signed, 0).view("u4"),
    }
    for (text, want), row in zip(forms.items(), run("r:r", list(forms), x), strict=True):
        assert np.array_equal(row, want), text
    wide = run("l:r", ["cvt.u64.u32 %0, %1;", "cvt.s64.s32 %0, %1;"], x)
    assert np.array_equal(wide[0], x) and np.array_equal(wide[1].view("i8"), signed)
    a, b = rng.integers(-(2**17), 2**17, (2, 200), dtype="i4")
    packed = run("r:rrr", ["cvt.pack.sat.s16.s32 %0, %1, %2;", "cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;"],
                 a.view("u4"), b.view("u4"), x)  # fmt: skip
    high, low = (np.clip(v, -32768, 32767).view("u4") & 0xFFFF for v in (a, b))
    assert np.array_equal(packed[0], high << 16 | low)
    high, low = (np.clip(v, 0, 255).astype("u4") for v in (a, b))
    assert np.array_equal(packed[1], x << 16 | high << 8 | low)


def grid_of(exponent: int, fraction: int, most: int) -> np.ndarray:
    """Every number of a small format, by its bits, without the sign."""
    codes = np.arange(most + 1)
    scale = 2.0 ** (2 - (1 << (exponent - 1)) - fraction)
    small, e = codes & ((1 << fraction) - 1), codes >> fraction
    return np.where(e == 0, small * scale, (small + (1 << fraction)) * scale * 2.0 ** np.maximum(e - 1, 0))


def nearest(x: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Codes of the nearest numbers, even codes from the middle."""
    size = np.minimum(np.abs(x), numbers[-1])
    above = np.clip(np.searchsorted(numbers, size), 1, len(numbers) - 1)
    low, high = numbers[above - 1], numbers[above]
    up = (size - low > high - size) | ((size - low == high - size) & (above % 2 == 0))
    return np.where(up, above, above - 1)


@pytest.mark.parametrize(
    ("name", "shape", "arch"),
    [("e4m3", (4, 3, 0x7E), "sm_90a"), ("e5m2", (5, 2, 0x7B), "sm_90a"), ("e2m3", (2, 3, 0x1F), ""),
     ("e3m2", (3, 2, 0x1F), ""), ("e2m1", (2, 1, 7), "")],
)  # fmt: skip
def test_formats_of_eight_bits(name: str, shape: tuple[int, int, int], arch: str) -> None:
    numbers = grid_of(*shape)
    sign, apart = 1 << (shape[0] + shape[1]), 4 if name == "e2m1" else 8
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal((2, 600)) * 10.0 ** rng.uniform(-4, 6, (2, 600))).astype("f4")
    a[:300], b[:300] = rng.permutation(np.resize(numbers, 300)), np.resize((numbers[1:] + numbers[:-1]) / 2, 300)
    text = f"cvt.rn.satfinite.{name}x2.f32 %0, %1, %2;"
    if name == "e2m1":
        text = "{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, %1, %2; cvt.u16.u8 %0, t; }"
    (packed,) = run("h:ff", [text], a, b, arch=arch)
    want = [nearest(x.astype("f8"), numbers) | np.where(np.signbit(x), sign, 0) for x in (a, b)]
    assert np.array_equal(packed, want[0] << apart | want[1])
    if name in ("e4m3", "e5m2"):
        pairs = np.arange(1 << 16, dtype="u2")
        (wide,) = run("r:h", [f"cvt.rn.f16x2.{name}x2 %0, %1;"], pairs, arch=arch)
        for shift in (0, 8):
            code = pairs >> shift & 0x7F
            value = np.where(code <= shape[2], numbers[np.minimum(code, shape[2])], np.nan)
            if name == "e5m2":
                value[code == 0x7C] = np.inf
            value = value * np.where(pairs >> shift & 0x80, -1, 1)
            have = (wide >> (2 * shift)).astype("u2").view("f2")
            with np.errstate(invalid="ignore"):
                assert np.array_equal(have, value.astype("f2"), equal_nan=True)


def test_tf32() -> None:
    rng = np.random.default_rng(10)
    x = rng.standard_normal(500).astype("f4")
    bits = x.view("u4")
    x[:200] = (bits[:200] & ~np.uint32(0x1FFF) | 0x1000).view("f4")  # middles
    for mode in ("rna", "rn", "rz"):
        (row,) = run("r:f", [f"cvt.{mode}.tf32.f32 %0, %1;"], x)
        want = [rounded(Fraction(float(v)), mode, 11, -136, "") if v else 0 for v in x]
        assert np.array_equal(row.view("f4"), np.array(want, "f4")), mode


def test_pairs_of_two_floats() -> None:
    rng = np.random.default_rng(11)
    a, b = rng.standard_normal((2, 300)).astype("f4") * 1000
    for name in ("f16", "bf16"):
        forms = [f"cvt.{mode}{relu}.{name}x2.f32 %0, %1, %2;" for mode in ("rn", "rz") for relu in ("", ".relu")]
        single = [form.replace("x2", "").replace("%0, %1, %2", "%0, %1") for form in forms]
        for form, pair, high, low in zip(forms, run("r:ff", forms, a, b), run("h:f", single, a), run("h:f", single, b),
                                         strict=True):  # fmt: skip
            assert np.array_equal(pair, high.astype("u4") << 16 | low), form


# ---- comparisons

ORDERED = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
           "ge": np.greater_equal}  # fmt: skip


def told(text: str) -> str:
    return f"{{ .reg .pred p, q; {text} selp.u32 %0, 1, 0, p; }}"


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64", "f16", "bf16"])
def test_comparisons(kind: str) -> None:
    rng = np.random.default_rng(12)
    number = kind[0] in "fb"
    letter = {"f32": "f", "f64": "d"}.get(kind, LETTERS.get(kind[-2:], "h"))
    if letter in "fd":
        special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2.5], DTYPES[letter])
        a, b = (one.ravel().copy() for one in np.meshgrid(special, special))
        x, y = a, b
    else:
        a, b = rng.integers(0, 1 << 16, (2, 200), dtype="u8").astype(DTYPES[letter])
        a[:50] = b[:50]
        a[60:80] = (1 << (int(kind[-2:]) - 1)) + 5
        x, y = (
            of_bits(one, kind) if number else one.view(f"{'i' if kind[0] == 's' else 'u'}{one.itemsize}")
            for one in (a, b)
        )
    forms = {told(f"setp.{how}.{kind} p, %1, %2;"): test(x, y) for how, test in ORDERED.items()}
    if number:
        nothing = np.isnan(x) | np.isnan(y)
        forms[told(f"setp.ne.{kind} p, %1, %2;")] = (x != y) & ~nothing
        forms |= {told(f"setp.{how}u.{kind} p, %1, %2;"): test(x, y) | nothing for how, test in ORDERED.items()}
        forms |= {told(f"setp.nan.{kind} p, %1, %2;"): nothing, told(f"setp.num.{kind} p, %1, %2;"): ~nothing}
    elif kind[0] == "u":
        names = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
        forms |= {told(f"setp.{how}.{kind} p, %1, %2;"): ORDERED[same](x, y) for how, same in names.items()}
    for (text, want), row in zip(forms.items(), run(f"r:{letter * 2}", list(forms), a, b), strict=True):
        assert np.array_equal(row.astype(bool), want), text


def test_results_that_combine_and_select() -> None:
    rng = np.random.default_rng(13)
    a, b = rng.integers(-5, 5, (2, 200)).astype("i4")
    u, v = a.view("u4"), b.view("u4")
    forms = {
        told("setp.lt.s32 q, %1, 0; setp.gt.and.s32 p, %1, %2, q;"): (a > b) & (a < 0),
        told("setp.lt.s32 q, %1, 0; setp.gt.or.s32 p, %1, %2, !q;"): (a > b) | ~(a < 0),
        told("setp.lt.s32 q, %1, 0; setp.gt.xor.s32 p, %1, %2, q;"): (a > b) ^ (a < 0),
        told("setp.lt.s32 q|p, %1, %2;"): a >= b,
        told("setp.lt.s32 p|_, %1, %2;"): a < b,
        told("setp.lt.s32 q, %1, %2; not.pred p, q;"): a >= b,
        told("setp.lt.s32 q, %1, %2; setp.ge.s32 p, %1, 0; and.pred p, p, q;"): (a < b) & (a >= 0),
        "set.le.u32.s32 %0, %1, %2;": np.where(a <= b, 2**32 - 1, 0),
        "slct.u32.s32 %0, %1, %2, %1;": np.where(a >= 0, u, v),
        "{ .reg .f32 t; set.gt.f32.s32 t, %1, %2; mov.b32 %0, t; }": np.where(a > b, 0x3F800000, 0),
    }
    for (text, want), row in zip(forms.items(), run("r:rr", list(forms), u, v), strict=True):
        assert np.array_equal(row, want), text
    x, y = (rng.integers(0, 4, (2, 200, 2)) - 2).astype("f2")
    pairs = [np.ascontiguousarray(one).view("u4").ravel() for one in (x, y)]
    text = "{ .reg .pred p, q; setp.lt.f16x2 p|q, %1, %2; selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2; }"
    ones = "set.ge.f16x2.f16x2 %0, %1, %2;"
    less, greater = run("r:rr", [text, ones], *pairs)
    assert np.array_equal(less, (x < y)[:, 0] + 2 * (x < y)[:, 1])
    assert np.array_equal(greater, np.ascontiguousarray((x >= y).astype("f2")).view("u4").ravel())
