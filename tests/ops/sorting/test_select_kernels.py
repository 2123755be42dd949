"""The kernels that select the first few of each row, run by the simulator in checked mode: as a stable sort."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY
from pygpukit.jit.cache.image import Image
from pygpukit.kernels import builder, registry
from pygpukit.ops import host
from pygpukit.ops.sorting import selecting

DTYPE_NAMES = [dtype.name for dtype in DTYPES if dtype not in STORAGE_ONLY]


@cache
def _together() -> Image:
    """All these kernels in one unit."""
    (unit,) = registry.units(selecting.SOURCE.source)
    return builder.compile_unit(unit, check=True)


@pytest.fixture(autouse=True)
def _kernels(kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = builder.image
    monkeypatch.setattr(builder, "image", lambda spec: _together() if spec.family is selecting.SOURCE else alone(spec))
    monkeypatch.setattr(selecting, "_SHORT", 0)
    monkeypatch.setattr(selecting, "_PIECE", 300)


def _rows(dtype: str, *shape: int) -> gp.GPUArray:
    """Few different values, NaN and both zeros among them: most elements have an equal."""
    rng = np.random.default_rng()
    if dtype == "bfloat16":
        return _rows("float32", *shape).astype("bfloat16")
    values = rng.integers(0, 30, shape) - (0 if dtype.startswith("u") else 9)
    if np.dtype(dtype).kind in "fc":
        values = np.where(rng.random(shape) < 0.1, np.nan, values) * rng.choice([1.0, -1.0], shape)
    made = values.astype(dtype)
    if made.dtype.kind == "c":
        made = made + (1j * rng.choice([0.0, np.nan, -3], shape)).astype(dtype)
    return gp.from_numpy(np.ascontiguousarray(made))


def _as_sorted(x: gp.GPUArray, k: int, axis: int, largest: bool) -> None:
    values, indices = gp.topk(x, k, axis, largest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "computes", lambda: True)
        wanted = gp.topk(x, k, axis, largest)
    np.testing.assert_array_equal(indices.to_numpy(), wanted[1].to_numpy())
    assert values.to_numpy().tobytes() == wanted[0].to_numpy().tobytes()
    assert values.shape == indices.shape == wanted[0].shape


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_every_type(dtype: str) -> None:
    for largest in (True, False):
        _as_sorted(_rows(dtype, 2, 97), 5, 1, largest)
    _as_sorted(_rows(dtype, 3, 701)[:, ::-1], 64, -1, True)  # in three pieces


@pytest.mark.parametrize("k", [1, 2, 63, 64])
@pytest.mark.parametrize("length", [64, 65, 256, 257, 300, 301, 2999])
def test_lengths_and_pieces(k: int, length: int) -> None:
    _as_sorted(_rows("float32", 2, length), k, 1, bool(length % 2))
    distinct = np.random.default_rng().permutation(length).astype(np.float32)
    _as_sorted(gp.from_numpy(distinct), k, 0, True)
    _as_sorted(gp.full((length,), 7), k, 0, False)


def test_other_axes_and_empty_rows() -> None:
    x = _rows("int16", 70, 2, 3)
    _as_sorted(x, 9, 0, False)
    _as_sorted(x.transpose(1, 0, 2), 9, 1, True)
    _as_sorted(gp.zeros((0, 70)), 3, 1, True)


def test_long_rows_are_selected_from_and_others_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert selecting.suits(5000, 64) and not selecting.suits(5000, 65)
    assert not selecting.suits(1000, 3) and not selecting.suits(5000, 0)
