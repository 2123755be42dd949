"""The CUDA driver table against the real libcuda, called by ctypes in processes of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import counter
import pytest
from mock_cuda import NATIVE, start

SOURCE = """
__device__ int table[5];
__device__ unsigned cluster_size() { unsigned n; asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(n)); return n; }
extern "C" __global__ void scale(float *x, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
extern "C" __global__ void clusters(unsigned *out) { if (threadIdx.x == 0) out[blockIdx.x] = cluster_size(); }
extern "C" __global__ void fault(int *out) { *(volatile int *)8 = out[0]; }
extern "C" __global__ void shared(int *out) { extern __shared__ int s[]; s[threadIdx.x] = 1; out[0] = s[threadIdx.x]; }
"""
PRELUDE = """
G = 2 << 20
t = Table()
assert t.probe == "", t.probe
t.ok("device_use", 0)
image = open(os.environ["CUBIN"], "rb").read()
def load():
    return t.get("module_load", image, len(image))
def launch(function, values, grid=1, block=32, shared=0, flags=0, cluster=(1, 1, 1), stream=0):
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    return t.launch(ctypes.byref(Launch(function, stream, (grid, 1, 1), (block, 1, 1), shared, flags, cluster, 0,
                                        ctypes.addressof(pointers))))
"""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """CUBINs of SOURCE: for this device, and for one that it is not."""
    from pygpukit._core import native
    from pygpukit.jit.compile.nvrtc import device_arch, open_nvrtc

    open_nvrtc()
    folder = tmp_path_factory.mktemp("cubin")
    own = device_arch(0)
    for name, arch in (("own", own), ("other", "sm_80" if own != "sm_80" else "sm_90")):
        before_clusters = int(arch[3:].rstrip("a")) < 90
        source = SOURCE.replace("%%cluster_nctarank", "%%nctaid.x") if before_clusters else SOURCE
        status, log, cubin, *_ = native.nvrtc_compile(source, "t.cu", [f"--gpu-architecture={arch}"], {}, [])
        assert status == 0, log
        (folder / name).write_bytes(cubin)
    return {name: str(folder / name) for name in ("own", "other")}


def drive(code: str, images: dict[str, str], image: str = "own", **environment: str) -> str:
    return start(PRELUDE + code, {"CUBIN": images[image], **environment}, None)


def test_device_info(images: dict[str, str]) -> None:
    drive(
        """
info = DeviceInfo()
t.ok("device_info", 0, ctypes.byref(info))
assert info.compute_major >= 8 and info.driver_version >= 12000 and info.total_memory_bytes > 1 << 30
assert info.warp_size == 32 and info.max_threads_per_block == 1024 and list(info.max_block) == [1024, 1024, 64]
assert info.max_shared_per_block_bytes == 49152 < info.max_shared_per_block_optin_bytes
assert info.max_shared_per_block_optin_bytes <= info.max_shared_per_multiprocessor_bytes
assert info.multiprocessor_count > 0 and info.l2_bytes > 0 and any(bytes(info.uuid))
free, total = ctypes.c_uint64(), ctypes.c_uint64()
t.ok("memory_info", ctypes.byref(free), ctypes.byref(total))
assert 0 < free.value <= total.value <= info.total_memory_bytes
""",
        images,
    )


def test_memory_returns_to_its_address_and_is_shared(images: dict[str, str]) -> None:
    drive(
        """
import subprocess, sys
assert t.get("granularity") == G
address, physical = t.memory(4 * G)
for pattern, width in ((0xAB, 1), (0xBEEF, 2), (0x01020304, 4)):
    back = ctypes.create_string_buffer(64)
    t.ok("fill", address, pattern, width, 64 // width, 0)
    t.ok("copy_d2h", back, address, 64, 0)
    t.ok("stream_wait", 0)
    assert back.raw == pattern.to_bytes(width, "little") * (64 // width)
t.ok("fill", address, 7, 1, 4 * G, 0)
host = t.get("host_alloc", 4 * G)
t.ok("copy_d2h", host, address, 4 * G, 0); t.ok("stream_wait", 0)
t.ok("unmap", address, 4 * G); t.ok("physical_release", physical)
physical = t.get("physical_create", 4 * G)
t.ok("map", address, 4 * G, physical)
t.ok("copy_h2d", address, host, 4 * G, 0)
fd = ctypes.c_int32()
t.ok("physical_export", physical, ctypes.byref(fd))
child = '''
from mock_cuda import *
import sys
t = Table(); t.ok("device_use", 0)
G, fd = 2 << 20, int(sys.argv[1])
physical, address = t.get("physical_import", fd, 4 * G), t.get("address_reserve", 4 * G)
t.ok("map", address, 4 * G, physical)
back = ctypes.create_string_buffer(64)
t.ok("copy_d2h", back, address + 3 * G, 64, 0)
t.ok("stream_wait", 0)
assert back.raw == bytes([7]) * 64
t.ok("fill", address, 0x5A, 1, G, 0)
t.ok("device_wait")
'''
t.ok("stream_wait", 0)
subprocess.run([sys.executable, "-c", child, str(fd.value)], pass_fds=[fd.value], check=True)
back = ctypes.create_string_buffer(G)
t.ok("copy_d2h", back, address, G, 0); t.ok("stream_wait", 0)
assert back.raw == bytes([0x5A]) * G
os.close(fd.value)
t.ok("host_free", host)
t.ok("unmap", address, 4 * G); t.ok("physical_release", physical); t.ok("address_free", address, 4 * G)
out = ctypes.c_uint64()
status = t.physical_create(1 << 50, ctypes.byref(out))
assert status == 2 and t.text(status).startswith("cuMemCreate failed: "), (status, t.text(status))
t.ok("physical_release", t.get("physical_create", G))
""",
        images,
    )


def test_streams_events_and_host_functions(images: dict[str, str]) -> None:
    drive(
        """
streams = [t.get("stream_create", p) for p in (0, -1, -5, -99, 7)]
start, end, quiet = t.get("event_create", 1), t.get("event_create", 1), t.get("event_create", 0)
address, physical = t.memory(256 * G)
t.ok("event_record", start, streams[0])
t.ok("fill", address, 1, 1, 256 * G, streams[0])
t.ok("event_record", end, streams[0])
t.ok("stream_wait_event", streams[1], end)
seen = []
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda argument: seen.append(argument))
t.ok("launch_host", streams[1], function, 42)
while (status := t.stream_query(streams[1])) == 600: pass
assert status == 0 and seen == [42] and t.event_query(end) == 0
elapsed = ctypes.c_double()
t.ok("event_elapsed", start, end, ctypes.byref(elapsed))
assert 0.01 < elapsed.value < 1000, elapsed.value
assert t.event_elapsed(start, quiet, ctypes.byref(elapsed)) == 400
for stream in streams: t.ok("stream_destroy", stream)
t.ok("device_wait")
""",
        images,
    )


def test_kernels(images: dict[str, str]) -> None:
    drive(
        """
import struct
scale = t.get("module_function", load(), b"scale")
info = FunctionInfo()
t.ok("function_info", scale, ctypes.byref(info))
assert info.param_count in (3, -1) and info.registers > 0
assert info.max_threads_per_block == 1024 and info.binary_version >= 80
offset, size, layout = ctypes.c_uint64(), ctypes.c_uint64(), []
while info.param_count == 3 and t.function_param(scale, len(layout), ctypes.byref(offset), ctypes.byref(size)) == 0:
    layout.append((offset.value, size.value))
assert layout in ([(0, 8), (8, 4), (12, 4)], [])
blocks = ctypes.c_int32()
t.ok("function_occupancy", scale, 256, 0, ctypes.byref(blocks))
assert 4 <= blocks.value <= 8
address, _ = t.memory(G)
t.ok("copy_h2d", address, struct.pack("1000f", *range(1000)), 4000, 0)
values = ctypes.c_uint64(address), ctypes.c_float(0.5), ctypes.c_int32(1000)
for flags in (0, 1, 4):  # plain, cooperative, programmatic dependent launch
    assert launch(scale, values, grid=4, block=256, flags=flags) == 0, t.text(1)
back = ctypes.create_string_buffer(4000)
t.ok("copy_d2h", back, address, 4000, 0); t.ok("stream_wait", 0)
assert struct.unpack("1000f", back.raw) == tuple(i / 8 for i in range(1000))
shared = t.get("module_function", load(), b"shared")
values = (ctypes.c_uint64(address),)
assert launch(shared, values, shared=64 << 10) == 1
t.ok("function_set_dynamic_shared", shared, 64 << 10)
assert launch(shared, values, shared=64 << 10) == 0
t.ok("stream_wait", 0)
nbytes = ctypes.c_uint64()
t.ok("module_global", load(), b"table", ctypes.byref(offset), ctypes.byref(nbytes))
assert offset.value != 0 and nbytes.value == 20
""",
        images,
    )


def test_clusters(images: dict[str, str]) -> None:
    drive(
        """
import struct
info = DeviceInfo()
t.ok("device_info", 0, ctypes.byref(info))
clusters = t.get("module_function", load(), b"clusters")
address, _ = t.memory(G)
for size in (2, 8, 16) if info.compute_major >= 9 else ():
    status = launch(clusters, (ctypes.c_uint64(address),), grid=16, flags=2, cluster=(size, 1, 1))
    assert status == 0, (size, t.text(status))
    back = ctypes.create_string_buffer(64)
    t.ok("copy_d2h", back, address, 64, 0); t.ok("stream_wait", 0)
    assert struct.unpack("16I", back.raw) == (size,) * 16
status = launch(clusters, (ctypes.c_uint64(address),), grid=16, flags=2, cluster=(3, 1, 1))
assert status != 0 and t.text(status).startswith("cuLaunchKernelEx failed: "), (status, t.text(status))
""",
        images,
    )


def test_images_that_do_not_fit(images: dict[str, str]) -> None:
    out = drive(
        """
out = ctypes.c_uint64()
info = DeviceInfo()
t.ok("device_info", 0, ctypes.byref(info))
status = t.module_load(image, len(image), ctypes.byref(out))
print(status, t.text(status))
status = t.module_load(image, len(image) - 1, ctypes.byref(out))
assert status == 200 and "truncated" in t.text(200), t.text(status)
""",
        images,
        "other",
    )
    assert out.startswith("209 ") and "architecture" in out, out


def test_absent_names(images: dict[str, str]) -> None:
    drive(
        """
out = ctypes.c_uint64()
assert t.module_function(load(), b"absent", ctypes.byref(out)) == 500
assert "no kernel 'absent'" in t.text(500)
assert t.module_global(load(), b"absent", ctypes.byref(out), ctypes.byref(out)) == 500
assert "variable 'absent'" in t.text(500)
""",
        images,
    )


def test_a_fault_is_explained_and_stays(images: dict[str, str]) -> None:
    drive(
        """
address, _ = t.memory(G)
fault = t.get("module_function", load(), b"fault")
assert launch(fault, (ctypes.c_uint64(address),)) == 0
for _ in range(2):
    status = t.stream_wait(0)
    text = t.text(status)
    assert status in (700, 716, 717, 719), text
    assert text.startswith("cuStreamSynchronize failed: ") and "start a new process" in text, text
out = ctypes.c_uint64()
assert t.physical_create(G, ctypes.byref(out)) != 0 or t.stream_query(0) == status
""",
        images,
    )


def test_another_thread_needs_its_device(images: dict[str, str]) -> None:
    drive(
        """
import threading
def work():
    out = ctypes.c_uint64()
    assert t.event_create(1, ctypes.byref(out)) == 201 and "device_use()" in t.text(201), t.text(201)
    t.ok("device_use", 0)
    t.get("event_create", 1)
    done.append(True)
done = []
thread = threading.Thread(target=work); thread.start(); thread.join()
assert done
""",
        images,
    )


def test_a_forked_child_is_told_why(images: dict[str, str]) -> None:
    drive(
        """
pid = os.fork()
if pid == 0:
    out = ctypes.c_uint64()
    status = t.physical_create(G, ctypes.byref(out))
    os._exit(0 if status == 3 and "'spawn'" in t.text(3) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
""",
        images,
    )


def test_the_counting_library_sees_what_the_table_does(images: dict[str, str], tmp_path: Path) -> None:
    shim = counter.build(tmp_path)
    code = """
import json, sys
sys.path.insert(0, os.environ["COUNTER"])
import counter
address, physical = t.memory(8 * G)
scale = t.get("module_function", load(), b"scale")
for flags in (0, 0, 1):
    assert launch(scale, (ctypes.c_uint64(address), ctypes.c_float(1), ctypes.c_int32(32)), flags=flags) == 0
back = ctypes.create_string_buffer(4000)
t.ok("copy_d2h", back, address, 4000, 0); t.ok("stream_wait", 0)
t.ok("unmap", address, 8 * G); t.ok("physical_release", physical)
print(json.dumps([{k: v for k, v in counter.counts().items() if v}, counter.requested()]))
"""
    environment = counter.environment(shim, counter.real_libcuda())
    environment |= {"COUNTER": str(Path(counter.__file__).parent), "CUBIN": images["own"]}
    counts, requested = json.loads(start(PRELUDE + code, environment, None))
    assert counts == {
        "cuMemCreate.calls": 1,
        "cuMemCreate.bytes": 16 << 20,
        "cuMemRelease.calls": 1,
        "cuMemRelease.bytes": 16 << 20,
        "cuMemMap.calls": 1,
        "cuMemMap.bytes": 16 << 20,
        "cuMemUnmap.calls": 1,
        "cuMemUnmap.bytes": 16 << 20,
        "peak.bytes": 16 << 20,
        "cuLaunchKernel.calls": 2,
        "cuLaunchKernelEx.calls": 1,
        "cuMemcpyDtoHAsync.calls": 1,
        "cuMemcpyDtoHAsync.bytes": 4000,
    }
    declared = re.findall(r"^  X\((\w+),", (NATIVE / "cuda" / "cuda_api.h").read_text(), re.MULTILINE)
    assert requested == declared
