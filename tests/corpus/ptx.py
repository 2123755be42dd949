"""Cases: kernels with inline PTX."""

from __future__ import annotations

from collections.abc import Callable

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


def _numbers(rng: Rng) -> Values:
    words = _words(rng, 133) >> rng.integers(0, 32, 133).astype("uint32")
    words[:2] = 0, 0xFFFFFFFF
    return {"in_": words, "out": blank(133, "uint32"), "shifts": blank(133, "int32"), "n": 133}


def _normalised(in_: Array, **_: object) -> dict[str, Array]:
    counts = np.array([32 - int(x).bit_length() for x in in_], "uint32")
    return {"out": np.where(in_ > 0, in_ << counts % 32, 0), "shifts": np.where(in_ > 0, counts.astype("int32"), -1)}


CASES += [Case("ptx_normalise", 3, 64, _numbers, _normalised)]


def _ends(rng: Rng) -> Values:
    a, b = integers(rng, -(2**31), 2**31, 2, 203)
    a[:4], b[:4] = [2**31 - 1, -(2**31), 0, -(2**31)], [1, -1, -(2**31), 2**31 - 1]
    return {"a": a, "b": b, "out": blank((203, 2), "int32"), "n": 203}


def _saturated(a: Array, b: Array, **_: object) -> dict[str, Array]:
    a, b, least, most = a.astype("int64"), b.astype("int64"), -(2**31), 2**31 - 1
    apart = np.abs(np.clip(a - b, least, most)).astype("int32")  # of the least number it is that number
    return {"out": np.stack([np.clip(a + b, least, most), apart], 1)}


def _levels(rng: Rng) -> Values:
    values = rng.uniform(-9, 70, 157).astype("float32")
    values[:6] = 0.125, 0.375, 63.625, 63.875, np.inf, -np.inf  # halfway between two bytes, and what none is near
    return {
        "in_": values, "bytes": blank(157, "uint8"), "again": blank(157, "float32"), "scale": 4.0, "n": 157,
    }  # fmt: skip


def _bytes(in_: Array, **_: object) -> dict[str, Array]:
    nearest = np.clip(np.rint(4 * in_.astype("float64")), 0, 255)
    return {"bytes": nearest, "again": nearest}


CASES += [
    Case("ptx_saturate", 4, 64, _ends, _saturated),
    Case("ptx_to_bytes", 3, 64, _levels, _bytes),
]


def _signs(rng: Rng) -> Values:
    return {"in_": integers(rng, -99, 99, 5, 2, 32), "out": blank((5, 2, 32), "int32"),
            "counts": blank((5, 2, 32), "int32")}  # fmt: skip


def _compacted(in_: Array, out: Array, **_: object) -> dict[str, Array]:
    counts, out = (in_ > 0).sum(2), out.copy()
    for warp in np.ndindex(in_.shape[:2]):
        out[warp][: counts[warp]] = in_[warp][in_[warp] > 0]
    return {"out": out, "counts": np.broadcast_to(counts[..., None], in_.shape)}


def _ranked(in_: Array, **_: object) -> dict[str, Array]:
    equal = in_[..., :, None] == in_[..., None, :]
    return {"out": np.stack([np.tril(equal, -1).sum(-1), equal.sum(-1)], -1)}


def _warps(low: int, high: int, *results: int) -> Callable[[Rng], Values]:
    """Three blocks of two warps, and as many results a thread."""
    return lambda rng: {"in_": integers(rng, low, high, 3, 2, 32), "out": blank((3, 2, 32, *results), "int32")}


CASES += [
    Case("ptx_compact", 5, 64, _signs, _compacted),
    Case("ptx_scan", 3, 64, _warps(-999, 999), lambda in_, **_: {"out": in_.cumsum(2)}),
    Case("ptx_ranks", 3, 64, _warps(0, 7, 2), _ranked),
]


def _keys(rng: Rng) -> Values:
    return {"in_": _words(rng, 77, 5), "out": blank(77, "uint32"), "words": 5, "rows": 77}


def _hashes(in_: Array, **_: object) -> dict[str, Array]:
    hashes = np.full(in_.shape[0], 2166136261, "uint64")
    for word in in_.T.astype("uint64"):
        mixed = (hashes ^ word) * 0x01000193 & 0xFFFFFFFF
        hashes = ((mixed << 13 | mixed >> 19) & 0xFFFFFFFF) ^ (mixed * 0x9E3779B9 >> 32)
    return {"out": hashes}


def _handed(rng: Rng) -> Values:
    return {"in_": integers(rng, -999, 999, 3, 5, 64), "out": blank((3, 64), "int32"), "tiles": 5}


CASES += [
    Case("ptx_hash", 3, 32, _keys, _hashes),
    Case("ptx_hand_over", 3, 64, _handed,
         lambda in_, **_: {"out": (in_[..., ::-1] * np.arange(1, 6)[:, None]).sum(1)}),
]  # fmt: skip
