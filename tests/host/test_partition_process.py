"""Partitions of isolation "process": what travels, faults that cost the worker alone, and that no process is left."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import os
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import process_functions as work
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from interrupts import interrupt
from scheduler_help import PATIENCE_S, collected, wait_until

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.errors import CompileError, DriverError, InvalidSpecError, OutOfMemoryError, TaskCancelledError
from pygpukit.scheduler import MB, Scheduler
from pygpukit.worker import WorkerDiedError, WorkerTaskError

P: dict[str, Any] = {"partition": "p"}


def alive(pid: int) -> bool:
    """True for a process that runs; a zombie that nobody has collected is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may be collected between the opening and the reading
        return False


def with_process(scheduler: Scheduler) -> Scheduler:
    scheduler.create_partition("p", memory="40MB", bandwidth=0.2, isolation="process")
    return scheduler


@pytest.fixture(scope="module")
def shared() -> Iterator[Scheduler]:
    """For tests that leave the worker as it is."""
    made = with_process(Scheduler(total_memory="100MB"))
    yield made
    made._shut(PATIENCE_S)


@pytest.fixture
def own(scheduler: Scheduler) -> Scheduler:
    return with_process(scheduler)


def process(scheduler: Scheduler) -> Any:
    (record,) = scheduler.worker_processes()
    return record


def kill(scheduler: Scheduler) -> None:
    pid = process(scheduler).pid
    assert pid, "0 would be all processes of this group"
    os.kill(pid, signal.SIGKILL)


def kept(scheduler: Scheduler) -> bool:
    """Whether nothing is reserved, and every task ended once."""
    totals = scheduler.global_stats()
    ended = sum(totals[phase] for phase in ("succeeded", "failed", "cancelled", "rejected", "expired"))
    return ended == totals["submitted"] and totals["reserved_memory"] == totals["reserved_share_ppm"] == 0


# ---- what travels ----


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


def test_one_task_at_a_time_and_the_default_partition(own: Scheduler) -> None:
    own.partitions.set_default("p")
    first, second = own.submit(work.pid), own.submit(work.pid)
    assert first.partition == "p" and own.partitions.get("p").usage.unfinished_tasks == 2
    assert first.result(PATIENCE_S) == second.result(PATIENCE_S) == process(own).pid


def test_a_task_can_be_awaited_and_stepped(own: Scheduler) -> None:
    task = own.submit(work.echo, 7, **P)
    assert own.step() is task and task.result(PATIENCE_S) == 7

    async def main() -> list[Any]:
        return await asyncio.gather(*(own.submit(work.echo, i, **P) for i in range(4)))

    assert asyncio.run(main()) == [0, 1, 2, 3]


# ---- faults ----


@pytest.mark.parametrize("kernel", ["wild", "trapped"])
def test_a_fault_costs_the_worker_and_its_task_alone(own: Scheduler, kernel: str) -> None:
    since = own.snapshot()["next_sequence"]
    x = gp.ones(100)
    first = own.submit(work.pid, **P).result(PATIENCE_S)
    bad = own.submit(work.fault, kernel, **P, memory="40MB")
    queued = own.submit(work.scale, x, 3.0, **P, memory="40MB")
    elsewhere = own.submit(lambda: os.getpid())
    with pytest.raises(DriverError, match=f"fault faulted in the worker of partition 'p': .*kernel {kernel}"):
        bad.result(PATIENCE_S)
    assert (bad.phase, bad.reason) == ("Failed", "StickyDeviceError")
    assert elsewhere.result(PATIENCE_S) == os.getpid()
    assert queued.result(PATIENCE_S) is None and float(x.to_numpy().sum()) == 300
    assert float(gp.add(x, x).to_numpy()[0]) == 6
    record = process(own)
    assert record.pid != first and not alive(first)
    assert (record.starts, record.losses) == (2, 1) and f"kernel {kernel}" in record.cause
    assert worker_events(since) == [("ready", True), ("lost", False), ("ready", True)]
    wait_until(lambda: kept(own))


def worker_events(since: int) -> list[tuple[str, bool]]:
    """What the event ring says of workers: what, and whether it took time."""
    return [(("ready", "lost")[r[8]], r[9] > 0) for r in ring(since) if r[2] == 33]


def ring(since: int) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack("<QQHHIIIQQQII", _core.ring_read(since)[0]))


def test_an_idempotent_task_starts_over_once(own: Scheduler, tmp_path: Path) -> None:
    marker = str(tmp_path / "marker")
    task = own.submit(work.fault_the_first_time, marker, **P, idempotent=True)
    assert task.result(PATIENCE_S) == "the second time" and task.execution_count == 2
    twice = own.submit(work.leave, 7, **P, idempotent=True)
    with pytest.raises(WorkerDiedError, match=r"leave: .* ended with exit code 7"):
        twice.result(PATIENCE_S)
    assert (twice.execution_count, twice.reason, process(own).losses) == (2, "WorkerLost", 3)
    (tmp_path / "marker").unlink()
    once = own.submit(work.fault_the_first_time, marker, **P)
    with pytest.raises(DriverError):
        once.result(PATIENCE_S)
    assert once.execution_count == 1


def test_a_worker_that_is_killed_is_replaced(own: Scheduler) -> None:
    own.submit(work.pid, **P).result(PATIENCE_S)
    for number in range(3):  # at once: the process may still look alive
        kill(own)
        assert own.submit(work.echo, number, **P).result(PATIENCE_S) == number
    task = own.submit(work.sleep, 300, **P)
    wait_until(lambda: process(own).state == "busy")
    kill(own)
    with pytest.raises(WorkerDiedError, match="signal 9") as caught:
        task.result(PATIENCE_S)
    assert caught.value.exit_code == -signal.SIGKILL and task.reason == "WorkerLost"
    assert own.submit(work.echo, 2, **P).result(PATIENCE_S) == 2


@pytest.mark.parametrize("how", ["cancel", "deadline", "asyncio"])
def test_what_runs_is_really_ended(own: Scheduler, how: str) -> None:
    own.submit(work.pid, **P).result(PATIENCE_S)
    first = process(own).pid
    deadline = 5.0 if how == "deadline" else None  # it is to run by then, on a loaded machine, too
    task = own.submit(work.spin_for_ever, **P, memory="40MB", deadline=deadline)
    queued = own.submit(work.echo, "next", **P, memory="40MB")
    wait_until(lambda: process(own).state == "busy")
    if how == "cancel":
        assert task.cancel()
    elif how == "asyncio":

        async def give_up() -> None:
            await asyncio.wait_for(task, 0.2)

        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(give_up())
    with pytest.raises(TaskCancelledError):
        task.result(PATIENCE_S)
    assert task.phase == ("Expired" if how == "deadline" else "Cancelled")
    assert queued.result(PATIENCE_S) == "next"
    assert not alive(first) and process(own).losses == 1
    wait_until(lambda: kept(own))


def test_ctrl_c_ends_the_wait_or_the_step_and_nothing_else(own: Scheduler, tmp_path: Path) -> None:
    def busy() -> bool:
        return process(own).state == "busy"

    own.submit(work.pid, **P)
    own.step()
    first = process(own).pid
    stepped = own.submit(work.sleep, 300, **P)
    interrupt(own.step, busy)
    assert stepped.phase == "Cancelled" and not alive(first)
    over = tmp_path / "over"
    waited = own.submit(work.wait_for, str(over), **P)
    interrupt(lambda: waited.result(PATIENCE_S), busy)
    over.touch()
    assert waited.result(PATIENCE_S) == "waited", "Ctrl-C interrupts the wait, not the task"
    wait_until(lambda: kept(own))


def test_a_worker_that_is_started_ahead_is_not_busy(own: Scheduler) -> None:
    states: list[str] = []
    worker = own._desk.processes.worker("p")

    class Watched(type(worker)):
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "_state":
                states.append(value)
            super().__setattr__(name, value)

    worker.__class__ = Watched
    worker._replace()
    assert states == ["starting", "ready"]


# ---- ends ----


@pytest.mark.parametrize("how", ["close", "delete", "drop", "shut"])
def test_no_process_is_left(how: str) -> None:
    scheduler = with_process(Scheduler(total_memory="100MB"))
    scheduler.submit(work.pid, **P).result(PATIENCE_S)
    pid = process(scheduler).pid
    if how == "close":
        scheduler.close()
    elif how == "delete":
        wait_until(lambda: kept(scheduler))
        scheduler.delete_partition("p")
        scheduler.create_partition("p", memory="40MB", isolation="process")
        assert scheduler.submit(work.pid, **P).result(PATIENCE_S) != pid
        scheduler.close()
    elif how == "shut":
        task = scheduler.submit(work.spin_for_ever, **P)
        wait_until(lambda: process(scheduler).state == "busy")
        scheduler._shut(PATIENCE_S)
        assert task.phase == "Cancelled"
    else:
        held = weakref.ref(scheduler)
        del scheduler
        wait_until(lambda: collected(held))
    wait_until(lambda: not alive(pid))


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_it_dies_with_its_parent(end: str) -> None:
    code = f"""
        import os, sys, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import process_functions as work
        from pygpukit.scheduler import Scheduler
        scheduler = Scheduler(total_memory="100MB")
        scheduler.create_partition("p", isolation="process")
        print(scheduler.submit(work.pid, partition="p").result(60), flush=True)
        task = scheduler.submit(work.spin_for_ever, partition="p")
        while scheduler.worker_processes()[0].state != "busy":
            time.sleep(0.01)
        {end}
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(gp.__file__).parent.parent)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=110, env=environment)
    pid = int(done.stdout)
    wait_until(lambda: not alive(pid))


# ---- all of it, in any order ----

TERMINAL = (1, 6, 7, 8, 9)  # phases, docs/seams.md
KINDS = ("ok", "raise", "fault", "die", "cancel")


@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # an example takes seconds: there is no time to look for a shorter one
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.booleans(), st.booleans()), min_size=4, max_size=10))
def test_every_task_ends_once_and_as_it_must(steps: list[tuple[str, bool, bool]]) -> None:
    """Random tasks over a partition with a process and one without, some of them idempotent."""
    expected = {"ok": "Succeeded", "raise": "Failed", "fault": "Failed", "die": "Failed", "cancel": "Cancelled"}
    since = _core.ring_head()
    before = children()
    scheduler = with_process(Scheduler(total_memory="100MB"))
    scheduler.create_partition("q", memory="40MB", bandwidth=0.2)
    most = 0
    tasks = []
    with scheduler:
        for kind, in_process, idempotent in steps:
            if not in_process and kind in ("fault", "die"):
                continue  # these would cost this process
            cancelled = threading.Event()
            endless: Any = work.sleep if in_process else cancelled.wait
            function: Any = {"ok": work.pid, "raise": work.fail, "fault": work.fault, "die": work.leave}.get(kind)
            args: tuple[Any, ...] = {"raise": ("no",), "die": (1,), "cancel": (300,)}.get(kind, ())
            request: dict[str, Any] = {"partition": "p" if in_process else "q", "memory": "30MB", "bandwidth": 0.2}
            task = scheduler.submit(function or endless, *args, **request, idempotent=idempotent)
            tasks.append((kind, in_process, idempotent, task))
            if kind == "cancel":
                assert task.cancel()
                cancelled.set()
            most = max(most, len(children() - before))
        for kind, in_process, idempotent, task in tasks:
            try:
                value = task.result(PATIENCE_S)
                assert (value != os.getpid()) == in_process
            except (LookupError, DriverError, WorkerDiedError, TaskCancelledError):
                pass
            assert task.phase == expected[kind]
            if kind in ("fault", "die"):
                assert task.execution_count == 1 + idempotent
            most = max(most, len(children() - before))
        wait_until(lambda: kept(scheduler))
    assert most <= 1, "one worker, whatever happens"
    wait_until(lambda: not children() - before)
    transitions = [(r[7], r[8] & 255) for r in ring(since) if r[2] == 32]
    ended = [number for number, to in transitions if number >> 32 == scheduler.core.ordinal and to in TERMINAL]
    assert sorted(ended) == sorted(task.record.number for *_, task in tasks)


def children() -> set[int]:
    """Worker processes of this one that are alive."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread may end meanwhile
            found |= {int(pid) for pid in (thread / "children").read_text().split() if is_worker(pid)}
    return found


def is_worker(pid: str) -> bool:
    """Whether a child that is alive is a worker, and not a compiler that works aside, say."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return alive(int(pid)) and b"pygpukit.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
