"""Arrays given to other libraries by DLPack: capsules, round trips, streams, lifetime."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from dlpack_structures import export, read

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.array.dlpack import CPU, CUDA, EXTENSION
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY, DataType

pytestmark = pytest.mark.usefixtures("backend_name")

RNG = np.random.default_rng()
from_dlpack = gp.from_dlpack


def test_a_capsule_describes_the_array() -> None:
    base = gp.from_numpy(np.arange(60, dtype="float32").reshape(3, 4, 5))
    view = base.transpose(2, 0, 1)[::-2, 1:]
    capsule = export(view)
    managed = read(capsule)
    tensor = managed.tensor
    assert (managed.major, managed.minor, managed.flags) == (1, 1, 0)
    assert (tensor.device_type, tensor.device_id) == view.__dlpack_device__()
    assert tensor.device_type == (CUDA if gp.backend() == "cuda" else EXTENSION)
    assert tensor.data == view.device_ptr and tensor.byte_offset == 0
    assert (tensor.code, tensor.bits, tensor.lanes) == (2, 32, 1)
    assert tuple(tensor.shape[: tensor.ndim]) == view.shape == (3, 2, 4)
    assert tuple(tensor.strides[: tensor.ndim]) == tuple(step // 4 for step in view.strides)


def test_the_older_capsule_is_given_when_asked_for() -> None:
    x = gp.ones((2, 3))
    for version in (None, (0, 8)):
        legacy = read(export(x, max_version=version), b"dltensor")
        assert legacy.tensor.data == x.device_ptr and legacy.tensor.ndim == 2
    assert read(export(x, max_version=(2, 0))).major == 1


CODES = {
    "bool": (6, 8),
    "int4": (0, 4),
    "bfloat16": (4, 16),
    "complex64": (5, 64),
    "complex128": (5, 128),
    "float8_e4m3": (10, 8),
    "float8_e5m2": (12, 8),
    "float4_e2m1": (17, 4),
} | {
    f"{kind}{bits}": (code, bits)
    for kind, code, all_bits in (("int", 0, (8, 16, 32, 64)), ("uint", 1, (8, 16, 32, 64)), ("float", 2, (16, 32, 64)))
    for bits in all_bits
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_goes_out_and_comes_back(dtype: DataType) -> None:
    bits = RNG.integers(0, 256, (3, 5 * dtype.itemsize)).astype("uint8")
    bits = bits & 1 if dtype == "bool" else bits
    x = native.view(gp.from_numpy(bits), (3, 5), (5 * dtype.itemsize, dtype.itemsize), 0, dtype)
    managed = read(capsule := export(x))
    assert (managed.tensor.code, managed.tensor.bits) == CODES[dtype.name] and managed.tensor.lanes == 1
    assert managed.flags == (4 if managed.tensor.bits < 8 else 0)  # one value a byte: padded
    del capsule
    y = from_dlpack(x)
    assert (y.dtype, y.shape, y.strides, y.device_ptr) == (x.dtype, x.shape, x.strides, x.device_ptr)
    assert y.to_numpy().tobytes() == bits.tobytes()
    if dtype in STORAGE_ONLY:
        with pytest.raises(BufferError, match="uint8"):
            export(x, max_version=None)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1), (2,) * 16])
def test_odd_shapes_go_out_and_come_back(shape: tuple[int, ...]) -> None:
    x = gp.from_numpy(RNG.standard_normal(shape))
    y = from_dlpack(x)
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    np.testing.assert_array_equal(y.to_numpy(), x.to_numpy())
    capsule = export(x)
    assert bool(read(capsule).tensor.data) == bool(x.size)


def test_views_share_memory_with_what_they_came_from() -> None:
    x = gp.from_numpy(np.arange(24, dtype="int32").reshape(4, 6))
    y = from_dlpack(x[::-1, 1::2])
    y[0, 0] = -1
    assert x.to_numpy()[3, 1] == -1
    np.testing.assert_array_equal(y.to_numpy(), x.to_numpy()[::-1, 1::2])
    z = from_dlpack(x, copy=True)
    z[...] = 0
    assert x.to_numpy()[0, 1] == 1 and z.block != 0


def test_an_exported_block_stays_until_the_consumer_lets_go() -> None:
    x = gp.ones(1000)
    block, alive = x.block, weakref.ref(x)
    capsule = export(x)
    with pytest.raises(RuntimeError):
        _core.pool_evict(0, block)
    managed = read(capsule)
    del x
    gc.collect()
    assert alive() is not None
    del capsule, managed
    gc.collect()
    assert alive() is None

    x = gp.ones(8)
    alive = weakref.ref(x)
    y = from_dlpack(x)
    del x
    assert alive() is not None and (y + 1).to_numpy().tolist() == [2] * 8
    part = y[2:]
    native.synchronize()
    del y
    assert alive() is not None
    del part
    assert alive() is None


def test_a_capsule_is_taken_once() -> None:
    capsule = export(gp.ones(3))
    keeper = native.dlpack_import(capsule)
    with pytest.raises(BufferError, match="once"):
        native.dlpack_import(capsule)
    with pytest.raises(BufferError, match="no capsule"):
        native.dlpack_import(None)
    assert keeper[4] == (3,)


def test_stream_numbers() -> None:
    x = gp.ones(16)
    stream = gp.Stream()
    for number in (None, 1, -1, stream.handle):
        assert read(export(x, stream=number)).tensor.data == x.device_ptr
    for wrong in (0, -2, "1", 1.5):
        with pytest.raises(BufferError, match="stream"):
            export(x, stream=wrong)


def test_consumers_streams_wait_for_the_arrays_work() -> None:
    slow, fast = gp.Stream(), gp.Stream()
    a = gp.from_numpy(RNG.standard_normal((256, 256)))
    expected = a.to_numpy()
    with slow:
        x = a @ a
        for _ in range(3):
            x = x @ a
    with fast:
        total = from_dlpack(x) + 0.0
    fast.synchronize()
    np.testing.assert_allclose(total.to_numpy(), np.linalg.matrix_power(expected, 5), rtol=1e-9, atol=1e-6)


def test_a_copy_on_the_host_has_to_be_asked_for() -> None:
    x = gp.from_numpy(RNG.standard_normal((4, 6)))[:, ::2]
    host = np.from_dlpack(x, device="cpu")
    np.testing.assert_array_equal(host, x.to_numpy())
    x[...] = 0
    assert host.any()  # a copy
    managed = read(x.__dlpack__(max_version=(1, 0), dl_device=(CPU, 0)))
    assert managed.flags & 2 and managed.tensor.device_type == CPU and tuple(managed.tensor.strides[:2]) == (3, 1)
    with pytest.raises(BufferError, match="without a copy"):
        x.__dlpack__(dl_device=(CPU, 0), copy=False)
    with pytest.raises(BufferError, match="no streams"):
        x.__dlpack__(dl_device=(CPU, 0), stream=1)
    with pytest.raises(BufferError, match="to_device"):
        x.__dlpack__(dl_device=(CUDA, 7))
    if gp.backend() == "sim":
        for asked in ({}, {"copy": True}):
            with pytest.raises(BufferError, match=r"\.to_numpy\(\)"):
                np.from_dlpack(x, **asked)


def test_copies_are_marked() -> None:
    x = gp.ones(5)
    capsule = export(x, copy=True)
    assert read(capsule).flags & 2 and read(capsule).tensor.data != x.device_ptr
    assert not read(export(x, copy=False)).flags & 2
