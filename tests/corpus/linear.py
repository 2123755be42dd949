"""Cases: transposes, products, factorisations, sparse matrices, Fourier transforms, bodies."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from corpus.case import FUNCTIONS, ROUNDING, Case, Values, blank, floats, integers

CASES: list[Case] = []
Rng = np.random.Generator
DOUBLE = "double-precision rounding in another order than the reference's"


def _transpose(rng: Rng) -> Values:
    return {"in_": integers(rng, 0, 10000, 37, 43), "out": blank((43, 37), "int32"), "width": 43, "height": 37}


def _batch(rng: Rng) -> Values:
    shape = (3, 11, 13)
    return {
        "in_": floats(rng, *shape, dtype="float64"), "out": blank((13, 3, 11), "float64"), "batches": 3, "rows": 11,
        "columns": 13,
    }  # fmt: skip


CASES += [
    Case("transpose_tile", (3, 3), (16, 4), _transpose, lambda in_, **_: {"out": in_.T}),
    Case("transpose_batch", (2, 2, 3), (8, 8), _batch, lambda in_, **_: {"out": in_.transpose(2, 0, 1)}),
]


def _product(rng: Rng) -> Values:
    rows, inner, columns = 19, 23, 21
    return {
        "a": floats(rng, rows, inner), "b": floats(rng, inner, columns), "c": blank((rows, columns), "float32"),
        "rows": rows, "inner": inner, "columns": columns,
    }  # fmt: skip


def _square(rng: Rng) -> Values:
    return {"a": floats(rng, 27, 27), "b": floats(rng, 27, 27), "c": blank((27, 27), "float32"), "n": 27}


def _quads(rng: Rng) -> Values:
    return {
        "a": floats(rng, 13, 19), "b": floats(rng, 19, 20), "c": blank((13, 20), "float32"), "rows": 13, "inner": 19,
        "quads": 5
    }  # fmt: skip


def _product_reference(a, b, **_):
    return {"c": a.astype("float64") @ b}


CASES += [
    Case("matmul_tile", (3, 3), (8, 8), _product, _product_reference, tolerance=1e-6, reason=ROUNDING),
    Case("matmul_register", (2, 2), (8, 8), _square, _product_reference, tolerance=1e-6, reason=ROUNDING),
    Case("matmul_vector", (2, 4), (4, 4), _quads, _product_reference, tolerance=1e-6, reason=ROUNDING),
]


def _gemv(rng: Rng) -> Values:
    return {
        "matrix": floats(rng, 13, 131), "x": floats(rng, 131), "out": blank(13, "float32"), "rows": 13, "columns": 131
    }  # fmt: skip


def _gemv_batched(rng: Rng) -> Values:
    return {
        "matrices": floats(rng, 3, 37, 17, dtype="float64"), "vectors": floats(rng, 3, 17, dtype="float64"),
        "out": blank((3, 37), "float64"), "rows": 37, "columns": 17,
    }  # fmt: skip


CASES += [
    Case(
        "gemv", 4, 128, _gemv, lambda matrix, x, **_: {"out": matrix.astype("float64") @ x}, tolerance=1e-6,
        reason=ROUNDING,
    ),
    Case(
        "gemv_batched", (2, 3), 32, _gemv_batched,
        lambda matrices, vectors, **_: {"out": (matrices @ vectors[..., None])[..., 0]}, tolerance=1e-14, reason=DOUBLE,
    ),
]  # fmt: skip


def _spmv(rng: Rng) -> Values:
    lengths = rng.integers(0, 30, 41)
    starts = np.concatenate([[0], lengths.cumsum()]).astype("int32")
    count = int(starts[-1])
    return {
        "starts": starts, "columns": integers(rng, 0, 53, count), "values": floats(rng, count), "x": floats(rng, 53),
        "out": blank(41, "float32"), "rows": 41,
    }  # fmt: skip


def _spmv_reference(starts, columns, values, x, **_):
    terms = values.astype("float64") * x[columns]
    return {"out": [terms[a:b].sum() for a, b in pairwise(starts)]}


CASES += [Case("spmv_csr", 3, 128, _spmv, _spmv_reference, tolerance=1e-6, reason=ROUNDING)]


def _dominant(rng: Rng, count: int, size: int):
    return floats(rng, count, size, size, dtype="float64") + size * np.eye(size)


def _lu_reference(matrices, **_):
    a = matrices.copy()
    for k in range(a.shape[1] - 1):
        a[:, k + 1 :, k] /= a[:, k, k, None]
        a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k, None] * a[:, k, None, k + 1 :]
    return {"matrices": a}


def _positive(rng: Rng) -> Values:
    a = _dominant(rng, 3, 11)
    return {"matrices": a @ a.transpose(0, 2, 1), "factors": blank((3, 11, 11), "float64")}


CASES += [
    Case(
        "lu", 3, (9, 9), lambda rng: {"matrices": _dominant(rng, 3, 9)}, _lu_reference, tolerance=1e-13, reason=DOUBLE
    ),
    Case(
        "cholesky", 3, 32, _positive, lambda matrices, **_: {"factors": np.linalg.cholesky(matrices)}, tolerance=1e-13,
        reason=DOUBLE,
    ),
]  # fmt: skip


def _tridiagonal(rng: Rng) -> Values:
    shape = (9, 37)
    low, high, right = (floats(rng, *shape, dtype="float64") for _ in range(3))
    return {
        "low": low, "middle": 4 + rng.random(shape), "high": high, "right": right, "factors": blank(shape, "float64"),
        "x": blank(shape, "float64"), "systems": 37, "size": 9,
    }  # fmt: skip


def _tridiagonal_reference(low, middle, high, right, **_):
    x, factors = np.empty_like(right), np.empty_like(right)
    for s in range(right.shape[1]):
        a = np.diag(middle[:, s]) + np.diag(low[1:, s], -1) + np.diag(high[:-1, s], 1)
        x[:, s] = np.linalg.solve(a, right[:, s])
    factors[0] = high[0] / middle[0]
    for k in range(1, 9):
        factors[k] = high[k] / (middle[k] - low[k] * factors[k - 1])
    return {"x": x, "factors": factors}


CASES += [Case("tridiagonal", 2, 32, _tridiagonal, _tridiagonal_reference, tolerance=1e-11, reason=DOUBLE)]


def _signals(rng: Rng) -> Values:
    return {"in_": floats(rng, 3, 64, 2), "out": blank((3, 64, 2), "float32")}


def _fft_reference(in_, **_):
    spectrum = np.fft.fft(in_.astype("float64").view("complex128")[..., 0])
    return {"out": np.stack([spectrum.real, spectrum.imag], -1)}


def _stage(rng: Rng) -> Values:
    return {
        "in_": floats(rng, 3, 64, 2, dtype="float64"), "out": blank((3, 64, 2), "float64"), "half": 8, "count": 64
    }  # fmt: skip


def _stage_reference(in_, half, **_):
    a, b = np.split(in_.view("complex128")[..., 0], 2, axis=1)
    b = b * np.exp(-1j * np.pi * (np.arange(32) % half) / half)
    groups = [part.reshape(3, -1, half) for part in (a + b, a - b)]
    return {"out": np.stack(groups, 2).reshape(3, 64).view("float64")}


CASES += [
    Case("fft_shared", 3, 32, _signals, _fft_reference, exact=False, tolerance=2e-6, reason=FUNCTIONS),
    Case("fft_stockham", (3, 3), 11, _stage, _stage_reference, exact=False, tolerance=1e-14, reason=FUNCTIONS),
]


def _bodies(rng: Rng) -> Values:
    n = 83
    return {"bodies": floats(rng, n, 4), "accelerations": blank((n, 4), "float32"), "softening": 0.1, "n": n}


def _bodies_reference(bodies, softening, **_):
    x = bodies.astype("float64")
    away = x[None, :, :3] - x[:, None, :3]
    strength = x[None, :, 3] * ((away**2).sum(2) + softening) ** -1.5
    return {"accelerations": np.pad((strength[..., None] * away).sum(1), ((0, 0), (0, 1)))}


CASES += [Case("nbody", 3, 32, _bodies, _bodies_reference, exact=False, tolerance=1e-5, reason=FUNCTIONS)]
