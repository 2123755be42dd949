"""cuComplex's functions have the bits of NVIDIA's formulas, each operation rounded once."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp

SOURCE = """#include <cuComplex.h>
__global__ void k(const T *a, const T *b, T *ratio, T *fused, R *size, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  ratio[i] = DIV(a[i], b[i]);
  fused[i] = FMA(a[i], b[i], ratio[i]);
  size[i] = ABS(a[i]);
}"""
SINGLE = {"T": "cuFloatComplex", "R": "float", "DIV": "cuCdivf", "FMA": "cuCfmaf", "ABS": "cuCabsf"}
DOUBLE = {"T": "cuDoubleComplex", "R": "double", "DIV": "cuCdiv", "FMA": "cuCfma", "ABS": "cuCabs"}


@pytest.mark.parametrize(("dtype", "names"), [("complex64", SINGLE), ("complex128", DOUBLE)])
def test_each_has_the_bits_of_its_formula(dtype: str, names: dict[str, str]) -> None:
    rng, n, real = np.random.default_rng(), 1037, np.dtype(dtype).type(0).real.dtype
    a, b = ((rng.standard_normal((n, 2)) * 10.0 ** rng.integers(-18, 18, (n, 1))).astype(real) for _ in range(2))
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, 1e-40]
    a[:49] = [(x, y) for x in special for y in special]
    ratio, fused = (gp.from_numpy(np.full(n, np.nan, dtype)) for _ in range(2))
    size = gp.from_numpy(np.full(n, np.nan, real))
    arguments = (gp.from_numpy(z.view(dtype)[:, 0]) for z in (a, b))
    gp.jit(SOURCE, defines=names, options=["--fmad=false"])[9, 128](*arguments, ratio, fused, size, n)
    one = real.type(1)
    with np.errstate(all="ignore"):
        (ax, ay), (bx, by) = a.T, b.T
        scale = one / (np.abs(bx) + np.abs(by))
        ars, ais, brs, bis = ax * scale, ay * scale, bx * scale, by * scale
        inverse = one / (brs * brs + bis * bis)
        rx, ry = (ars * brs + ais * bis) * inverse, (ais * brs - ars * bis) * inverse
        fx, fy = -(ay * by) + (ax * bx + rx), ay * bx + (ax * by + ry)
        x, y = np.abs(ax), np.abs(ay)
        larger, smaller = np.where(x > y, x, y), np.where(x > y, y, x)
        modulus = larger * np.sqrt(one + (smaller / larger) ** 2)
        modulus = np.where((larger == 0) | np.isinf(larger) | np.isinf(smaller), larger + smaller, modulus)
    np.testing.assert_array_equal(ratio.to_numpy().view(real).reshape(n, 2), np.stack([rx, ry], 1))
    np.testing.assert_array_equal(fused.to_numpy().view(real).reshape(n, 2), np.stack([fx, fy], 1))
    np.testing.assert_array_equal(size.to_numpy(), modulus)
