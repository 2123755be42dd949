"""The scheduler from Python: submission, order, results, cancelling, waiting, and threads that come and go."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import GPUError, InvalidSpecError, OutOfMemoryError, TaskCancelledError, TaskRejectedError
from pygpukit.scheduler import MB, Scheduler, TaskPolicy, TaskState, all_schedulers, live_cores

PATIENCE_S = 30


@pytest.fixture
def scheduler():
    made = Scheduler(total_memory="100MB")
    yield made
    made._shut(PATIENCE_S)


def wait_until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.001)


class Gate:
    """A function that runs until it is told to return."""

    def __init__(self):
        self.entered, self.open = threading.Event(), threading.Event()

    def __call__(self):
        self.entered.set()
        assert self.open.wait(PATIENCE_S)
        return "out"


# ---- one task ----


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
        ({"task_id": ""}, "id"),
        ({"task_id": 3}, "task_id"),
        ({"task_id": "taken"}, "task_id"),
        ({"name": 3}, "name"),
        ({"name": "n" * 300}, "name"),
        ({"fn": 3}, "fn"),
        ({"fn": asyncio.sleep}, "fn"),
    ],
)
def test_malformed_requests_name_the_field(scheduler, arguments, field):
    scheduler.submit(int, task_id="taken")
    with pytest.raises(InvalidSpecError) as caught:
        scheduler.submit(**{"fn": int, **arguments})
    assert caught.value.field == field
    assert scheduler.reserved_memory == 0


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
    with pytest.raises(TaskRejectedError, match=r"'big' .* rejected: ExceedsDevice, asked 105906176") as caught:
        task.result()
    assert (caught.value.reason, caught.value.detail) == ("ExceedsDevice", task.detail)
    late = scheduler.submit(int, deadline=0)
    assert late.reason == "DeadlineUnmeetable"
    small = Scheduler(total_memory=1, max_queue=1)
    small.submit(int)
    assert (small.submit(int).reason, small.tasks()[-1].detail) == ("QueueFull", {"asked": 2, "available": 1})


# ---- order, by hand ----


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


# ---- threads ----


def test_the_context_manager_runs_everything():
    ran = []
    with Scheduler(total_memory="1GB", workers=2) as scheduler:
        for i in range(50):
            scheduler.submit(ran.append, i, memory="300MB")
    assert sorted(ran) == list(range(50)) and scheduler.closed
    with pytest.raises(RuntimeError, match="closed"):
        scheduler.start()
    task = scheduler.submit(int)
    assert (task.phase, task.reason) == ("Rejected", "ShuttingDown")


def test_an_exception_in_the_context_manager_cancels_what_is_left():
    gate = Gate()
    with pytest.raises(ZeroDivisionError), Scheduler(total_memory="1GB", workers=1) as scheduler:
        running = scheduler.submit(gate)
        queued = scheduler.submit(int)
        gate.entered.wait(PATIENCE_S)
        threading.Timer(0.05, gate.open.set).start()
        1 // 0
    assert (running.phase, queued.phase) == ("Cancelled", "Cancelled")


def test_close_without_start_cancels(scheduler):
    task = scheduler.submit(int)
    scheduler.close()
    assert task.phase == "Cancelled"
    with pytest.raises(TaskCancelledError, match="was cancelled"):
        task.result()


def test_stop_and_start_again(scheduler):
    gate = Gate()
    running = scheduler.submit(gate, memory="100MB")
    waiting = scheduler.submit(lambda: "later", memory="100MB")
    scheduler.start()
    gate.entered.wait(PATIENCE_S)
    threading.Timer(0.05, gate.open.set).start()
    scheduler.stop()
    assert (running.phase, waiting.phase) == ("Succeeded", "Admitted")
    assert waiting.result(PATIENCE_S) == "later"


def test_tasks_run_at_the_same_time_within_their_memory(scheduler):
    lock, inside, most = threading.Lock(), 0, 0

    def work():
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.005)
        with lock:
            inside -= 1

    tasks = [scheduler.submit(work, memory="40MB") for _ in range(20)]
    for task in tasks:
        task.result(PATIENCE_S)
    assert most == 2
    assert scheduler.reserved_memory == 0


def test_many_threads_submit_and_cancel(scheduler):
    submitted = []

    def client():
        mine = [scheduler.submit(lambda: None, memory="1MB") for _ in range(100)]
        for task in mine[::3]:
            task.cancel()
        submitted.extend(mine)

    scheduler.start()
    clients = [threading.Thread(target=client) for _ in range(8)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    for task in submitted:
        try:
            task.result(PATIENCE_S)
        except TaskCancelledError:
            assert task.phase == "Cancelled"
        except TaskRejectedError:
            assert task.reason == "QueueFull"
    wait_until(lambda: scheduler.reserved_memory == 0)  # a cancelled function may still be on its way out
    totals = scheduler.global_stats()
    ended = totals["succeeded"] + totals["cancelled"] + totals["rejected"]
    assert (ended, totals["queued"], totals["admitted"], totals["running"]) == (800, 0, 0, 0)


def test_system_exit_in_a_task_ends_only_the_task(scheduler):
    task = scheduler.submit(sys.exit, 3)
    with pytest.raises(SystemExit):
        task.result(PATIENCE_S)
    assert scheduler.submit(lambda: "still here").result(PATIENCE_S) == "still here"
    with pytest.raises(SystemExit):
        by_hand = Scheduler(total_memory=1)
        by_hand.submit(sys.exit, 3)
        by_hand.step()


def test_a_task_may_submit_and_wait(scheduler):
    def outer():
        return scheduler.submit(lambda: 20).result(PATIENCE_S) + 1

    assert scheduler.submit(outer).result(PATIENCE_S) == 21
    closing = scheduler.submit(scheduler.close)
    with pytest.raises(RuntimeError, match="wait for its own scheduler"):
        closing.result(PATIENCE_S)


# ---- cancelling and deadlines ----


def test_cancel_before_and_while_it_runs(scheduler):
    queued = scheduler.submit(int)
    assert queued.cancel() and not queued.cancel() and queued.fn is None
    gate, seen = Gate(), []

    def work():
        ones = gp.ones(10)
        gate()
        try:
            ones + ones
        except TaskCancelledError as error:
            seen.append(error)
            raise

    running = scheduler.submit(work, memory="60MB")
    scheduler.start()
    gate.entered.wait(PATIENCE_S)
    assert scheduler.cancel(running.id)
    with pytest.raises(TaskCancelledError, match="was cancelled"):
        running.result(PATIENCE_S)
    assert scheduler.reserved_memory == 60 * MB, "its function is still inside"
    gate.open.set()
    wait_until(lambda: scheduler.reserved_memory == 0)
    assert len(seen) == 1 and running.phase == "Cancelled"


def test_a_deadline_passes_without_anyone_asking(scheduler):
    gate = Gate()
    running = scheduler.submit(gate, deadline=0.05)
    queued = scheduler.submit(int, depends_on=running)
    scheduler.start()
    with pytest.raises(TaskCancelledError, match="deadline"):
        running.result(PATIENCE_S)
    with pytest.raises(GPUError, match="ended Expired"):
        queued.result(PATIENCE_S)
    assert (running.state, queued.reason) == (TaskState.EXPIRED, "DependencyFailed")
    gate.open.set()


def test_ctrl_c_interrupts_the_wait_and_not_the_task(scheduler):
    gate = Gate()
    task = scheduler.submit(gate)
    scheduler.start()
    gate.entered.wait(PATIENCE_S)
    sent = [0.0]

    def interrupt():
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    def delay_s(timeout):
        threading.Timer(0.1, interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            task.result(timeout)
        return time.monotonic() - sent[0]

    for timeout in (None, PATIENCE_S):
        assert min(delay_s(timeout) for _ in range(3)) < 0.1, "a loaded machine may be late, but not each time"
    assert task.phase == "Running"
    gate.open.set()
    assert task.result(PATIENCE_S) == "out"


def test_ctrl_c_in_a_step_cancels_the_task(scheduler):
    def interrupted():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(PATIENCE_S)

    task = scheduler.submit(interrupted, memory="1MB")
    with pytest.raises(KeyboardInterrupt):
        scheduler.step()
    assert (task.phase, scheduler.reserved_memory) == ("Cancelled", 0)


# ---- asyncio ----


def test_await(scheduler):
    async def main():
        results = await asyncio.gather(*(scheduler.submit(lambda i=i: i * i) for i in range(10)))
        with pytest.raises(ZeroDivisionError):
            await scheduler.submit(lambda: 1 // 0)
        done = scheduler.submit(lambda: "done")
        done.result(PATIENCE_S)
        return results, await done, await done

    assert asyncio.run(main()) == ([i * i for i in range(10)], "done", "done")


def test_cancelling_the_await_cancels_the_task(scheduler):
    gate = Gate()

    async def main():
        task = scheduler.submit(gate)
        scheduler.start()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(task, 0.05)
        return task

    task = asyncio.run(main())
    assert task.phase == "Cancelled"
    gate.open.set()


# ---- lifetimes ----


def test_results_go_with_their_handle(scheduler):
    class Big:
        pass

    task = scheduler.submit(Big, task_id="kept by its handle")
    held = weakref.ref(task.result(PATIENCE_S))
    del task
    gc.collect()
    assert held() is None
    again = scheduler.get_task("kept by its handle")
    assert again.phase == "Succeeded" and scheduler.stats("kept by its handle").phase == "Succeeded"
    with pytest.raises(GPUError, match="went with the object that submit"):
        again.result()


def test_a_task_nobody_holds_still_runs(scheduler):
    ran = threading.Event()
    scheduler.start()
    scheduler.submit(ran.set)
    gc.collect()
    assert ran.wait(PATIENCE_S)


def test_a_dropped_scheduler_takes_its_threads_with_it():
    gc.collect()
    before = len(all_schedulers())
    scheduler = Scheduler(total_memory=1)
    assert all_schedulers()[-1] is scheduler and live_cores()[-1] is scheduler.core
    scheduler.submit(int).result(PATIENCE_S)
    threads = list(scheduler._desk._threads)
    assert len(threads) == 5 and all(thread.is_alive() for thread in threads)
    del scheduler
    gc.collect()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert len(all_schedulers()) == before


def test_total_memory_defaults_to_the_device():
    assert Scheduler().total_memory == native.memory_info()[1]


def test_prints_go_where_the_submitters_go(scheduler):
    import contextvars

    cell = contextvars.ContextVar("cell", default=None)
    cell.set("submitter")
    task = scheduler.submit(cell.get)
    cell.set("later")
    assert task.result(PATIENCE_S) == "submitter"


@pytest.mark.parametrize("last", ["pass", "raise SystemExit(0)", "scheduler.close()"])
def test_the_interpreter_ends_cleanly_while_tasks_run(last, tmp_path):
    script = tmp_path / "ends.py"
    script.write_text(
        "import threading, time\n"
        "from pygpukit.scheduler import Scheduler\n"
        "scheduler = Scheduler(total_memory=1 << 20)\n"
        "entered = threading.Event()\n"
        "def work():\n    entered.set()\n    time.sleep(0.3)\n"
        "tasks = [scheduler.submit(work) for _ in range(8)]\n"
        "scheduler.start()\n"
        "entered.wait()\n" + last + "\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(gp.__file__).parent.parent)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
