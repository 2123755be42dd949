"""Pre-compiled mode on the device: NVRTC cannot be opened, a bundled operation gives the right numbers all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.jit.compile import nvrtc
from pygpukit.kernels import bundle
from pygpukit.kernels.builder import compile_unit
from pygpukit.kernels.registry import catalogue

pytestmark = pytest.mark.gpu

ADD = "pk::binary_dense<float, float, pk::Add>"
WITHOUT_NVRTC = """
import numpy as np
import pygpukit as gp
from pygpukit.core.errors import NvrtcError, NvrtcErrorCode
from pygpukit.jit.compile import nvrtc
def nothing(candidates):
    raise NvrtcError("tried libnvrtc.so.13", NvrtcErrorCode.NotLoaded)
nvrtc.native.nvrtc_open = nothing
x = np.random.default_rng().standard_normal(100_003).astype(np.float32)
assert (gp.add(gp.from_numpy(x), gp.from_numpy(x)).to_numpy() == x + x).all()
try:
    gp.jit("__global__ void k() {}")
except NvrtcError as error:
    print(error)
"""


def test_built_in_operations_need_no_compiler(tmp_path: Path) -> None:
    assert gp.backend() == "cuda"
    arch = nvrtc.device_arch(native.current_device())
    unit = next(u for u in catalogue() if ADD in u.expressions)
    image = compile_unit(unit, arch)
    bundle.write(tmp_path / "kernels.bundle", [(arch, unit, image)])
    environment = os.environ | {
        "PYGPUKIT_BUNDLE": str(tmp_path / "kernels.bundle"),
        "PYGPUKIT_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-c", WITHOUT_NVRTC]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[NotLoaded] NVRTC JIT compiler not available"), done.stdout
