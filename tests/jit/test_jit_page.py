"""docs/jit.md: every Python example runs as it is written, on both backends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.jit import toolchain

pytestmark = pytest.mark.usefixtures("backend_name")

PAGE = Path(__file__).parents[2] / "docs" / "jit.md"
BLUR = "template <class T, int R> __global__ void blur(T* x, int n) { if (threadIdx.x < n) x[threadIdx.x] /= R; }"
ADD = "__global__ void add(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 1; }"
INCREASE = "__global__ void increase(float* x, float factor, int n) { if (threadIdx.x < n) x[threadIdx.x] += factor; }"
COPY = "__global__ void copy(const float* x, float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }"


def examples() -> dict[str, str]:
    """The Python blocks by the heading above them."""
    found: dict[str, str] = {}
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
            found[section.partition("\n")[0]] = block
    return found


def run(heading: str, **names: Any) -> dict[str, Any]:
    space = {"gp": gp, **names}
    exec(compile(examples()[heading], f"{PAGE.name}: {heading}", "exec"), space)
    return space


def test_every_example_is_run_here() -> None:
    assert list(examples()) == ["Sources", "Tile kernels", "Device variables", "Many kernels", "Graphs"]


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not gp.get_nvrtc_path():
        pytest.skip("NVRTC is not installed (extra cuda13)")
    (tmp_path / "kernels" / "include").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    kernel = run("Sources", source=BLUR)["kernel"]
    assert kernel.signature.name == "blur<float, 3>" and ".target sm_90a" in kernel.ptx


def test_tile_kernels(backend_name: str) -> None:
    n = 100
    a = gp.from_numpy(np.random.default_rng(7).integers(-8, 8, (n, n)).astype(np.float32)).astype("bfloat16")
    c = gp.full((n, n), float("nan"), "float32")
    if backend_name == "cuda" and toolchain.tileiras() is None:
        pytest.skip("needs tileiras: the extra `tile`")
    run("Tile kernels", a=a, c=c, n=n)
    whole = a.astype("float32").to_numpy()
    assert (c.to_numpy() == whole @ whole).all()  # sums of small whole numbers are exact


def test_device_variables() -> None:
    kernel = run("Device variables")["kernel"]
    assert int(kernel.globals["count"].read()) == 100


def test_many_kernels() -> None:
    space = run("Many kernels", add_source=ADD, blur_source=COPY)
    x = gp.zeros(300)
    space["add"](x, n=300)
    assert set(x.to_numpy().tolist()) == {1.0}


def test_graphs() -> None:
    x, y = gp.zeros(64), gp.zeros(64)
    z = run("Graphs", first=gp.jit(INCREASE), second=gp.jit(COPY), x=x, y=y)["z"]
    # one launch with 0.5, then verify() leaves what one with 0.25 adds to it
    assert set(y.to_numpy().tolist()) == {0.75}
    assert set(z.to_numpy().tolist()) == {1.5}
