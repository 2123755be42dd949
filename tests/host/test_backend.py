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
    assert isinstance(gp.is_cuda_available(), bool)
    with pytest.raises(gp.DriverError):
        gp.get_device_info(99)
