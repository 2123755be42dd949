"""Kinds of nvcuda::wmma fragments for tests: fresh operands, how they lie in memory, and products in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import pygpukit as gp

Array = np.ndarray[Any, Any]
SHAPES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
STORED = {"half": "float16", "float": "float32", "double": "float64", "int": "int32", "signed char": "int8",
          "unsigned char": "uint8", "__nv_bfloat16": "uint16"}  # fmt: skip
MIXED = (("half", "half"), ("half", "float"), ("float", "half"))  # sums before and after
PADDING = 16  # bytes after every line of a matrix


@dataclass(frozen=True)
class Kind:
    """One product of fragments. element: the type of a and b as C++ has it; before, after: those of c and d; left,
    right, sums: the layouts of a, b, and of c and d in memory."""

    m: int
    n: int
    k: int
    element: str
    before: str
    after: str
    left: str = "row_major"
    right: str = "col_major"
    sums: str = "row_major"

    @property
    def name(self) -> str:
        layouts = "".join(layout[0] for layout in (self.left, self.right, self.sums))
        return f"{self.m}x{self.n}x{self.k} {self.element.rpartition(':')[2]} {self.before} {self.after} {layouts}"

    @property
    def group(self) -> str:
        return f"{self.m}x{self.n}x{self.k} {self.element.rpartition(':')[2]}"

    @property
    def bits(self) -> int:
        return {"s4": 4, "u4": 4, "b1": 1}.get(self.element.rpartition(":")[2]) or np.dtype(self.memory).itemsize * 8

    @property
    def memory(self) -> str:
        return STORED.get(self.element, "float32" if "tf32" in self.element else "uint8")

    @property
    def integer(self) -> bool:
        return self.after == "int"

    def operand(self, rng: np.random.Generator, rows: int, columns: int) -> Array:
        """Values of an operand, each one that the element type has."""
        ranges = {"s4": (-8, 8), "u4": (0, 16), "b1": (0, 2), "char": (-128, 128)}
        if self.integer:
            low, high = (0, 256) if "unsigned" in self.element else ranges[self.element.rpartition(":")[2].split()[-1]]
            return rng.integers(low, high, (rows, columns))
        values = rng.standard_normal((rows, columns))
        if self.element == "double":
            return values
        if self.element == "half":
            return values.astype("float16").astype("float64")
        kept = 8 if self.element == "__nv_bfloat16" else 11
        mantissa, exponent = np.frexp(values)
        return np.ldexp(np.rint(np.ldexp(mantissa, kept)), exponent - kept)

    def sum_before(self, rng: np.random.Generator) -> Array:
        if self.integer:
            return rng.integers(-(2**20), 2**20, (self.m, self.n)).astype("int32")
        return rng.standard_normal((self.m, self.n)).astype(STORED[self.before])

    def product(self, a: Array, b: Array, c: Array) -> Array:
        """a @ b + c, as the documentation says that the simulated device sums: in ascending order of k."""
        if self.element.endswith("b1"):
            return ((a[:, :, None] != b[None]).sum(1) + c).astype("int32")
        if self.integer:
            return (a @ b + c).astype("int32")
        if self.element == "double":
            return a @ b + c
        total = c.astype("float32")
        for k in range(self.k):
            total = (np.outer(a[:, k], b[k]) + total.astype("float64")).astype("float32")
        return total.astype(STORED[self.after])

    def in_memory(self, matrix: Array, layout: str) -> tuple[Array, int]:
        """The lines of an operand with padding, as what a kernel is given, and the leading dimension in elements."""
        lines = matrix if layout == "row_major" else matrix.T
        if self.bits < 8:
            bits = (lines.astype("uint8")[:, :, None] >> np.arange(self.bits, dtype="uint8") & 1).reshape(
                len(lines), -1
            )
            stored = np.packbits(bits, axis=1, bitorder="little")
        elif self.element == "__nv_bfloat16":
            stored = (np.ascontiguousarray(lines, "float32").view("uint32") >> 16).astype("uint16")
        else:
            stored = lines.astype(self.memory)
        padded = np.pad(stored, ((0, 0), (0, PADDING // stored.itemsize)), constant_values=1)
        return padded, padded.shape[1] * padded.itemsize * 8 // self.bits

    def on_device(self, stored: Array) -> Any:
        array = gp.from_numpy(stored)
        return array.view("bfloat16") if self.element == "__nv_bfloat16" else array

    def fragment(self, use: str) -> str:
        """The C++ type of the fragment of a, b, c or d."""
        shape = f"{self.m}, {self.n}, {self.k}"
        if use in "ab":
            layout = self.left if use == "a" else self.right
            return f"wmma::fragment<wmma::matrix_{use}, {shape}, {self.element}, wmma::{layout}>"
        return f"wmma::fragment<wmma::accumulator, {shape}, {self.before if use == 'c' else self.after}>"

    @property
    def pointed(self) -> str:
        """What pointers to a and b point to."""
        return self.element if self.element in STORED else "float" if "tf32" in self.element else "unsigned char"


def _kinds() -> list[Kind]:
    orders = ("row_major", "col_major")
    found = []
    for shape, left, right, sums in product(SHAPES, orders, orders, orders):
        found.append(Kind(*shape, "half", "float", "float", left, right, sums))
        if left == sums:
            found += [Kind(*shape, "half", *both, left, right, sums) for both in MIXED]
        found.append(Kind(*shape, "__nv_bfloat16", "float", "float", left, right, sums))
        found += [Kind(*shape, f"{sign} char", "int", "int", left, right, sums) for sign in ("signed", "unsigned")]
    for left, right, sums in product(orders, repeat=3):
        found.append(Kind(16, 16, 8, "wmma::precision::tf32", "float", "float", left, right, sums))
        found.append(Kind(8, 8, 4, "double", "double", "double", left, right, sums))
    for sums in orders:
        found += [Kind(8, 8, 32, f"wmma::experimental::precision::{sign}4", "int", "int", sums=sums) for sign in "su"]
        found.append(Kind(8, 8, 128, "wmma::experimental::precision::b1", "int", "int", sums=sums))
    return found


KINDS = _kinds()
