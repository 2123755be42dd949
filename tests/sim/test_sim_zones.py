"""Memory behind arrays on the simulated device: a plain kernel that writes there is told of after its launch."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import KernelCheckError

FILL = """
__global__ void fill(float *z, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) z[i] = 0.0f;
}
"""
COPY = "__global__ void copy(float *z, const float *x, int count) { for (int i = 0; i < count; ++i) z[i] = x[i]; }"


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 1024, 4096, 100_000, 1 << 13])
@pytest.mark.parametrize("beyond", [0, 1, 8])
def test_an_overrun_is_told_with_kernel_and_array(n: int, beyond: int) -> None:
    fill = gp.jit(FILL, "fill")
    z, neighbour = gp.ones(n, dtype="float32"), gp.ones(n, dtype="float32")
    z.name = "target"
    fill[(n + beyond + 255) // 256, 256](z, n + beyond)
    if beyond == 0:
        gp.synchronize()
    else:
        with pytest.raises(KernelCheckError, match=rf"kernel fill: out of bounds: wrote z\[{n}\]") as caught:
            gp.synchronize()
        (found,) = caught.value.findings
        assert (found.kernel, found.array, found.index) == ("fill", "target", n)
        assert "check=True" in str(caught.value)
    np.testing.assert_array_equal(z.to_numpy(), np.zeros(n, np.float32))
    np.testing.assert_array_equal(neighbour.to_numpy(), np.ones(n, np.float32))


def test_a_view_counts_by_the_whole_array() -> None:
    fill = gp.jit(FILL, "fill")
    z = gp.ones(1000, dtype="float32")
    fill[1, 256](z[500:], 256)
    gp.synchronize()
    fill[2, 256](z[700:], 301)
    with pytest.raises(KernelCheckError, match=r"wrote z\[1000\]"):
        gp.synchronize()


def test_reads_behind_the_end_give_no_number() -> None:
    copy = gp.jit(COPY, "copy")
    x, z = gp.ones(100, dtype="float32"), gp.ones(200, dtype="float32")
    copy[1, 1](z, x, 104)
    assert np.isnan(z.to_numpy()[100:104]).all()


def test_memory_that_goes_to_another_array_meanwhile_is_no_overrun() -> None:
    fill = gp.jit(FILL, "fill")
    for n in (1000, 900, 1000, 800) * 25:
        fill[4, 256](gp.ones(n, dtype="float32"), n)
    gp.synchronize()


def test_arrays_that_became_shorter() -> None:
    fill = gp.jit(FILL, "fill")
    found = gp.nonzero(gp.ones(5000, dtype="int32"))[0]
    values = gp.ones(found.size, dtype="float32")
    fill[20, 256](values, found.size)
    gp.synchronize()
