"""A row of an invariant product has the same bits among 1 to 4096 rows, each time, in a graph and beside other work."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp

DEPTHS = (1, 7, 64, 100, 129, 333, 512, 577, 1000, 1025, 2048, 4097)
ROWS = (1, 2, 7, 16, 17, 33, 64, 65, 128, 200, 511, 1024, 2049, 4096)
KINDS = ("float64", "float32", "tf32", "bfloat16", "float16", "int8", "float8_e4m3", "float8_e5m2")
MOST, REPEATS = 4096, 1000


def operands(kind: str, k: int, n: int) -> tuple[gp.GPUArray, gp.GPUArray]:
    """Random ones, the right one by columns."""
    dtype = "float32" if kind == "tf32" else kind
    numbers = np.random.default_rng().standard_normal((MOST + n, k)) * (20 if kind == "int8" else 1)
    both = gp.from_numpy(numbers.astype(np.float32)).astype(dtype)
    return both[:MOST], both[MOST:].T


def product(kind: str, a: gp.GPUArray, b: gp.GPUArray, out: gp.GPUArray | None = None) -> gp.GPUArray:
    if kind.startswith("float8"):
        return gp.matmul_fp8(a, b, 0.5, 2.0, out=out)
    if kind == "int8":
        return gp.matmul(a, b, dtype="int32", out=out)
    return gp.matmul(a, b, tf32=kind == "tf32" or None, out=out)


def bits(array: gp.GPUArray) -> bytes:
    return array.contiguous().to_numpy().tobytes()


@pytest.mark.parametrize("k", DEPTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_among_1_to_4096(kind: str, k: int) -> None:
    n = int(np.random.default_rng().integers(65, 300))
    a, b = operands(kind, k, n)
    whole = product(kind, a, b)
    for m in ROWS:
        first = int(np.random.default_rng().integers(0, MOST - m + 1))
        rows = slice(first, first + m)
        assert bits(product(kind, a[rows], b)) == bits(whole[rows]), f"{m} rows from {first}, k={k}, n={n}"


@pytest.mark.parametrize("extents", [(300, 512, 1024), (77, 129, 333)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_times(kind: str, extents: tuple[int, int, int]) -> None:
    m, n, k = extents
    a, b = operands(kind, k, n)
    a = a[:m]
    once = product(kind, a, b)
    out, differing = gp.zeros_like(once), gp.zeros((1,), "int64")
    other, noise = gp.Stream(), gp.from_numpy(np.random.default_rng().standard_normal((1024, 1024)))
    for _ in range(REPEATS):
        with other:
            noise @ noise  # beside it
        product(kind, a, b, out)
        differing += (out != once).sum()
    assert int(differing.to_numpy()[0]) == 0
    stream = gp.Stream()
    gp.synchronize()
    with stream.capture() as graph:
        product(kind, a, b, out)
    out[...] = 0
    gp.synchronize()
    graph.launch(stream)
    stream.synchronize()
    assert bits(out) == bits(once)
