"""Cases: products of warp matrix fragments (nvcuda::wmma) of every type. Small whole numbers make the sums exact."""

from __future__ import annotations

import numpy as np

from corpus.case import FUNCTIONS, Array, Case, Values, blank, floats, integers

CASES: list[Case] = []
Rng = np.random.Generator


def whole(rng: Rng, *shape: int, dtype: str = "float16", most: int = 8) -> Array:
    """Whole numbers from -most to most."""
    return integers(rng, -most, most + 1, *shape, dtype=dtype)


def bfloat16_bits(values: Array) -> Array:
    """Bits of numbers that bfloat16 has."""
    return (values.astype("float32").view("uint32") >> 16).astype("uint16")


def from_bfloat16(bits: Array) -> Array:
    return (bits.astype("uint32") << 16).view("float32")


def _product(rng: Rng) -> Values:
    return {
        "a": whole(rng, 48, 80), "b": whole(rng, 80, 64), "c": blank((48, 64), "float32"),
        "order": rng.permutation(12).astype("int32"), "tiles": 12, "inner": 80, "columns": 64,
    }  # fmt: skip


def _odd(rng: Rng) -> Values:
    return {
        "a": whole(rng, 45, 37), "b": whole(rng, 37, 51), "c": blank((45, 51), "float32"), "rows": 45, "inner": 37,
        "columns": 51,
    }  # fmt: skip


def _product_reference(a, b, **_):
    return {"c": a.astype("float64") @ b}


def _bfloat16(rng: Rng) -> Values:
    return {
        "a": bfloat16_bits(whole(rng, 64, 48)), "b": bfloat16_bits(whole(rng, 24, 48)),
        "c": whole(rng, 64, 24, dtype="float32"), "inner": 48, "columns": 24,
    }  # fmt: skip


def _half_sums(rng: Rng) -> Values:
    return {
        "a": whole(rng, 24, 48, most=4), "b": whole(rng, 48, 64, most=4), "transposed": blank((64, 24), "float16"),
        "rows": 24, "inner": 48, "columns": 64,
    }  # fmt: skip


def _tf32(rng: Rng) -> Values:
    return {
        "a": whole(rng, 40, 48, dtype="float32", most=64), "b": whole(rng, 40, 32, dtype="float32", most=64),
        "c": blank((48, 32), "float32"), "inner": 40, "columns": 32,
    }  # fmt: skip


def _double(rng: Rng) -> Values:
    return {
        "a": whole(rng, 16, 20, dtype="float64", most=999), "b": whole(rng, 20, 24, dtype="float64", most=999),
        "c": whole(rng, 16, 24, dtype="float64", most=999), "alpha": 3.0, "beta": -0.5, "inner": 20, "columns": 24,
    }  # fmt: skip


CASES += [
    Case("wmma_product", 2, 224, _product, _product_reference),
    Case("wmma_shared", (2, 2), 128, _odd, _product_reference),
    Case(
        "wmma_bfloat16", (2, 2), (32, 2), _bfloat16,
        lambda a, b, c, **_: {"c": from_bfloat16(a).astype("float64") @ from_bfloat16(b).T + c}, bfloat16=("a", "b"),
    ),
    Case(
        "wmma_half_sums", (3, 4), 32, _half_sums,
        lambda a, b, **_: {"transposed": (a.astype("float64") @ b).T},
    ),
    Case("wmma_tf32", (2, 3), 32, _tf32, lambda a, b, **_: {"c": a.astype("float64").T @ b}),
    Case(
        "wmma_double", (2, 2), 64, _double,
        lambda a, b, c, alpha, beta, **_: {"c": alpha * (a @ b) + beta * c},
    ),
]  # fmt: skip


def _int8(rng: Rng) -> Values:
    ends = np.array([2**31 - 1, -(2**31), 0, 1000])
    return {
        "a": integers(rng, -128, 128, 3, 16, 16, dtype="int8"), "b": integers(rng, -128, 128, 3, 16, 16, dtype="int8"),
        "start": rng.choice(ends, (3, 16, 16)).astype("int32"), "out": blank((3, 16, 16), "int8"), "shift": 9,
    }  # fmt: skip


def _int8_reference(a, b, start, shift, **_):
    sums = a.astype("int64") @ b.astype("int64").transpose(0, 2, 1) + start
    return {"out": (np.clip(sums, -(2**31), 2**31 - 1) >> shift).astype("int8")}


def _bytes(rng: Rng) -> Values:
    return {
        "x": integers(rng, 0, 256, 64, 48, dtype="uint8"), "y": integers(rng, 0, 256, 24, 48, dtype="uint8"),
        "distance": blank((64, 24), "int32"), "length": 48, "others": 24,
    }  # fmt: skip


def _bytes_reference(x, y, **_):
    return {"distance": ((x[:, None].astype("int64") - y) ** 2).sum(2)}


def _packed(values: Array) -> Array:
    """Eight integers of four bits in a word, the first in the lowest bits."""
    digits = (values & 15).astype("uint64").reshape(*values.shape[:-1], -1, 8)
    return (digits << np.arange(0, 32, 4, dtype="uint64")).sum(-1).astype("uint32")


def _unpacked(words: Array) -> Array:
    digits = (words[..., None] >> np.arange(0, 32, 4, dtype="uint32") & 15).astype("int64")
    return (digits - 16 * (digits > 7)).reshape(*words.shape[:-1], -1)


def _int4(rng: Rng) -> Values:
    return {
        "a": _packed(whole(rng, 16, 96, dtype="int64", most=7)),
        "b": _packed(whole(rng, 24, 96, dtype="int64", most=7)),
        "c": blank((16, 24), "int32"), "rows": 16, "inner": 96, "columns": 24,
    }  # fmt: skip


def _bits(rng: Rng) -> Values:
    return {
        "a": integers(rng, 0, 2**32, 16, 12, dtype="uint32"), "b": integers(rng, 0, 2**32, 24, 12, dtype="uint32"),
        "differ": blank((16, 24), "int32"), "common": blank((16, 24), "int32"), "rows": 16, "bits": 384,
        "others": 24,
    }  # fmt: skip


def _bits_reference(a, b, **_):
    a, b = (np.unpackbits(words.view("uint8"), axis=1)[:, :] for words in (a, b))
    both = a.astype("int64") @ b.T
    return {"differ": a.sum(1)[:, None].astype("int64") + b.sum(1) - 2 * both, "common": both}


CASES += [
    Case("wmma_int8", 3, 32, _int8, _int8_reference),
    Case("wmma_bytes", (3, 2), 32, _bytes, _bytes_reference),
    Case("wmma_int4", (4, 3), 32, _int4, lambda a, b, **_: {"c": _unpacked(a) @ _unpacked(b).T}),
    Case("wmma_bits", (4, 3), 32, _bits, _bits_reference),
]


def _layer(rng: Rng) -> Values:
    return {
        "x": whole(rng, 48, 64), "weights": whole(rng, 32, 64), "bias": whole(rng, 32, dtype="float32", most=99),
        "out": blank((48, 32), "float32"), "inner": 64, "columns": 32,
    }  # fmt: skip


def _layer_reference(x, weights, bias, **_):
    return {"out": np.maximum(x.astype("float64") @ weights.T + bias, 0)}


def _split(rng: Rng) -> Values:
    return {"a": whole(rng, 192, 16), "b": whole(rng, 192, 16), "c": blank((16, 16), "float32"), "inner": 192}


def _image(rng: Rng) -> Values:
    height, width, channels, kinds = 9, 11, 3, 13
    return {
        "image": whole(rng, channels, height, width), "filters": whole(rng, kinds, channels, 3, 3),
        "out": blank((kinds, height - 2, width - 2), "float32"), "height": height, "width": width,
        "channels": channels, "kinds": kinds,
    }  # fmt: skip


def _image_reference(image, filters, **_):
    windows = np.lib.stride_tricks.sliding_window_view(image.astype("float64"), (3, 3), axis=(1, 2))
    return {"out": np.einsum("chwyx,kcyx->khw", windows, filters.astype("float64"))}


def _heads(rng: Rng) -> Values:
    shape = (3, 16, 32)
    return {
        "queries": floats(rng, *shape, dtype="float16"), "keys": floats(rng, *shape, dtype="float16"),
        "values": floats(rng, *shape, dtype="float16"), "out": blank(shape, "float32"), "size": 32, "scale": 0.17,
    }  # fmt: skip


def _heads_reference(queries, keys, values, scale, **_):
    scores = np.exp(scale * queries.astype("float64") @ keys.astype("float64").transpose(0, 2, 1))
    return {"out": scores / scores.sum(2, keepdims=True) @ values}


CASES += [
    Case("wmma_bias_relu", (2, 3), 32, _layer, _layer_reference),
    Case("wmma_split", 1, 128, _split, lambda a, b, **_: {"c": a.astype("float64").T @ b}),
    Case("wmma_convolution", 4, 32, _image, _image_reference),
    Case(
        "wmma_attention", 3, 32, _heads, _heads_reference, exact=False, tolerance=2e-3,
        reason=f"weights are rounded to half; {FUNCTIONS}",
    ),
    Case(
        "wmma_scan", 3, 32, lambda rng: {"in_": whole(rng, 768, most=4), "out": blank(768, "float32")},
        lambda in_, **_: {"out": in_.reshape(3, 256).astype("float64").cumsum(1)},
    ),
]  # fmt: skip


def _buffered(rng: Rng) -> Values:
    return {
        "a": whole(rng, 48, 80), "b": whole(rng, 80, 64), "c": blank((48, 64), "float32"), "inner": 80, "columns": 64,
    }  # fmt: skip


def _gram(rng: Rng) -> Values:
    return {
        "x": bfloat16_bits(whole(rng, 64, 48)), "gram": blank((48, 48), "float32"), "rows": 64, "columns": 48,
    }  # fmt: skip


def _gram_reference(x, **_):
    x = from_bfloat16(x).astype("float64")
    return {"gram": x.T @ x}


def _chain(rng: Rng) -> Values:
    tiles = {name: whole(rng, 3, 16, 16, most=4) for name in "abc"}
    return {**tiles, "out": blank((3, 16, 16), "float32")}


def _reach(rng: Rng) -> Values:
    steps = rng.random((128, 128)) < 0.05
    rows, columns = (np.packbits(bits, axis=1, bitorder="little").view("uint32") for bits in (steps, steps.T.copy()))
    return {"from": rows, "into": columns, "reached": blank((128, 128), "uint8")}


def _reach_reference(**arguments):
    steps = np.unpackbits(arguments["from"].view("uint8"), axis=1, bitorder="little").astype("int64")
    return {"reached": ((steps @ steps + steps) > 0).astype("uint8")}


def _quantised(rng: Rng) -> Values:
    return {
        "x": integers(rng, 0, 256, 24, 48, dtype="uint8"), "weights": integers(rng, 0, 256, 48, 64, dtype="uint8"),
        "scales": 2.0 ** integers(rng, -9, -3, 64, dtype="float32"), "out": blank((24, 64), "float32"), "inner": 48,
        "columns": 64, "x_zero": 113, "w_zero": 131,
    }  # fmt: skip


def _quantised_reference(x, weights, scales, x_zero, w_zero, **_):
    return {"out": ((x.astype("int64") - x_zero) @ (weights.astype("int64") - w_zero)) * scales.astype("float64")}


CASES += [
    Case("wmma_double_buffer", (2, 3), 64, _buffered, _product_reference),
    Case("wmma_gram", (4, 3), 32, _gram, _gram_reference, bfloat16=("x",)),
    Case(
        "wmma_chain", 3, 32, _chain,
        lambda a, b, c, **_: {"out": a.astype("float64") @ b.astype("float64") @ c.astype("float64")},
    ),
    Case("wmma_reach", (16, 16), 32, _reach, _reach_reference),
    Case("wmma_quantised", (2, 3), 32, _quantised, _quantised_reference),
]  # fmt: skip


def _instruction(rng: Rng) -> Values:
    return {
        "a": whole(rng, 64, 48), "b": whole(rng, 48, 32), "c": blank((64, 32), "float32"), "inner": 48, "columns": 32,
    }  # fmt: skip


def _bytes_of_signs(rng: Rng) -> Values:
    return {
        "a": integers(rng, -128, 128, 32, 64, dtype="int8").view("uint32"),
        "b": integers(rng, 0, 256, 24, 64, dtype="uint8").view("uint32"), "c": blank((32, 24), "int32"), "rows": 32,
        "words": 16, "columns": 24,
    }  # fmt: skip


def _bytes_of_signs_reference(a, b, **_):
    start = np.zeros((2, 8, 3, 8), "int64")
    start[0, :, :, 0::2], start[1, :, :, 1::2] = 2**31 - 1, 1 - 2**31
    starts = np.tile(start, (2, 1, 1, 1)).reshape(32, 24)
    return {"c": (a.view("int8").astype("int64") @ b.view("uint8").T.astype("int64") + starts).astype("int32")}


def _rows_of_floats(rng: Rng) -> Values:
    return {
        "a": whole(rng, 32, 40, dtype="float32", most=64), "b": whole(rng, 24, 40, dtype="float32", most=64),
        "c": blank((32, 24), "float32"), "rows": 32, "inner": 40, "columns": 24,
    }  # fmt: skip


def _rows_of_bits(rng: Rng) -> Values:
    return {
        "a": integers(rng, 0, 2**32, 32, 8, dtype="uint32"), "b": integers(rng, 0, 2**32, 24, 8, dtype="uint32"),
        "common": blank((32, 24), "int32"), "others": 24,
    }  # fmt: skip


def _odd_doubles(rng: Rng) -> Values:
    return {
        "a": whole(rng, 19, 13, dtype="float64", most=999), "b": whole(rng, 13, 21, dtype="float64", most=999),
        "c": blank((19, 21), "float64"), "rows": 19, "inner": 13, "columns": 21,
    }  # fmt: skip


def _words(rng: Rng) -> Values:
    return {
        "in_": integers(rng, 0, 2**16, 22, 19, dtype="uint16"), "out": blank((19, 11), "uint32"), "width": 19,
        "height": 22,
    }  # fmt: skip


CASES += [
    Case("mma_half", (2, 2), 64, _instruction, _product_reference),
    Case("mma_int8", (4, 3), 32, _bytes_of_signs, _bytes_of_signs_reference),
    Case("mma_tf32", (2, 2), (32, 2), _rows_of_floats, lambda a, b, **_: {"c": a.astype("float64") @ b.T}),
    Case(
        "mma_bits", (3, 2), 32, _rows_of_bits,
        lambda a, b, **_: {"common": _bits_reference(a, b)["common"]},
    ),
    Case("mma_double", (3, 3), 32, _odd_doubles, _product_reference),
    Case(
        "mma_turn", (3, 3), 32, _words,
        lambda in_, **_: {"out": np.ascontiguousarray(in_.T).view("uint32")},
    ),
]  # fmt: skip


def _graphs(rng: Rng) -> Values:
    return {"steps": integers(rng, 0, 2, 3, 16, 16, dtype="float16"), "walks": blank((3, 16, 16), "float32")}


CASES += [
    Case("wmma_walks", 3, 32, _graphs, lambda steps, **_: {"walks": np.linalg.matrix_power(steps.astype("int64"), 3)}),
]
