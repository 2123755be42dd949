"""Cases: kernels with inline PTX."""

from __future__ import annotations

import numpy as np

from corpus.case import Array, Case, Values, blank, floats, integers

CASES: list[Case] = []
Rng = np.random.Generator


def _words(rng: Rng, *shape: int, dtype: str = "uint32") -> Array:
    return rng.integers(0, 1 << 8 * np.dtype(dtype).itemsize, shape, dtype=dtype)


def _byte_order(rng: Rng) -> Values:
    return {"in_": _words(rng, 203), "out": blank(203, "uint32"), "n": 203}


CASES += [Case("ptx_byte_order", 4, 64, _byte_order, lambda in_, **_: {"out": in_.byteswap()})]


def _wide_sum(rng: Rng) -> Values:
    a, b = _words(rng, 2, 77, 2, dtype="uint64")
    return {"a": a, "b": b, "out": blank((77, 2), "uint64"), "n": 77}


def _wide_sums(a: Array, b: Array, **_: object) -> dict[str, Array]:
    low = a[:, 0] + b[:, 0]
    return {"out": np.stack([low, a[:, 1] + b[:, 1] + (low < a[:, 0])], 1)}


CASES += [Case("ptx_wide_sum", 3, 32, _wide_sum, _wide_sums)]


def _majority(rng: Rng) -> Values:
    a, b, c = _words(rng, 3, 131)
    return {"a": a, "b": b, "c": c, "out": blank(131, "uint32"), "n": 131}


CASES += [
    Case("ptx_majority", 3, 64, _majority, lambda a, b, c, **_: {"out": (a & b) | (a & c) | (b & c)}),
]


def _rows(rng: Rng) -> Values:
    return {"in_": integers(rng, -1000, 1000, 5, 77), "out": blank(5, "int32"), "columns": 77}


CASES += [Case("ptx_row_sums", 5, 32, _rows, lambda in_, **_: {"out": in_.sum(1)})]


def _fours(rng: Rng) -> Values:
    return {"in_": _words(rng, 45, 4), "out": blank((45, 4), "uint32"), "fours": 45}


CASES += [Case("ptx_fours", 2, 32, _fours, lambda in_, **_: {"out": in_[:, ::-1]})]


def _turn(rng: Rng) -> Values:
    return {"in_": _words(rng, 3, 96), "out": blank((3, 96), "uint32")}


CASES += [Case("ptx_shared_turn", 3, 96, _turn, lambda in_, **_: {"out": in_[:, ::-1]})]


def _tiles(rng: Rng) -> Values:
    return {"in_": floats(rng, 401), "out": blank((2, 256), "float32"), "n": 401}


CASES += [
    Case("ptx_async_tile", 2, 64, _tiles,
         lambda in_, **_: {"out": np.pad(in_, (0, 111)).reshape(2, 256)[:, ::-1]}),
]  # fmt: skip


def _bins(rng: Rng) -> Values:
    return {"in_": _words(rng, 301), "bins": integers(rng, 1, 9, 16, dtype="uint32"), "n": 301}


CASES += [
    Case("ptx_bins", 5, 64, _bins,
         lambda in_, bins, **_: {"bins": bins + np.bincount(in_ >> 8 & 15, minlength=16)}),
]  # fmt: skip


def _halves(rng: Rng) -> Values:
    return {"in_": floats(rng, 99, 2), "out": blank(99, "uint32"), "pairs": 99}


CASES += [
    Case("ptx_pairs_of_halves", 2, 64, _halves,
         lambda in_, **_: {"out": in_.astype("float16").view("uint32").ravel()}),
]  # fmt: skip


def _dots(rng: Rng) -> Values:
    a, b = integers(rng, -(2**31), 2**31, 32, 9), integers(rng, -(2**31), 2**31, 5, 9)
    return {"a": a, "b": b, "out": blank((5, 32), "int32"), "words": 9}


CASES += [
    Case("ptx_quantised_dot", 5, 32, _dots,
         lambda a, b, **_: {"out": b.view("int8").astype("int32") @ a.view("int8").astype("int32").T}),
]  # fmt: skip


def _starts(rng: Rng) -> Values:
    return {"in_": integers(rng, 1, 2000, 101, dtype="uint32"), "out": blank(101, "uint32"), "n": 101}


def _steps(in_: Array, **_: object) -> dict[str, Array]:
    steps, x = np.zeros(in_.size, "uint32"), in_.copy()
    while (x > 1).any():
        steps += x > 1
        x = np.where(x <= 1, x, np.where(x % 2, 3 * x + 1, x // 2)).astype("uint32")
    return {"out": steps}


CASES += [Case("ptx_steps_to_one", 2, 64, _starts, _steps)]


def _image(rng: Rng) -> Values:
    return {"in_": _words(rng, 181, dtype="uint8"), "out": blank(181, "uint8"), "more": 60, "n": 181}


CASES += [
    Case("ptx_brighter", 3, 64, _image,
         lambda in_, more, **_: {"out": np.minimum(in_.astype("int32") + more, 255)}),
]  # fmt: skip
