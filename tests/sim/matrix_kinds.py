"""Kinds of mma.sync for tests: fresh operands, registers as the manual lays them out, and products in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matrix_layouts import OPERANDS, Rule, sums

Array = np.ndarray[Any, Any]
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
        "e4m3": 8, "e5m2": 8, "s32": 32}  # fmt: skip
REGISTERS = {"f32": "float", "f64": "double", "s32": "int"}  # others: unsigned
STORED = {"float": "float32", "double": "float64", "int": "int32", "unsigned": "uint32"}
CONSTRAINTS = {"float": "f", "double": "d", "int": "r", "unsigned": "r"}
RANGES = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}


def codes(kind: str, values: Array) -> Array:
    """The bits of values that the type has, as uint64."""
    if kind in RANGES:
        return values.astype("int64").astype("uint64") & np.uint64((1 << BITS[kind]) - 1)
    if kind == "f16":
        return values.astype("float16").view("uint16").astype("uint64")
    if kind == "e5m2":
        return (values.astype("float16").view("uint16") >> 8).astype("uint64")
    if kind == "e4m3":
        table = eight_bits()
        return np.argmax(table == values[..., None], axis=-1).astype("uint64")
    single = np.ascontiguousarray(values, "float32").view("uint32")
    return (single >> 16 if kind == "bf16" else single).astype("uint64")


def eight_bits() -> Array:
    """The value of each code of e4m3."""
    code = np.arange(256)
    exponent, mantissa, sign = code >> 3 & 15, code & 7, np.where(code < 128, 1.0, -1.0)
    value = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    return np.where((code & 127) == 127, np.nan, sign * value)


def operand(rng: np.random.Generator, kind: str, rows: int, columns: int) -> Array:
    """Values that the type has."""
    if kind in RANGES:
        return rng.integers(*RANGES[kind], (rows, columns))
    if kind in ("f64", "f32"):
        return rng.standard_normal((rows, columns)).astype("float32" if kind == "f32" else "float64").astype("float64")
    if kind == "e4m3":
        return rng.choice(eight_bits()[np.abs(eight_bits()) <= 8], (rows, columns))
    digits = {"f16": 11, "bf16": 8, "tf32": 11, "e5m2": 3}[kind]
    mantissa, exponent = np.frexp(rng.standard_normal((rows, columns)))
    values = np.ldexp(np.rint(np.ldexp(mantissa, digits)), np.maximum(exponent, -10) - digits)
    return values


@dataclass(frozen=True)
class Kind:
    """One instruction. op: what follows the types, as ".satfinite"."""

    m: int
    n: int
    k: int
    d: str
    a: str
    b: str
    c: str
    op: str = ""

    @property
    def name(self) -> str:
        return f"m{self.m}n{self.n}k{self.k} {self.d} {self.a} {self.b} {self.c}{self.op}"

    def held(self, kind: str, matrix: Array, rule: Rule) -> Array:
        """The registers of 32 lanes."""
        bits, (rows, columns) = BITS[kind], matrix.shape
        count = rows * columns // 32
        places = [[rule(lane // 4, lane % 4, i) for i in range(count)] for lane in range(32)]
        values = np.array([[matrix[at] for at in row] for row in places])
        return registers(kind, values, bits)

    def dropped(self, kind: str, held: Array, shape: tuple[int, int], rule: Rule) -> Array:
        """The matrix that the registers of 32 lanes hold."""
        values = held.view("float16") if kind == "f16" else held
        matrix = np.full(shape, np.nan)
        for lane in range(32):
            for i in range(values.shape[1]):
                matrix[rule(lane // 4, lane % 4, i)] = values[lane, i]
        return matrix

    def operands(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        a, b = operand(rng, self.a, self.m, self.k), operand(rng, self.b, self.k, self.n)
        if self.c != "s32":
            return a, b, operand(rng, self.c, self.m, self.n)
        ends = [2**31 - 5, -(2**31) + 5, 0, 12345]
        return a, b, rng.choice(ends, (self.m, self.n))

    def product(self, a: Array, b: Array, c: Array) -> Array:
        """a @ b + c, summed as the documentation says that the simulated device does."""
        if "popc" in self.op:
            both = a[:, :, None] != b[None] if "xor" in self.op else a[:, :, None] & b[None]
            return (both.sum(1) + c).astype("int64").astype("int32").astype("float64")
        if self.c == "s32":
            total = a @ b + c
            if "satfinite" in self.op:
                total = np.clip(total, -(2**31), 2**31 - 1)
            return total.astype("int64").astype("int32").astype("float64")
        if self.a == "f64":
            return a @ b + c
        total = c.astype("float32")
        for k in range(self.k):
            total = (np.outer(a[:, k], b[k]) + total.astype("float64")).astype("float32")
        return total.astype("float16" if self.d == "f16" else "float32").astype("float64")

    def rules(self) -> tuple[Rule, Rule, Rule]:
        left, right = OPERANDS[self.m, self.n, self.k, BITS[self.a]]
        return left, right, sums(self.m)


def registers(kind: str, values: Array, bits: int) -> Array:
    """Elements of lanes packed into their registers, the first in the lowest bits."""
    stored = STORED[REGISTERS.get(kind, "unsigned")]
    if kind in REGISTERS:
        return values.astype(stored)
    packed = codes(kind, values).reshape(32, -1, 32 // bits)
    return (packed << (np.arange(32 // bits, dtype="uint64") * np.uint64(bits))).sum(-1).astype("uint32")


def _kinds() -> list[Kind]:
    found = []
    for k in (8, 16):
        found += [Kind(16, 8, k, d, "f16", "f16", c) for d, c in (("f16", "f16"), ("f32", "f32"))]
        found.append(Kind(16, 8, k, "f32", "bf16", "bf16", "f32"))
    found += [Kind(16, 8, k, "f32", "tf32", "tf32", "f32") for k in (4, 8)]
    found += [Kind(*shape, "f64", "f64", "f64", "f64") for shape in ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16))]
    small = ("e4m3", "e5m2")
    found += [Kind(16, 8, k, d, a, b, d) for k in (16, 32) for d in ("f16", "f32") for a in small for b in small]
    for op in ("", ".satfinite"):
        for shape in ((8, 8, 16), (16, 8, 16), (16, 8, 32)):
            found += [Kind(*shape, "s32", a, b, "s32", op) for a in ("s8", "u8") for b in ("s8", "u8")]
        for shape in ((8, 8, 32), (16, 8, 32), (16, 8, 64)):
            found += [Kind(*shape, "s32", a, b, "s32", op) for a in ("s4", "u4") for b in ("s4", "u4")]
    for shape in ((8, 8, 128), (16, 8, 128), (16, 8, 256)):
        found += [Kind(*shape, "s32", "b1", "b1", "s32", f".{op}.popc") for op in ("xor", "and")]
    return found


KINDS = _kinds()
