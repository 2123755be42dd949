"""profile(): each launch, copy and fill with its time on the device, beside events and counts of the test's own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from inspect import getsource
from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core, profiling
from pygpukit._core import native
from pygpukit.profiling import Profile, Work, profile
from pygpukit.scheduler import Scheduler

pytestmark = pytest.mark.usefixtures("backend_name")

# clock64() counts nanoseconds on the simulation, half of them or so on a device.
SOURCE = """
extern "C" __global__ void busy_wait(float* out, long long ticks) {
    long long begin = clock64();
    while (clock64() - begin < ticks) { }
    if (ticks < 0) out[0] = 1;
}
"""
MS = 2_000_000  # ticks: 1 ms on a device, 2 ms on the simulation


@pytest.fixture
def spin() -> gp.JITKernel:
    kernel = gp.jit(SOURCE, func="busy_wait")
    kernel[1, 1](gp.zeros(1), 1)
    gp.synchronize()
    return kernel


def test_each_launch_is_there_with_its_time(spin: gp.JITKernel) -> None:
    out, stream = gp.zeros(1), gp.Stream()
    before = _core.now_ns()
    with profile() as p:
        spin[2, 32](out, MS)
        with stream:
            spin[1, 1](out, 3 * MS)
    kernels = [work for work in p.works if work.kind == "kernel"]
    assert [(work.name, work.blocks, work.threads, work.launches) for work in kernels] == [
        ("busy_wait", 2, 32, 1),
        ("busy_wait", 1, 1, 1),
    ]
    first, second = kernels
    assert first.stream == 0 and second.stream != 0
    assert first.duration_us >= 900 and second.duration_us >= 2700
    assert before <= first.begin_ns <= first.end_ns and second.end_ns <= _core.now_ns()
    assert p.begin_ns <= first.begin_ns and p.untimed == 0


def test_times_are_those_of_events(spin: gp.JITKernel) -> None:
    out, begin, end = gp.zeros(1), gp.Event(), gp.Event()
    with profile() as p:
        begin.record()
        for _ in range(5):
            spin[1, 1](out, MS)
        end.record()
    (total,) = (total for total in p.totals() if total.name == "busy_wait")
    assert total.count == 5
    assert total.total_us <= 1e3 * begin.elapsed_ms(end) + 1  # gaps between launches are in it
    assert p.busy_ns == pytest.approx(1e3 * sum(total.total_us for total in p.totals()), rel=1e-6)


def test_copies_and_fills_have_their_bytes() -> None:
    x = gp.zeros(1000)
    with profile() as p:
        y = gp.from_numpy(np.ones(1000, np.float32))
        native.copy(x, y)
        x.to_numpy()
        x.fill(2.0)
    moved = [(work.name, work.nbytes) for work in p.works if work.kind in ("copy", "fill")]
    names = ["copy to the device", "copy on the device", "copy to the host", "fill"]
    assert moved == [(name, 4000) for name in names]


def test_operations_are_there_on_both_backends() -> None:
    x = gp.ones((64, 64))
    gp.matmul(x, x)
    with profile() as p:
        gp.matmul(x, x)
    assert sum(work.launches for work in p.works if work.kind in ("kernel", "host")) >= 1
    assert all(work.end_ns >= work.begin_ns for work in p.works)


def test_where_the_device_waited_is_a_gap(spin: gp.JITKernel) -> None:
    out = gp.zeros(1)
    with profile() as p:
        spin[1, 1](out, MS)
        gp.synchronize()
        time.sleep(0.2)
        spin[1, 1](out, MS)
    begin, end = p.gaps(min_us=100_000)[0]
    assert end - begin >= 190_000_000
    assert p.busy_ns <= p.wall_ns - (end - begin)


def test_a_graph_is_one_work(spin: gp.JITKernel) -> None:
    out, stream = gp.zeros(1), gp.Stream()
    with stream.capture() as graph:
        for _ in range(4):
            spin[1, 1](out, MS)
    with profile() as p:
        graph.launch(stream)
        stream.synchronize()
    (work,) = p.works
    assert (work.kind, work.launches, work.name) == ("graph", 4, "graph of 4 launches from busy_wait")
    assert work.duration_us >= 3600 and p.untimed == 0


def test_launches_of_tasks_are_counted_as_untimed(spin: gp.JITKernel) -> None:
    out = gp.zeros(1)
    scheduler = Scheduler(start=False)
    with profile() as p:
        task = scheduler.submit(lambda: [spin[1, 1](out, 1) for _ in range(3)])
        while not task.done():
            scheduler.step()
    assert not [work for work in p.works if work.name == "busy_wait"]
    assert p.untimed == 3 and "3 works have no time of their own" in str(p)


def test_blocks_nest(spin: gp.JITKernel) -> None:
    out = gp.zeros(1)
    with profile() as outer:
        spin[1, 1](out, 1)
        with profile() as inner:
            spin[1, 1](out, 1)
        spin[1, 1](out, 1)
    assert (len(outer.works), len(inner.works)) == (3, 1)
    assert inner.works[0] in outer.works


def test_works_are_kept_up_to_a_number(spin: gp.JITKernel) -> None:
    out = gp.zeros(1)
    with profile(max_works=2) as p:
        for _ in range(5):
            spin[1, 1](out, 1)
    assert len(p.works) == 2 and p.untimed == 3


def test_more_works_than_may_be_pending(spin: gp.JITKernel) -> None:
    out = gp.zeros(1)
    with profile() as p:
        for _ in range(6000):
            spin[1, 1](out, 1)
    assert len(p.works) == 6000 and p.untimed == 0
    assert [work.begin_ns for work in p.works] == sorted(work.begin_ns for work in p.works)


def test_an_error_ends_the_block_and_the_profile_stays(spin: gp.JITKernel) -> None:
    out = gp.zeros(1)
    with pytest.raises(ZeroDivisionError), profile() as p:
        spin[1, 1](out, 1)
        _ = 1 / 0
    assert len(p.works) == 1
    mode = native.launch_timing()
    with profile() as q:
        pass
    assert q.works == [] and "nothing was launched" in str(q) and native.launch_timing() == mode


def test_a_block_that_cannot_wait_for_the_device_still_ends(spin: gp.JITKernel) -> None:
    out, stream, mode = gp.zeros(1), gp.Stream(), native.launch_timing()
    with stream.capture() as graph:
        with pytest.raises(gp.GPUError, match="end the capture first"), profile() as p:
            spin[1, 1](out, 1)
        assert native.launch_timing() == mode and p.end_ns > 0
    graph.launch(stream)
    stream.synchronize()
    assert p.works == [], "it records no more"
    with profile() as q:
        spin[1, 1](out, 1)
    assert len(q.works) == 1


def test_blocks_of_threads_may_overlap(spin: gp.JITKernel) -> None:
    out = gp.zeros(1)
    first, second = profile(), profile()
    first.__enter__()
    second.__enter__()
    spin[1, 1](out, 1)
    ends = threading.Thread(target=first.__exit__)
    ends.start()
    ends.join()
    spin[1, 1](out, 1)
    second.__exit__()
    assert (len(first.works), len(second.works)) == (1, 2)

    def launches() -> None:
        for _ in range(20):
            spin[1, 1](out, 1)

    with profile() as p:
        threads = [threading.Thread(target=launches) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(p.works) == 80 and p.untimed == 0


@pytest.mark.parametrize("max_works", [0, -1, 1.5, "many", None, True])
def test_what_is_no_number_of_works_is_refused(max_works: object) -> None:
    with pytest.raises(gp.InvalidSpecError, match="max_works") as error:
        profile(max_works)  # type: ignore[arg-type]
    assert error.value.field == "max_works"


def test_a_profile_is_used_once() -> None:
    with profile() as p, pytest.raises(RuntimeError, match="used already"):
        p.__enter__()
    with pytest.raises(RuntimeError, match="used already"):
        p.__enter__()


def test_the_trace_is_read_back(spin: gp.JITKernel, tmp_path: Path) -> None:
    out = gp.zeros(1)
    with profile() as p:
        spin[1, 1](out, MS)
    p.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (slice_,) = (event for event in events if event["ph"] == "X")
    assert slice_["name"] == "busy_wait" and slice_["dur"] == pytest.approx(p.works[0].duration_us)
    assert {event["args"]["name"] for event in events if event["ph"] == "M"} == {"device 0", "default stream"}


def test_names_of_strangers_are_escaped() -> None:
    p = Profile()
    p.begin_ns, p.end_ns = 0, 1000
    p._works = [Work("<script>x</script>", "kernel", 0, 500, 0, 0, "", "<b>", 3, 1, 1, 1, 0)]
    html = p._repr_html_()
    assert "<script>" not in html and "<b>:" not in html and "&lt;script&gt;" in html


def test_many_names_are_summed_in_one_line() -> None:
    p = Profile()
    p.begin_ns, p.end_ns = 0, 10**6
    p._works = [Work(f"k{i}", "kernel", i * 100, i * 100 + 50, 0, 0, "", "", 0, 1, 1, 1, 0) for i in range(50)]
    assert "31 others" in str(p) and str(p).count("\n") < 30
    assert sum(total.count for total in p.totals()) == 50


def test_the_documented_profiler(tmp_path: Path) -> None:
    profiler = profiling.Profiler()
    x = gp.ones((32, 32))
    with profiler.record("product", flops=2 * 32**3, bytes_transferred=3 * 4096):
        gp.matmul(x, x)
    with profiler.record("product"):
        gp.matmul(x, x)
    with pytest.raises(ZeroDivisionError), profiler.record("fails"):
        _ = 1 / 0
    assert [record.name for record in profiler.records] == ["product", "product", "fails"]
    first = profiler.records[0]
    assert first.elapsed_us == pytest.approx(1e3 * first.elapsed_ms)
    assert first.tflops == pytest.approx(2 * 32**3 / first.elapsed_us / 1e6)
    assert first.bandwidth_gb_s == pytest.approx(3 * 4096 / first.elapsed_us / 1e3)
    assert profiler.records[1].tflops is None
    summary = profiler.summary_by_name()["product"]
    assert summary["count"] == 2 and summary["total_ms"] == pytest.approx(2 * summary["avg_ms"])
    assert summary["min_ms"] <= summary["avg_ms"] <= summary["max_ms"]
    memory = profiling.MemoryProfiler()
    memory.snapshot("a")
    kept = gp.ones(1 << 20)
    memory.snapshot("b")
    profiling.export_combined_trace(profiler, memory, tmp_path / "both.json")
    events = json.loads((tmp_path / "both.json").read_text())["traceEvents"]
    assert [event["ph"] for event in events].count("X") == 3 and [event["ph"] for event in events].count("C") == 2
    changed = memory.diff("a", "b")
    assert changed is not None and changed["used"] == kept.nbytes and changed["active_blocks"] == 1
    assert memory.diff("a", "c") is None
    profiler.clear()
    assert profiler.records == [] and profiler.total_time_ms == 0


def test_a_product_is_profiled() -> None:
    a, b = gp.ones((8, 16)), gp.ones((16, 4))
    result, record = profiling.profile_matmul(8, 4, 16, a, b, gp.matmul, warmup=1, iterations=2)
    np.testing.assert_array_equal(result.to_numpy(), np.full((8, 4), 16, np.float32))
    assert record.flops == 2 * 8 * 4 * 16 and record.elapsed_ms > 0
    with pytest.raises(ValueError, match="needs shapes"):
        profiling.profile_matmul(8, 4, 17, a, b, gp.matmul)
    with pytest.raises(ValueError, match="iterations >= 1"):
        profiling.profile_matmul(8, 4, 16, a, b, gp.matmul, iterations=0)


def test_a_time_is_not_there_before_its_block_ended() -> None:
    timed = profiling.ProfilerContext("early")
    with pytest.raises(RuntimeError, match="'early' has not been timed"):
        _ = timed.elapsed_ms


def test_memory_is_told() -> None:
    kept = gp.ones(1 << 20)
    usage = profiling.get_current_memory_usage()
    assert usage["used"] >= kept.nbytes and usage["used_mb"] == usage["used"] / (1 << 20)
    assert 0 < usage["available"] <= usage["quota"] and 0 <= usage["utilization"] <= 100


def nothing_else_imported() -> None:
    with gp.profiling.profile() as p:
        gp.zeros(3)
    assert len(p.works) == 1


def test_it_is_there_without_an_import_of_its_own() -> None:
    code = f"import pygpukit as gp\n{getsource(nothing_else_imported)}nothing_else_imported()"
    subprocess.run([sys.executable, "-c", code], check=True)
