"""The CUDA driver table over a libcuda with host memory: what it asks of the driver, and what failures say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mock_cuda import build, cubin, start

Drive = Callable[..., list[str]]


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """Run code with `t`, a table whose device 0 is in use; the mock's log."""

    def go(code: str, **settings: str) -> list[str]:
        log = tmp_path / "log"
        prelude = "G = 2 << 20\nt = Table()\nt.ok('device_use', 0)\n"
        start(prelude + code, {"MOCK_CUDA_LOG": str(log), **settings}, build() / "mock")
        return log.read_text().splitlines()

    return go


def calls(log: list[str], *names: str) -> list[str]:
    return [line.strip() for line in log if line.split()[0] in names]


def test_device_info(drive: Drive) -> None:
    drive("""
info = DeviceInfo()
t.ok("device_info", 0, ctypes.byref(info))
assert info.name == b"NVIDIA Mock 90" and bytes(info.uuid) == b"\\xa0" * 16
assert (info.compute_major, info.compute_minor, info.driver_version) == (9, 0, 13000)
assert t.get("device_attribute", 0, 10) == 32 and t.get("device_attribute", 0, 40) == 1040
assert info.total_memory_bytes == 1 << 30 and info.warp_size == 32
# The mock answers 1000 + attribute number: each field has its own.
assert (info.multiprocessor_count, info.max_threads_per_block, info.l2_bytes) == (1016, 1001, 1038)
assert list(info.max_block) == [1002, 1003, 1004] and list(info.max_grid) == [1005, 1006, 1007]
assert (info.clock_khz, info.memory_clock_khz, info.memory_bus_bits) == (1013, 1036, 1037)
assert (info.max_shared_per_block_bytes, info.max_shared_per_block_optin_bytes) == (49152, 232448)
assert (info.max_shared_per_multiprocessor_bytes, info.registers_per_multiprocessor) == (1081, 1082)
assert info.max_threads_per_multiprocessor == 1039 and info.mps == 0
""")


@pytest.mark.parametrize("told", [1, -1])
def test_an_mps_server_is_told(drive: Drive, told: int) -> None:
    drive(
        f"""
info = DeviceInfo()
t.ok("device_info", 0, ctypes.byref(info))
assert info.mps == {told}
""",
        MOCK_CUDA_MPS=str(told),
    )


def test_memory_round_trip(drive: Drive) -> None:
    log = drive("""
assert t.get("granularity") == G
address, physical = t.memory(2 * G)
source = ctypes.create_string_buffer(bytes(range(256)) * 4, 1024)
back = ctypes.create_string_buffer(1024)
t.ok("copy_h2d", address, source, 1024, 0)
t.ok("copy_d2d", address + G, address, 1024, 0)
t.ok("copy_d2h", back, address + G, 1024, 0)
assert back.raw == source.raw
for pattern, width in ((0xAB, 1), (0xBEEF, 2), (0x01020304, 4)):
    expected = pattern.to_bytes(width, "little") * (8 // width)
    t.ok("fill", address, pattern, width, 8 // width, 0)
    t.ok("copy_d2h", back, address, 8, 0)
    assert back.raw[:8] == expected, (width, back.raw[:8])
free, total = ctypes.c_uint64(), ctypes.c_uint64()
t.ok("memory_info", ctypes.byref(free), ctypes.byref(total))
assert (free.value, total.value) == ((1 << 30) - 2 * G, 1 << 30)
t.ok("unmap", address, 2 * G)
t.ok("physical_release", physical)
t.ok("address_free", address, 2 * G)
""")
    made = calls(log, "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuMemAddressFree")
    assert made == [
        "cuMemCreate 4194304 type 1 handles 1 location 1:0",
        "cuMemMap 4194304 physical 1",
        "cuMemSetAccess 4194304 location 1:0 flags 3",
        "cuMemUnmap 4194304",
        "cuMemRelease 1",
        "cuMemAddressFree 4194304",
    ]


def test_evicted_memory_returns_to_its_address(drive: Drive) -> None:
    drive("""
address, physical = t.memory(G)
t.ok("fill", address, 7, 1, G, 0)
for _ in range(3):
    saved, back = ctypes.create_string_buffer(G), ctypes.create_string_buffer(G)
    t.ok("copy_d2h", saved, address, G, 0)
    t.ok("unmap", address, G)
    t.ok("physical_release", physical)
    assert t.copy_d2h(back, address, G, 0) == 1  # nothing is there
    physical = t.get("physical_create", G)
    t.ok("map", address, G, physical)
    t.ok("copy_h2d", address, saved, G, 0)
    t.ok("copy_d2h", back, address, G, 0)
    assert back.raw == b"\\7" * G
""")


def test_failed_access_leaves_nothing_mapped(drive: Drive) -> None:
    log = drive(
        """
address, physical = t.get("address_reserve", G), t.get("physical_create", G)
status = t.map(address, G, physical)
assert status == 2 and t.text(status).startswith("cuMemSetAccess failed: out of memory: free arrays"), t.text(status)
""",
        MOCK_CUDA_FAIL="cuMemSetAccess:2",
    )
    assert calls(log, "cuMemMap", "cuMemSetAccess", "cuMemUnmap")[-1] == "cuMemUnmap 2097152"


def test_out_of_memory(drive: Drive) -> None:
    drive(
        """
first = t.get("physical_create", G)
out = ctypes.c_uint64()
status = t.physical_create(G, ctypes.byref(out))
assert status == 2 and t.error_name(2) == b"CUDA_ERROR_OUT_OF_MEMORY"
assert t.text(2).startswith("cuMemCreate failed: out of memory: ")
t.ok("physical_release", first)
assert t.get("physical_create", G) != 0
""",
        MOCK_CUDA_MEMORY=str(2 << 20),
    )


def test_shared_memory_between_processes(drive: Drive) -> None:
    drive("""
import subprocess, sys
address, physical = t.memory(G)
fd = ctypes.c_int32()
t.ok("physical_export", physical, ctypes.byref(fd))
child = '''
from mock_cuda import *
import sys
t = Table(); t.ok("device_use", 0)
G, fd = 2 << 20, int(sys.argv[1])
physical, address = t.get("physical_import", fd, G), t.get("address_reserve", G)
t.ok("map", address, G, physical)
t.ok("fill", address, 0x5A, 1, G, 0)
'''
subprocess.run([sys.executable, "-c", child, str(fd.value)], pass_fds=[fd.value], check=True)
back = ctypes.create_string_buffer(G)
t.ok("copy_d2h", back, address, G, 0)
assert back.raw == b"\\x5a" * G
os.close(fd.value)
""")


def test_pinned_memory(drive: Drive) -> None:
    log = drive("""
host = t.get("host_alloc", 4096)
ctypes.memset(host, 1, 4096)
t.ok("host_free", host)
""")
    assert calls(log, "cuMemHostAlloc", "cuMemFreeHost") == ["cuMemHostAlloc 4096 flags 1", "cuMemFreeHost"]


def test_memory_of_whole_programs(drive: Drive) -> None:
    log = drive("""
both = t.get("managed_alloc", 5000)
ctypes.memset(both, 7, 5000)
t.ok("fill", both, 0x5A, 1, 100, 0)
assert ctypes.string_at(both, 101) == b"\\x5a" * 100 + b"\\x07"
t.ok("managed_free", both, 5000)
assert t.managed_free(both, 5000) == 1
theirs = ctypes.create_string_buffer(4096)
t.ok("host_register", theirs, 4096)
assert t.host_register(theirs, 4096) == 712 and t.host_unregister(both) == 713
t.ok("host_unregister", theirs)
""")
    managed, registered = ("cuMemAllocManaged", "cuMemFree"), ("cuMemHostRegister", "cuMemHostUnregister")
    assert calls(log, *managed) == ["cuMemAllocManaged 5000 flags 1", "cuMemFree", "cuMemFree"]
    assert calls(log, *registered) == ["cuMemHostRegister 4096 flags 1"] * 2 + ["cuMemHostUnregister"] * 2


def test_streams_and_events(drive: Drive) -> None:
    log = drive("""
streams = [t.get("stream_create", p) for p in (0, -3, -5, -99, 7)] + [t.get("stream_create_ordered", -99)]
start, end, quiet = t.get("event_create", 1), t.get("event_create", 1), t.get("event_create", 0)
t.ok("event_record", start, streams[0])
t.ok("stream_wait_event", streams[1], start)
t.ok("event_record", end, 0)
t.ok("event_wait", end); t.ok("event_query", end)
t.ok("stream_wait", 0); t.ok("stream_query", streams[2]); t.ok("device_wait")
elapsed = ctypes.c_double(-1)
t.ok("event_elapsed", start, end, ctypes.byref(elapsed))
assert 0 <= elapsed.value < 1000
status = t.event_elapsed(start, quiet, ctypes.byref(elapsed))
assert status == 400
for stream in streams:
    t.ok("stream_destroy", stream)
assert t.stream_query(streams[0]) == 400 and "was destroyed before" in t.text(400)
""")
    made = calls(log, "cuStreamCreateWithPriority")
    expected = [f"cuStreamCreateWithPriority flags 1 priority {p}" for p in (0, -3, -5, -5, 0)]
    assert made == [*expected, "cuStreamCreateWithPriority flags 0 priority -5"]  # the default stream's order
    assert calls(log, "cuEventCreate") == ["cuEventCreate flags 0", "cuEventCreate flags 0", "cuEventCreate flags 2"]


def test_not_ready_is_an_answer_not_a_failure(drive: Drive) -> None:
    drive(
        """
assert t.copy_h2d(4096, b"x", 1, 0) == 1
stream = t.get("stream_create", 0)
assert t.stream_query(stream) == 600
assert t.text(1).startswith("cuMemcpyHtoDAsync failed")  # still the last failure
""",
        MOCK_CUDA_FAIL="cuStreamQuery:600",
    )


@pytest.mark.parametrize("code", [700, 710, 714, 715, 716, 717, 718, 719])
def test_faults_say_that_the_context_is_lost(drive: Drive, code: int) -> None:
    drive(
        f"""
assert t.stream_wait(0) == {code}
text = t.text({code})
assert text.startswith("cuStreamSynchronize failed: ") and "start a new process" in text and "\\n" not in text, text
""",
        MOCK_CUDA_FAIL=f"cuStreamSynchronize:{code}",
    )


def test_failure_text_belongs_to_the_thread(drive: Drive) -> None:
    drive("""
import threading
assert t.copy_h2d(4096, b"x", 1, 0) == 1
seen = []
thread = threading.Thread(target=lambda: seen.append(t.text(1)))
thread.start(); thread.join()
assert seen == ["invalid argument"], seen
assert t.text(1) == "cuMemcpyHtoDAsync failed: invalid argument"
assert t.error_name(12345) == b"CUDA_ERROR_UNKNOWN" and t.text(12345) == "unknown CUDA error"
""")


def test_thread_without_a_device_is_told_so(drive: Drive) -> None:
    drive("""
import threading
def work():
    out = ctypes.c_uint64()
    calls = {"physical_create": (G,), "granularity": (), "stream_create": (0,), "event_create": (1,)}
    for name, arguments in calls.items():
        status = getattr(t, name)(*arguments, ctypes.byref(out))
        assert status == 201 and "device_use()" in t.text(status), (name, status, t.text(status))
    t.ok("device_use", 0)
    t.get("physical_create", G)
    done.append(True)
done = []
thread = threading.Thread(target=work)
thread.start(); thread.join()
assert done
""")


def test_one_context_for_all_threads(drive: Drive) -> None:
    log = drive("""
import threading
def work(i):
    t.ok("device_use", 0)
    address, physical = t.memory(G)
    for n in range(50):
        t.ok("fill", address, i * 8 + n % 8, 1, 64, 0)
        back = ctypes.create_string_buffer(64)
        t.ok("copy_d2h", back, address, 64, 0)
        assert back.raw == bytes([i * 8 + n % 8]) * 64
    done.append(i)
done = []
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[x.start() for x in threads]; [x.join() for x in threads]
assert sorted(done) == list(range(8))
""")
    assert len(calls(log, "cuDevicePrimaryCtxRetain")) == 1


def test_context_of_another_library_is_replaced(drive: Drive) -> None:
    log = drive("""
libcuda = ctypes.CDLL("libcuda.so.1")
other, query = ctypes.c_void_p(), ctypes.c_uint32()
get = libcuda.cuGetProcAddress_v2
assert get(b"cuCtxSetCurrent", ctypes.byref(other), 12000, ctypes.c_uint64(0), ctypes.byref(query)) == 0
ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)(other.value)(0x1234)
t.ok("device_use", 0)
t.ok("device_use", 0)
""")
    assert calls(log, "cuCtxSetCurrent") == [
        "cuCtxSetCurrent c0de0001",
        "cuCtxSetCurrent 1234",
        "cuCtxSetCurrent c0de0001",
    ]


MODULE = """
image = cubin({"scale": [8, 4, 4], "none": []})
module = t.get("module_load", image, len(image))
scale = t.get("module_function", module, b"scale")
"""


def test_module(drive: Drive) -> None:
    drive(
        MODULE
        + """
info = FunctionInfo()
t.ok("function_info", scale, ctypes.byref(info))
assert (info.param_count, info.binary_version, info.registers, info.static_shared_bytes) == (3, 90, 104, 101)
offset, size = ctypes.c_uint64(), ctypes.c_uint64()
layout = []
while t.function_param(scale, len(layout), ctypes.byref(offset), ctypes.byref(size)) == 0:
    layout.append((offset.value, size.value))
assert layout == [(0, 8), (8, 4), (12, 4)]
out = ctypes.c_uint64()
assert t.module_function(module, b"absent", ctypes.byref(out)) == 500
assert "no kernel 'absent'" in t.text(500) and 'extern "C"' in t.text(500), t.text(500)
assert t.module_global(module, b"table", ctypes.byref(out), ctypes.byref(out)) == 500
assert "variable 'table'" in t.text(500)
blocks = ctypes.c_int32()
t.ok("function_occupancy", scale, 256, 0, ctypes.byref(blocks))
assert blocks.value == 8
t.ok("function_set_dynamic_shared", scale, 100000)
t.ok("module_unload", module)
"""
    )


def test_launch(drive: Drive) -> None:
    log = drive(
        MODULE
        + """
values = ctypes.c_uint64(0x1122334455667788), ctypes.c_float(1.0), ctypes.c_int32(-1)
pointers = (ctypes.c_void_p * 3)(*(ctypes.addressof(v) for v in values))
stream = t.get("stream_create", 0)
launch = Launch(scale, stream, (4, 2, 1), (256, 1, 1), 1024, 0, (0, 0, 0), 0, ctypes.addressof(pointers))
t.ok("launch", ctypes.byref(launch))
for flags, cluster in ((1, (0, 0, 0)), (2, (2, 1, 1)), (6, (4, 4, 1)), (7, (8, 1, 1))):
    launch.flags, launch.cluster = flags, cluster
    t.ok("launch", ctypes.byref(launch))
launch.function = 1
launch.flags = 0
assert t.launch(ctypes.byref(launch)) == 400 and t.text(400).startswith("cuLaunchKernel failed: ")
"""
    )
    (plain,) = calls(log, "cuLaunchKernel")
    tail = "params 8877665544332211,0000803f,ffffffff"
    assert plain.startswith("cuLaunchKernel scale grid 4,2,1 block 256,1,1 shared 1024 stream ") and plain.endswith(
        tail
    )
    attributes = [line.split("attributes ")[1] for line in calls(log, "cuLaunchKernelEx")]
    assert attributes == ["2:1/0/0", "4:2/1/1", "4:4/4/1 6:1/0/0", "2:1/0/0 4:8/1/1 6:1/0/0"]
    assert (
        len([line for line in calls(log, "cuFuncSetAttribute") if "attribute 14 value 1" in line]) == 1
    )  # 16 blocks only


def test_launch_host_runs_on_another_thread(drive: Drive) -> None:
    drive("""
import threading
seen = []
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda argument: seen.append((argument, threading.get_ident())))
t.ok("launch_host", 0, function, 42)
assert seen[0][0] == 42 and seen[0][1] != threading.get_ident()
""")


def test_damaged_images_never_reach_the_driver(drive: Drive) -> None:
    log = drive("""
image = cubin({"scale": [8, 4, 4], "none": []})
out = ctypes.c_uint64()
for length in range(len(image)):
    status = t.module_load(image[:length], length, ctypes.byref(out))
    assert status == 200, length
    assert "CUBIN" in t.text(200), t.text(200)
assert t.module_load(b"\\x7fELF" + bytes(200), 204, ctypes.byref(out)) == 200
assert t.module_load(image[:18] + b"\\x3e\\0" + image[20:], len(image), ctypes.byref(out)) == 200
assert "not for CUDA" in t.text(200)
assert t.module_load(b".version 8.0" + bytes(100), 112, ctypes.byref(out)) == 200
for at in range(40, 64):  # header fields beyond the file
    bad = image[:at] + b"\\xff" + image[at + 1:]
    t.module_load(bad, len(bad), ctypes.byref(out))
""")
    assert len(calls(log, "cuModuleLoadDataEx")) < 24


ASSEMBLE = """
taken = []
@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
def take(to, cubin, size):
    taken.append((to, ctypes.string_at(cubin, size)))
def assemble(text):
    return t.ptx_assemble(text, len(text), take, 42)
PTX = b".version 8.0\\n.entry k() { ret; }\\n\\0"
"""
LINK = ("cuLinkCreate", "cuLinkAddData", "cuLinkComplete", "cuLinkDestroy")


def link_calls(log: list[str]) -> list[str]:
    return [line.split()[0] for line in calls(log, *LINK)]


def test_ptx_becomes_a_cubin(drive: Drive, tmp_path: Path) -> None:
    (tmp_path / "cubin").write_bytes(cubin({"k": [8]}))
    log = drive(
        ASSEMBLE + "assert assemble(PTX) == 0 and taken == [(42, cubin({'k': [8]}))]",
        MOCK_CUDA_CUBIN=str(tmp_path / "cubin"),
    )
    assert link_calls(log) == list(LINK)
    assert calls(log, "cuLinkAddData")[0].endswith("type 1 bytes 34") and not calls(log, "cuModuleLoadDataEx")


@pytest.mark.parametrize("call", LINK[:3])
def test_what_fails_while_assembling_leaves_no_link(drive: Drive, call: str) -> None:
    log = drive(
        ASSEMBLE + f"assert assemble(PTX) == 2 and t.text(2).startswith('{call} failed: out of memory'), t.text(2)\n"
        "assert not taken",
        MOCK_CUDA_FAIL=f"{call}:2",
    )
    expected = LINK[: LINK.index(call) + 1]
    assert link_calls(log) == [*expected, *(LINK[3:] if call != "cuLinkCreate" else ())]


def test_ptx_that_is_refused_carries_the_compilers_log(drive: Drive) -> None:
    log = drive(
        ASSEMBLE + "assert assemble(PTX.replace(b'ret', b'nonsense')) == 218 and not taken\n"
        "assert t.text(218).startswith('cuLinkAddData failed: ') and \"Unexpected 'nonsense'\" in t.text(218)"
    )
    assert link_calls(log) == ["cuLinkCreate", "cuLinkAddData", "cuLinkDestroy"]


def test_text_that_is_no_ptx_never_reaches_the_linker(drive: Drive) -> None:
    log = drive(
        ASSEMBLE + "for text in (b'', PTX[:-1], PTX + b'\\0', PTX.replace(b'n', b'\\0'), b'k\\0', cubin({'k': []})):\n"
        "    assert assemble(text) == 200 and 'not PTX' in t.text(200), text\nassert not taken"
    )
    assert not link_calls(log)


def test_zero_bytes_need_no_address(drive: Drive) -> None:
    log = drive("""
t.ok("copy_h2d", 0, None, 0, 0); t.ok("copy_d2h", None, 0, 0, 0)
t.ok("copy_d2d", 0, 0, 0, 0); t.ok("fill", 0, 0, 4, 0, 0)
assert t.fill(4096, 0, 3, 1, 0) == 1 and "width_bytes is 3" in t.text(1)
""")
    assert not [line for line in log if line.startswith(("cuMemcpy", "cuMemset"))]
