"""Rows at any place of memory, the kernels in checked mode: the bits of rows that begin at 16 bytes, also in place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("kernels_on_sim")

Rows = Callable[..., gp.GPUArray]


def layernorm(x: gp.GPUArray, out: gp.GPUArray | None = None) -> gp.GPUArray:
    weights = gp.arange(x.shape[1] + 1, dtype="float32").astype(x.dtype)
    return gp.layernorm(x, weights[1:], weights[:-1].clone(), out=out)


@pytest.mark.parametrize("rows", [gp.softmax, layernorm])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("length", [7, 100, 1029, 17001])  # short ones, held ones, and ones read several times
def test_a_rows_bits_do_not_depend_on_its_place(rows: Rows, dtype: str, length: int) -> None:
    values = np.random.default_rng().standard_normal((3, length)).astype(np.float32)
    wide = gp.from_numpy(np.pad(values, ((0, 0), (0, -length % 16)))).astype(dtype)
    expected = rows(wide[:, :length]).astype("float64").to_numpy()  # every row begins at 16 bytes
    for offset in (0, 1, 3):
        memory = gp.zeros(offset + values.size, dtype)
        x = memory[offset:].reshape(3, length)
        x[:] = gp.from_numpy(values).astype(dtype)
        assert np.array_equal(rows(x).astype("float64").to_numpy(), expected)
        assert np.array_equal(rows(x, out=x).astype("float64").to_numpy(), expected)
