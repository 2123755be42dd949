"""Times of launches where things go wrong: streams that another library captures, and a device that fails."""

from __future__ import annotations

from sim_table import start

SPIN = """
import pygpukit as gp
from pygpukit._core import native
source = '''
extern "C" __global__ void spin(float* out, long long ns) {
    long long begin = clock64();
    while (clock64() - begin < ns) { }
    if (ns < 0) out[0] = 1;
}
extern "C" __global__ void fault(float* out) { *(volatile int*)8 = 1; }
'''
table = Table()
spin, out = gp.jit(source, func="spin"), gp.zeros(1)
fault = spin.unit.kernel("fault")
"""


def test_a_stream_that_its_owner_captures_takes_no_events() -> None:
    out = start(
        SPIN
        + """
handle = table.get("stream_create", 0)
period = native.CellTime()
stream = native.external_stream(handle, object())
native.set_current_stream(stream)
spin[1, 1](out, 1_000_000)
table.ok("capture_begin", handle)
for _ in range(3):
    spin[1, 1](out, 1_000_000)
graph = table.get("capture_end", handle)
table.ok("graph_launch", graph, handle)
native.set_current_stream(None)
spin[1, 1](out, 1_000_000)
period.end()
table.ok("stream_wait", handle)
gp.synchronize()
ns, launches, pending, cut = period.read()
print(launches, pending, ns > 900_000)
"""
    )
    assert out.split() == ["1", "False", "True"]


def test_a_fault_ends_the_timing_and_nothing_else() -> None:
    out = start(
        SPIN
        + """
period = native.CellTime()
spin[1, 1](out, 1_000_000)
fault[1, 1](out)
for _ in range(3):
    try:
        spin[1, 1](out, 1_000_000)
        gp.synchronize()
    except gp.GPUError as error:
        print(type(error).__name__)
period.end()
gp.synchronize()
print(period.read()[2])
period = native.CellTime()
spin[1, 1](out, 1_000_000)
period.end()
gp.synchronize()
print(period.read()[1:])
"""
    )
    *errors, pending, after = out.splitlines()
    assert errors and all("Error" in error for error in errors)
    assert pending == "False" and after == "(1, False, False)"
