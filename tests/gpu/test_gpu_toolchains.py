"""Beside PyTorch and a toolkit of another version, on a GPU: everything works, in a process of its own each time."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from pygpukit.jit import toolchain

pytestmark = pytest.mark.gpu
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")

TORCH = """
import torch
torch.special.bessel_j0(torch.ones(8, device="cuda")).sum().item()  # compiled by PyTorch's NVRTC
"""
OURS = """
import numpy as np, warnings, pygpukit as gp
warnings.simplefilter("ignore", RuntimeWarning)
rng = np.random.default_rng(3)
a, b = (rng.integers(-3, 4, (256, 256)).astype(np.float32) for _ in "ab")
x, y = gp.from_numpy(a), gp.from_numpy(b)
for dtype in ("float16", "bfloat16"):
    found = gp.matmul(x.astype(dtype), y.astype(dtype)).astype("float32").to_numpy()
    assert np.allclose(found, a @ b, rtol=2**-8, atol=0), dtype
assert (gp.matmul(x.astype("int8"), y.astype("int8"), dtype="int32").to_numpy() == a.astype(int) @ b.astype(int)).all()
q = gp.ones((2, 64, 64), "float16")
assert (gp.sdpa_causal(q, q, q).to_numpy() == 1).all()
image, weight = gp.ones((1, 64, 8, 8), "float16"), gp.full((64, 64, 1, 1), 0.25, "float16")
for act in (None, "silu"):
    found = gp.conv2d(image, weight, act=act).astype("float32").to_numpy()
    assert np.allclose(found, 16, rtol=1e-3), found.max()
from pygpukit.jit import toolchain
print(toolchain.taken())
"""


def run(code: str, tmp_path: Path, **variables: str) -> str:
    environment = {**os.environ, "PYGPUKIT_BACKEND": "cuda", "PYGPUKIT_CACHE_DIR": str(tmp_path), **variables}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_torch
@pytest.mark.parametrize("code", [TORCH + OURS, OURS + TORCH + OURS], ids=["before", "after"])
def test_pytorch_in_one_process(tmp_path: Path, code: str) -> None:
    run(code, tmp_path)


@needs_torch
def test_the_compiler_of_pytorch_alone(tmp_path: Path) -> None:
    """No tile kernels: every other set is hidden."""
    hide = (
        "from pygpukit.jit.toolchain import find\n"
        "every = find._toolchains\n"
        "find._toolchains = lambda *key: tuple(one for one in every(*key) if not one.makes_tile_kernels)\n"
    )
    if not any(not one.makes_tile_kernels for one in toolchain.toolchains()):
        pytest.skip("every NVRTC of this machine comes with its assembler")
    assert "tileiras" not in run(hide + OURS, tmp_path)


def test_a_toolkit_of_another_version_in_the_environment(tmp_path: Path) -> None:
    used = toolchain.taken()
    other = next((one for one in toolchain.toolchains() if used is not None and one.version != used.version), None)
    if other is None:
        pytest.skip("there is no second toolkit")
    root = str(other.root)
    variables = {"CUDA_HOME": root, "CUDA_PATH": root, "CUDA_ROOT": root, "LD_LIBRARY_PATH": str(other.nvrtc.parent)}
    assert run(OURS, tmp_path, **variables).splitlines()[-1].startswith("NVRTC {}.{}".format(*used.version))
