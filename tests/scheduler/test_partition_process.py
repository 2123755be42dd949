"""Partitions of isolation "process": what travels, and what stays as it is here."""

from __future__ import annotations

import functools
import math
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import process_functions as work
import pytest
from process_help import P, process, with_process
from scheduler_help import PATIENCE_S, wait_until

import pygpukit as gp
from pygpukit.core.errors import CompileError, InvalidSpecError, OutOfMemoryError
from pygpukit.scheduler import MB, Scheduler
from pygpukit.worker import WorkerTaskError


@pytest.fixture(scope="module")
def shared() -> Iterator[Scheduler]:
    """For tests that leave the worker as it is."""
    made = with_process(Scheduler(total_memory="100MB", start=False))
    yield made
    made._shut(PATIENCE_S)


def test_it_runs_in_one_process_beside_this_one(shared: Scheduler) -> None:
    pids = {shared.submit(work.pid, **P).result(PATIENCE_S) for _ in range(3)}
    assert pids == {process(shared).pid} and os.getpid() not in pids
    assert process(shared).state == "ready" and process(shared).ready_s > 0


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, 2.5, True, "text \u00e9", 1 << 80, -math.inf],
        (1, (2, [3]), {"a": {4, 5}, 6: frozenset({7}), (8, 9): b"\0\xff"}),
        bytearray(b"abc"),
        1 + 2j,
        gp.float16,
        np.dtype("int16"),
        np.float32(1.5),
        range,
    ],
    ids=repr,
)
def test_values_come_back_as_they_were(shared: Scheduler, value: Any) -> None:
    if value is range:
        with pytest.raises(TypeError, match="the result of echo is a type"):
            shared.submit(work.echo, value, **P).result(PATIENCE_S)
        return
    got = shared.submit(work.echo, value, **P).result(PATIENCE_S)
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    "array",
    [np.arange(12.0).reshape(3, 4).T, np.zeros((0, 2), "int8"), np.array([3 + 1j])],
    ids=["strided", "empty", "complex"],
)
def test_host_arrays_are_copied_both_ways(shared: Scheduler, array: Any) -> None:
    got, keyword = shared.submit(lambda a, k: (a * 2, k), array, k=array, **P).result(PATIENCE_S)
    np.testing.assert_array_equal(got, array * 2)
    np.testing.assert_array_equal(keyword, array)
    assert got.dtype == array.dtype and got.flags.writeable


def test_device_arrays_are_shared_on_the_way_in_and_copied_on_the_way_out(shared: Scheduler) -> None:
    x = gp.from_numpy(np.arange(1000, dtype=np.float32))
    address = x.device_ptr
    task = shared.submit(work.scale, x, 3.0, **P)
    task.result(PATIENCE_S)
    np.testing.assert_array_equal(x.to_numpy(), 3 * np.arange(1000, dtype=np.float32))
    assert x.device_ptr == address
    assert task.stats().launches == 1 and task.stats().gpu_ns > 0
    usage = shared.partitions.get("p").usage
    assert task.stats().kernels == 1 <= usage.total_kernels
    assert task.stats().gpu_ns <= round(usage.compute_time_ms * 1e6)
    got = shared.submit(work.several, x, **P).result(PATIENCE_S)
    assert got["same"] is x and got["again"] is got["new"]
    np.testing.assert_array_equal(got["new"].to_numpy(), 6 * np.arange(1000))
    np.testing.assert_array_equal(got["view"].to_numpy(), [3, 6])
    assert (got["turned"].shape, got["none"].shape) == ((3, 2), (0, 4))
    shared.submit(work.scale, got["new"], 0.5, **P).result(PATIENCE_S)
    np.testing.assert_array_equal(got["new"].to_numpy(), x.to_numpy())
    for _ in range(5):
        shared.submit(work.several, x, **P).result(PATIENCE_S)
    np.testing.assert_array_equal(got["new"].to_numpy(), x.to_numpy(), "a result is this process's own")


BASE = 10
kernel = None


def plus_base(x: int) -> int:
    return x + BASE


def even(n: int) -> bool:
    return n == 0 or odd(n - 1)


def odd(n: int) -> bool:
    return n != 0 and even(n - 1)


def as_in_a_notebook(*functions: Any) -> dict[str, Any]:
    """Copies of functions of this module whose home no other process can import."""
    home = {**{name: value for name, value in globals().items() if name in ("gp", "np", "os", "BASE", "kernel")}}
    home["__name__"] = "__main__"
    for one in functions:
        made = type(one)(one.__code__, home, one.__name__, one.__defaults__, one.__closure__)
        made.__module__, made.__qualname__ = "__main__", one.__name__
        home[one.__name__] = made
    return home


def test_functions_of_a_notebook_travel_with_what_they_use(shared: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    book = as_in_a_notebook(plus_base, even, odd)
    assert shared.submit(book["plus_base"], 5, **P).result(PATIENCE_S) == 15
    task = shared.submit(book["plus_base"], 5, **P)
    book["BASE"] = 1000
    assert task.result(PATIENCE_S) == 15, "as it was when it was submitted"
    assert shared.submit(book["even"], 7, **P).result(PATIENCE_S) is False
    count, square = 3, lambda x, by=2: x**by

    def closure(x: Any, *, more: int = 1) -> Any:
        x = np.asarray(x, dtype=np.float64)
        return [square(one) + count + more for one in x]

    assert shared.submit(closure, [1, 2], more=5, **P).result(PATIENCE_S) == [9.0, 12.0]
    assert shared.submit(functools.partial(closure, [1]), **P).result(PATIENCE_S) == [5.0]
    assert shared.submit(lambda: os.path.commonpath(["/a/b", "/a/c"]), **P).result(PATIENCE_S) == "/a"
    assert shared.submit(math.sqrt, 4.0, **P).result(PATIENCE_S) == 2.0
    assert shared.submit(int, **P).result(PATIENCE_S) == 0


def test_what_a_limit_holds_back_in_the_worker_is_counted_here(shared: Scheduler, tmp_path: Path) -> None:
    x, file = gp.zeros(1 << 16), tmp_path / "go"
    task = shared.submit(work.scale_until, x, str(file), bandwidth_limit=0.05, **P)
    shared.start()
    try:
        wait_until(lambda: task.phase == "Running")
        (throttled,) = [one for one in task.conditions if one.type == "Throttled"]
        assert (throttled.status, throttled.reason) == ("Unknown", "InWorkerProcess")
    finally:
        file.touch()
    task.result(PATIENCE_S)
    stats = task.stats()
    assert stats.throttles > 0 and stats.throttled_ns > 0
    assert stats.kernels == stats.launches == work.SCALED


def test_kernels_and_arrays_that_a_function_uses_travel_too(shared: Scheduler) -> None:
    x, scale = gp.ones(100), gp.jit(work.SOURCE, func="scale", block_size=64)

    def twice() -> float:
        scale(x, 2.0, x.size)
        scale[2, 64](x, 2.0, x.size)
        return float(gp.sum(x).to_numpy())

    assert shared.submit(twice, **P).result(PATIENCE_S) == 400.0
    assert float(x.to_numpy()[0]) == 4.0
    shared.submit(scale, x, factor=2.0, n=50, **P).result(PATIENCE_S)  # a kernel is a function too
    assert float(gp.sum(x).to_numpy()) == 600.0


class Local:
    def method(self) -> None: ...


def refused() -> list[tuple[str, Any, tuple[Any, ...], str, str]]:
    lock, loop = threading.Lock(), []
    loop.append(loop)
    alien = type("Alien", (), {"__module__": "__main__"})
    return [
        ("a lock that it captures", lambda: lock, (), "fn", r"'lock', which refused.<lambda>\(\) captures, is a lock"),
        ("a method of an object", lock.acquire, (), "fn", "is a builtin_function_or_method"),
        ("a method of the user's", Local().method, (), "fn", "is a method"),
        (
            "a class of the notebook",
            alien,
            (),
            "fn",
            "class Alien of the notebook or script, and classes do",
        ),
        ("an object", work.echo, ([1, {"k": object()}],), "args", r"argument 0\[1\]\['k'\] is a object"),
        ("a list within itself", work.echo, (loop,), "args", "contains itself"),
        ("objects in an array", work.echo, (np.array([None]),), "args", "whose elements are no numbers"),
        ("a strided array", work.echo, (gp.zeros((4, 6)).T,), "args", "not C-contiguous"),
        ("a stream", work.echo, (gp.Stream(),), "args", "argument 0 is a Stream"),
    ]


@pytest.mark.parametrize("case", refused(), ids=lambda case: case[0])
def test_what_cannot_travel_is_refused_before_anything_runs(shared: Scheduler, case: Any) -> None:
    _, fn, args, field, message = case
    before = shared.task_count
    with pytest.raises(InvalidSpecError, match=message) as caught:
        shared.submit(fn, *args, **P)
    assert caught.value.field == field and shared.task_count == before
    assert "process of its own" in str(caught.value)


def test_an_answer_that_is_too_long_is_told_and_harms_nobody(shared: Scheduler) -> None:
    task = shared.submit(lambda: "x" * (65 << 20), **P)
    with pytest.raises(WorkerTaskError, match="over the limit"):
        task.result(PATIENCE_S)
    assert shared.submit(work.echo, 1, **P).result(PATIENCE_S) == 1 and process(shared).losses == 0


def test_exceptions_keep_their_type_where_both_sides_know_it(shared: Scheduler) -> None:
    with pytest.raises(LookupError) as plain:
        shared.submit(work.fail, "no such thing", **P).result(PATIENCE_S)
    assert plain.value.args == ("no such thing", 3)
    cause = plain.value.__cause__
    assert isinstance(cause, WorkerTaskError) and "process_functions.py" in cause.remote_traceback
    with pytest.raises(WorkerTaskError, match="OwnError: mine") as unknown:
        shared.submit(work.fail_in_its_own_way, **P).result(PATIENCE_S)
    assert unknown.value.kind == "OwnError"
    task = shared.submit(lambda: gp.jit("__global__ void f() { nonsense; }"), **P)
    with pytest.raises(CompileError) as compiled:
        task.result(PATIENCE_S)
    assert compiled.value.diagnostics[0].line == 1 and task.reason == "CompileError"
    with pytest.raises(InvalidSpecError) as own:
        shared.submit(lambda: Scheduler(total_memory="lots"), **P).result(PATIENCE_S)
    assert own.value.field == "total_memory"
    task = shared.submit(sys.exit, 3, **P)
    with pytest.raises(WorkerTaskError, match="SystemExit: 3"):
        task.result(PATIENCE_S)
    assert process(shared).losses == 0


def test_what_it_prints_appears_here(shared: Scheduler, capsys: pytest.CaptureFixture[str]) -> None:
    shared.submit(work.say, "from over there", **P).result(PATIENCE_S)
    assert capsys.readouterr().out == "from over there\n"


def test_the_quota_bounds_what_it_allocates(shared: Scheduler) -> None:
    x = gp.empty((60 * MB,), dtype="uint8")  # this process's own memory is not in it
    assert shared.submit(work.allocate, 30 * MB, **P).result(PATIENCE_S) == 30 * MB
    task = shared.submit(work.allocate, 41 * MB, **P)
    with pytest.raises(OutOfMemoryError) as caught:
        task.result(PATIENCE_S)
    assert task.reason == "OutOfMemory" and caught.value.requested >= 41 * MB and caught.value.limit == 40 * MB
    shared.resize_partition("p", memory="50MB", bandwidth=0.2)
    assert shared.submit(work.allocate, 41 * MB, **P).result(PATIENCE_S) == 41 * MB
    shared.resize_partition("p", memory="40MB", bandwidth=0.2)
    assert process(shared).losses == 0 and process(shared).peak_bytes >= 41 * MB and x.size


def test_a_tasks_memory_limit_holds_there(shared: Scheduler) -> None:
    task = shared.submit(work.allocate, 30 * MB, **P, name="greedy", memory_limit="20MB")
    with pytest.raises(OutOfMemoryError, match="'greedy' asked for 30 MiB and holds 0 B of the 20 MiB") as caught:
        task.result(PATIENCE_S)
    assert task.reason == "OutOfMemory" and caught.value.limit == 20 * MB
    assert shared.submit(work.allocate, 20 * MB, **P, memory_limit="20MB").result(PATIENCE_S) == 20 * MB
    assert shared.submit(work.allocate, 30 * MB, **P).result(PATIENCE_S) == 30 * MB


def test_its_level_stays(shared: Scheduler) -> None:
    with pytest.raises(InvalidSpecError, match="'p' is 'process' and cannot become 'shared'") as caught:
        shared.resize_partition("p", memory="40MB", isolation="shared")
    assert caught.value.field == "isolation"
