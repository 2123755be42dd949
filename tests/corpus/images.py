"""Cases: stencils in one to three dimensions, image operations and convolutions."""

from __future__ import annotations

import numpy as np

from corpus.case import FUNCTIONS, ROUNDING, Case, Values, blank, floats, integers

CASES: list[Case] = []
Rng = np.random.Generator
HEIGHT, WIDTH = 19, 27


def _stencil_1d(rng: Rng) -> Values:
    n = 64 * 3 + 5
    return {"in_": integers(rng, -1000, 1000, n), "out": blank(n, "int32"), "n": n}


CASES += [
    Case("stencil_1d", 4, 64, _stencil_1d, lambda in_, **_: {"out": np.convolve(in_, np.ones(7, int), "same")}),
]


def _heat(rng: Rng) -> Values:
    return {
        "now": floats(rng, HEIGHT, WIDTH), "next": blank((HEIGHT, WIDTH), "float32"), "rate": 0.2, "width": WIDTH,
        "height": HEIGHT,
    }  # fmt: skip


def _heat_reference(now, rate, **_):
    out = now.astype("float64")
    around = out[1:-1, :-2] + out[1:-1, 2:] + out[:-2, 1:-1] + out[2:, 1:-1]
    out[1:-1, 1:-1] += rate * (around - 4 * out[1:-1, 1:-1])
    return {"next": out}


CASES += [Case("heat_2d", (4, 3), (8, 8), _heat, _heat_reference, tolerance=1e-6, reason=ROUNDING)]


def _image(rng: Rng) -> Values:
    return {
        "in_": integers(rng, 0, 1000, HEIGHT, WIDTH), "out": blank((HEIGHT, WIDTH), "int32"), "width": WIDTH,
        "height": HEIGHT
    }  # fmt: skip


def _stencil_2d_reference(in_, **_):
    padded = np.pad(in_, 1)
    return {
        "out": sum((1 + dx + 3 * dy) * padded[dy : dy + HEIGHT, dx : dx + WIDTH] for dy in range(3) for dx in range(3))
    }


CASES += [Case("stencil_2d", (4, 3), (8, 8), _image, _stencil_2d_reference)]


def _laplace(rng: Rng) -> Values:
    shape = (6, 9, 13)
    return {"in_": floats(rng, *shape), "out": np.zeros(shape, "float32"), "width": 13, "height": 9, "depth": 6}


def _laplace_reference(in_, out, **_):
    x = in_.astype("float64")
    out = out.copy()
    inner = slice(1, -1)
    out[1:-1, 1:-1, 1:-1] = (
        x[inner, inner, :-2] + x[inner, inner, 2:] + x[inner, :-2, inner] + x[inner, 2:, inner]
        + x[:-2, inner, inner] + x[2:, inner, inner] - 6 * x[inner, inner, inner]
    )  # fmt: skip
    return {"out": out}


CASES += [Case("laplace_3d", (3, 2), (4, 4), _laplace, _laplace_reference, tolerance=1e-6, reason=ROUNDING)]


def _life(rng: Rng) -> Values:
    return {
        "now": integers(rng, 0, 2, HEIGHT, WIDTH, dtype="uint8"), "next": blank((HEIGHT, WIDTH), "uint8"),
        "width": WIDTH,
        "height": HEIGHT,
    }  # fmt: skip


def _life_reference(now, **_):
    shifts = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
    alive = sum(np.roll(now, shift, (0, 1)).astype(int) for shift in shifts)
    return {"next": (alive == 3) | ((alive == 2) & (now == 1))}


CASES += [Case("life", (4, 3), (8, 8), _life, _life_reference)]


def _bytes_image(rng: Rng) -> Values:
    image = integers(rng, 0, 90, HEIGHT, WIDTH, dtype="uint8")
    return {"in_": image, "out": blank((HEIGHT, WIDTH), "uint8"), "width": WIDTH, "height": HEIGHT}


def _sobel_reference(in_, **_):
    x = np.pad(in_.astype(int), 1, mode="edge")
    weights = (1, 2, 1)
    across = sum(w * (x[k : k + HEIGHT, 2:] - x[k : k + HEIGHT, :-2]) for k, w in enumerate(weights))
    down = sum(w * (x[2:, k : k + WIDTH] - x[:-2, k : k + WIDTH]) for k, w in enumerate(weights))
    return {"out": np.minimum(255, abs(across) + abs(down))}


CASES += [Case("sobel", (4, 3), (8, 8), _bytes_image, _sobel_reference)]


def _bilateral(rng: Rng) -> Values:
    return {
        "in_": floats(rng, HEIGHT, WIDTH), "out": blank((HEIGHT, WIDTH), "float32"), "spread": 0.1, "contrast": 0.5,
        "width": WIDTH, "height": HEIGHT,
    }  # fmt: skip


def _bilateral_reference(in_, spread, contrast, **_):
    x = np.pad(in_.astype("float64"), 2, constant_values=np.nan)
    total, weights = np.zeros(in_.shape), np.zeros(in_.shape)
    for dy in range(-2, 3):
        for dx in range(-2, 3):
            value = x[2 + dy : 2 + dy + HEIGHT, 2 + dx : 2 + dx + WIDTH]
            weight = np.exp(-(dx * dx + dy * dy) * spread - (value - in_) ** 2 * contrast)
            total += np.nan_to_num(weight * value)
            weights += np.nan_to_num(weight)
    return {"out": total / weights}


CASES += [
    Case("bilateral", (4, 3), (8, 8), _bilateral, _bilateral_reference, exact=False, tolerance=1e-5, reason=FUNCTIONS)
]


def _box_blur(rng: Rng) -> Values:
    return {"in_": integers(rng, 0, 256, 5, 101, dtype="uint8"), "out": blank((5, 101), "int32"), "width": 101}


CASES += [
    Case(
        "box_blur", 5, 64, _box_blur,
        lambda in_, **_: {"out": [np.convolve(row.astype(int), np.ones(9, int), "same") for row in in_]},
    )
]  # fmt: skip


def _convolution_1d(rng: Rng) -> Values:
    return {"in_": floats(rng, 3, 77), "out": blank((3, 73), "float32"), "length": 77, "valid": 73}


CASES += [
    Case(
        "convolution_1d", (3, 3), 32, _convolution_1d,
        lambda in_,
        **_: {"out": [np.convolve(row, [0.1, -0.7, 1.5, 0.4, -0.3], "valid") for row in in_.astype("float64")]},
        tolerance=1e-6, reason=ROUNDING,
    )
]  # fmt: skip


def _convolution_2d(rng: Rng) -> Values:
    return {
        "in_": floats(rng, 3, 11, 13), "filters": floats(rng, 2, 3, 3, 3), "out": blank((2, 11, 13), "float32"),
        "channels": 3, "width": 13, "height": 11,
    }  # fmt: skip


def _convolution_2d_reference(in_, filters, **_):
    x = np.pad(in_.astype("float64"), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return {"out": np.einsum("cyxij,ocij->oyx", windows, filters)}


CASES += [
    Case(
        "convolution_2d", (2, 2, 2), (8, 8), _convolution_2d, _convolution_2d_reference, tolerance=1e-6, reason=ROUNDING
    )
]  # fmt: skip
