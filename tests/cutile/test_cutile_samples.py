"""The interpreter of cuTile's kernels: whole kernels beside float64, on arrays of the simulated device and of NumPy."""

from __future__ import annotations

from typing import Any

import cutile_samples as samples
import numpy as np
import pytest

import pygpukit as gp
from pygpukit.cutile import Kernel, ct, launch


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng()


def poisoned(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.full(shape, 77, dtype)


@pytest.mark.parametrize("kernel", [samples.add, samples.add_by_places])
@pytest.mark.parametrize("n", [1, 16, 37, 100])
def test_adding_vectors(rng: np.random.Generator, kernel: Kernel, n: int) -> None:
    x, y = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    z = gp.from_numpy(poisoned(n))
    kernel[ct.cdiv(n, 16)](gp.from_numpy(x), gp.from_numpy(y), z, 16)
    assert np.array_equal(z.to_numpy(), x + y)


@pytest.mark.parametrize("kernel", [samples.transpose, samples.transpose_by_order])
def test_transposing_views(rng: np.random.Generator, kernel: Kernel) -> None:
    base = gp.from_numpy(rng.integers(0, 99, (40, 70)).astype(np.int32))
    x, y = base[3:36:2, 1:60:3], gp.from_numpy(poisoned(20, 17, dtype="int32"))
    kernel[(2, 3)](x, y, 16, 8)
    assert np.array_equal(y.to_numpy(), x.to_numpy().T)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_softmax(rng: np.random.Generator, dtype: str) -> None:
    x = gp.from_numpy(rng.standard_normal((7, 50)).astype(np.float32)).astype(dtype)
    y = gp.from_numpy(poisoned(7, 50)).astype(dtype)
    launch(None, (3,), samples.softmax, (x, y, 64))
    values = x.astype("float64").to_numpy()
    power = np.exp(values - values.max(1, keepdims=True))
    bound = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    assert np.abs(y.astype("float64").to_numpy() - power / power.sum(1, keepdims=True)).max() < bound


@pytest.mark.parametrize(("dtype", "bound"), [("float16", 0.02), ("bfloat16", 0.15), ("float32", 0.02)])
def test_matmul(rng: np.random.Generator, dtype: str, bound: float) -> None:
    a, b = (
        gp.from_numpy(rng.standard_normal(shape).astype(np.float32)).astype(dtype) for shape in ((70, 50), (50, 41))
    )
    c = gp.from_numpy(poisoned(70, 41)).astype(dtype)
    samples.matmul[5 * 3](a, b, c, 16, 16, 32)
    want = a.astype("float64").to_numpy() @ b.astype("float64").to_numpy()
    assert np.abs(c.astype("float64").to_numpy() - want).max() < bound


def test_matmul_of_parts_that_are_added_atomically(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((20, 40)), rng.standard_normal((40, 18))
    c = np.zeros((20, 18))
    samples.split_matmul.check((3, 3, 5), a, b, c, 8)
    assert np.abs(c - a @ b).max() < 1e-12


def test_a_lock_orders_blocks(rng: np.random.Generator) -> None:
    x = rng.integers(0, 1000, 100).astype(np.int32)
    total, lock = np.zeros(1, np.int32), np.zeros(1, np.int32)
    samples.locked_sum.check(7, x, total, lock, 16)
    assert total[0] == x.sum() and lock[0] == 0


def test_layer_norm(rng: np.random.Generator) -> None:
    x, weight, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 100), 100, 100))
    y = poisoned(5, 100)
    samples.layer_norm.check(5, x, weight, bias, y, 1e-5, 32)
    wide = x.astype(np.float64)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * weight + bias
    assert np.abs(y - want).max() < 1e-5


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [32, 45])
def test_attention(rng: np.random.Generator, causal: bool, length: int) -> None:
    q, k, v = (rng.standard_normal((2, length, 16)).astype(np.float32) for _ in range(3))
    out = poisoned(2, length, 16)
    samples.attention.check((ct.cdiv(length, 16), 2), q, k, v, out, 0.25, 16, 8, 16, causal)
    scores = 0.25 * q.astype(np.float64) @ k.transpose(0, 2, 1)
    if causal:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    power = np.exp(scores - scores.max(-1, keepdims=True))
    assert np.abs(out - power / power.sum(-1, keepdims=True) @ v).max() < 1e-5


def test_histogram(rng: np.random.Generator) -> None:
    x, counts = rng.integers(0, 9, 1000).astype(np.int32), np.zeros(9, np.int32)
    samples.histogram.check(ct.cdiv(1000, 64), x, counts, 64)
    assert np.array_equal(counts, np.bincount(x, minlength=9))
