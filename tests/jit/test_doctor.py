"""`pygpukit doctor`: sets, the one that is taken and why, what features lack, the one command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# what is beside the tests
from test_toolchain import WHOLE, alone, toolkit, wheel  # noqa: F401  a fixture

from pygpukit import doctor
from pygpukit.core.extras import install_command
from pygpukit.jit import toolchain
from pygpukit.kernels import bundle


def test_the_sets_and_the_one_that_is_taken(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    wheel(alone / "site", "13.0")
    monkeypatch.setenv("CUDA_HOME", str(toolkit(alone / "home", "13.4", *WHOLE)))
    monkeypatch.setenv("CUDA_PATH", str(toolkit(alone / "path", "13.5")))
    lines = list(doctor.report())
    marked = [line for line in lines if line.startswith("->")]
    assert marked == ["-> NVRTC 13.4 + tileiras + nvdisasm (CUDA_HOME)"]
    assert "   taken: the newest of those that make tile kernels" in lines
    assert any("no tileiras: NVRTC 13.3 or newer is needed, and this one is 13.0" in line for line in lines)
    tensor = next(line for line in lines if "tensor cores by tile kernels" in line)
    assert tensor.startswith("  ok") and str(alone / "home" / "bin" / "tileiras") in tensor


@pytest.mark.parametrize("gpu", [True, False])
def test_one_command_repairs_what_is_missing(alone: Path, monkeypatch: pytest.MonkeyPatch, gpu: bool) -> None:  # noqa: F811
    monkeypatch.setattr(doctor.native, "cuda_probe", lambda: None if gpu else "no driver")
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "jinja2" else object())
    monkeypatch.setattr(bundle, "file", lambda: alone / "none")
    wheel(alone / "site", "13.0")
    last = list(doctor.report())[-1]
    wanted = install_command("cuda", "linalg", "cublas", "models") if gpu else install_command("models")
    assert last == f"repair       {wanted}"


def test_the_short_form(alone: Path) -> None:  # noqa: F811
    assert "pygpukit doctor" in doctor.short()
    wheel(alone / "site", "13.5")
    toolchain.find._toolchains.cache_clear()
    assert "no tile kernels" in doctor.short()
    wheel(alone / "site", "13.5", *WHOLE)
    toolchain.find._toolchains.cache_clear()
    assert doctor.short().startswith("NVRTC 13.5 + tileiras + nvdisasm")


def test_the_command_opens_no_device_and_no_numpy() -> None:
    code = (
        "import sys; from pygpukit.cli import main; main(['doctor']); from pygpukit._core import native\n"
        "assert native.backend_name() is None; assert 'numpy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("repair ")
