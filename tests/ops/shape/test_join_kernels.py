"""Arrays joined by one launch, the kernels in checked mode, as NumPy joins them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops.shape import side_by_side

pytestmark = pytest.mark.usefixtures("kernels_on_sim")


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64", "complex128"])
def test_joined_as_numpy_joins(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng()
    launched = []
    write = side_by_side.write
    monkeypatch.setattr(side_by_side, "write", lambda *args: launched.append(write(*args)) or launched[-1])

    def host(x: gp.GPUArray) -> np.ndarray[Any, Any]:
        return (x.astype("float64") if dtype == "bfloat16" else x).to_numpy()

    def joined(parts: list[gp.GPUArray], axis: int, one_launch: bool = True) -> None:
        expected = np.concatenate([host(part) for part in parts], axis)
        assert np.array_equal(host(gp.concatenate(parts, axis)), expected)
        assert launched.pop() == one_launch

    widths = rng.integers(1, 90, 4)
    wide = [gp.from_numpy(rng.integers(0, 9, (5, int(width) + 1)).astype(np.float32)).astype(dtype) for width in widths]
    joined(wide, 1)
    joined([part[:, 1:] for part in wide], 1)  # rows of wider arrays, one element off
    joined([wide[0], wide[0][:0], wide[0][1:3]], 0)
    joined([part.reshape(1, 5, -1) for part in wide], 2)
    joined([wide[0][:, ::-1], wide[1]], 1, False)
    joined(wide[:1] * 9, 1, False)
    assert np.array_equal(host(gp.stack(wide[:1] * 3, 1)), np.stack([host(wide[0])] * 3, 1))
    target = gp.zeros(1 + 2 * wide[0].size, dtype)[1:].reshape(10, -1)
    gp.concatenate(wide[:1] * 2, out=target)
    assert np.array_equal(host(target), np.concatenate([host(wide[0])] * 2))
