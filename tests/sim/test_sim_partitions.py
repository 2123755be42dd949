"""Partitions of the simulated multiprocessors: kernels on a partition's stream use those and no others."""

from __future__ import annotations

from sim_table import start

CODE = """
t = Table()
SOURCE = '''
#include <cooperative_groups.h>
extern "C" __global__ void where(unsigned *seen, unsigned *running, unsigned *peak, unsigned want) {
    atomicAdd(&seen[pk_sim_smid()], 1u);
    atomicMax(peak, atomicAdd(running, 1u) + 1);
    for (int i = 0; i < 2000 || (i < 200000 && atomicAdd(peak, 0u) < want); ++i) __nanosleep(100);
    atomicSub(running, 1u);
}
extern "C" __global__ void wild(int *out) { out[1ll << 40] = 1; }
extern "C" __global__ void together() { cooperative_groups::this_grid().sync(); }
'''
m = Module(t, SOURCE)

def groups():
    sizes, count = (ctypes.c_int32 * 64)(), ctypes.c_uint32()
    t.ok("sm_groups", sizes, 64, ctypes.byref(count))
    return list(sizes)[: count.value]

def make(*numbers):
    sms, chosen = ctypes.c_int32(), (ctypes.c_uint32 * len(numbers))(*numbers)
    return t.get("sm_partition_create", chosen, len(numbers), ctypes.byref(sms)), sms.value

def launch(stream, blocks=48, want=0):
    seen, running, peak = (t.array(np.zeros(n, np.uint32)) for n in (16, 1, 1))
    status = m.launch("where", blocks, 1, seen, running, peak, want, stream=stream)
    assert status == 0, t.text(status)
    return seen, peak

def found(seen, peak):
    return set(np.flatnonzero(seen.read()).tolist()), int(peak.read()[0])
"""


def test_kernels_stay_on_their_multiprocessors() -> None:
    start(
        CODE
        + """
assert groups() == [2, 2, 2, 2]
(a, a_sms), (b, b_sms) = make(0, 2), make(3)
assert (a_sms, b_sms) == (4, 2)
streams = [t.get("sm_stream_create", a, 0), t.get("sm_stream_create", a, -1), t.get("sm_stream_create", b, 0)]
launch(0)
t.wait(0)  # measured: from now on it is worth more than one thread
launched = [launch(stream) for stream in (*streams, 0)]
for stream in (*streams, 0):
    t.wait(stream)
sets = [found(*one) for one in launched]
assert sets[0][0] | sets[1][0] <= {0, 1, 4, 5} and sets[2][0] <= {6, 7}, sets
assert max(sets[0][1], sets[1][1]) <= 4 and sets[2][1] <= 2, sets
alone = launch(0, 64, 5)
t.wait(0)
assert found(*alone)[1] > 4, "all multiprocessors for who has no partition"
for stream in streams:
    t.ok("stream_destroy", stream)
t.ok("sm_partition_destroy", a)
assert "is no partition" in t.fails(INVALID_HANDLE, "sm_partition_destroy", a)
out = ctypes.c_uint64()
t.fails(INVALID_HANDLE, "sm_stream_create", a, 0, ctypes.byref(out))
""",
        PYGPUKIT_SIM="sms=8,workers=8",
    )


def test_two_streams_share_one_multiprocessor() -> None:
    start(
        CODE
        + """
assert groups() == [2, 1]
partition, sms = make(1)
assert sms == 1
seen, running, peak = (t.array(np.zeros(n, np.uint32)) for n in (16, 1, 1))
streams = [t.get("sm_stream_create", partition, priority) for priority in (0, 0, -5)]
for stream in streams:
    assert m.launch("where", 8, 1, seen, running, peak, 0, stream=stream) == 0
for stream in streams:
    t.wait(stream)
assert seen.read().tolist()[:4] == [0, 0, 24, 0] and peak.read()[0] == 1
""",
        PYGPUKIT_SIM="sms=3,workers=3",
    )


def test_a_cooperative_launch_has_to_fit_the_partition() -> None:
    start(
        CODE
        + """
partition, sms = make(1)
stream = t.get("sm_stream_create", partition, 0)
blocks = ctypes.c_int32()
t.ok("function_occupancy", m.function("together"), 32, 0, ctypes.byref(blocks))
assert m.launch("together", 2 * blocks.value + 1, 32, stream=stream, flags=1) == 720
assert m.launch("together", 2 * blocks.value + 1, 32, flags=1) == 0
t.wait(0)
""",
        PYGPUKIT_SIM="sms=4,workers=2",
    )


def test_a_fault_in_one_partition_is_everybodys() -> None:
    """Multiprocessors are apart, the context is not."""
    start(
        CODE
        + """
from pygpukit._core import native
a, b = (t.get("sm_stream_create", make(group)[0], 0) for group in (0, 1))
out = t.array(np.zeros(1, np.int32))
launch(b)
t.wait(b)
assert m.launch("wild", 1, 1, out, stream=a) == 0
for stream in (a, b, 0):
    status = t.stream_wait(stream)
    assert status == ILLEGAL_ADDRESS and "kernel wild" in t.text(status), (stream, t.text(status))
    assert m.launch("where", 1, 1, out, out, out, 0, stream=stream) == ILLEGAL_ADDRESS, stream
assert native.sim_clear_fault() == ILLEGAL_ADDRESS
launch(b)
t.wait(b)
""",
        PYGPUKIT_SIM="sms=4,workers=2",
    )


def test_bad_groups_are_refused() -> None:
    start(
        CODE
        + """
for numbers in ((4,), (1, 1), ()):
    sms, out = ctypes.c_int32(), ctypes.c_uint64()
    chosen = (ctypes.c_uint32 * len(numbers))(*numbers)
    t.fails(INVALID_VALUE, "sm_partition_create", chosen, len(numbers), ctypes.byref(sms), ctypes.byref(out))
"""
    )
