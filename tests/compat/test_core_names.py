"""Documented names of the core and of operations at their older paths: what they do, by values."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.compat import native_loader, raw_copies
from pygpukit.compat.paths import MOVED
from pygpukit.core import backend as module
from pygpukit.core.unused import warn_of_unused


@pytest.fixture
def calls(backend_name: str) -> module.Backend:
    return module.NativeBackend() if backend_name == "cuda" else module.CPUSimulationBackend()


def test_the_open_backend_is_one_of_the_documented_classes(calls: module.Backend) -> None:
    assert type(gp.backend()) is type(calls) and module.get_backend() is gp.backend()
    assert isinstance(calls, module.Backend) and calls == gp.backend() and calls.is_available()
    assert module.set_backend(calls) is gp.backend()
    assert calls.get_device_count() == gp.device_count()
    facts, info = calls.get_device_properties(), gp.get_device_info()
    assert isinstance(facts, module.DeviceProperties)
    assert (facts.name, facts.total_memory, facts.compute_capability) == (
        info.name,
        info.total_memory,
        info.compute_capability,
    )
    assert (facts.multiprocessor_count, facts.max_threads_per_block, facts.warp_size) == (
        info.multiprocessor_count,
        info.max_threads_per_block,
        info.warp_size,
    )


def test_bytes_go_to_the_device_and_back(calls: module.Backend) -> None:
    data = np.random.default_rng().standard_normal((7, 5)).astype(np.float32)
    pointer = calls.allocate(data.nbytes + 3)
    try:
        calls.memset(pointer, 0xA5, data.nbytes + 3)
        calls.copy_host_to_device(data.T, pointer)  # in C order, whatever its strides are
        calls.memset(pointer + 8, 0, 4)
        calls.synchronize()
        expected = data.T.reshape(-1).copy()
        expected[2] = 0
        np.testing.assert_array_equal(calls.copy_device_to_host(pointer, data.nbytes, np.float32), expected)
        tail = calls.copy_device_to_host(pointer + data.nbytes, 3, gp.uint8)
        assert tail.dtype == np.uint8 and tail.tolist() == [0xA5] * 3
        assert calls.copy_device_to_host(pointer, 0, np.int64).shape == (0,)
        for wrong in (
            lambda: calls.copy_device_to_host(pointer, 6, np.float32),
            lambda: calls.copy_device_to_host(pointer, data.nbytes + 4, np.uint8),
            lambda: calls.copy_host_to_device(data, pointer + 4),
            lambda: calls.memset(pointer, 256, 1),
            lambda: calls.memset(pointer - 1, 0, 1),
            lambda: calls.free(pointer + 1),
            lambda: calls.allocate(0),
        ):
            with pytest.raises(gp.ShapeError):
                wrong()
    finally:
        calls.free(pointer)
    with pytest.raises(gp.ShapeError, match="freed already"):
        calls.free(pointer)
    with pytest.raises(gp.ShapeError, match="nothing that allocate"):
        calls.memset(pointer, 0, 1)


def test_streams_by_the_low_level_calls(calls: module.Backend) -> None:
    stream = calls.create_stream(-5)
    assert stream.priority < 0 == calls.create_stream().priority
    calls.stream_synchronize(stream)
    calls.destroy_stream(stream)


def test_another_backend_than_the_open_one_is_refused(calls: module.Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    other = module.CPUSimulationBackend() if calls == "cuda" else module.NativeBackend()
    for call in (lambda: other.allocate(4), other.synchronize, other.get_device_count, other.create_stream):
        with pytest.raises(gp.BackendUnavailableError, match=f"this process uses {calls}"):
            call()
    monkeypatch.setenv("PYGPUKIT_BACKEND", str(calls))
    module.reset_backend()
    assert gp.backend() == calls
    monkeypatch.setenv("PYGPUKIT_BACKEND", str(other))
    with pytest.raises(gp.BackendUnavailableError, match=f"{other} would be chosen, but this process uses {calls}"):
        module.reset_backend()


def test_a_backend_object_chooses_before_anything_is_open() -> None:
    code = (
        "from pygpukit.core.backend import CPUSimulationBackend, backend, reset_backend, set_backend\n"
        "reset_backend(); chosen = set_backend(CPUSimulationBackend())\n"
        "print(chosen, type(chosen).__name__, chosen is backend())"
    )
    clean = {key: value for key, value in os.environ.items() if key != "PYGPUKIT_BACKEND"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean, capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout.split(), done.stderr) == (["sim", "CPUSimulationBackend", "True"], "")


def test_a_copy_in_the_order_of_a_stream_by_its_handle(backend_name: str) -> None:
    data = np.random.default_rng().standard_normal(33).astype(np.float32)
    for stream in (gp.Stream(), gp.default_stream()):
        target = gp.full(33, np.nan, "float32")
        raw_copies.copy_to_device_async_raw_stream(target, data.ctypes.data, data.nbytes, stream.handle)
        stream.synchronize()
        np.testing.assert_array_equal(target.to_numpy(), data)
    if backend_name == "sim":
        with pytest.raises(gp.core.errors.InvalidSpecError, match="0xdead"):
            raw_copies.copy_to_device_async_raw_stream(gp.zeros(33, "float32"), data.ctypes.data, 4, 0xDEAD)


def test_the_loaders_versions(backend_name: str) -> None:
    version = native_loader.get_driver_cuda_version()
    assert native_loader.get_native_module() is module.get_native_module()
    if backend_name == "sim":
        assert (version, native_loader.get_loaded_cuda_version()) == (None, "")
    else:
        assert version is not None and native_loader.get_loaded_cuda_version() == f"{version[0]}.{version[1]}"


def test_operations_are_at_their_older_paths() -> None:
    x = gp.from_numpy(np.linspace(-3, 3, 13, dtype=np.float32))
    for path, names in MOVED.items():
        package = import_module(path)
        for name in names:
            assert getattr(package, name) is getattr(gp.ops, name)
    nn, products = import_module("pygpukit.ops.nn"), import_module("pygpukit.ops.matmul")
    np.testing.assert_array_equal(nn.gelu(x).to_numpy(), gp.gelu(x).to_numpy())
    assert products.gemv_bf16 is gp.ops.gemv_bf16 and products.matmul is gp.matmul
    for path, name in (
        ("basic", "relu"),
        ("embedding", "embedding_lookup"),
        ("embedding", "kv_cache_update"),
        ("reduction", "sum_axis"),
        ("sampling", "sample_greedy"),
        ("unary", "exp"),
    ):
        assert getattr(import_module(f"pygpukit.ops.{path}"), name) is getattr(gp.ops, name)
    assert callable(gp.ops.embedding)  # the operation, whatever was imported
    assert import_module("pygpukit.jit.compiler").JITKernel is gp.JITKernel
    with pytest.raises(AttributeError, match="no attribute 'fft'"):
        nn.fft


@pytest.mark.parametrize("name", ["PYGPUKIT_FLASH_ATTENTION", "PYGPUKIT_FLASH_DECODING", "PYGPUKIT_FA3"])
@pytest.mark.parametrize("value", ["0", "1", "auto"])
def test_a_documented_variable_without_effect_is_told_of(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setenv(name, value)
    warn_of_unused.cache_clear()
    try:
        gp.sdpa_causal(*(gp.zeros((2, 3, 8)) for _ in range(3)))
    finally:
        warn_of_unused.cache_clear()
    told = [str(one.message) for one in recwarn if name in str(one.message)]
    assert len(told) == (value != "auto") and all("has no effect: " in text for text in told)
