"""The element-wise CUDA kernels themselves, run by the simulator in checked mode: no findings, NumPy's results."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("kernels_on_sim")


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "complex64"])
def test_add_dense_strided_and_scalar(dtype: str) -> None:
    a = np.random.default_rng().integers(-9, 9, (5, 14)).astype(dtype)
    x = gp.from_numpy(a)
    for view in (np.s_[:], np.s_[:, 1:], np.s_[::-1, ::3]):
        np.testing.assert_array_equal((x[view] + x[view]).to_numpy(), a[view] + a[view])
        np.testing.assert_array_equal((3 - x[view]).to_numpy(), 3 - a[view])
