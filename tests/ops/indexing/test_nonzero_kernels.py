"""The CUDA kernels that find what is not zero, run by the simulator in checked mode: no findings, NumPy's results."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.kernels import launcher
from pygpukit.ops.indexing import finding, masks

pytestmark = pytest.mark.usefixtures("kernels_on_sim")


@pytest.mark.parametrize("size", [0, 1, 4096, 9001])
def test_indices(size: int) -> None:
    a = np.random.default_rng().integers(0, 3, size).astype(np.int8)
    x = gp.from_numpy(a)
    np.testing.assert_array_equal(gp.flatnonzero(x).to_numpy(), np.flatnonzero(a))
    np.testing.assert_array_equal(gp.flatnonzero((x == 1)[3::-2]).to_numpy(), np.flatnonzero((a == 1)[3::-2]))
    box = a[: size // 10 * 10].reshape(5, -1, 2)
    np.testing.assert_array_equal(gp.argwhere(gp.from_numpy(box)).to_numpy(), np.argwhere(box))


@pytest.mark.parametrize("shape", [(4, 5, 6), (3, 1, 700), (1,) * 16, (2, 0, 3)])
def test_coordinates(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng().integers(0, 2, shape).astype(np.int16)
    for one, other in zip(gp.nonzero(gp.from_numpy(a)), np.nonzero(a), strict=True):
        np.testing.assert_array_equal(one.to_numpy(), other)
    np.testing.assert_array_equal(gp.argwhere(gp.from_numpy(a)[::-1]).to_numpy(), np.argwhere(a[::-1]))


def test_every_kernel_asked_for_is_listed() -> None:
    gp.nonzero(gp.ones((3, 5), "bool"))
    listed = {expression for one in (masks, finding) for names in one.instantiations() for expression in names}
    assert {spec.expression for _, spec in launcher._kernels} <= listed
    assert "pk::unravel" in {spec.expression for _, spec in launcher._kernels}
