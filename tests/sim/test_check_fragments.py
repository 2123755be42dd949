"""Checked mode tells of kernels that rely on which element of a matrix a lane's x[i] is, and of no others."""

from __future__ import annotations

import numpy as np
import pytest
from check_run import run

import pygpukit as gp

FRAGMENT = """#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const float *in, float *out) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> f, other;
  wmma::load_matrix_sync(f, in, 16, wmma::mem_row_major);
  wmma::fill_fragment(other, 2.0f);
  %s
  wmma::store_matrix_sync(out, f, 16, wmma::mem_row_major);
}"""
EVERY = "for (int i = 0; i < f.num_elements; ++i)"


@pytest.mark.parametrize(
    "body",
    [
        f"{EVERY} f.x[i] *= 2;",
        f"{EVERY} if (f.x[i] < 0) f.x[i] = 0;",
        f"{EVERY} f.x[i] = 3 * f.x[i] + other.x[i];",
        "other = f; f = other;",
        'if (f.x[0] > 1e9f) printf("large");',
        "f.x[0] = 1; wmma::fill_fragment(f, 1.0f);",
    ],
)
def test_the_same_for_every_element_of_a_fragment_is_no_finding(body: str) -> None:
    values = np.random.default_rng().standard_normal((16, 16)).astype("float32")
    assert run(FRAGMENT % body, 1, 32, gp.from_numpy(values), gp.zeros((16, 16), "float32")) is None


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("f.x[0] = 0;", 7),
        ("if (threadIdx.x == 3) f.x[5] = 1;", 7),
        ("f.x[threadIdx.x % 8] += 1;", 7),
        ("for (int i = 0; i < 4; ++i)\n    f.x[i] = other.x[i + 4];", 8),
    ],
)
@pytest.mark.parametrize("check", [True, "memory"])
def test_some_elements_of_a_fragment_alone_are(body: str, line: int, check: bool | str) -> None:
    values = gp.zeros((16, 16), "float32")
    found = run(FRAGMENT % body, 1, 32, values, gp.zeros((16, 16), "float32"), check=check)
    assert found is not None and (found.kind, found.line) == ("warp matrix", line)
