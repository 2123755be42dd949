"""Kernels that divide integers, in checked mode: NumPy's quotients, at any place of memory, by any number."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import kernels

pytestmark = pytest.mark.usefixtures("kernels_on_sim")


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_division_by_one_number_is_exact(dtype: str) -> None:
    least, most = (int(limit) for limit in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    rng = np.random.default_rng()
    edges = [least, least + 1, most, most - 1, 0, 1, 2, 2**32, 2**32 - 1, 2**53 + 1]
    a = np.concatenate((rng.integers(least, most, 41, dtype, endpoint=True), np.array(edges, dtype)))
    x = gp.from_numpy(a)
    drawn = [int(one) for one in rng.integers(1, most, 3, dtype)] + [int(2 ** rng.uniform(0, 62))]
    for number in (1, 2, 3, 7, 10**9, 2**32 + 1, 2**62, most, *drawn):
        for divisor in (number, -number) if least else (number,):
            for view in (np.s_[:], np.s_[1:]):
                own = a[view].astype(object)
                assert (x[view] // divisor).to_numpy().tolist() == ((own // divisor + 2**64) % 2**64).astype(
                    "uint64"
                ).astype(dtype).tolist()
                assert (x[view] % divisor).to_numpy().tolist() == (own % divisor).tolist()
    assert not (x // 0).to_numpy().any()
    with pytest.raises(OverflowError):
        x // (most + 1)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_true_quotients_take_one_launch(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[str] = []
    launch = kernels.launch
    monkeypatch.setattr(kernels, "launch", lambda spec, *args: launched.append(spec.expression) or launch(spec, *args))
    rng = np.random.default_rng()
    limits = np.iinfo(dtype)
    a, b = (rng.integers(limits.min, limits.max, 200, dtype) for _ in range(2))
    b[3], a[4:6] = 0, 0
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    with np.errstate(all="ignore"):
        for i, j in ((0, 0), (1, 0), (2, 1), (3, 3)):
            size = 190 + i
            np.testing.assert_array_equal((x[i:][:size] / y[j:][:size]).to_numpy(), a[i:][:size] / b[j:][:size])
        np.testing.assert_array_equal((x / 3).to_numpy(), a / 3)
        np.testing.assert_array_equal((x / 2.5).to_numpy(), a / 2.5)
        np.testing.assert_array_equal((7 / x).to_numpy(), 7 / a)
        np.testing.assert_array_equal((x[::2] / y[:100]).to_numpy(), a[::2] / b[:100])
        np.testing.assert_array_equal((x.reshape(20, 10) / y[:10]).to_numpy(), a.reshape(20, 10) / b[:10])
        np.testing.assert_array_equal((7 / x[1::3]).to_numpy(), 7 / a[1::3])
        out = gp.zeros(201, "float64")
        gp.div(x, y, out=out[1:])
        np.testing.assert_array_equal(out.to_numpy()[1:], a / b)
    assert len(launched) == 11 and len(set(launched)) == 1
