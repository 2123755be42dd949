"""Inline PTX on the simulated device: floating-point arithmetic, against exact fractions and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from ptx_help import run

LEAST = 2.0**-126
F32, F64 = (24, -149, "float32"), (53, -1074, "float64")
F16, BF16 = (11, -24, "float16"), (8, -133, "")


def rounded(exact: Fraction, mode: str, digits: int, last: int, dtype: str) -> float:
    """The number of so many digits, whose last bit is at least 2**last, for a rounding."""
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = max((size.numerator.bit_length() - size.denominator.bit_length()) - digits, last)
    while size / Fraction(2) ** exponent >= 2**digits:
        exponent += 1
    while exponent > last and size / Fraction(2) ** exponent < 2 ** (digits - 1):
        exponent -= 1
    scaled = size / Fraction(2) ** exponent
    whole = scaled.numerator // scaled.denominator
    rest, negative = scaled - whole, exact < 0
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2),
        "rna": rest >= Fraction(1, 2),
        "rz": False,
        "rm": rest > 0 and negative,
        "rp": rest > 0 and not negative,
    }[mode]
    result = (whole + bool(up)) * Fraction(2) ** exponent
    most = {11: 65504, 8: 2.0**128 - 2.0**120, 24: float(np.finfo("f4").max), 53: float(np.finfo("f8").max)}[digits]
    if result > most:
        inward = mode == "rz" or (mode == "rp" and negative) or (mode == "rm" and not negative)
        value = most if inward else float("inf")
    else:
        value = float(result)
    return -value if negative else value


def numbers(dtype: str, seed: int, n: int = 151) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    out = []
    for at in range(3):
        spread = 30 if dtype != "float16" else 3
        values = (rng.standard_normal(n) * 10.0 ** rng.uniform(-spread, spread, n)).astype(dtype)
        values[n // 2 :] = rng.standard_normal(n - n // 2).astype(dtype)
        tiny = np.finfo(dtype).smallest_subnormal
        values[: 7 + at] = [0, 1, -1, tiny, -tiny * 3, 1 + np.finfo(dtype).eps, -2.5, 1.5, 0.1][: 7 + at]
        out.append(rng.permutation(values))
    return out


OPERATIONS: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b, c: a + b,
    "sub": lambda a, b, c: a - b,
    "mul": lambda a, b, c: a * b,
    "fma": lambda a, b, c: a * b + c,
    "mad": lambda a, b, c: a * b + c,
    "div": lambda a, b, c: a / b,
}


@pytest.mark.parametrize(("letter", "kind", "format"), [("f", "f32", F32), ("d", "f64", F64)])
def test_every_rounding(letter: str, kind: str, format: tuple[int, int, str]) -> None:
    a, b, c = numbers(format[2], 3)
    b[b == 0] = 3
    texts = {
        f"{name}.{mode}.{kind} %0, %1, %2{', %3' if name in ('fma', 'mad') else ''};": (name, mode)
        for name in OPERATIONS
        for mode in ("rn", "rz", "rm", "rp")
    }
    got = run(f"{letter}:{letter * 3}", list(texts), a, b, c)
    rows = [tuple(Fraction(float(x)) for x in one) for one in zip(a, b, c, strict=True)]
    for (text, (name, mode)), row in zip(texts.items(), got, strict=True):
        want = [rounded(OPERATIONS[name](*one), mode, *format) for one in rows]
        assert np.array_equal(row.astype("f8"), np.array(want)), text


def test_roots_and_reciprocals_round_as_told() -> None:
    x = np.abs(numbers("float32", 5)[0]) + np.float32(1e-30)
    texts = [f"rcp.{mode}.f32 %0, %1;" for mode in ("rn", "rz", "rm", "rp")]
    for text, row in zip(texts, run("f:f", texts, x), strict=True):
        want = [rounded(1 / Fraction(float(one)), text[4:6], *F32) for one in x]
        assert np.array_equal(row, np.array(want, "f4")), text
    roots = [f"sqrt.{mode}.f64 %0, %1;" for mode in ("rn", "rz", "rm", "rp")]
    wide = x.astype("f8")
    near, zero, down, up = run("d:d", roots, wide)
    assert np.array_equal(near, np.sqrt(wide)) and np.array_equal(zero, down)
    for value, low, high in zip(wide, down, up, strict=True):
        assert Fraction(low) ** 2 <= Fraction(value) <= Fraction(high) ** 2 and high <= np.nextafter(low, np.inf)


def test_flush_and_saturation() -> None:
    a = np.array([LEAST / 2, -LEAST / 2, LEAST, 0.5, 3, -3, np.nan], "f4")
    b = np.array([LEAST, LEAST, -LEAST / 2, 0.25, 1, 1, 1], "f4")
    texts = ["add.ftz.f32 %0, %1, %2;", "mul.ftz.f32 %0, %1, %2;", "add.sat.f32 %0, %1, %2;",
             "fma.rn.ftz.sat.f32 %0, %1, %2, %2;", "neg.ftz.f32 %0, %1;", "abs.ftz.f32 %0, %1;"]  # fmt: skip
    add, mul, sat, fma, neg, size = run("f:ff", texts, a, b)
    flushed = np.where(np.abs(a) < LEAST, np.copysign(np.float32(0), a), a)
    other = np.where(np.abs(b) < LEAST, np.copysign(np.float32(0), b), b)
    assert np.array_equal(add, flushed + other, equal_nan=True)
    product = flushed * other
    assert np.array_equal(mul, np.where(np.abs(product) < LEAST, 0 * product, product), equal_nan=True)
    assert sat.tolist() == [np.float32(1.5 * LEAST), np.float32(LEAST / 2), np.float32(LEAST / 2), 0.75, 1, 0, 0]
    assert np.allclose(fma, np.nan_to_num(np.clip(flushed * other + other, 0, 1)), atol=1e-37)
    assert np.array_equal(np.signbit(neg), ~np.signbit(a) | np.isnan(a)) or np.isnan(neg[-1])
    assert size[0] == 0 and not np.signbit(size[1]) and size[5] == 3


def test_minima_and_maxima() -> None:
    special = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2.5], "f4")
    a, b = (one.ravel().copy() for one in np.meshgrid(special, special))
    texts = ["min.f32 %0, %1, %2;", "max.f32 %0, %1, %2;", "min.NaN.f32 %0, %1, %2;", "max.NaN.f32 %0, %1, %2;",
             "min.xorsign.abs.f32 %0, %1, %2;", "copysign.f32 %0, %1, %2;"]  # fmt: skip
    least, most, strict_least, strict_most, sizes, copied = run("f:ff", texts, a, b)
    with np.errstate(invalid="ignore"):
        want = np.fmin(a, b)
        zero = (a == 0) & (b == 0)
        want[zero] = np.where(np.signbit(a) | np.signbit(b), np.float32(-0.0), np.float32(0))[zero]
        some = ~np.isnan(want)
        assert np.array_equal(least.view("u4")[some], want.view("u4")[some])
        assert np.array_equal(most, np.fmax(a, b), equal_nan=True)
        assert np.array_equal(strict_least, np.minimum(a, b), equal_nan=True)
        assert np.array_equal(strict_most, np.maximum(a, b), equal_nan=True)
    both = np.isnan(a) & np.isnan(b)
    assert (least[both].view("u4") == 0x7FFFFFFF).all()
    size = np.fmin(np.abs(a), np.abs(b)) * np.where(np.signbit(a) ^ np.signbit(b), -1, 1).astype("f4")
    assert np.array_equal(sizes, size, equal_nan=True)
    assert np.array_equal(copied, np.copysign(b, a), equal_nan=True)


def test_approximations_are_close() -> None:
    x = np.linspace(-3, 3, 301, dtype="f4")
    positive = np.abs(x) + np.float32(0.01)
    wide, up = x.astype("f8"), positive.astype("f8")
    cases = {
        "ex2.approx.f32 %0, %1;": 2**wide, "ex2.approx.ftz.f32 %0, %1;": 2**wide,
        "sin.approx.f32 %0, %1;": np.sin(wide),
        "cos.approx.f32 %0, %1;": np.cos(wide), "tanh.approx.f32 %0, %1;": np.tanh(wide),
        "lg2.approx.f32 %0, %2;": np.log2(up), "rcp.approx.ftz.f32 %0, %2;": 1 / up,
        "sqrt.approx.f32 %0, %2;": np.sqrt(up),
        "rsqrt.approx.f32 %0, %2;": 1 / np.sqrt(up), "rsqrt.approx.ftz.f32 %0, %2;": 1 / np.sqrt(up),
        "div.approx.f32 %0, %1, %2;": wide / up, "div.full.f32 %0, %1, %2;": wide / up,
    }  # fmt: skip
    for (text, want), row in zip(cases.items(), run("f:ff", list(cases), x, positive), strict=True):
        assert np.allclose(row, want, rtol=2e-6, atol=2e-6), text
    upper = positive.astype("f8")
    reciprocal, root = run("d:d", ["rcp.approx.ftz.f64 %0, %1;", "rsqrt.approx.f64 %0, %1;"], upper)
    assert np.allclose(reciprocal, 1 / upper, rtol=2e-6) and not (reciprocal.view("u8") & 0xFFFFFFFF).any()
    assert np.allclose(root, 1 / np.sqrt(upper), rtol=1e-15)


def test_what_a_number_is() -> None:
    x = np.array([0, -0.0, 1, -np.inf, np.nan, LEAST, LEAST / 2, -1e38], "f4")
    names = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    texts = [f"{{ .reg .pred p; testp.{name}.f32 p, %1; selp.u32 %0, 1, 0, p; }}" for name in names]
    got = [row.astype(bool).tolist() for row in run("r:f", texts, x)]
    small = np.abs(x) < LEAST
    wants = [np.isfinite(x), np.isinf(x), ~np.isnan(x), np.isnan(x), np.isfinite(x) & ~small, small]
    assert got == [want.tolist() for want in wants]


# ---- f16 and bf16


def to_bits(value: float, name: str) -> int:
    if np.isnan(value):
        return 0x7FFF
    if name == "f16":
        with np.errstate(over="ignore"):
            return int(np.float16(value).view("u2"))
    return int(np.float32(value).view("u4")) >> 16


def of_bits(bits: np.ndarray, name: str) -> np.ndarray:
    bits = bits.astype("u2")
    with np.errstate(invalid="ignore"):  # signalling ones that are no number
        return (bits.view("f2") if name == "f16" else (bits.astype("u4") << 16).view("f4")).astype("f8")


@pytest.mark.parametrize(("name", "format"), [("f16", F16), ("bf16", BF16)])
def test_small_floats_round_once(name: str, format: tuple[int, int, str]) -> None:
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 1 << 16, (3, 997), dtype=np.uint16)
    bits[:, 500:] = bits[:, 500:] & 0x8FFF | 0x3000  # of one size
    values = [of_bits(one, name) for one in bits]
    finite = np.logical_and.reduce([np.isfinite(one) for one in values])
    texts = [f"fma.rn.{name} %0, %1, %2, %3;", f"fma.rn.relu.{name} %0, %1, %2, %3;"]
    arithmetic = [f"{one}{'' if name == 'f16' else '.rn'}.{name} %0, %1, %2;" for one in ("add", "sub", "mul")]
    fma, relu, add, sub, mul = run("h:hhh", texts + arithmetic, *bits)
    rows = list(zip(*values, strict=True))
    for row, exact in ((fma, "fma"), (add, "add"), (sub, "sub"), (mul, "mul")):
        for at in np.flatnonzero(finite):
            a, b, c = (Fraction(float(x)) for x in rows[at])
            want = rounded(OPERATIONS[exact](a, b, c), "rn", *format)
            have = float(of_bits(row[at : at + 1], name)[0])
            assert have == want, (exact, [hex(one[at]) for one in bits])
    wanted = np.where(np.isnan(of_bits(fma, name)), 0x7FFF, np.where(fma >> 15, 0, fma))
    assert np.array_equal(relu, wanted)


def test_pairs_are_two_of_them() -> None:
    rng = np.random.default_rng(8)
    pairs = rng.integers(0, 1 << 32, (3, 331), dtype=np.uint32)
    for name in ("f16", "bf16"):
        halves = [[(one >> shift).astype("u2") for shift in (0, 16)] for one in pairs]
        rn = "" if name == "f16" else ".rn"
        heads = [f"add{rn}", f"sub{rn}", f"mul{rn}", "min", "max", "max.NaN", "min.xorsign.abs"]
        forms = [f"{head}.{{}} %0, %1, %2;" for head in heads] + ["fma.rn.{} %0, %1, %2, %3;", "neg.{} %0, %1;"]
        forms += [
            "abs.{} %0, %1;",
            "tanh.approx.{} %0, %1;",
            f"ex2.approx{'.ftz' if name == 'bf16' else ''}.{{}} %0, %1;",
        ]
        both = run("r:rrr", [form.format(f"{name}x2") for form in forms], *pairs)
        low = run("h:hhh", [form.format(name) for form in forms], *(one[0] for one in halves))
        high = run("h:hhh", [form.format(name) for form in forms], *(one[1] for one in halves))
        for form, pair, first, second in zip(forms, both, low, high, strict=True):
            assert np.array_equal(pair, first | second.astype("u4") << 16), form


def test_saturated_and_flushed_halves() -> None:
    a = np.array([0.5, 3, -1, 2**-16, 60000], "f2").view("u2")
    one = np.full(5, 1, "f2").view("u2")
    sat, ftz, both = run(
        "h:hh", ["add.sat.f16 %0, %1, %2;", "mul.ftz.f16 %0, %1, %2;", "fma.rn.ftz.sat.f16 %0, %1, %2, %2;"], a, one
    )
    assert sat.view("f2").tolist() == [1, 1, 0, 1, 1]
    assert ftz.view("f2").tolist() == [0.5, 3, -1, 0, 60000]
    assert both.view("f2").tolist() == [1, 1, 0, 1, 1]


@pytest.mark.parametrize("check", [False, True])
def test_pairs_of_floats_are_two_floats(check: bool) -> None:
    rng = np.random.default_rng()
    a, b, c = (rng.standard_normal(200).astype("f4") for _ in range(3))
    words = [one.view("u8") for one in (a, b, c)]
    texts = ["add.f32x2 %0, %1, %2;", "sub.rn.f32x2 %0, %1, %2;", "mul.rn.ftz.f32x2 %0, %1, %2;",
             "fma.rn.f32x2 %0, %1, %2, %3;"]  # fmt: skip
    found = [row.view("f4") for row in run("l:lll", texts, *words, arch="sm_100a", check=check)]
    fused = (a.astype("f8") * b + c).astype("f4")
    assert [np.array_equal(one, want) for one, want in zip(found[:3], (a + b, a - b, a * b), strict=True)] == [True] * 3
    assert np.max(np.abs(found[3] - fused) / np.abs(fused)) < 1e-6
    (down,) = run("l:lll", ["add.rm.f32x2 %0, %1, %2;"], *words, arch="sm_100a")
    assert np.all(down.view("f4").astype("f8") <= a.astype("f8") + b)
