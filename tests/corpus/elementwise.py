"""Cases: one element a thread: grids of one to three dimensions, templates, structs, vectors, conversions."""

from __future__ import annotations

import numpy as np

from corpus.case import FUNCTIONS, ROUNDING, Case, Values, blank, floats, integers

CASES: list[Case] = []
Rng = np.random.Generator


def _two_vectors(rng: Rng) -> Values:
    n = 1003
    return {"a": floats(rng, n), "b": floats(rng, n), "out": blank(n, "float32"), "n": n}


CASES += [Case("vector_add", 4, 256, _two_vectors, lambda a, b, **_: {"out": a + b})]


def _saxpy(rng: Rng) -> Values:
    n = 997
    return {"x": floats(rng, n), "y": floats(rng, n), "factor": 0.75, "n": n}


CASES += [
    Case(
        "saxpy", 3, 64, _saxpy, lambda x, y, factor, **_: {"y": factor * x.astype("float64") + y},
        tolerance=1e-6, reason=ROUNDING,
    )
]  # fmt: skip


def _strided_copy(rng: Rng) -> Values:
    image = integers(rng, 0, 10000, 29, 41)
    return {
        "image": image,
        "out": blank((17, 23), "int32"),
        "pitch": 41,
        "top": 5,
        "left": 7,
        "width": 23,
        "height": 17,
    }


CASES += [
    Case(
        "strided_copy", (3, 3), (8, 8), _strided_copy,
        lambda image, top, left, width, height, **_: {"out": image[top : top + height, left : left + width]},
    )
]  # fmt: skip


def _volume(rng: Rng) -> Values:
    volume = integers(rng, 0, 10000, 5, 7, 9)
    return {"in_": volume, "out": blank((5, 7, 9), "int32"), "width": 9, "height": 7, "depth": 5}


CASES += [Case("volume_flip", (3, 2, 3), (4, 4, 2), _volume, lambda in_, **_: {"out": in_[::-1, ::-1, ::-1]})]


def _clamp(dtype: str, n: int):
    return lambda rng: {
        "in_": integers(rng, -50, 50, n, dtype=dtype), "out": blank(n, dtype), "high": 11, "n": n
    }  # fmt: skip


CASES += [
    Case("ranges::clamp<int, -7>", 4, 96, _clamp("int32", 301), lambda in_, **_: {"out": np.clip(in_, -7, 11)}),
    Case("ranges::clamp<double, 0>", 3, 128, _clamp("float64", 299), lambda in_, **_: {"out": np.clip(in_, 0, 11)}),
]


def _polynomial(rng: Rng) -> Values:
    n = 203
    return {"x": floats(rng, n, dtype="float64"), "out": blank(n, "float64"), "n": n}


CASES += [
    Case(
        "polynomial", 2, 128, _polynomial,
        lambda x, **_: {"out": np.polynomial.polynomial.polyval(x, [1.0, -0.5, 0.25, 3.0, -2.0, 0.125])},
        tolerance=1e-14, reason="the reference is free to add in another order",
    )
]  # fmt: skip


def _affine(rng: Rng) -> Values:
    n = 251
    return {"points": floats(rng, n, 2), "out": blank((n, 2), "float32"), "map": floats(rng, 6).tobytes(), "n": n}


def _affine_reference(points, map, **_):
    numbers = np.frombuffer(map, np.float32).astype("float64")
    return {"out": points @ numbers[:4].reshape(2, 2).T + numbers[4:]}


CASES += [Case("affine", 4, 64, _affine, _affine_reference, tolerance=1e-6, reason=ROUNDING)]


def _lambda_map(rng: Rng) -> Values:
    n = 509
    return {"in_": integers(rng, -100, 100, n), "out": blank(n, "int32"), "factor": 3, "n": n}


CASES += [Case("lambda_map", 4, 128, _lambda_map, lambda in_, factor, **_: {"out": factor * in_ * in_ + 7})]


def _vector_load(rng: Rng) -> Values:
    n = 4 * 97 + 3
    return {"in_": floats(rng, n), "out": blank(n, "float32"), "n": n}


def _vector_load_reference(in_, **_):
    whole = len(in_) // 4 * 4
    return {"out": 2 * np.concatenate([in_[:whole].reshape(-1, 4)[:, ::-1].ravel(), in_[whole:]])}


CASES += [Case("vector_load", 4, 32, _vector_load, _vector_load_reference)]


def _gelu(rng: Rng) -> Values:
    n = 403
    return {"x": floats(rng, n), "out": blank(n, "float32"), "n": n}


def _gelu_reference(x, **_):
    x = x.astype("float64")
    return {"out": 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))}


CASES += [Case("gelu", 4, 128, _gelu, _gelu_reference, exact=False, tolerance=1e-6, reason=FUNCTIONS)]


def _complex_multiply(rng: Rng) -> Values:
    n = 301
    return {"a": floats(rng, n, 2), "b": floats(rng, n, 2), "out": blank((n, 2), "float32"), "n": n}


def _complex_reference(a, b, **_):
    product = a.astype("float64").view("complex128") * b.astype("float64").view("complex128")
    return {"out": product.view("float64")}


CASES += [Case("complex_multiply", 3, 128, _complex_multiply, _complex_reference, tolerance=1e-6, reason=ROUNDING)]


def _gather(rng: Rng) -> Values:
    return {
        "table": floats(rng, 89, dtype="float64"), "index": integers(rng, 0, 89, 307), "out": blank(307, "float64"),
        "n": 307
    }  # fmt: skip


CASES += [Case("gather", 5, 64, _gather, lambda table, index, **_: {"out": table[index]})]


def _mandelbrot(rng: Rng) -> Values:
    return {
        "steps": blank((19, 27), "uint16"), "left": -2.2 + 0.1 * rng.random(), "top": -1.2 + 0.1 * rng.random(),
        "pitch": 0.12, "limit": 60, "width": 27, "height": 19,
    }  # fmt: skip


def _mandelbrot_reference(left, top, pitch, limit, width, height, **_):
    cr, ci = np.meshgrid(left + pitch * np.arange(width), top + pitch * np.arange(height))
    zr, zi, steps = np.zeros_like(cr), np.zeros_like(cr), np.zeros(cr.shape, int)
    for _step in range(limit):
        going = zr * zr + zi * zi <= 4.0
        zr, zi = np.where(going, zr * zr - zi * zi + cr, zr), np.where(going, 2.0 * zr * zi + ci, zi)
        steps += going
    return {"steps": steps}


CASES += [Case("mandelbrot", (4, 3), (8, 8), _mandelbrot, _mandelbrot_reference)]


def _bits(rng: Rng) -> Values:
    words = rng.integers(0, 2**32, 133, dtype=np.uint32) >> rng.integers(0, 32, 133).astype(np.uint32)
    words[7] = 0
    return {"in_": words, "out": blank((133, 6), "uint32"), "n": 133}


def _bits_of(x: int) -> list[int]:
    text = f"{x:032b}"
    from_x, from_inverse = x.to_bytes(4, "little"), (x ^ 0xFFFFFFFF).to_bytes(4, "little")
    both = from_x + from_inverse
    picked = int.from_bytes(bytes(both[selector] for selector in (4, 1, 6, 3)), "little")
    first = len(text) - text.rindex("1") if x else 0
    turned = (x << 7 | x >> 25) & 0xFFFFFFFF
    return [text.count("1"), 32 - x.bit_length(), first, int(text[::-1], 2), picked, turned]


CASES += [Case("bits", 3, 64, _bits, lambda in_, **_: {"out": [_bits_of(int(x)) for x in in_]})]


def _philox(rng: Rng) -> Values:
    key = rng.integers(0, 2**32, 3)
    n = 117
    return {
        "out": blank((n, 4), "uint32"), "key_low": int(key[0]), "key_high": int(key[1]), "stream": int(key[2]), "n": n
    }  # fmt: skip


def _philox_of(counter: list[int], key: list[int]) -> list[int]:
    for _round in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (second >> 32) ^ counter[1] ^ key[0], second & 0xFFFFFFFF,
            (first >> 32) ^ counter[3] ^ key[1], first & 0xFFFFFFFF,
        ]  # fmt: skip
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


CASES += [
    Case(
        "philox", 2, 64, _philox,
        lambda key_low, key_high, stream, n, **_: {
            "out": [_philox_of([i, stream, 0, 0], [key_low, key_high]) for i in range(n)]
        },
    )
]  # fmt: skip


def _half_axpy(rng: Rng) -> Values:
    n = 203
    return {
        "x": floats(rng, n, dtype="float16"), "y": floats(rng, n, dtype="float16"), "fused": blank(n, "float16"),
        "separate": blank(n, "float16"), "factor": 1.375, "n": n,
    }  # fmt: skip


def _half_reference(x, y, factor, **_):
    wide = factor * x.astype("float64")  # exact, and so is the sum
    return {"fused": (wide + y).astype("float16"), "separate": wide.astype("float16") + y}


CASES += [Case("half_axpy", 4, 64, _half_axpy, _half_reference)]


def _half2(rng: Rng) -> Values:
    n = 101
    return {
        "a": floats(rng, n, 2, dtype="float16"), "b": floats(rng, n, 2, dtype="float16"),
        "out": blank((n, 2), "float16"),
        "wide": blank((n, 2), "float32"), "pairs": n,
    }  # fmt: skip


def _half2_reference(a, b, **_):
    value = (a.astype("float64") * b + a).astype("float16")
    return {"out": value[:, ::-1], "wide": value}


CASES += [Case("half2_pairs", 2, 64, _half2, _half2_reference)]


def _bfloat16(rng: Rng) -> Values:
    values = (floats(rng, 37, 21).view(np.uint32) >> 16).astype(np.uint16)
    return {
        "in_": values, "out": blank(37, "uint16"), "wide": blank(37, "float32"), "rows": 37, "columns": 21
    }  # fmt: skip


def _bfloat16_reference(in_, **_):
    sums = np.zeros(len(in_), np.float32)
    for column in in_.T:
        sums += (column.astype(np.uint32) << 16).view(np.float32)
    bits = sums.view(np.uint32)
    return {"wide": sums, "out": (bits + 0x7FFF + (bits >> 16 & 1)) >> 16}


CASES += [Case("bfloat16_sum", 2, 32, _bfloat16, _bfloat16_reference, bfloat16=("in_", "out"))]


def _dp4a(rng: Rng) -> Values:
    return {
        "a": integers(rng, -128, 128, 43, 20, dtype="int8").view("int32"),
        "b": integers(rng, -128, 128, 20, dtype="int8").view("int32"), "out": blank(43, "int32"), "rows": 43,
        "words": 5,
    }  # fmt: skip


CASES += [
    Case("dp4a", 2, 32, _dp4a, lambda a, b, **_: {"out": a.view("int8").astype(int) @ b.view("int8").astype(int)})
]


def _device_global(rng: Rng) -> Values:
    n = 151
    parents = [rng.integers(k + 1, n) for k in range(n - 1)]
    return {"in_": np.array([*parents, n - 1], np.int32), "out": blank(n, "int32"), "n": n}


def _depths(in_, n, **_):
    depths = np.zeros(n, int)
    for node in reversed(range(n - 1)):
        depths[node] = depths[in_[node]] + 1
    return {"out": depths}


CASES += [Case("device_global", 1, 64, _device_global, _depths)]
