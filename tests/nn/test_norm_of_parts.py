"""A norm of some columns of rows, in place, as of all query heads of OLMo 2: a row has the same bits alone."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.nn.norm import Norm


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("width", "first", "size"), [(384, 0, 256), (384, 256, 64), (96, 32, 32), (200, 104, 40)])
def test_columns_of_rows_in_place(kernels_on_sim: None, dtype: str, width: int, first: int, size: int) -> None:
    random = np.random.default_rng()
    x = gp.from_numpy(random.standard_normal((5, width)).astype(np.float32)).astype(dtype)
    norm = Norm(gp.from_numpy(random.standard_normal(size).astype(np.float32)).astype(dtype))
    before = x.astype("float32").to_numpy().astype(np.float64)
    rows = [x[row : row + 1].clone() for row in range(5)]
    for array in (x, *rows):
        part = array[:, first : first + size]
        assert norm(part, out=part) is part
    result = x.astype("float32").to_numpy()
    assert np.concatenate([row.astype("float32").to_numpy() for row in rows]).tobytes() == result.tobytes()
    part = before[:, first : first + size]
    scale = norm.weight.astype("float32").to_numpy() / np.sqrt((part * part).mean(1, keepdims=True) + 1e-5)
    before[:, first : first + size] = part * scale
    np.testing.assert_allclose(result, before, rtol=1e-5 if dtype == "float32" else 8e-3, atol=1e-6)
