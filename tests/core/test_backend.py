"""Choosing the backend: by variable, by what is there, announced once. Each case in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import pygpukit as gp
from pygpukit.core import backend as module


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYGPUKIT_BACKEND")}
    return subprocess.run(
        [sys.executable, "-c", code], env=clean | environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_fallback_is_announced_once_at_the_users_line() -> None:
    code = "import pygpukit as gp\nx = gp.zeros(3)\ngp.backend()\nx + x\nprint(gp.backend(), gp.backend().reason)"
    done = run(code, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sim ")
    assert done.stderr.count("Falling back to CPU simulation backend.") == 1
    assert "BackendFallbackWarning" in done.stderr
    assert "pygpukit/core" not in done.stderr.replace("\\", "/")
    assert done.stdout.split(maxsplit=1)[1].strip().rstrip(".") in done.stderr


def test_in_a_notebook_the_fallback_is_one_calm_line() -> None:
    pytest.importorskip("IPython")
    cells = "import pygpukit as gp", "x = gp.zeros(3)", "y = x + x"
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        f"for cell in {cells}: assert InteractiveShell.instance().run_cell(cell).success"
    )
    done = run(code, CUDA_VISIBLE_DEVICES="")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in {f"Simulated device: no NVIDIA {what} found\n" for what in ("driver", "GPU")}


def test_asking_for_the_simulation_says_nothing() -> None:
    done = run("import pygpukit as gp; print(gp.backend(), gp.backend().reason)", PYGPUKIT_BACKEND="sim")
    assert (done.stdout.strip(), done.stderr) == ("sim PYGPUKIT_BACKEND=sim", "")


def test_asking_for_cuda_without_a_device_raises() -> None:
    code = (
        "import pygpukit as gp\ntry: gp.zeros(3)\n"
        "except gp.BackendUnavailableError as error: print(error.backend, '|', error.reason, '|', error)"
    )
    done = run(code, PYGPUKIT_BACKEND="cuda", CUDA_VISIBLE_DEVICES="")
    backend, reason, message = done.stdout.split(" | ")
    assert backend == "cuda"
    assert reason
    assert reason in message
    assert "leave it unset" in message


@pytest.mark.parametrize(
    ("variable", "value", "error", "text"),
    [
        ("PYGPUKIT_BACKEND", "CUDA", "InvalidSpecError", "PYGPUKIT_BACKEND=CUDA: the backend must be 'cuda' or 'sim'"),
        ("PYGPUKIT_USE_RUST", "0", "BackendUnavailableError", "there is no other runtime"),
    ],
)
def test_bad_settings_are_refused_by_name(variable: str, value: str, error: str, text: str) -> None:
    done = run("import pygpukit as gp; gp.zeros(3)", **{variable: value})
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert error in last
    assert text in last
    assert variable in last


def test_many_threads_get_one_backend() -> None:
    code = (
        "import threading, pygpukit as gp\nfound = []\n"
        "threads = [threading.Thread(target=lambda: found.append(gp.zeros(4).dtype)) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\nprint(len(found), gp.backend())"
    )
    done = run(code, PYGPUKIT_BACKEND="sim")
    assert done.stdout.strip() == "8 sim", done.stderr


def test_choosing_in_code() -> None:
    code = (
        "import pygpukit as gp\nfrom pygpukit.core.backend import get_backend, set_backend\n"
        "set_backend('sim'); print(gp.backend(), gp.backend().reason, get_backend() is gp.backend())\n"
        "try: set_backend('cuda')\nexcept gp.BackendUnavailableError as error: print(error)"
    )
    done = run(code)
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == "sim set_backend('sim') True"
    assert "this process uses sim" in second


def test_compiled_parts_are_reachable() -> None:
    assert module.has_native_module()
    assert module.has_rust_module()
    assert gp.backend() == module.get_native_module().backend_name()
    assert module.get_rust_module().native is module.get_native_module()


def test_backend_is_a_fixed_string() -> None:
    found = gp.backend()
    assert found is module.ensure()
    assert isinstance(found, str)
    assert f"{found}" in ("sim", "cuda")
    with pytest.raises(AttributeError, match="fixed for the process"):
        found.reason = "because"


def test_device_facts() -> None:
    assert gp.device_count() >= 1
    info = gp.get_device_info()
    assert info.name
    assert info.total_memory > 0
    assert info.warp_size == 32
    assert info.compute_capability is not None
    free, total = gp.get_memory_info()
    assert 0 < free <= total
    able = gp.get_device_capabilities()
    assert able.sm_version == 10 * info.compute_capability[0] + info.compute_capability[1]
    assert able.tensorcore == (gp.backend() == "cuda")
    assert (able.name, able.total_memory, able.sm_count) == (info.name, info.total_memory, info.multiprocessor_count)
    assert (able.l2_cache_size, able.shared_mem_per_block, able.warp_size) == (info.l2_cache_size, 48 << 10, 32)
    assert (able.compute_major, able.compute_minor) == info.compute_capability
    assert isinstance(gp.is_cuda_available(), bool)
    with pytest.raises(gp.DriverError):
        gp.get_device_info(99)


def test_capabilities_of_an_architecture() -> None:
    import _pygpukit_rust as rust

    assert rust.DeviceCapabilities is gp.DeviceCapabilities and rust.KernelType is gp.KernelType
    kinds = gp.KernelType
    hopper, turing, pascal = rust.DeviceCapabilities.hopper(), rust.DeviceCapabilities(75), rust.DeviceCapabilities(61)
    assert (hopper.sm_version, hopper.name, hopper.sm_count) == (90, "SM 9.0", 0)
    assert (rust.DeviceCapabilities().sm_version, rust.DeviceCapabilities.ada().compute_minor) == (86, 9)
    assert (turing.tensorcore_fp16, turing.tensorcore_bf16, turing.async_copy) == (True, False, False)
    assert hopper.is_ampere_or_newer() and not turing.is_ampere_or_newer() and not pascal.tensorcore
    assert hopper.best_matmul_kernel() == kinds.FP32_FMA and hopper.best_matmul_kernel(True) == kinds.TF32_MMA
    assert turing.best_matmul_kernel(True) == kinds.TILED_SMEM
    assert turing.best_matmul_kernel(dtype_is_fp32=False) == kinds.FP16_MMA
    assert pascal.best_matmul_kernel(dtype_is_fp32=False, large_matrix=False) == kinds.L2_NAIVE
    assert turing.supports_kernel(kinds.FP16_MMA) and not turing.supports_kernel(kinds.BF16_MMA)
    assert (kinds.TF32_MMA.name(), kinds.TF32_MMA.min_sm_version()) == ("TF32_MMA", 80)
    assert kinds.TF32_MMA.uses_tensor_cores() and not kinds.L2_NAIVE.uses_tensor_cores()
    with pytest.raises(ValueError, match="sm_version=9; give ten times"):
        rust.DeviceCapabilities(9)
