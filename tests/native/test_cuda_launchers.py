"""Launchers and variables on the cuda path over a libcuda with host memory: attributes, consent, addresses."""

from __future__ import annotations

from pathlib import Path

import pytest
from mock_cuda import build, run

from pygpukit.jit.toolchain import nvrtc_candidates

pytestmark = pytest.mark.skipif(
    not any(Path(path).is_file() for path in nvrtc_candidates()), reason="NVRTC is not installed (extra cuda13)"
)

PRELUDE = """
from pygpukit.core.errors import DriverError, GPUError, KernelArgumentError
def refused(parameter, call):
    try:
        call()
    except KernelArgumentError as error:
        assert error.parameter == parameter, error
        return str(error)
    raise SystemExit("nothing was refused")
"""
KERNEL = """
kernel = gp.jit('extern "C" __global__ void k(int* x) { extern __shared__ int s[]; x[0] = s[threadIdx.x]; }')
"""


def log_of(code: str, tmp_path: Path, **settings: str) -> list[str]:
    """Run code in a process on the mock device; what was called there."""
    log = tmp_path / "log"
    run(
        PRELUDE + code,
        build() / "mock",
        PYGPUKIT_BACKEND="cuda",
        MOCK_CUDA_LOG=str(log),
        PYGPUKIT_CACHE_DIR=str(tmp_path / "cache"),
        **settings,
    )
    return log.read_text().splitlines()


def test_cluster_and_cooperative_launches_carry_their_attributes(tmp_path: Path) -> None:
    code = """
x = gp.zeros(4, dtype="int32")
kernel.launcher((8, 4), (32, 2), cluster=(4, 2))(x)
kernel.launcher(6, 64, cooperative=True)(x)
kernel.launcher((4, 4, 4), 64, cluster=(2, 2, 2), cooperative=True, stream=gp.default_stream())(x)
kernel.launcher(6, 64)(x)
for cluster in (3, (2, 3), (1, 1, 2)):
    text = refused("cluster", lambda: kernel.launcher((8, 4), 32, cluster=cluster))
    assert "must divide the grid's, which is (8, 4, 1)" in text, text
assert "at most 16 blocks" in refused("cluster", lambda: kernel.launcher(64, 32, cluster=32))
# The device holds 2048 threads on each of its 1016 multiprocessors.
kernel.launcher(8128, 256, cooperative=True)
assert "holds 8128 of 256 threads" in refused("grid", lambda: kernel.launcher(8129, 256, cooperative=True))
"""
    lines = [line for line in log_of(KERNEL + code, tmp_path) if line.startswith("cuLaunchKernel")]
    assert [line.split()[0] for line in lines] == ["cuLaunchKernelEx"] * 3 + ["cuLaunchKernel"]
    assert "grid 8,4,1 block 32,2,1" in lines[0] and lines[0].endswith("attributes 4:4/2/1")
    assert lines[1].endswith("attributes 2:1/0/0")
    assert lines[2].endswith("attributes 2:1/0/0 4:2/2/2")


def test_clusters_need_a_device_that_has_them(tmp_path: Path) -> None:
    code = """
text = refused("cluster", lambda: kernel.launcher(4, 32, cluster=2))
assert text == "k: cluster is 2; NVIDIA Mock 80 is SM 8.0, clusters need SM 9.0", text
kernel.launcher(4, 32, cooperative=True)
"""
    lines = log_of(KERNEL + code, tmp_path, MOCK_CUDA_SM="80")
    assert not any(line.startswith("cuLaunchKernel") for line in lines)


def test_consent_to_shared_memory_is_given_once_and_never_taken_back(tmp_path: Path) -> None:
    code = """
other = kernel.unit.kernel("k")
for nbytes in (1024, 65536, 50000, 100000, 65536, 100000):
    kernel[1, 32, nbytes]
    other.launcher(1, 32, shared_bytes=nbytes)
assert "at most 232448 bytes" in refused("shared_bytes", lambda: kernel[1, 32, 232448])  # 101 of them are static here
kernel[1, 32, 232448 - 101]
"""
    lines = [line.split() for line in log_of(KERNEL + code, tmp_path) if line.startswith("cuFuncSetAttribute")]
    # Each look-up of a function by this libcuda gives a handle of its own, and so two of everything.
    values = [int(line[-1]) for line in lines if line[1] == lines[0][1]]
    assert values == [65536, 100000, 232448 - 101]
    assert [int(line[-1]) for line in lines if line[1] != lines[0][1]] == [65536, 100000]


def test_variables_are_found_by_the_symbols_that_nvrtc_gave_them(tmp_path: Path) -> None:
    code = """
source = '''
__constant__ float table[4];
static __device__ int count;
namespace ns { __device__ double2 pairs[3]; namespace { __device__ short hidden; } }
__global__ void k(float* x) { x[0] = table[1] + count + ns::pairs[1].x + ns::hidden; }'''
kernel = gp.jit(source)
for name, value in {"table": np.arange(4, dtype=np.float32), "count": np.int32(7), "ns::hidden": np.int16(-3),
                    "ns::pairs": np.arange(6.0).reshape(3, 2)}.items():
    variable = kernel.globals[name]
    variable.write(value)
    assert (variable.read() == value).all() and variable.nbytes == value.nbytes
    assert variable.array().device_ptr == variable.address
"""
    asked = [line.split()[1] for line in log_of(code, tmp_path) if line.startswith("cuModuleGetGlobal")]
    assert asked[0] == "table" and len(set(asked)) == 4
    assert all("hidden" in name or "pairs" in name for name in asked if name.startswith("_Z"))


def test_a_variable_that_the_driver_does_not_have_is_named(tmp_path: Path) -> None:
    code = """
kernel = gp.jit("__device__ int x; __global__ void k() {}")
try:
    kernel.globals["x"].read()
except DriverError as error:
    assert error.code == 500 and "'x'" in str(error), error
else:
    raise SystemExit("it was read")
"""
    log_of(code, tmp_path, MOCK_CUDA_FAIL="cuModuleGetGlobal:500")


def test_a_graph_reaches_the_driver_as_one_launch(tmp_path: Path) -> None:
    code = """
from pygpukit import _core
x, stream = gp.zeros(4, dtype="int32"), gp.Stream()
before = _core.counters()["launches"]
with stream.capture() as graph:
    kernel[1, 32](x)
    kernel.launcher(4, 32, cooperative=True)(x)
assert _core.counters()["launches"] == before
graph.launch()
graph.launch(stream)
assert _core.counters()["launches"] == before + 4
del graph
"""
    names = ("cuStreamBeginCapture", "cuStreamEndCapture", "cuLaunch", "cuGraph")
    lines = [line.split() for line in log_of(KERNEL + code, tmp_path) if line.startswith(names)]
    assert [line[0] for line in lines] == [
        "cuStreamBeginCapture",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags",
        "cuGraphDestroy",
        "cuGraphLaunch",
        "cuGraphLaunch",
        "cuGraphExecDestroy",
    ]
    default, users = (line[-1] for line in lines if line[0] == "cuGraphLaunch")
    assert default == "0"
    assert users not in ("0", lines[0][1]), "the graph is made on a stream of its own"
    assert lines[3][1] == lines[0][1] and lines[0][-1] == "2"
