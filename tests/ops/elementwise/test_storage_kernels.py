"""The kernels that convert to and from storage types, run by the simulator in checked mode: as on the host."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY, DataType
from pygpukit.jit.cache.image import Image
from pygpukit.kernels import builder
from pygpukit.kernels.registry import Unit
from pygpukit.ops import storage
from pygpukit.ops.elementwise import pointwise

STORAGE = sorted(STORAGE_ONLY, key=str)
OTHERS = [dtype for dtype in DTYPES if dtype not in STORAGE_ONLY]


def _listed() -> list[str]:
    names = ("e4m3_t", "e5m2_t", "e2m1_t", "int4_t")
    listed = [expression for unit in pointwise.instantiations() for expression in unit]
    return [expression for expression in listed if any(name in expression for name in names)]


@cache
def _together() -> Image:
    """All these kernels in one unit."""
    return builder.compile_unit(Unit(pointwise.SOURCE, tuple(_listed())), check=True)


@pytest.fixture(autouse=True)
def _kernels(kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together, listed = builder.image, _together(), set(_listed())
    monkeypatch.setattr(builder, "image", lambda spec: together if spec.expression in listed else alone(spec))


def _codes(count: int) -> gp.GPUArray:
    return gp.from_numpy(np.resize(np.arange(256, dtype=np.uint8), count))


def _encoded(numbers: np.ndarray, dtype: DataType) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return storage.encoded(numbers, dtype)


def _same(found: gp.GPUArray, wanted: np.ndarray, dtype: DataType) -> None:
    """Equal bits, but any NaN for any NaN."""
    numbers = storage.decoded(found.to_numpy(), dtype), storage.decoded(wanted, dtype)
    np.testing.assert_array_equal(*numbers)
    np.testing.assert_array_equal(*(np.signbit(one) & ~np.isnan(one) for one in numbers))


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_from_every_code(dtype: DataType) -> None:
    codes = _codes(261)[5:]  # misaligned
    numbers = storage.decoded(codes.to_numpy(), dtype)
    for target in OTHERS:
        found = codes.view(dtype).astype(target)
        if target == "bfloat16":
            found = found.astype("float32")
        own = np.float32 if target == "bfloat16" else target.to_numpy_dtype()
        defined = slice(None)
        if np.dtype(own).kind in "iu":  # of integers only what is in range
            info = np.iinfo(own)
            defined = np.isfinite(numbers) & (numbers >= info.min) & (numbers <= info.max)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found.to_numpy()[defined], numbers.astype(own)[defined])
    for target in STORAGE:
        if target != dtype:
            _same(codes.view(dtype).astype(target), _encoded(numbers, target), target)


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_every_float16_and_numbers_of_every_type(dtype: DataType) -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    _same(gp.from_numpy(halves).astype(dtype), _encoded(halves, dtype), dtype)
    rng = np.random.default_rng()
    wild = rng.standard_normal(501) * np.exp2(rng.integers(-20, 20, 501))
    middles = storage.decoded(np.arange(256, dtype=np.uint8), dtype).astype(np.float64)
    middles = np.unique(middles[np.isfinite(middles)])
    middles = np.concatenate([middles, (middles[1:] + middles[:-1]) / 2, [1e300, -1e39, np.inf, -np.inf, np.nan, -0.0]])
    for values in (wild, middles, np.nextafter(middles, 9), np.nextafter(middles, -9), np.zeros(0)):
        _same(gp.from_numpy(values).astype(dtype), _encoded(values, dtype), dtype)
        with np.errstate(over="ignore"):
            single = values.astype(np.float32)
        _same(gp.from_numpy(single).astype(dtype), _encoded(single, dtype), dtype)
        complexes = single.astype(np.complex64)
        _same(gp.from_numpy(complexes).astype(dtype), _encoded(single, dtype), dtype)
    for source in (one for one in OTHERS if one.to_numpy_dtype().kind in "iub" and one != "bfloat16"):
        integers = (
            rng.integers(0, 256, (7, 21, 8), np.uint8).view(source.to_numpy_dtype()) if source != "bool" else wild > 0
        )
        found = gp.from_numpy(integers[::-1]).astype(dtype)
        _same(found, _encoded(integers[::-1], dtype), dtype)
    bits = gp.from_numpy(np.arange(65536, dtype=np.uint16)).view("bfloat16")
    _same(bits.astype(dtype), _encoded((np.arange(65536, dtype=np.uint32) << 16).view(np.float32), dtype), dtype)
