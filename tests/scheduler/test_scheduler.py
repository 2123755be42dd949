"""The scheduler from Python: one task, its requests, and the order of several, driven by hand."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import time
from concurrent.futures import Future

import pytest
from scheduler_help import PATIENCE_S, Gate

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import GPUError, InvalidSpecError, OutOfMemoryError, TaskRejectedError
from pygpukit.scheduler import MB, Scheduler, TaskPolicy, TaskState

# ---- one task ----


def test_a_wait_for_a_result_is_made_of_short_ones(scheduler, monkeypatch):
    """A wait without a timeout does not hear Ctrl-C on every machine."""
    waits, wait = [], Future.exception
    monkeypatch.setattr(Future, "exception", lambda self, timeout=None: waits.append(timeout) or wait(self, timeout))

    def ends_after_three():
        end = time.monotonic() + PATIENCE_S
        while len(waits) < 3 and time.monotonic() < end:
            time.sleep(0.001)

    for timeout in (None, PATIENCE_S):
        waits.clear()
        scheduler.submit(ends_after_three).result(timeout)
        assert len(waits) >= 3 and all(step is not None and step <= 0.1 for step in waits)
    stop = threading.Event()
    task = scheduler.submit(stop.wait)
    for timeout in (0, 0.01, -1):
        with pytest.raises(TimeoutError, match=f"still .* after {timeout} s"):
            task.result(timeout)
    stop.set()
    assert task.result(PATIENCE_S)


def test_result_comes_back_and_the_ledger_is_zero(scheduler):
    task = scheduler.submit(lambda a, b: a + b, 2, b=3, memory="10MB", bandwidth=0.25)
    assert (task.state, scheduler.reserved_memory, scheduler.available_memory) == (TaskState.PENDING, 10 * MB, 90 * MB)
    assert task.result(PATIENCE_S) == 5
    assert task.result() == 5, "again"
    assert (task.state, task.done(), scheduler.reserved_memory) == (TaskState.COMPLETED, True, 0)
    assert task.fn is None, "what the function holds can go"
    stats = scheduler.stats(task.id)
    assert (stats["phase"], stats.policy, stats.memory, stats.bandwidth) == ("Succeeded", "Burstable", 10 * MB, 0.25)
    assert stats.submitted_ns <= stats.started_ns <= stats.finished_ns
    assert stats.wait_ns + stats.run_ns == stats.finished_ns - stats.submitted_ns
    assert (stats.execution_count, task.execution_count, stats.pacing_delay_count, stats.error) == (1, 1, 0, "")
    with pytest.raises(AttributeError, match="no 'colour'"):
        stats.colour


def test_exceptions_come_back_with_their_traceback(scheduler):
    def inner():
        raise LookupError("not there")

    task = scheduler.submit(inner)
    with pytest.raises(LookupError, match="not there") as caught:
        task.result(PATIENCE_S)
    assert caught.traceback[-1].name == "inner"
    assert (task.phase, task.reason, task.record.error) == ("Failed", "UserError", "LookupError: not there")


def test_a_functions_own_timeout_is_not_ours(scheduler):
    def times_out():
        raise TimeoutError("the function's")

    with pytest.raises(TimeoutError, match="the function's"):
        scheduler.submit(times_out).result(PATIENCE_S)
    gate = Gate()
    task = scheduler.submit(gate, name="slow")
    gate.entered.wait(PATIENCE_S)
    with pytest.raises(TimeoutError, match=r"'slow' .* is still Running after 0.01 s"):
        task.result(0.01)
    gate.open.set()
    assert task.result(PATIENCE_S) == "out"


def test_failures_have_the_cores_reasons(scheduler):
    def out_of_memory():
        raise OutOfMemoryError("too much", 1, 2, 3)

    def broken_device():
        raise gp.DriverError("illegal address", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")

    def bad_launch():
        raise gp.DriverError("invalid value", 1, "CUDA_ERROR_INVALID_VALUE")

    for fn, reason in (
        (out_of_memory, "OutOfMemory"),
        (broken_device, "StickyDeviceError"),
        (bad_launch, "LaunchError"),
    ):
        task = scheduler.submit(fn)
        with pytest.raises(GPUError):
            task.result(PATIENCE_S)
        assert task.reason == reason


def test_a_task_is_its_id(scheduler):
    task = scheduler.submit(lambda: 1, task_id="mine")
    assert task == "mine" and task == scheduler.get_task("mine") and task != "other" and task != 1
    assert {task: 1}["mine"] == 1 and str(task) == "mine" and f"{task}" == "mine"
    assert repr(task) == "Task(id='mine', name='<lambda>', phase='Admitted')"
    assert scheduler.stats(task).id == scheduler.stats("mine").id == "mine"
    assert scheduler.should_run(task) and scheduler.should_run("mine", now=0.0)
    assert scheduler.submit(lambda: 2, depends_on=task).result(PATIENCE_S) == 2
    assert not scheduler.should_run(task) and not scheduler.should_run("nobody")
    assert scheduler.get_task("nobody") is None
    with pytest.raises(KeyError, match="nobody"):
        scheduler.stats("nobody")
    with pytest.raises(KeyError, match="nobody"):
        scheduler.cancel("nobody")


def test_documented_fields(scheduler):
    task = scheduler.submit(lambda: 1, policy="guaranteed", memory=1024, bandwidth=0.1, priority=3, name="named")
    assert (task.name, task.memory, task.bandwidth, task.policy) == ("named", 1024, 0.1, TaskPolicy.GUARANTEED)
    assert (task.priority, task.last_launch, task.execution_count, task.pacing_delay_count) == (3, 0.0, 0, 0)
    with pytest.warns(DeprecationWarning, match="touch"):
        task.touch()
    task.result(PATIENCE_S)
    assert task.last_launch > 0
    totals = scheduler.global_stats()
    assert (totals["task_count"], totals["completed_count"], totals["succeeded"], totals["running"]) == (1, 1, 1, 0)
    assert (scheduler.task_count, scheduler.completed_count) == (1, 1)
    assert (totals["sched_tick_ms"], totals["window_ms"], totals["total_memory"]) == (1.0, 10.0, 100 * MB)


# ---- requests ----


def counting():
    yield 1


async def counting_slowly():
    yield 1


class Counter:
    def count(self):
        yield 1


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"memory": "512 bananas"}, "memory"),
        ({"memory": "-1MB"}, "memory"),
        ({"memory": "512"}, "memory"),
        ({"memory": "0.3B"}, "memory"),
        ({"memory": -1}, "memory"),
        ({"memory": 1.5}, "memory"),
        ({"memory": True}, "memory"),
        ({"memory": 2**64}, "memory"),
        ({"bandwidth": 1.01}, "bandwidth"),
        ({"bandwidth": -0.1}, "bandwidth"),
        ({"bandwidth": float("nan")}, "bandwidth"),
        ({"bandwidth": "0.2"}, "bandwidth"),
        ({"bandwidth": 1e-9}, "bandwidth"),
        ({"policy": "gold"}, "policy"),
        ({"policy": "guaranteed"}, "policy"),
        ({"policy": 3, "memory": 1}, "policy"),
        ({"policy": "guaranteed", "memory": 1}, "bandwidth"),
        ({"policy": "guaranteed", "bandwidth": 0.1}, "memory"),
        ({"policy": "guaranteed", "memory": 1, "bandwidth": 0.1, "memory_limit": 2}, "memory_limit"),
        ({"policy": "burstable"}, "policy"),
        ({"policy": "best_effort", "memory": 1}, "memory"),
        ({"policy": "best_effort", "bandwidth": 0.1}, "bandwidth"),
        ({"memory": 2, "memory_limit": 1}, "memory_limit"),
        ({"memory_limit": "lots"}, "memory_limit"),
        ({"bandwidth": 0.2, "bandwidth_limit": 0.1}, "bandwidth_limit"),
        ({"bandwidth_limit": 1.1}, "bandwidth_limit"),
        ({"partition": "nowhere"}, "partition"),
        ({"partition": 3}, "partition"),
        ({"retry": -1}, "retry"),
        ({"retry": 1.5}, "retry"),
        ({"estimate": 0}, "estimate"),
        ({"estimate": "long"}, "estimate"),
        ({"priority": 1.5}, "priority"),
        ({"priority": 2**31}, "priority"),
        ({"deadline": -1}, "deadline"),
        ({"deadline": float("inf")}, "deadline"),
        ({"depends_on": ["nobody"]}, "depends_on"),
        ({"depends_on": "nobody"}, "depends_on"),
        ({"depends_on": [3]}, "depends_on"),
        ({"depends_on": 3}, "depends_on"),
        ({"depends_on": "self", "task_id": "self"}, "depends_on"),
        ({"task_id": ""}, "task_id"),
        ({"task_id": 3}, "task_id"),
        ({"task_id": "taken"}, "task_id"),
        ({"name": 3}, "name"),
        ({"name": "n" * 300}, "name"),
        ({"fn": 3}, "fn"),
        ({"fn": asyncio.sleep}, "fn"),
        ({"fn": counting}, "fn"),
        ({"fn": functools.partial(counting)}, "fn"),
        ({"fn": counting_slowly}, "fn"),
        ({"fn": Counter().count}, "fn"),
    ],
)
def test_malformed_requests_name_the_field(scheduler, arguments, field):
    scheduler.submit(int, task_id="taken")
    with pytest.raises(InvalidSpecError) as caught:
        scheduler.submit(**{"fn": int, **arguments})
    assert caught.value.field == field
    assert scheduler.reserved_memory == 0


@pytest.mark.parametrize(
    "malformed",
    [
        {"partition": "nowhere"},
        {"depends_on": "nobody"},
        {"policy": "guaranteed"},
        {"memory": 2, "memory_limit": 1},
        {"name": "n" * 300},
        {"fn": counting},
    ],
)
def test_nothing_is_kept_of_a_request_that_is_malformed(scheduler, malformed):
    with pytest.raises(InvalidSpecError):
        scheduler.submit(**{"fn": int, "task_id": "train", **malformed})
    assert (scheduler.tasks(), scheduler.events().events, scheduler.task_count) == ([], [], 0)
    task = scheduler.submit(int, task_id="train")
    assert scheduler.step() is task and task.result(0) == 0


@pytest.mark.filterwarnings("error")  # nobody awaited it
@pytest.mark.parametrize(
    ("fn", "remedy"),
    [
        (lambda: asyncio.sleep(0), "coroutine.*asyncio.run"),
        (lambda: counting(), "generator.*list"),
        (lambda: counting_slowly(), "generator.*list"),
    ],
)
def test_what_returns_code_that_has_yet_to_run_fails(scheduler, fn, remedy):
    task = scheduler.submit(fn)
    scheduler.step()
    assert (task.phase, task.reason) == ("Failed", "UserError")
    with pytest.raises(InvalidSpecError, match=remedy) as caught:
        task.result(0)
    assert caught.value.field == "fn"
    gc.collect()


def test_a_task_is_taken_wherever_its_id_is(scheduler):
    task, other = scheduler.submit(int, task_id="b"), scheduler.submit(int, task_id="a")
    assert sorted([task, other]) == ["a", "b"] and {"b": 1}[task] == {task: 1}["b"] == 1
    assert other < task and "a" < task <= "b" <= task and task > other and "c" > task >= "b"
    with pytest.raises(TypeError):
        assert task < 3
    partitions = scheduler.partitions
    scheduler.create_partition("p")
    partitions.assign_task(task, "p")
    assert partitions.get_task_partition(task).id == partitions.get_task_partition("b").id == "p"
    partitions.unassign_task(task)
    assert partitions.get_task_partition(task) is None
    with pytest.raises(TypeError, match="3 is neither a task nor the id of one"):
        partitions.get_task_partition(3)
    then = scheduler.submit(int, depends_on=task)
    scheduler.set_priority(task, 1)
    scheduler.set_share(task, 0.5)
    assert scheduler.pause(task) and scheduler.resume(task) and scheduler.should_run(task)
    assert scheduler.stats(task).id == scheduler.get_task(task).id == "b"
    assert scheduler.cancel(task) and then.reason == "DependencyFailed"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"sched_tick_ms": 0}, "sched_tick_ms"),
        ({"window_ms": "10"}, "window_ms"),
        ({"total_memory": "much"}, "total_memory"),
        ({"workers": 0}, "workers"),
        ({"max_queue": 1.5}, "max_queue"),
    ],
)
def test_malformed_settings_name_the_field(arguments, field):
    with pytest.raises(InvalidSpecError) as caught:
        Scheduler(**{"total_memory": 1, **arguments})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("512MB", 512 * 2**20),
        ("1GB", 2**30),
        ("1 GiB", 2**30),
        ("1.5kb", 1536),
        ("0.1KiB", None),
        ("7B", 7),
        ("2TB", 2**41),
        (4096, 4096),
        (None, 0),
    ],
)
def test_sizes(scheduler, text, bytes_):
    from pygpukit.scheduler.units import parse_memory

    if bytes_ is None:
        with pytest.raises(InvalidSpecError, match="whole number of bytes"):
            parse_memory(text)
    else:
        assert parse_memory(text) == bytes_


def test_policy_follows_the_request(scheduler):
    submit = scheduler.submit
    assert submit(int).policy is TaskPolicy.BEST_EFFORT
    assert submit(int, memory=1).policy is submit(int, bandwidth=0.1).policy is TaskPolicy.BURSTABLE
    assert submit(int, policy="best-effort").policy is TaskPolicy.BEST_EFFORT
    assert submit(int, policy=TaskPolicy.GUARANTEED, memory=1, bandwidth=0.9).policy is TaskPolicy.GUARANTEED
    assert scheduler.core.stats()["reserved_share_ppm"] == 1_000_000


def test_rejected_tasks_say_why(scheduler):
    task = scheduler.submit(int, memory="101MB", name="big")
    assert (task.state, task.reason) == (TaskState.REJECTED, "ExceedsDevice")
    assert task.detail == {"asked": 101 * MB, "available": 100 * MB}
    with pytest.raises(
        TaskRejectedError, match=r"'big' .* rejected: ExceedsDevice, asked 101 MiB, available 100 MiB"
    ) as caught:
        task.result()
    assert (caught.value.reason, caught.value.detail) == ("ExceedsDevice", task.detail)
    late = scheduler.submit(int, deadline=0)
    assert late.reason == "DeadlineUnmeetable"
    small = Scheduler(total_memory=1, max_queue=1, start=False)
    small.submit(int)
    assert (small.submit(int).reason, small.tasks()[-1].detail) == ("QueueFull", {"asked": 2, "available": 1})


# ---- order, by hand ----


def test_next_hands_over_what_a_start_needs(scheduler):
    scheduler.create_partition("p", memory="1MB", bandwidth=0.5)
    scheduler.submit(int, task_id="a", partition="p", policy="guaranteed", memory="1KB", bandwidth=0.1)
    scheduler.submit(int, task_id="b")
    starts = {start.id: start for start in (scheduler.core.next(0.0), scheduler.core.next(0.0))}
    fields = ("partition", "guaranteed", "memory_limit", "share_limit_ppm")
    assert [getattr(starts["a"], field) for field in fields] == ["p", True, 1024, 100_000]
    assert [getattr(starts["b"], field) for field in fields] == ["", False, None, None]
    assert scheduler.core.next(0.0) is None
    for task_id in starts:
        scheduler.core.finish(task_id)


def test_a_start_asks_for_no_record(scheduler, monkeypatch):
    task = scheduler.submit(lambda: 5, memory="1KB")
    with monkeypatch.context() as patch:
        patch.setattr(type(task), "record", property(lambda task: pytest.fail("asked for its record")))
        scheduler.step()
    assert task.result() == 5


def test_step_runs_one_task_on_this_thread(scheduler):
    ran = []
    first = scheduler.submit(ran.append, "first")
    second = scheduler.submit(ran.append, "second")
    urgent = scheduler.submit(lambda: ran.append(threading.current_thread()), priority=1)
    assert [scheduler.step(), scheduler.step(), scheduler.step(), scheduler.step()] == [urgent, first, second, None]
    assert ran == [threading.main_thread(), "first", "second"]
    assert second.result() is None and not scheduler._desk.running, "an ended task needs no dispatcher"


def test_tasks_wait_for_memory_and_for_each_other(scheduler):
    ran = []
    big = scheduler.submit(ran.append, "big", memory="80MB")
    waits = scheduler.submit(ran.append, "waits", memory="30MB")
    after = scheduler.submit(ran.append, "after", depends_on=[waits, big.id])
    assert (waits.state, waits.reason, waits.detail["position"]) == (TaskState.QUEUED, "WaitingForMemory", 1)
    assert (after.state, after.reason) == (TaskState.QUEUED, "WaitingForDependency")
    while scheduler.step():
        pass
    assert ran == ["big", "waits", "after"]


def test_dependants_of_a_failure_fail(scheduler):
    first = scheduler.submit(lambda: 1 // 0)
    then = scheduler.submit(int, depends_on=first)
    last = scheduler.submit(int, depends_on=then)
    with pytest.raises(GPUError, match=f"DependencyFailed: dependency '{then}' ended Failed"):
        last.result(PATIENCE_S)
    assert (then.phase, then.reason) == ("Failed", "DependencyFailed")


def test_work_of_a_task_goes_to_its_own_stream_and_is_counted(scheduler):
    outside = native.current_stream().id

    def work():
        return native.current_stream().id, gp.ones(1000) + gp.ones(1000)

    task = scheduler.submit(work, name="adds")
    scheduler.step()
    stream, total = task.result()
    assert stream not in (0, outside) and native.current_stream().id == outside
    assert (total.to_numpy() == 2).all() and total.stream_id == stream
    assert task.stats().launches > 0
    before = task.stats().launches
    (gp.ones(10) + gp.ones(10)).to_numpy()
    assert task.stats().launches == before, "only launches inside the task are its own"
    other = scheduler.submit(lambda: native.current_stream().id)
    assert other.result(PATIENCE_S) != stream


def test_every_transition_is_an_event(scheduler):
    since = _core.ring_head()
    task = scheduler.submit(int, name="event")
    scheduler.step()
    records, _, lost = _core.ring_read(since)
    assert lost == 0
    fields = [memoryview(records)[i : i + 64] for i in range(0, len(records), 64)]
    events = [
        (int.from_bytes(f[40:48], "little") >> 8, int.from_bytes(f[40:48], "little") & 255)
        for f in fields
        if int.from_bytes(f[16:18], "little") == 32 and int.from_bytes(f[32:40], "little") == task.record.number
    ]
    assert events == [(0, 3), (3, 4), (4, 6)]
    edges = [(source, target) for source, target, _, _ in _core.task_edges()]
    names = [state.value for state in TaskState]
    assert all((names[source], names[target]) in edges for source, target in events)
