"""Opening libcuda: every way in which it can be unusable is one sentence, and none of them crashes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest
from mock_cuda import build, start

Why = Callable[..., str]


@pytest.fixture
def why() -> Why:
    """The reason that a process with these settings is given, from the table's opening and from the probe alike."""

    def ask(**settings: str) -> str:
        code = "t = Table(); assert t.why == t.probe, (t.why, t.probe); print(t.why)"
        return start(code, settings, build() / "mock").strip()

    return ask


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(has_driver(), reason="this machine has a libcuda.so.1")
def test_no_library() -> None:
    out = start("t = Table(); print(t.why, t.probe, sep='|')", {}, None)
    assert (
        out == "CUDA driver not detected (libcuda.so.1 not found)|CUDA driver not detected (libcuda.so.1 not found)\n"
    )


def test_not_a_library(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("not a library, and long enough to be looked at by the dynamic loader " * 4)
    out = start("print(Table().why)", {}, tmp_path)
    assert out.startswith("CUDA driver not detected (") and "libcuda.so.1: " in out and "ELF" in out, out


def test_works(why: Why) -> None:
    assert why() == ""


@pytest.mark.parametrize("version", ["11040", "11080"])
def test_old_driver(why: Why, version: str) -> None:
    text = why(MOCK_CUDA_VERSION=version)
    assert text.startswith(
        f"The CUDA driver is too old: it supports CUDA 11.{version[3]}, pygpukit needs CUDA 12.0 or newer"
    ), text
    assert "driver 525" in text


def test_oldest_supported_driver(why: Why) -> None:
    assert why(MOCK_CUDA_VERSION="12000") == ""


def test_stub(why: Why) -> None:
    text = why(MOCK_CUDA_STUB="1")
    assert "stub" in text and str(build() / "mock") in text and "LD_LIBRARY_PATH" in text, text


def test_stub_found_at_init(why: Why) -> None:
    assert "stub" in why(MOCK_CUDA_FAIL="cuInit:34")


@pytest.mark.parametrize("settings", [{"MOCK_CUDA_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": ""}])
def test_no_devices(why: Why, settings: dict[str, str]) -> None:
    assert why(**settings) == "No GPU devices found (cudaGetDeviceCount == 0)"


def test_device_too_old(why: Why) -> None:
    assert why(MOCK_CUDA_SM="75") == "NVIDIA Mock 75 is SM 7.5; pygpukit needs SM 8.0 or newer"


def test_every_device_too_old(why: Why) -> None:
    text = why(MOCK_CUDA_SM="75,61")
    assert "NVIDIA Mock 75 is SM 7.5" in text and "NVIDIA Mock 61 is SM 6.1" in text


def test_one_of_two_devices_too_old() -> None:
    code = """
t = Table()
assert t.probe == ""
count = ctypes.c_int32()
t.ok("device_count", ctypes.byref(count))
assert count.value == 2  # ordinals stay those of CUDA
status = t.device_use(0)
print(status, t.text(status))
t.ok("device_use", 1)
status = t.device_use(2)
print(status, t.text(status))
"""
    first, second = start(code, {"MOCK_CUDA_SM": "75,90"}, build() / "mock").splitlines()
    assert first.startswith("801 ") and first.endswith("NVIDIA Mock 75 is SM 7.5; pygpukit needs SM 8.0 or newer")
    assert second.startswith("101 ") and second.endswith("device 2 does not exist: there are 2")


@pytest.mark.parametrize("name", ["cuMemMap", "cuLaunchKernel", "cuGetErrorName", "cuModuleLoadDataEx"])
def test_missing_symbol_is_named(why: Why, name: str) -> None:
    text = why(MOCK_CUDA_MISSING=f"{name},cuMemUnmap")
    assert name in text and "cuMemUnmap" in text and "CUDA 13.0" in text and "lacks" in text, text


def test_optional_symbols_may_be_missing() -> None:
    code = """
t = Table()
assert t.probe == "", t.probe
t.ok("device_use", 0)
out = ctypes.c_uint64()
launch = Launch(flags=1)
calls = {
    "cuLaunchKernelEx": lambda: t.launch(ctypes.byref(launch)),
    "cuFuncGetParamInfo": lambda: t.function_param(1, 0, ctypes.byref(out), ctypes.byref(out)),
    "cuMemExportToShareableHandle": lambda: t.physical_export(1, ctypes.byref(out)),
    "cuMemImportFromShareableHandle": lambda: t.physical_import(0, 2097152, ctypes.byref(out)),
}
for name, call in calls.items():
    status = call()
    assert status == 801 and name in t.text(status), (name, status, t.text(status))
info = FunctionInfo()
t.ok("function_info", 1, ctypes.byref(info))
assert info.param_count == -1
"""
    missing = "cuLaunchKernelEx,cuFuncGetParamInfo,cuMemExportToShareableHandle,cuMemImportFromShareableHandle"
    start(code, {"MOCK_CUDA_MISSING": missing}, build() / "mock")


def test_symbol_newer_than_the_driver_is_optional() -> None:
    code = """
t, info = Table(), FunctionInfo()
t.ok("device_use", 0)
t.ok("function_info", 1, ctypes.byref(info))
print(info.param_count)
"""
    assert start(code, {"MOCK_CUDA_VERSION": "12020"}, build() / "mock") == "-1\n"


def test_init_failure_is_explained(why: Why) -> None:
    text = why(MOCK_CUDA_FAIL="cuInit:803")
    assert text.startswith("cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): ") and "reboot" in text


def test_unknown_failure_is_still_a_sentence(why: Why) -> None:
    assert why(MOCK_CUDA_FAIL="cuInit:31337") == "cuInit failed: CUDA_ERROR_UNKNOWN (31337): unknown CUDA error"


def test_probe_creates_no_context(tmp_path: Path) -> None:
    log = tmp_path / "log"
    start("Table()", {"MOCK_CUDA_LOG": str(log)}, build() / "mock")
    assert log.read_text().split() == ["cuInit"]
