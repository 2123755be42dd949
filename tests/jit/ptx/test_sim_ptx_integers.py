"""Inline PTX on the simulated device: integer arithmetic and bits, against Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from ptx_help import run

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
Words = dict[str, Callable[[int, int, int], int]]


def words(bits: int, seed: int, n: int = 203) -> list[np.ndarray]:
    """Three arrays of words: of every size, with the ends of the range among them."""
    rng = np.random.default_rng(seed)
    out = []
    for at in range(3):
        values = rng.integers(0, 1 << bits, n, dtype=np.uint64) >> rng.integers(0, bits, n, dtype=np.uint64)
        values[: 6 + at] = [0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 2, 33, 40][: 6 + at]
        out.append(rng.permutation(values).astype(f"uint{bits}"))
    return out


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def agree(letters: str, bits: int, cases: Words, values: list[np.ndarray], head: str = "") -> None:
    got = run(letters, list(cases), *values, head=head)
    rows = list(zip(*([int(x) for x in value] for value in values), strict=True))
    for (text, expected), row in zip(cases.items(), got, strict=True):
        want = [expected(*(list(one) + [0] * (3 - len(one)))) & ((1 << bits) - 1) for one in rows]
        assert row.tolist() == want, text


def both(name: str, bits: int, exact: Callable[..., int]) -> Words:
    """The instruction on unsigned and on signed numbers."""
    return {
        f"{name}.u{bits} %0, %1, %2;": lambda a, b, c: exact(a, b),
        f"{name}.s{bits} %0, %1, %2;": lambda a, b, c: exact(signed(a, bits), signed(b, bits)),
    }


def test_arithmetic_of_all_widths() -> None:
    for bits, letter in ((16, "h"), (32, "r"), (64, "l")):
        cases = {
            **both("add", bits, lambda a, b: a + b),
            **both("sub", bits, lambda a, b: a - b),
            **both("mul.lo", bits, lambda a, b: a * b),
            **both("mul.hi", bits, lambda a, b, bits=bits: a * b >> bits),
            **both("min", bits, min),
            **both("max", bits, max),
            f"mad.lo.s{bits} %0, %1, %2, %3;": lambda a, b, c: a * b + c,
            f"mad.hi.u{bits} %0, %1, %2, %3;": lambda a, b, c, bits=bits: (a * b >> bits) + c,
            f"sad.u{bits} %0, %1, %2, %3;": lambda a, b, c: abs(a - b) + c,
            f"sad.s{bits} %0, %1, %2, %3;": lambda a, b, c, bits=bits: abs(signed(a, bits) - signed(b, bits)) + c,
            f"abs.s{bits} %0, %1;": lambda a, b, c, bits=bits: abs(signed(a, bits)),
            f"neg.s{bits} %0, %1;": lambda a, b, c: -a,
            f"and.b{bits} %0, %1, %2;": lambda a, b, c: a & b,
            f"or.b{bits} %0, %1, %2;": lambda a, b, c: a | b,
            f"xor.b{bits} %0, %1, %2;": lambda a, b, c: a ^ b,
            f"not.b{bits} %0, %1;": lambda a, b, c: ~a,
            f"cnot.b{bits} %0, %1;": lambda a, b, c: int(a == 0),
        }
        agree(f"{letter}:{letter * 3}", bits, cases, words(bits, bits))


def test_wide_products() -> None:
    wide = {
        "mul.wide.u32 %0, %1, %2;": lambda a, b, c: a * b,
        "mul.wide.s32 %0, %1, %2;": lambda a, b, c: signed(a, 32) * signed(b, 32),
    }
    agree("l:rr", 64, wide, words(32, 5)[:2])
    narrow = {
        "mul.wide.u16 %0, %1, %2;": lambda a, b, c: a * b,
        "mul.wide.s16 %0, %1, %2;": lambda a, b, c: signed(a, 16) * signed(b, 16),
    }
    agree("r:hh", 32, narrow, words(16, 6)[:2])
    a, b, c = words(32, 7)[0], words(32, 8)[0], words(64, 9)[0]
    sums = {"mad.wide.u32 %0, %1, %2, %3;": lambda x, y, z: x * y + z,
            "mad.wide.s32 %0, %1, %2, %3;": lambda x, y, z: signed(x, 32) * signed(y, 32) + z}  # fmt: skip
    agree("l:rrl", 64, sums, [a, b, c])


def clamped(value: int) -> int:
    return max(-(2**31), min(2**31 - 1, value))


def test_saturation_and_24_bits() -> None:
    s, u24 = (lambda x: signed(x, 32)), (lambda x: x & 0xFFFFFF)
    s24 = lambda x: signed(x, 24)  # noqa: E731
    cases = {
        "add.sat.s32 %0, %1, %2;": lambda a, b, c: clamped(s(a) + s(b)),
        "sub.sat.s32 %0, %1, %2;": lambda a, b, c: clamped(s(a) - s(b)),
        "mad.hi.sat.s32 %0, %1, %2, %3;": lambda a, b, c: clamped((s(a) * s(b) >> 32) + s(c)),
        "mul24.lo.u32 %0, %1, %2;": lambda a, b, c: u24(a) * u24(b),
        "mul24.hi.u32 %0, %1, %2;": lambda a, b, c: u24(a) * u24(b) >> 16,
        "mul24.lo.s32 %0, %1, %2;": lambda a, b, c: s24(a) * s24(b),
        "mul24.hi.s32 %0, %1, %2;": lambda a, b, c: s24(a) * s24(b) >> 16,
        "mad24.lo.s32 %0, %1, %2, %3;": lambda a, b, c: s24(a) * s24(b) + c,
        "mad24.hi.sat.s32 %0, %1, %2, %3;": lambda a, b, c: clamped((s24(a) * s24(b) >> 16) + s(c)),
    }
    agree("r:rrr", 32, cases, words(32, 11))


def test_division_cuts_towards_zero() -> None:
    def quotient(a: int, b: int) -> int:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    for bits, letter in ((32, "r"), (64, "l")):
        a, b, _ = words(bits, bits + 1)
        b[b == 0] = 3
        cases = {
            **both("div", bits, quotient),
            **both("rem", bits, lambda x, y: x - quotient(x, y) * y),
        }
        agree(f"{letter}:{letter * 2}", bits, cases, [a, b])


def test_carries_pass_from_statement_to_statement() -> None:
    a, b = words(64, 21)[:2]
    text = (
        "{ .reg .b32 a<2>, b<2>, c<2>; mov.b64 {a0, a1}, %1; mov.b64 {b0, b1}, %2;"
        "  add.cc.u32 c0, a0, b0; addc.u32 c1, a1, b1; mov.b64 %0, {c0, c1}; }"
    )
    borrow = text.replace("add", "sub")
    product = (
        "{ .reg .b32 a<2>, b<2>, c<2>; mov.b64 {a0, a1}, %1; mov.b64 {b0, b1}, %2; mov.b64 {c0, c1}, %2;"
        "  mad.lo.cc.u32 c0, a0, b0, c0; madc.hi.u32 c1, a0, b0, c1; mov.b64 %0, {c0, c1}; }"
    )
    cases = {
        text: lambda x, y, _: x + y,
        borrow: lambda x, y, _: x - y,
        product: lambda x, y, _: (x & M32) * (y & M32) + y,
    }
    agree("l:ll", 64, cases, [a, b])


def test_shifts_beyond_the_width() -> None:
    by = np.arange(203, dtype=np.uint32) % 80
    for bits, letter in ((16, "h"), (32, "r"), (64, "l")):
        cases = {
            f"shl.b{bits} %0, %1, %2;": lambda a, n, _: a << n,
            f"shr.u{bits} %0, %1, %2;": lambda a, n, _: a >> n,
            f"shr.b{bits} %0, %1, %2;": lambda a, n, _: a >> n,
            f"shr.s{bits} %0, %1, %2;": lambda a, n, _, bits=bits: signed(a, bits) >> n,
        }
        agree(f"{letter}:{letter}r", bits, cases, [words(bits, 31)[0], by])
    funnel = {
        "shf.l.wrap.b32 %0, %1, %2, %3;": lambda a, b, n: ((b << 32 | a) << (n & 31)) >> 32,
        "shf.r.wrap.b32 %0, %1, %2, %3;": lambda a, b, n: (b << 32 | a) >> (n & 31),
        "shf.l.clamp.b32 %0, %1, %2, %3;": lambda a, b, n: ((b << 32 | a) << min(n, 32)) >> 32,
        "shf.r.clamp.b32 %0, %1, %2, %3;": lambda a, b, n: (b << 32 | a) >> min(n, 32),
    }
    agree("r:rrr", 32, funnel, [*words(32, 33)[:2], by])


def field(a: int, at: int, length: int, bits: int, has_sign: bool) -> int:
    """bfe as the manual describes it."""
    at, length = at & 0xFF, length & 0xFF
    sign = 0 if not has_sign or length == 0 else a >> min(at + length - 1, bits - 1) & 1
    result = 0
    for i in range(bits):
        bit = a >> (at + i) & 1 if i < length and at + i < bits else sign
        result |= bit << i
    return result


def inserted(a: int, b: int, at: int, length: int, bits: int) -> int:
    at, length = at & 0xFF, length & 0xFF
    for i in range(length):
        if at + i < bits and i < bits:
            b = b & ~(1 << (at + i)) | (a >> i & 1) << (at + i)
    return b


def test_fields() -> None:
    rng = np.random.default_rng(41)
    at, length = rng.integers(0, 70, (2, 203), dtype=np.uint32)
    length[:3] = 0, 32, 64
    for bits, letter in ((32, "r"), (64, "l")):
        cases = {
            f"bfe.u{bits} %0, %1, %2, %3;": lambda a, p, n, bits=bits: field(a, p, n, bits, False),
            f"bfe.s{bits} %0, %1, %2, %3;": lambda a, p, n, bits=bits: field(a, p, n, bits, True),
            f"bfi.b{bits} %0, %1, %1, %2, %3;": lambda a, p, n, bits=bits: inserted(a, a, p, n, bits),
            f"bfi.b{bits} %0, %1, 5, %2, %3;": lambda a, p, n, bits=bits: inserted(a, 5, p, n, bits),
        }
        agree(f"{letter}:{letter}rr", bits, cases, [words(bits, 43)[0], at, length])
    masks = {
        "bmsk.clamp.b32 %0, %1, %2;": lambda p, n, _: 0 if p >= 32 else ((1 << min(n, 32)) - 1) << p,
        "bmsk.wrap.b32 %0, %1, %2;": lambda p, n, _: ((1 << (n & 31)) - 1) << (p & 31),
    }
    agree("r:rr", 32, masks, [at, length])


def test_extension() -> None:
    def extended(a: int, n: int, has_sign: bool) -> int:
        if n >= 32 or n == 0:
            return a if n else 0
        return signed(a, n) if has_sign else a & ((1 << n) - 1)

    cases = {
        f"szext.{mode}.{kind}32 %0, %1, %2;": lambda a, n, _, mode=mode, kind=kind: extended(
            a, n & 31 if mode == "wrap" else n, kind == "s"
        )
        for mode in ("clamp", "wrap")
        for kind in "us"
    }
    agree("r:rr", 32, cases, [words(32, 45)[0], np.arange(203, dtype=np.uint32) % 70])


def test_counting_bits() -> None:
    for bits, letter in ((32, "r"), (64, "l")):
        mask = (1 << bits) - 1

        def highest(a: int, has_sign: bool, shift: bool, bits: int = bits, mask: int = mask) -> int:
            a = ~a & mask if has_sign and a >> (bits - 1) else a
            return M32 if not a else bits - a.bit_length() if shift else a.bit_length() - 1

        cases = {
            f"popc.b{bits} %0, %1;": lambda a, *_: a.bit_count(),
            f"clz.b{bits} %0, %1;": lambda a, *_, bits=bits: bits - a.bit_length(),
            **{
                f"bfind{'.shiftamt' if shift else ''}.{kind}{bits} %0, %1;": lambda a, *_, kind=kind, shift=shift,
                highest=highest: highest(a, kind == "s", shift)
                for kind in "us" for shift in (False, True)
            },
        }  # fmt: skip
        agree(f"r:{letter}", 32, cases, [words(bits, 51)[0]])
        reverse = {f"brev.b{bits} %0, %1;": lambda a, *_, bits=bits: int(f"{a:0{bits}b}"[::-1], 2)}
        agree(f"{letter}:{letter}", bits, reverse, [words(bits, 52)[0]])


def nth(mask: int, base: int, offset: int) -> int:
    """fns by its definition."""
    offset = signed(offset, 32)
    if offset == 0:
        return base if mask >> base & 1 else M32
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [at for at in places if mask >> at & 1]
    return found[abs(offset) - 1] if abs(offset) <= len(found) else M32


def test_fns() -> None:
    rng = np.random.default_rng(61)
    base = rng.integers(0, 32, 203).astype(np.uint32)
    offset = rng.integers(-6, 7, 203).astype(np.int32).view(np.uint32)
    agree("r:rrr", 32, {"fns.b32 %0, %1, %2, %3;": nth}, [words(32, 62)[0], base, offset])


def permuted(a: int, b: int, selector: int) -> int:
    result = 0
    for i in range(4):
        which = selector >> 4 * i & 15
        byte = (b << 32 | a) >> 8 * (which & 7) & 255
        result |= ((255 if byte & 128 else 0) if which & 8 else byte) << 8 * i
    return result


def test_permutations() -> None:
    tables = {
        "f4e": ("3210", "4321", "5432", "6543"), "b4e": ("5670", "6701", "7012", "0123"),
        "rc8": ("0000", "1111", "2222", "3333"), "ecl": ("3210", "3211", "3222", "3333"),
        "ecr": ("0000", "1110", "2210", "3210"), "rc16": ("1010", "3232", "1010", "3232"),
    }  # fmt: skip
    cases = {"prmt.b32 %0, %1, %2, %3;": permuted}
    for mode, table in tables.items():
        cases[f"prmt.b32.{mode} %0, %1, %2, %3;"] = lambda a, b, c, table=table: permuted(a, b, int(table[c & 3], 16))
    agree("r:rrr", 32, cases, words(32, 71))


def test_every_logic_of_three() -> None:
    cases = {}
    for table in (*range(0, 256, 15), 0x96, 0xE8, 0xCA):

        def logic(a: int, b: int, c: int, table: int = table) -> int:
            bits = (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1 for i in range(32))
            return sum(bit << i for i, bit in enumerate(bits))

        cases[f"lop3.b32 %0, %1, %2, %3, {table};"] = logic
    agree("r:rrr", 32, cases, words(32, 81, 67))


def dots(a: int, b: int, c: int, sa: bool, sb: bool, kind: str) -> int:
    wide = 8 if kind == "" else 16
    for i in range(32 // wide):
        x, y = a >> wide * i & ((1 << wide) - 1), b >> 8 * (i + 2 * (kind == "hi")) & 255
        c += (signed(x, wide) if sa else x) * (signed(y, 8) if sb else y)
    return c


def test_dot_products_of_bytes() -> None:
    cases = {
        f"{name}{part and '.' + part}.{x}32.{y}32 %0, %1, %2, %3;": lambda a, b, c, x=x, y=y, part=part: dots(
            a, b, c, x == "s", y == "s", part
        )
        for name, part in (("dp4a", ""), ("dp2a", "lo"), ("dp2a", "hi"))
        for x in "us"
        for y in "us"
    }
    agree("r:rrr", 32, cases, words(32, 91))


def test_distances_of_bytes() -> None:
    def distances(a: int, b: int) -> list[int]:
        return [abs((a >> shift & 255) - (b >> shift & 255)) for shift in range(0, 32, 8)]

    cases = {
        "vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;": lambda a, b, c: (c + sum(distances(a, b))) & 0xFFFFFFFF,
        "vabsdiff4.u32.u32.u32 %0, %1, %2, %3;": lambda a, b, c: int.from_bytes(distances(a, b), "little"),
    }
    agree("r:rrr", 32, cases, words(32, 92))


def test_pairs_of_16_bits() -> None:
    def pair(change: Callable[[int, int], int], has_sign: bool) -> Callable[[int, int, int], int]:
        def both_halves(a: int, b: int, _: int) -> int:
            halves = [(a >> s & 0xFFFF, b >> s & 0xFFFF) for s in (0, 16)]
            low, high = (change(*((signed(x, 16), signed(y, 16)) if has_sign else (x, y))) & 0xFFFF for x, y in halves)
            return low | high << 16

        return both_halves

    cases = {
        f"{name}.{kind}16x2 %0, %1, %2;": pair(change, kind == "s")
        for name, change in (("add", lambda x, y: x + y), ("min", min), ("max", max))
        for kind in "us"
    }
    cases["min.relu.s16x2 %0, %1, %2;"] = pair(lambda x, y: max(min(x, y), 0), True)
    agree("r:rr", 32, cases, words(32, 95)[:2])
    relu = {"max.relu.s32 %0, %1, %2;": lambda a, b, _: max(signed(a, 32), signed(b, 32), 0)}
    agree("r:rr", 32, relu, words(32, 96)[:2])
