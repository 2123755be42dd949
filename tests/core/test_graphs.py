"""Captured launches run again as one: order, arguments, lifetimes, records, and what a captured stream refuses."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import GPUError, InvalidSpecError, KernelArgumentError
from pygpukit.jit import JITKernel, jit

pytestmark = pytest.mark.usefixtures("backend_name")

SOURCE = """
__global__ void add(float* x, float value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += value;
}
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""
KIND_LAUNCH = 16


@pytest.fixture
def add() -> JITKernel:
    return jit(SOURCE, "add")


def launch_records(since: int) -> list[tuple[int, int, int]]:
    """(stream, blocks, threads of a block) of each launch recorded since then."""
    data, _, _ = _core.ring_read(since)
    records = [data[i : i + 64] for i in range(0, len(data), 64)]

    def number(record: bytes, at: int, nbytes: int) -> int:
        return int.from_bytes(record[at : at + nbytes], "little")

    return [(number(r, 20, 4), number(r, 32, 8), number(r, 40, 8)) for r in records if number(r, 16, 2) == KIND_LAUNCH]


def test_launches_are_kept_and_run_in_order_each_time(add: JITKernel) -> None:
    twice = add.unit.kernel("twice")
    x, y, stream = gp.zeros(1000), gp.zeros(1000), gp.Stream()
    gp.synchronize()
    before = _core.counters()["launches"]
    with stream.capture() as graph:
        assert gp.current_stream() == stream
        for value in (1.0, 2.0):
            add(x, value, 1000)
        twice(x, y, n=1000)
        add[4, 256](y, 0.5, 1000)
    assert gp.current_stream() == gp.default_stream()
    assert (graph.launches, repr(graph)) == (4, "Graph(launches=4)")
    assert _core.counters()["launches"] == before, "nothing has run"
    np.testing.assert_array_equal(x.to_numpy(), np.zeros(1000))
    for run in range(1, 4):
        graph.launch()
        np.testing.assert_array_equal(y.to_numpy(), np.full(1000, 2 * 3.0 * run + 0.5))
    assert _core.counters()["launches"] == before + 12


def test_every_launch_of_a_graph_is_recorded_on_the_stream_it_runs_on(add: JITKernel) -> None:
    x, stream, other = gp.zeros(64), gp.Stream(), gp.Stream()
    gp.synchronize()
    start = _core.ring_head()
    on_sim = native.backend_name() == "sim"
    given, counted = native.device_counters()["launches"] if on_sim else 0, _core.counters()["launches"]
    with stream.capture() as graph:
        add[2, 32](x, 1.0, 64)
        add[1, 64](x, 1.0, 64)
    assert launch_records(start) == []
    graph.launch(other)
    other.synchronize()
    assert launch_records(start) == [(other.id, 2, 32), (other.id, 1, 64)]
    if on_sim:
        assert native.device_counters()["launches"] - given == _core.counters()["launches"] - counted == 2
    assert x.to_numpy().tolist() == [2.0] * 64


def test_arguments_are_those_of_the_capture_and_contents_those_of_the_launch(add: JITKernel) -> None:
    x, stream, value = gp.zeros(8), gp.Stream(), 3.0
    with stream.capture() as graph:
        add[1, 8](x, value, 8)
    value = 100.0
    x[...] = 7.0
    graph.launch()
    assert x.to_numpy().tolist() == [10.0] * 8


def test_a_graph_keeps_its_arrays_and_its_module() -> None:
    stream = gp.Stream()
    x, y = gp.ones(1 << 16), gp.zeros(1 << 16)
    with stream.capture() as graph:
        jit(SOURCE + "// of its own", "twice")(x, y, 1 << 16)
    del x
    gc.collect()
    gp.synchronize()
    fillers = [gp.full(1 << 16, 9.0, dtype="float32") for _ in range(8)]  # would take the memory of what is let go
    graph.launch(stream)
    stream.synchronize()
    assert set(y.to_numpy().tolist()) == {2.0}
    assert all(float(filler[0]) == 9.0 for filler in fillers)


def test_arrays_that_are_let_go_meanwhile_are_given_back_afterwards(add: JITKernel) -> None:
    stream = gp.Stream()
    x, unused = gp.zeros(64), gp.zeros(64)
    with stream:
        add[1, 64](unused, 1.0, 64)  # another stream than its own has used it
    stream.synchronize()
    with stream.capture() as graph:
        add[1, 64](x, 1.0, 64)
        del unused
    graph.launch()
    assert x.to_numpy().tolist() == [1.0] * 64
    assert gp.zeros(64).to_numpy().tolist() == [0.0] * 64


def test_launching_on_what_is_no_stream_is_refused(add: JITKernel) -> None:
    x, stream = gp.zeros(64), gp.Stream()
    with stream.capture() as graph:
        add[1, 64](x, 1.0, 64)
    for wrong in ("x", 0, gp.Event()):
        with pytest.raises(TypeError, match=r"launch: stream=.*; give a gp\.Stream"):
            graph.launch(wrong)  # type: ignore[arg-type]
    assert x.to_numpy().tolist() == [0.0] * 64


def test_a_captured_stream_refuses_what_needs_its_work_done(add: JITKernel) -> None:
    x, stream, event = gp.zeros(64), gp.Stream(), gp.Event()
    tries = {
        "copying from the device": x.to_numpy,
        "copying to the device": lambda: gp.from_numpy(np.ones(4)),
        "recording an event": lambda: event.record(stream),
        "making a stream wait": lambda: stream.wait_event(event),
        "querying a stream": stream.query,
        "waiting for a stream": stream.synchronize,
        "waiting for the device": gp.synchronize,
        "beginning a capture": lambda: stream.capture().__enter__(),
        "launching a graph": lambda: earlier.launch(),
    }
    with stream.capture() as earlier:
        add[1, 64](x, 1.0, 64)
    with stream.capture() as graph:
        add[1, 64](x, 1.0, 64)
        for doing, attempt in tries.items():
            with pytest.raises(GPUError, match=f"{doing}.*captured"):
                attempt()
        with pytest.raises(KernelArgumentError):
            add[1, 64](x, "one", 64)
        with pytest.raises(GPUError, match="its capture has not ended"):
            graph.launch(gp.default_stream())
        with gp.Stream() as free:
            assert gp.ones(4).to_numpy().tolist() == [1.0] * 4, "other streams work on"
            free.synchronize()
        add[1, 64](x, 1.0, 64)
    graph.launch()
    assert x.to_numpy().tolist() == [2.0] * 64
    event.record(stream)
    event.synchronize()


def test_the_default_stream_is_refused() -> None:
    with pytest.raises(GPUError, match="default stream cannot be captured; make one"), gp.default_stream().capture():
        pass


def test_an_exception_ends_the_capture(add: JITKernel) -> None:
    x, stream = gp.zeros(64), gp.Stream()
    with pytest.raises(ZeroDivisionError), stream.capture() as graph:
        add[1, 64](x, 1.0, 64)
        raise ZeroDivisionError
    assert gp.current_stream() == gp.default_stream()
    with stream:
        add[1, 64](x, 5.0, 64)
        assert x.to_numpy().tolist() == [5.0] * 64
    graph.launch()  # what was captured until then
    assert x.to_numpy().tolist() == [6.0] * 64


def test_a_capture_that_nobody_ends_frees_the_stream(add: JITKernel) -> None:
    x, stream = gp.zeros(64), gp.Stream()
    captured = native.capture_begin(stream.native)
    with stream:
        add[1, 64](x, 1.0, 64)
    del captured
    gc.collect()
    stream.synchronize()
    assert x.to_numpy().tolist() == [0.0] * 64


def test_an_empty_graph_does_nothing() -> None:
    stream = gp.Stream()
    with stream.capture() as graph:
        pass
    graph.launch()
    assert graph.launches == 0
    gp.synchronize()


def test_a_graph_of_many_launches_from_several_streams(add: JITKernel) -> None:
    x, stream = gp.zeros(256), gp.Stream()
    with stream.capture() as graph:
        bound = add.launcher(1, 256)
        for _ in range(100):
            bound(x, 1.0, 256)
    streams = [gp.Stream() for _ in range(3)]
    gp.synchronize()
    for other in streams:
        graph.launch(other)
        other.synchronize()
    assert x.to_numpy().tolist() == [300.0] * 256


def test_a_graph_runs_in_a_task(add: JITKernel) -> None:
    from pygpukit.scheduler import Scheduler

    x, stream = gp.zeros(64), gp.Stream()
    with stream.capture() as graph:
        add[1, 64](x, 1.0, 64)
    gp.synchronize()

    def work() -> float:
        graph.launch()
        return float(x.to_numpy().sum())

    scheduler = Scheduler(total_memory=1 << 20, start=False)
    assert scheduler.submit(work, memory="4KB", bandwidth=0.2).result() == 64.0


def test_operations_copies_fills_and_new_arrays_are_captured() -> None:
    a = np.random.default_rng().standard_normal((33, 7), np.float32)
    x, stream = gp.from_numpy(a), gp.Stream()
    gp.synchronize()
    before = _core.counters()
    with stream.capture() as graph:
        y = gp.full((33, 7), 2.0, "float32")
        z = (x * y + x[::-1]).clone()
        y[:, 0] = -1.0
    assert _core.counters() == before, "nothing has run"
    for run in range(3):
        x[...] = gp.from_numpy(a + run)
        graph.launch()
        b = a + np.float32(run)
        np.testing.assert_array_equal(z.to_numpy(), b * np.float32(2) + b[::-1])
        expected = np.full((33, 7), 2.0, np.float32)
        expected[:, 0] = -1
        np.testing.assert_array_equal(y.to_numpy(), expected)
    graph.verify()


def test_memory_of_the_graph_is_nobody_elses() -> None:
    stream = gp.Stream()
    x = gp.ones(1 << 14)
    with stream.capture() as graph:
        z = x + x
        for _ in range(3):
            z = z + z  # what is let go here stays with the graph
    gc.collect()
    others = [gp.full(1 << 14, 7.0, "float32") for _ in range(16)]
    graph.launch()
    assert set(z.to_numpy().tolist()) == {16.0}
    assert all(set(other.to_numpy().tolist()) == {7.0} for other in others)


def test_named_parameters_are_updated(add: JITKernel) -> None:
    x, y, stream = gp.zeros(8), gp.zeros(8), gp.Stream()
    with stream.capture() as graph:
        add[1, 8](x, 1.0, 8)
        add[1, 8](x, 2.0, 8)
        add.unit.kernel("twice")[1, 8](x, y, 8)
    graph.update(value=5.0)
    graph.launch()
    assert (x.to_numpy().tolist(), y.to_numpy().tolist()) == ([10.0] * 8, [20.0] * 8)
    other = gp.full(8, -1.0, "float32")
    graph.update(x=other)
    graph.launch()
    assert (x.to_numpy().tolist(), other.to_numpy().tolist()) == ([10.0] * 8, [9.0] * 8)
    assert y.to_numpy().tolist() == [18.0] * 8
    with pytest.raises(InvalidSpecError, match="'factor'"):
        graph.update(factor=1.0)
    with pytest.raises(KernelArgumentError, match="value"):
        graph.update(value="many")
    with pytest.raises(KernelArgumentError, match="contiguous"):
        graph.update(x=gp.zeros((8, 2))[:, 0])
    graph.launch()
    assert other.to_numpy().tolist() == [19.0] * 8, "a refused update leaves the graph as it was"


def test_a_cuda_graph_begins_and_ends_by_calls(add: JITKernel) -> None:
    x, y, graph = gp.zeros(8), gp.zeros(8), gp.CudaGraph()
    assert (graph.is_ready(), graph.is_capturing(), graph.num_nodes, repr(graph)) == (
        False,
        False,
        0,
        "CudaGraph(empty, num_nodes=0)",
    )
    for refused, function in (("end_capture", graph.end_capture), ("replay", graph.replay)):
        with pytest.raises(GPUError, match=rf"CudaGraph.{refused}\(\): nothing (was|is) captured; call begin_capture"):
            function()
    before = gp.current_stream()
    graph.begin_capture()
    assert graph.is_capturing() and gp.current_stream().handle == graph.get_stream_handle() != before.handle
    with pytest.raises(GPUError, match="is capturing already; call reset"):
        graph.begin_capture()
    add[1, 8](x, 1.0, 8)
    gp.add(x, x, out=y)
    with pytest.raises(GPUError, match="while its stream is captured"):
        x.to_numpy()
    graph.end_capture()
    assert graph.is_ready() and gp.current_stream() == before and graph.num_nodes == 2
    assert not x.to_numpy().any(), "nothing has run"
    for turn in (1.0, 2.0):
        graph.replay()
        graph.synchronize()
        assert (x.to_numpy().tolist(), y.to_numpy().tolist()) == ([turn] * 8, [2 * turn] * 8)
    with pytest.raises(GPUError, match="has captured work already; call reset"):
        graph.begin_capture()
    graph.reset()
    graph.begin_capture()
    graph.reset()  # in the middle of a capture
    assert not graph.is_capturing() and not graph.is_ready() and gp.current_stream() == before


def test_replay_is_proved_equal_to_eager_work(add: JITKernel) -> None:
    x, stream = gp.zeros(64), gp.Stream()
    with stream.capture() as graph:
        add[1, 64](x, 1.5, 64)
        y = x * 3.0
    graph.verify()
    assert (x.to_numpy().tolist(), y.to_numpy().tolist()) == ([1.5] * 64, [4.5] * 64), "as after one launch"


def test_verify_names_the_array_that_differs() -> None:
    """Work that counts its own runs: the second one gives something else."""
    count = jit("__device__ int runs; __global__ void count(int* out) { out[0] = ++runs; }", "count")
    out, stream = gp.zeros(1, "int32"), gp.Stream()
    with stream.capture() as graph:
        count[1, 1](out)
    with pytest.raises(GPUError, match=r"differ in 1 of 4 bytes .*int32"):
        graph.verify()
