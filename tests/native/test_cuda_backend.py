"""The whole package on its cuda path over a libcuda with host memory: choice of backend, arrays, ledger, faults."""

from __future__ import annotations

import json
from pathlib import Path

import counter
import pytest
from mock_cuda import build, run

REASONS = {
    "No GPU devices found (cudaGetDeviceCount == 0)": {"CUDA_VISIBLE_DEVICES": ""},
    "The CUDA driver is too old: it supports CUDA 11.8": {"MOCK_CUDA_VERSION": "11080"},
    "NVIDIA Mock 75 is SM 7.5; pygpukit needs SM 8.0 or newer": {"MOCK_CUDA_SM": "75"},
}


@pytest.mark.parametrize("reason", REASONS)
def test_unusable_driver_is_announced_once(reason: str) -> None:
    code = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = gp.ones(4)
    gp.zeros(4)
    assert gp.backend() == "sim"
assert (x.to_numpy() == 1).all()
texts = [str(w.message) for w in caught if issubclass(w.category, gp.BackendFallbackWarning)]
assert len(texts) == 1, texts
print(gp.backend().reason, texts[0], sep="\\n")
"""
    told, warned = run(code, build() / "mock", **REASONS[reason]).splitlines()
    assert told.startswith(reason) and warned.startswith(reason)
    assert warned.endswith("Falling back to CPU simulation backend.")


@pytest.mark.parametrize("reason", REASONS)
def test_cuda_asked_for_by_name_is_never_replaced(reason: str) -> None:
    code = """
try:
    gp.zeros(4)
except gp.BackendUnavailableError as error:
    print(error)
"""
    out = run(code, build() / "mock", PYGPUKIT_BACKEND="cuda", **REASONS[reason])
    assert reason in out and "PYGPUKIT_BACKEND=cuda" in out


ARRAYS = """
assert gp.backend() == "cuda"
info = gp.get_device_info()
assert info.name == "NVIDIA Mock 90" and info.compute_capability == (9, 0)
rng = np.random.default_rng(1)
for dtype in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"):
    for shape in ((), (1,), (257,), (64, 33), (0, 5)):
        x = (rng.standard_normal(shape) * 100).astype(dtype)
        np.testing.assert_array_equal(gp.from_numpy(x).to_numpy(), x)
big = rng.standard_normal(3 << 20)
np.testing.assert_array_equal(gp.from_numpy(big).to_numpy(), big)
assert not gp.zeros((100, 100)).to_numpy().any()
stream = gp.Stream()
with stream:
    y = gp.zeros(1000, dtype="int32")
event = gp.Event()
event.record(stream)
gp.default_stream().wait_event(event)
stream.synchronize()
gp.synchronize()
"""


def test_arrays_streams_and_events() -> None:
    run(ARRAYS, build() / "mock")


def test_every_byte_is_one_that_the_core_recorded(tmp_path: Path) -> None:
    shim = counter.build(tmp_path)
    settings = counter.environment(shim, str(build() / "mock" / "libcuda.so.1"), {})
    code = f"""
import json, sys
sys.path.insert(0, {str(Path(counter.__file__).parent)!r})
import counter
from pygpukit import _core
data, _, lost = _core.ring_read(1)
assert lost == 0
records = [data[i : i + 64] for i in range(0, len(data), 64)]
def total(kind):
    return sum(int.from_bytes(r[40:48], "little") for r in records if int.from_bytes(r[16:18], "little") == kind)
print(json.dumps([counter.counts(), _core.counters(), total(5), total(6)]))
"""
    del settings["LD_LIBRARY_PATH"]
    counts, ledger, mapped, unmapped = json.loads(run(ARRAYS + code, shim, **settings))
    assert counts["cuMemCreate.bytes"] == counts["cuMemMap.bytes"] == mapped > 0
    assert counts["cuMemRelease.bytes"] == counts["cuMemUnmap.bytes"] == unmapped
    assert counts["live.bytes"] == mapped - unmapped
    assert counts["cuMemcpyHtoDAsync.bytes"] == ledger["h2d_bytes"] > 0
    assert counts["cuMemcpyDtoHAsync.bytes"] == ledger["d2h_bytes"] > 0
    assert counts["cuLaunchKernel.calls"] + counts["cuLaunchKernelEx.calls"] == ledger["launches"]
    fills = sum(counts[f"cuMemsetD{bits}Async.calls"] for bits in (8, 16, 32))
    assert fills == ledger["fills"] > 0
    others = ("cuMemAlloc", "cuMemAllocAsync", "cuMemAllocManaged", "cuMemAllocPitch", "cuMemcpyHtoD", "cuMemcpyDtoH")
    assert [counts[f"{name}.calls"] for name in others] == [0] * len(others) and counts["conflict.calls"] == 0


def test_a_jit_kernel_reaches_the_driver_with_its_arguments(tmp_path: Path) -> None:
    code = """
if not gp.is_nvrtc_available():
    raise SystemExit(0)
source = 'extern "C" __global__ void scale(float *x, float factor, int n, double bias, short small, bool flag) {}'
x = gp.zeros(1000)
kernel = gp.jit(source, func="scale")
kernel[4, 256](x, 0.5, 1000, -2.0, -3, True)
kernel(x, factor=0.5, n=1000, bias=-2.0, small=-3, flag=True)
gp.synchronize()
print(x.device_ptr.to_bytes(8, "little").hex())
"""
    log = tmp_path / "log"
    address = run(code, build() / "mock", MOCK_CUDA_LOG=str(log), PYGPUKIT_CACHE_DIR=str(tmp_path / "cache")).strip()
    if not address:
        pytest.skip("NVRTC is not installed")
    launches = [line.split() for line in log.read_text().splitlines() if line.startswith("cuLaunchKernel ")]
    arguments = f"{address},0000003f,e8030000,00000000000000c0,fdff,01"
    assert [(line[1], line[-1]) for line in launches] == [("scale", arguments)] * 2
    assert launches[0][2:6] == ["grid", "4,1,1", "block", "256,1,1"]


def test_out_of_memory_says_how_much_and_leaves_the_pool_usable() -> None:
    code = """
keep = gp.zeros((8 << 20,), dtype="uint8")
try:
    gp.empty((200 << 20,), dtype="uint8")
except gp.OutOfMemoryError as error:
    assert error.requested >= 200 << 20, error.requested
    assert isinstance(error, MemoryError) and str(error)
else:
    raise SystemExit("more than the device has was given out")
again = gp.from_numpy(np.arange(1 << 20, dtype=np.uint8))
assert (again.to_numpy() == np.arange(1 << 20, dtype=np.uint8)).all() and not keep.to_numpy().any()
"""
    run(code, build() / "mock", MOCK_CUDA_MEMORY=str(64 << 20))


def test_a_fault_names_the_call_and_the_remedy() -> None:
    code = """
x = gp.empty(16)
try:
    gp.synchronize()
except gp.DriverError as error:
    print(error.code, error.name, error)
"""
    out = run(code, build() / "mock", MOCK_CUDA_FAIL="cuCtxSynchronize:700,cuStreamQuery:700,cuStreamSynchronize:700")
    assert out.startswith("700 CUDA_ERROR_ILLEGAL_ADDRESS ") and "start a new process" in out, out
