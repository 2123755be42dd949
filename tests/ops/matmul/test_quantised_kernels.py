"""Quotients in fp8 and int8: of every number of 16 bits, as a division and one rounding give them; on the simulator."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import ops
from pygpukit.ops import host

SCALES = [1.0, 3.0, 0.37, 0.0123, 448.0, 2.0**-70, 2.0**90, 7e-39, 3e38, 1e15, 1e-15]


@pytest.mark.parametrize("source", ["bfloat16", "float16"])
@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2", "int8"])
def test_every_number_over_scales_of_any_size(source: str, dtype: str) -> None:
    x = gp.from_numpy(np.arange(1 << 16, dtype=np.uint16)).view(source)
    numbers = ~np.isnan(x.astype("float32").to_numpy())
    for scale in (*SCALES, float(np.random.default_rng().uniform(1e-3, 1e3))):
        wanted = ops.quantize(x, dtype, scale).view("uint8").to_numpy()  # by NumPy
        with host.built_in_kernels():
            found = ops.quantize(x, dtype, scale).view("uint8").to_numpy()
        np.testing.assert_array_equal(found[numbers], wanted[numbers], err_msg=f"{dtype}, {scale}")
        with host.built_in_kernels():
            nans = ops.quantize(x, dtype, scale)
        values = (nans if dtype == "int8" else nans.astype("float32")).to_numpy()[~numbers]
        assert (values == 0).all() if dtype == "int8" else np.isnan(values).all()
