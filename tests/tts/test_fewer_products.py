"""FewerProducts and the norms of the host against float64: any taps, padding, dilation and length."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.dtypes import float32
from pygpukit.ops.host_parts import in_parts
from pygpukit.ops.nn.conv.fewer_products import MAX_TAPS, FewerProducts
from pygpukit.tts.layers.convolution import Conv1d

rng = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def exact(x: np.ndarray, w: np.ndarray, b: np.ndarray, padding: int, dilation: int) -> np.ndarray:
    wide = np.pad(x.astype(np.float64), ((0, 0), (padding, padding)))
    length = wide.shape[1] - dilation * (w.shape[2] - 1)
    taps = (w[:, :, k].astype(np.float64) @ wide[:, k * dilation : k * dilation + length] for k in range(w.shape[2]))
    return sum(taps) + b[:, None]


@pytest.mark.parametrize("taps", range(1, MAX_TAPS + 1))
def test_results_are_those_of_float64(taps: int) -> None:
    for channels, filters, places, dilation in (
        (3, 5, 1, 1),
        (4, 3, 17, 3),
        (8, 9, 61, 1),
        (2, 2, 9, 7),
        (70, 33, 333, 5),
    ):
        x, w, b = floats(channels, places), floats(filters, channels, taps), floats(filters)
        ready = FewerProducts(w)
        for padding in (0, dilation * (taps - 1) // 2, dilation * (taps - 1) + 2):
            if places + 2 * padding - dilation * (taps - 1) < 1:
                continue
            found, wanted = ready(x, b, padding, dilation), exact(x, w, b, padding, dilation)
            assert found.shape == wanted.shape
            scale = np.sqrt(channels * taps) + 1
            assert np.abs(found - wanted).max() <= (1e-4 if taps > 8 else 1e-5) * scale
            assert np.array_equal(found, ready(x[:, ::-1][:, ::-1], b, padding, dilation))  # of any strides, each time


@pytest.mark.usefixtures("backend_name")
def test_a_layer_computes_so_where_tensor_cores_would_do() -> None:
    x, w, b = floats(2, 6, 50), floats(4, 6, 7), floats(4)
    given = [gp.from_numpy(array) for array in (w, b)]
    core = Conv1d(*given, padding=9, dilation=3, core=float32)(gp.from_numpy(x)).to_numpy()
    plain = Conv1d(*given, padding=9, dilation=3)(gp.from_numpy(x)).to_numpy()
    for one, other, item in zip(core, plain, x, strict=True):
        wanted = exact(item, w, b, 9, 3)
        assert np.abs(one - wanted).max() < 2e-2 and np.abs(other - wanted).max() < 1e-4
    with pytest.raises(gp.ShapeError):
        Conv1d(*given, core=float32)(gp.from_numpy(x[:, :, :4]))


def test_parts_cover_all_and_raise_what_fails() -> None:
    seen = np.zeros(1000, int)

    def work(begin: int, end: int) -> None:
        seen[begin:end] += 1

    in_parts(1000, 7, work)
    in_parts(0, 7, work)
    assert (seen == 1).all()
    with pytest.raises(ZeroDivisionError):
        in_parts(10, 1, lambda begin, end: print(1 // (begin - 5)))
