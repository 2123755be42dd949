"""The simulated device below the pool: memory, copies, streams, events, faults, its configuration and its end."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sim_table import (
    CAPTURE_UNSUPPORTED,
    GRANULE,
    ILLEGAL_ADDRESS,
    INVALID_HANDLE,
    INVALID_IMAGE,
    INVALID_VALUE,
    NOT_INITIALIZED,
    NOT_READY,
    Table,
    start,
)

HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def stream(table: Table) -> Iterator[int]:
    handle = ctypes.c_uint64()
    table.ok("stream_create", 0, ctypes.byref(handle))
    yield handle.value
    table.ok("stream_destroy", handle.value)


def data(size: int) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(np.arange(size, dtype=np.uint8).tobytes(), size)


# ---- memory


def test_mapped_memory_keeps_its_contents_at_another_address(table: Table) -> None:
    address, physical = table.memory(GRANULE)
    table.ok("copy_h2d", address + 100, data(1000), 1000, 0)
    table.ok("stream_wait", 0)
    table.ok("unmap", address, GRANULE)
    other = table.get("address_reserve", GRANULE)
    table.ok("map", other, GRANULE, physical)
    back = ctypes.create_string_buffer(1000)
    table.ok("copy_d2h", back, other + 100, 1000, 0)
    table.ok("stream_wait", 0)
    assert back.raw == data(1000).raw
    table.ok("unmap", other, GRANULE)
    table.ok("address_free", other, GRANULE)
    table.ok("address_free", address, GRANULE)
    table.ok("physical_release", physical)


def test_sizes_and_ranges_are_checked(table: Table) -> None:
    out = ctypes.c_uint64()
    assert "granularity" in table.fails(INVALID_VALUE, "address_reserve", GRANULE + 1, ctypes.byref(out))
    assert "granularity" in table.fails(INVALID_VALUE, "physical_create", 0, ctypes.byref(out))
    address, physical = table.memory(GRANULE, 2 * GRANULE)
    table.fails(INVALID_VALUE, "map", address, GRANULE, physical)  # already mapped
    table.fails(INVALID_VALUE, "map", address + GRANULE, 2 * GRANULE, physical)  # larger than the memory
    table.fails(INVALID_VALUE, "map", address + 2 * GRANULE, GRANULE, physical)  # past the range
    table.fails(INVALID_HANDLE, "map", address + GRANULE, GRANULE, physical + 1000)
    assert "whole mappings" in table.fails(INVALID_VALUE, "unmap", address, 2 * GRANULE)
    assert "still mapped" in table.fails(INVALID_VALUE, "address_free", address, 2 * GRANULE)
    table.ok("unmap", address, GRANULE)
    table.fails(INVALID_VALUE, "address_free", address, GRANULE)
    table.ok("address_free", address, 2 * GRANULE)
    table.ok("physical_release", physical)
    table.fails(INVALID_HANDLE, "physical_release", physical)


def test_released_memory_counts_until_it_is_unmapped(table: Table) -> None:
    free, total = ctypes.c_uint64(), ctypes.c_uint64()

    def free_bytes() -> int:
        table.ok("memory_info", ctypes.byref(free), ctypes.byref(total))
        return free.value

    before = free_bytes()
    address, physical = table.memory(3 * GRANULE)
    table.ok("physical_release", physical)
    assert before - free_bytes() == 3 * GRANULE
    table.ok("unmap", address, 3 * GRANULE)
    assert free_bytes() == before
    table.ok("address_free", address, 3 * GRANULE)


def test_memory_is_shared_through_its_descriptor(table: Table) -> None:
    address, physical = table.memory(GRANULE)
    descriptor = ctypes.c_int32()
    table.ok("physical_export", physical, ctypes.byref(descriptor))
    table.fails(INVALID_VALUE, "physical_import", descriptor.value, 2 * GRANULE, ctypes.byref(ctypes.c_uint64()))
    imported = table.get("physical_import", descriptor.value, GRANULE)
    os.close(descriptor.value)
    other = table.get("address_reserve", GRANULE)
    table.ok("map", other, GRANULE, imported)
    table.ok("fill", other, 0x01020304, 4, GRANULE // 4, 0)
    table.ok("stream_wait", 0)
    assert ctypes.string_at(address + GRANULE - 4, 4) == b"\4\3\2\1"
    for at, memory in ((address, physical), (other, imported)):
        table.ok("unmap", at, GRANULE)
        table.ok("physical_release", memory)
        table.ok("address_free", at, GRANULE)


def test_limit_and_counters() -> None:
    start(
        """
from pygpukit._core import native
t = Table()
free, total = ctypes.c_uint64(), ctypes.c_uint64()
t.ok("memory_info", ctypes.byref(free), ctypes.byref(total))
assert free.value == total.value == 64 << 20, total.value
first = t.get("physical_create", 48 << 20)
text = t.fails(OUT_OF_MEMORY, "physical_create", 32 << 20, ctypes.byref(ctypes.c_uint64()))
assert str(32 << 20) in text and str(16 << 20) in text, text
t.ok("physical_release", first)
second = t.get("physical_create", 64 << 20)
counters = native.device_counters()
assert counters["physical_bytes"] == 64 << 20, counters
assert counters["physical_created_bytes"] == 112 << 20, counters
assert counters["launches"] == counters["host_launches"] == 0
""",
        PYGPUKIT_SIM="memory=64MiB",
    )


def test_device_properties() -> None:
    start(
        """
import os, pathlib
LIMITS = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"
t = Table()
count = ctypes.c_int32()
t.ok("device_count", ctypes.byref(count))
assert count.value == 2
info = DeviceInfo()
t.ok("device_info", 1, ctypes.byref(info))
assert info.name == b"pygpukit simulated GPU" and info.multiprocessor_count == 5
assert (info.compute_major, info.compute_minor, info.driver_version) == (9, 0, 0)
machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
limits = [path.read_text().strip() for path in map(pathlib.Path, LIMITS) if path.exists()]
share = min([machine, *(int(limit) for limit in limits if limit.isdigit())]) // 2 // 2
assert info.total_memory_bytes == max(512 << 20, share >> 21 << 21), (info.total_memory_bytes, share)
assert info.warp_size == 32 and list(info.max_block) == [1024, 1024, 64]
assert info.max_shared_per_block_bytes == 49152
other = DeviceInfo()
t.ok("device_info", 0, ctypes.byref(other))
assert bytes(other.uuid) != bytes(info.uuid)
assert "2 are simulated" in t.fails(101, "device_use", 2)
# Memory of one device is not memory of the other.
address, _ = t.memory(GRANULE)
t.ok("device_use", 1)
t.fails(INVALID_VALUE, "fill", address, 0, 4, 1, 0)
""",
        PYGPUKIT_SIM="sms=5,devices=2",
    )


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ("sms=0", "sms=0"),
        ("memory=2", "unit"),
        ("memory=1MiB", "2 MiB"),
        ("copy_gbps=-1", "copy_gbps"),
        ("speed=3", "knows no"),
        ("sms", "key=value"),
        ("devices=1.5", "whole number"),
        ("workers=65", "workers"),
    ],
)
def test_a_setting_without_meaning_is_refused(setting: str, word: str) -> None:
    start(
        f"""
from pygpukit._core import native
try:
    native.open_backend("sim")
except Exception as error:
    assert {word!r} in str(error) and "PYGPUKIT_SIM" in str(error), error
else:
    raise AssertionError("accepted")
""",
        PYGPUKIT_SIM=setting,
    )


def test_a_time_limit_without_meaning_is_refused() -> None:
    start(
        """
from pygpukit._core import native
try:
    native.open_backend("sim")
except Exception as error:
    assert "PYGPUKIT_SIM_TIMEOUT_S=soon" in str(error), error
else:
    raise AssertionError("accepted")
""",
        PYGPUKIT_SIM_TIMEOUT_S="soon",
    )


def test_a_thread_chooses_its_device_first(table: Table) -> None:
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(table.fails(NOT_INITIALIZED, "stream_query", 0)))
    thread.start()
    thread.join()
    assert "device_use" in seen[0]


# ---- copies


@pytest.mark.parametrize("size", [1, 1000, 65536, 65537, 40 << 20])
def test_copies(table: Table, size: int) -> None:
    address, physical = table.memory(2 * size)
    values = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    back = np.zeros(size, np.uint8)
    table.ok("copy_h2d", address, ctypes.c_void_p(values.ctypes.data), size, 0)
    table.ok("copy_d2d", address + size, address, size, 0)
    table.ok("copy_d2h", ctypes.c_void_p(back.ctypes.data), address + size, size, 0)
    table.ok("stream_wait", 0)
    assert np.array_equal(back, values)
    mapped = -(-2 * size // GRANULE) * GRANULE
    table.ok("unmap", address, mapped)
    table.ok("physical_release", physical)
    table.ok("address_free", address, mapped)


@pytest.mark.parametrize(("width", "pattern"), [(1, 0xAB), (2, 0xABCD), (4, 0x89ABCDEF)])
def test_fill(table: Table, width: int, pattern: int) -> None:
    address, _ = table.memory(GRANULE)
    table.ok("fill", address, 0, 1, 64, 0)
    table.ok("fill", address + 8, pattern, width, 5, 0)
    table.ok("stream_wait", 0)
    assert ctypes.string_at(address, 64) == bytes(8) + pattern.to_bytes(width, "little") * 5 + bytes(56 - 5 * width)
    table.fails(INVALID_VALUE, "fill", address, 0, 3, 1, 0)
    if width > 1:
        table.fails(INVALID_VALUE, "fill", address + 1, 0, width, 1, 0)


def test_addresses_that_are_not_mapped_are_refused(table: Table) -> None:
    address, _ = table.memory(GRANULE, 2 * GRANULE)
    buffer = ctypes.create_string_buffer(16)
    text = table.fails(INVALID_VALUE, "copy_h2d", address + GRANULE - 8, buffer, 16, 0)
    assert f"0x{address + GRANULE:x}" in text and "reserved" in text
    table.fails(INVALID_VALUE, "copy_d2h", buffer, 0x1000, 16, 0)
    table.fails(INVALID_VALUE, "copy_d2d", address, ctypes.addressof(buffer), 16, 0)
    table.fails(INVALID_VALUE, "fill", address - 4, 0, 4, 1, 0)
    table.ok("copy_h2d", address + GRANULE - 16, buffer, 16, 0)
    table.ok("copy_h2d", 0, buffer, 0, 0)  # nothing to copy, nowhere
    table.ok("stream_wait", 0)


def test_modelled_bandwidth() -> None:
    start(
        """
t = Table()
address, _ = t.memory(8 << 20)
buffer = ctypes.create_string_buffer(8 << 20)
took_s = []
for _ in range(5):
    begin = time.perf_counter()
    t.ok("copy_h2d", address, buffer, 8 << 20, 0)
    t.ok("stream_wait", 0)
    took_s.append(time.perf_counter() - begin)
assert 0.083 < min(took_s) < 0.5, took_s  # 8 MiB at 0.1 GB/s; another process may hold up one of them
""",
        PYGPUKIT_SIM="copy_gbps=0.1",
    )


def test_a_copy_does_not_block() -> None:
    start(
        """
from pygpukit._core import native
t = Table()
address, _ = t.memory(GRANULE)
buffer = ctypes.create_string_buffer(GRANULE)
t.ok("copy_h2d", address, buffer, GRANULE, 0)  # takes half an hour
assert t.stream_query(0) == NOT_READY
native.sim_cancel()
assert t.stream_wait(0) == FAILED
""",
        PYGPUKIT_SIM="copy_gbps=0.000001",
    )


def test_pinned_memory(table: Table) -> None:
    host = table.get("host_alloc", 12345)
    assert host % 4096 == 0
    ctypes.memset(host, 7, 12345)
    table.ok("host_free", host)
    table.fails(INVALID_VALUE, "host_free", host)


# ---- streams and events


def blocking(gate: threading.Event, log: list[str], name: str) -> ctypes._FuncPointer:
    def run(_: int) -> None:
        gate.wait(60)
        log.append(name)

    return HOST_FUNCTION(run)


def test_streams_keep_their_order_and_run_beside_each_other(table: Table, stream: int) -> None:
    gate, log = threading.Event(), list[str]()
    functions = [blocking(gate, log, "first"), HOST_FUNCTION(lambda _: log.append("second"))]
    for function in functions:
        table.ok("launch_host", stream, function, 0)
    side = HOST_FUNCTION(lambda _: log.append("side"))
    table.ok("launch_host", 0, side, 0)
    table.ok("stream_wait", 0)
    assert log == ["side"]
    assert table.stream_query(stream) == NOT_READY and table.stream_query(0) == 0
    gate.set()
    table.ok("stream_wait", stream)
    assert log == ["side", "first", "second"]


def test_a_stream_waits_for_an_event_of_another(table: Table, stream: int) -> None:
    gate, log = threading.Event(), list[str]()
    event = ctypes.c_uint64()
    table.ok("event_create", 0, ctypes.byref(event))
    first, second = blocking(gate, log, "first"), HOST_FUNCTION(lambda _: log.append("second"))
    table.ok("launch_host", stream, first, 0)
    table.ok("event_record", event.value, stream)
    assert table.event_query(event.value) == NOT_READY
    table.ok("stream_wait_event", 0, event.value)
    table.ok("launch_host", 0, second, 0)
    time.sleep(0.02)
    assert log == []
    gate.set()
    table.ok("device_wait")
    assert log == ["first", "second"]
    table.ok("event_wait", event.value)
    table.ok("event_destroy", event.value)
    table.fails(INVALID_HANDLE, "event_query", event.value)


def test_event_times(table: Table, stream: int) -> None:
    events = [ctypes.c_uint64() for _ in range(3)]
    for timing, event in zip((1, 1, 0), events, strict=True):
        table.ok("event_create", timing, ctypes.byref(event))
    begin, end, untimed = (event.value for event in events)
    elapsed = ctypes.c_double()
    table.fails(INVALID_HANDLE, "event_elapsed", begin, end, ctypes.byref(elapsed))
    table.ok("event_query", begin)  # never recorded: nothing to wait for
    start_s = time.perf_counter()
    table.ok("event_record", begin, stream)
    gate, log = threading.Event(), list[str]()
    first, pause = blocking(gate, log, "first"), HOST_FUNCTION(lambda _: time.sleep(0.05))
    table.ok("launch_host", stream, first, 0)
    table.ok("launch_host", stream, pause, 0)
    table.ok("event_record", end, stream)
    assert table.event_elapsed(begin, end, ctypes.byref(elapsed)) == NOT_READY
    gate.set()
    table.ok("event_wait", end)
    table.ok("event_elapsed", begin, end, ctypes.byref(elapsed))
    assert 50 <= elapsed.value <= (time.perf_counter() - start_s) * 1000
    table.ok("event_record", untimed, stream)
    table.fails(INVALID_HANDLE, "event_elapsed", begin, untimed, ctypes.byref(elapsed))


def test_priorities_and_handles(table: Table) -> None:
    handle = ctypes.c_uint64()
    table.ok("stream_create", -5, ctypes.byref(handle))
    for priority in (1, -6):
        assert "priority" in table.fails(INVALID_VALUE, "stream_create", priority, ctypes.byref(ctypes.c_uint64()))
    table.fails(INVALID_HANDLE, "event_record", handle.value, 0)  # a stream is no event
    table.ok("stream_destroy", handle.value)
    table.fails(INVALID_HANDLE, "stream_query", handle.value)
    table.fails(INVALID_HANDLE, "stream_destroy", 0)


def test_what_is_no_image_is_refused(table: Table) -> None:
    out = ctypes.c_uint64()
    for image in (b"", b"not an image", b"\x7fELF\2\1" + bytes(100), b"\x7fELF\2\1" + b"\xff" * 4000):
        assert "pygpukit.jit.simulator" in table.fails(
            INVALID_IMAGE, "module_load", image, len(image), ctypes.byref(out)
        )
    image = Path("/proc/self/exe").read_bytes()
    table.fails(INVALID_IMAGE, "module_load", image, len(image), ctypes.byref(out))


# ---- faults and the end


def test_memory_that_goes_away_under_a_copy_is_a_sticky_fault(table: Table, stream: int) -> None:
    from pygpukit._core import native

    address, _ = table.memory(GRANULE)
    gate, log = threading.Event(), list[str]()
    first, dropped = blocking(gate, log, "first"), HOST_FUNCTION(lambda _: log.append("dropped"))
    buffer = ctypes.create_string_buffer(16)
    table.ok("launch_host", stream, first, 0)
    table.ok("copy_h2d", address, buffer, 16, stream)
    table.ok("launch_host", stream, dropped, 0)
    table.ok("unmap", address, GRANULE)
    gate.set()
    assert "copy to the device" in table.fails(ILLEGAL_ADDRESS, "stream_wait", stream)
    for call in (("stream_query", 0), ("device_wait",), ("fill", address, 0, 4, 1, 0)):
        table.fails(ILLEGAL_ADDRESS, *call)
    other, _ = table.memory(GRANULE)  # memory management goes on
    assert log == ["first"]
    assert native.sim_clear_fault() == ILLEGAL_ADDRESS
    table.ok("fill", other, 0, 4, 1, 0)
    table.ok("device_wait")


def test_a_forked_child_gets_a_sentence() -> None:
    start("""
import os, warnings
warnings.simplefilter("ignore")
t = Table()
t.ok("stream_wait", 0)
child = os.fork()
if child == 0:
    text = t.fails(NOT_INITIALIZED, "device_wait")
    os._exit(0 if "spawn" in text else 1)
assert os.waitpid(child, 0)[1] == 0
t.ok("stream_wait", 0)
""")


def test_the_process_ends_with_work_under_way() -> None:
    start("""
t = Table()
address, _ = t.memory(GRANULE)
part = GRANULE // 4
buffer = ctypes.create_string_buffer(part)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(buffer))  # never freed: copies read it until the very end
for i in range(4):
    stream = t.get("stream_create", 0)
    for _ in range(3):
        t.ok("copy_h2d", address + i * part, buffer, part, stream)
""", PYGPUKIT_SIM="copy_gbps=0.00001")  # fmt: skip


# ---- graphs


def test_capture_and_graph_handles_are_checked(table: Table, stream: int) -> None:
    out = ctypes.c_uint64()
    assert "default stream" in table.fails(CAPTURE_UNSUPPORTED, "capture_begin", 0)
    table.fails(INVALID_HANDLE, "capture_begin", stream + 1000)
    assert "not captured" in table.fails(INVALID_VALUE, "capture_end", stream, ctypes.byref(out))
    table.ok("capture_begin", stream)
    assert "already" in table.fails(CAPTURE_UNSUPPORTED, "capture_begin", stream)
    event = table.get("event_create", 0)
    for call, *arguments in (
        ("stream_query", stream),
        ("stream_wait", stream),
        ("stream_wait_event", stream, event),
        ("event_record", event, stream),
        ("launch_host", stream, HOST_FUNCTION(lambda _: None), None),
    ):
        assert "launches only" in table.fails(CAPTURE_UNSUPPORTED, call, *arguments), call
    graph = table.get("capture_end", stream)
    table.ok("stream_wait", stream)
    table.ok("graph_launch", graph, stream)
    table.fails(INVALID_HANDLE, "graph_launch", graph, stream + 1000)
    table.ok("graph_destroy", graph)
    table.fails(INVALID_HANDLE, "graph_destroy", graph)
    table.fails(INVALID_HANDLE, "graph_launch", graph, stream)
    table.ok("event_destroy", event)


def test_streams_that_are_gone_leave_nothing_behind() -> None:
    from pygpukit._core import native

    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def make(count: int) -> None:
        for _ in range(count):
            native.Stream(0)

    native.device_count()
    make(2000)
    before = resident_bytes()
    make(20_000)
    assert resident_bytes() - before < 3 << 20
