"""Triton's kernels where it is installed (extra `triton`): by its interpreter against float64, and compiled for SM 8.0
and 9.0. Each in a process of its own: Triton decides when it is imported whether it compiles."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from alone import alone
from mock_cuda import build, run

from pygpukit.triton import triton_available

pytestmark = pytest.mark.skipif(not triton_available(), reason="needs the extra triton")


def test_the_interpreter_runs_the_kernels_on_arrays(tmp_path: Path) -> None:
    alone(__file__, "interpreted", folder=tmp_path)


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "triton.md").read_text("utf-8")
    (tmp_path / "page.py").write_text(page.split("```python\n")[1].split("```")[0])  # Triton reads kernels from files
    alone(__file__, "example", folder=tmp_path)


def example() -> None:
    import sys

    sys.path.insert(0, str(Path.cwd()))
    import page

    assert page.out.to_numpy().min() > 0.99 and page.y.to_numpy()[-1] == 499.5


def test_the_kernels_compile_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    alone(__file__, "compiled")


def test_a_launch_passes_what_the_compiled_kernel_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a libcuda with host memory: grid, threads, shared memory and the bytes of every parameter."""
    log = tmp_path / "log"
    settings = {"MOCK_CUDA_LOG": str(log), "PYGPUKIT_CACHE_DIR": str(tmp_path / "cache"), "TRITON_INTERPRET": "0"}
    written = run(LAUNCHES, build() / "mock", TRITON_CACHE_DIR=str(tmp_path / "triton"), **settings).split()
    launches = [line for line in log.read_text().splitlines() if "cuLaunchKernel" in line and "rmsnorm" in line]
    assert len(launches) == 6 and written[0] == "cuda", log.read_text()
    x, weight, out, other = (int(number).to_bytes(8, "little").hex() for number in [*written[1:4], written[5]])
    eps = struct.pack("<f", 1e-5).hex()
    scratch = ",".join(["0" * 16] * int(written[4]))
    repeated = [(x, 37), (other, 37), (x, 48), (other, 48)]
    for line, (first, n) in zip(launches, [(x, 37), (x, 48), *repeated], strict=True):
        assert "grid 3,1,1 block 64,1,1" in line
        assert f"params {first},{weight},{out},{n.to_bytes(4, 'little').hex()},{eps},{scratch}" in line


LAUNCHES = """
from pygpukit._core import native
from pygpukit.triton import kernels
kernel = kernels._kernel("rmsnorm")
x, weight, out = gp.empty((3, 48)), gp.empty(48), gp.empty((3, 48))
built = kernel.build(90, x, weight, out, 37, 1e-5, 64, num_warps=2)
print(gp.backend(), x.device_ptr, weight.device_ptr, out.device_ptr, built.scratch)
for n in (37, 48):
    kernel[3](x, weight, out, n, 1e-5, BLOCK=64, num_warps=2)
    kernel[0](x, weight, out, n, 1e-5, BLOCK=64, num_warps=2)
assert len(kernel._kernels) == 2  # 48 is a multiple of 16
other, used = gp.empty((3, 48)), native.prepared_calls()["used"]
print(other.device_ptr)
for n in (37, 48):
    kernel[3](x, weight, out, n, 1e-5, BLOCK=64, num_warps=2)
    kernel[lambda one: (one["n"] // one["n"] * 3,)](other, weight, out, n, eps=1e-5, BLOCK=64, num_warps=2)
assert native.prepared_calls()["used"] == used + 2, "what was launched like this before is repeated"
gp.synchronize()
"""


def interpreted() -> None:
    import sys

    import numpy as np

    import pygpukit as gp
    from pygpukit.triton import from_gpuarray, kernels

    assert gp.triton.get_triton_device() == "interpreter"
    random = np.random.default_rng()

    def array(shape: tuple[int, ...], dtype: str) -> tuple[gp.GPUArray, np.ndarray]:
        x = gp.from_numpy(random.standard_normal(shape, dtype="float32")).astype(dtype)
        return x, x.astype("float32").to_numpy().astype("float64")

    def near(out: gp.GPUArray, expected: np.ndarray) -> None:
        # The interpreter cuts off where a device rounds.
        bound = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[out.dtype.name]
        np.testing.assert_allclose(out.astype("float32").to_numpy(), expected, rtol=bound, atol=bound)

    for dtype in ("float32", "float16", "bfloat16"):
        for shape in ((1, 1), (3, 37), (2, 2, 64)):
            x, exact = array(shape, dtype)
            w, weight = array(shape[-1:], dtype)
            b, bias = array(shape[-1:], "float32")
            out = gp.full(shape, float("nan"), dtype)
            kernels.rmsnorm(from_gpuarray(x), from_gpuarray(w), from_gpuarray(out), eps=1e-5)
            near(out, exact / np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-5) * weight)
            centred = exact - exact.mean(-1, keepdims=True)
            normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight
            for shift, expected in ((None, normal), (b, normal + bias)):
                out = gp.full(shape, float("nan"), dtype)
                kernels.layernorm(x, w, out, shift)
                near(out, expected)
            out = gp.full(shape, float("nan"), dtype)
            kernels.softmax(x, out)
            power = np.exp(exact - exact.max(-1, keepdims=True))
            near(out, power / power.sum(-1, keepdims=True))
        x, exact = array((2, 5, 3, 12), dtype)
        angles = random.uniform(0, 6, (5, 6))
        cos, sin = np.cos(angles), np.sin(angles)
        first, second = exact[..., :6], exact[..., 6:]
        rotated = [first * cos[:, None] - second * sin[:, None], second * cos[:, None] + first * sin[:, None]]
        for width in (1, 2):
            tables = [gp.from_numpy(np.tile(t, width).astype("float32")) for t in (cos, sin)]
            out = gp.full(x.shape, float("nan"), dtype)
            kernels.rotary(x, *tables, out)
            near(out, np.concatenate(rotated, -1))
    reports = gp.plugins.check("triton")
    assert [report.operation.replaces for report in reports] == ["rmsnorm", "layernorm", "softmax"]
    assert all(report.ok for report in reports), "\n".join(map(str, reports))
    x, exact = array((4, 6), "float32")
    with gp.plugins.replace("triton"), gp.profiling.profile() as p:
        across = gp.softmax(x, axis=0).to_numpy()
    power = np.exp(exact - exact.max(0))
    np.testing.assert_allclose(across, power / power.sum(0), rtol=1e-5)
    assert "softmax, by plugin triton" in [work.name for work in p.works]  # after the name of Triton's function
    user(gp, np)
    assert "torch" not in sys.modules


def user(gp: object, np: object) -> None:
    """A user's own kernel: strides of a view, a grid that is a function, an option, errors that name the parameter."""
    import importlib
    from pathlib import Path

    Path("users_kernel.py").write_text(
        "import triton\nimport triton.language as tl\n@triton.jit\n"
        "def scaled(x, step, y, n, factor, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    tl.store(y + at, tl.load(x + at * step, mask=at < n) * factor, mask=at < n)\n"
    )
    import sys

    sys.path.insert(0, str(Path.cwd()))
    kernel = gp.triton.Kernel(importlib.import_module("users_kernel").scaled)
    x = gp.from_numpy(np.arange(100, dtype="float32"))
    view, y = x[::3], gp.full(34, -1.0, "float32")
    step = gp.triton.from_gpuarray(view).stride(0)
    kernel[lambda one: (-(-one["n"] // one["BLOCK"]),)](view, step, y, n=34, factor=0.5, BLOCK=16, num_warps=2)
    np.testing.assert_array_equal(y.to_numpy(), x.to_numpy()[::3] * 0.5)
    for call, message in (
        (lambda: kernel[3](x), "missing a required argument"),
        (lambda: kernel[1.5](x, 1, y, 3, 0.5, 16), "grid=1.5"),
        (lambda: kernel[1, 1, 1, 1](x, 1, y, 3, 0.5, 16), "one to three whole numbers"),
    ):
        with pytest.raises(gp.KernelArgumentError, match=message):
            call()
    with pytest.raises(gp.GPUError, match="set TRITON_INTERPRET=0"):
        kernel.build(90, x, 1, y, 3, 0.5, 16)
    with pytest.raises(TypeError, match="decorate it with"):
        gp.triton.Kernel(len)


def compiled() -> None:
    import pygpukit as gp
    from pygpukit.jit.inspect.cubin import read_cubin
    from pygpukit.triton import kernels

    x, weight = gp.ones((3, 37), "bfloat16"), gp.ones(37, "bfloat16")
    calls = {
        "rmsnorm": (x, weight, x, 37, 1e-5, 64),
        "layernorm": (x, weight, None, x, 37, 1e-5, False, 64),
        "softmax": (x, x, 37, 64),
        "rotary": (x, weight, weight, x, 3, 1, 18, 18, 32),
    }
    for name, arguments in calls.items():
        kernel = kernels._kernel(name)
        for sm in (80, 90):
            built = kernel.build(sm, *arguments, num_warps=2)
            assert built.warps == 2 and built.cluster == 1 and built.symbol == name
            assert list(read_cubin(built.cubin).kernels) == [name]
            assert f".target sm_{sm}" in built.ptx
    with pytest.raises(gp.GPUError, match="set TRITON_INTERPRET=1"):
        kernels.softmax(gp.ones((2, 4)), gp.ones((2, 4)))
