"""A forked child is told whose scheduler, contexts and device it has: a clear error for every use, the parent unharmed,
nothing hangs, whatever other threads do at the time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scheduler_help import run

import pygpukit as gp

FORK = """
import os, sys
from pygpukit.scheduler import Scheduler
scheduler = Scheduler(total_memory=1 << 20, start=False)
scheduler.start()
task = scheduler.submit(lambda: 7)
assert task.result(30) == 7
waiting = scheduler.submit(lambda: 8, memory=64)
child = os.fork()
if child == 0:
    for use in (lambda: scheduler.submit(lambda: 1), scheduler.start, scheduler.stats, scheduler.snapshot,
                scheduler.worker_processes,
                scheduler.close, lambda: waiting.cancel(), lambda: scheduler.get_task("x"), lambda: scheduler.tasks()):
        try:
            use()
        except RuntimeError as error:
            assert "forked" in str(error), error
        except TypeError:
            pass
        else:
            os._exit(3)
    {end}
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert waiting.result(30) == 8
assert scheduler.submit(lambda: 9).result(30) == 9
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)", "del scheduler, task, waiting; sys.exit(0)"])
def test_a_forked_child_is_told_whose_scheduler_it_is(end):
    assert "Traceback" not in run(FORK.replace("{end}", end))


FORK_IN_A_TASK = """
import os, sys, threading
import pygpukit as gp
from pygpukit import _core
from pygpukit.scheduler import Scheduler
array = gp.zeros(64)
hammers = threading.Thread(target=_core.pool_hit_ns, args=(0, 256, {rounds}), daemon=True)
hammers.start()
parent = os.getpid()
for _ in range(20):
    scheduler = Scheduler(total_memory=1 << 20, start=False)
    task = scheduler.submit(lambda: os.fork(), memory_limit="1MB")
    try:
        scheduler.step()
    except RuntimeError as error:
        assert os.getpid() != parent and "forked" in str(error), error
        del array
        os._exit(0)
    _, status = os.waitpid(task.result(30), 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    scheduler.close()
os._exit(0)
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_ends_in_a_forked_child_leaves_the_parents_pool_alone():
    """A task, and an array: another thread holds the pool's lock at the fork, in some of the rounds."""
    assert "Traceback" not in run(FORK_IN_A_TASK.replace("{rounds}", str(10**10)))


def test_processes_of_multiprocessing_are_told_what_to_do(tmp_path):
    """A forked one can use neither what it inherits nor the device; one that was spawned, as the error says, can."""
    script = tmp_path / "processes.py"
    script.write_text("""
import multiprocessing
from pygpukit.scheduler import Scheduler

def told(out, call):
    try:
        out.put(call())
    except RuntimeError as error:
        out.put(str(error))

def inherited(out, scheduler):
    told(out, lambda: scheduler.submit(int).id)

def own(out):
    with Scheduler(total_memory=1 << 20) as scheduler:
        told(out, lambda: scheduler.submit(lambda: 21 * 2).result(60))

if __name__ == "__main__":
    scheduler = Scheduler(total_memory=1 << 20, start=False)
    assert scheduler.submit(lambda: 7).result(60) == 7
    for way, target, *more in (("fork", inherited, scheduler), ("fork", own), ("spawn", own)):
        context = multiprocessing.get_context(way)
        out = context.Queue()
        child = context.Process(target=target, args=(out, *more))
        child.start()
        found = out.get(timeout=60)
        child.join(60)
        assert child.exitcode == 0, (way, child.exitcode)
        assert found == 42 if way == "spawn" else "forked" in found and "spawn" in found, (way, found)
    assert scheduler.submit(lambda: 9).result(60) == 9
""")
    environment = {**os.environ, "PYTHONPATH": str(Path(gp.__file__).parent.parent)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=110, env=environment)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


CONTEXTS = """
import os, sys
import pygpukit as gp
from pygpukit import scheduler
context = scheduler.create_context("chat", share=0.5)
kernel = gp.jit('extern "C" __global__ void one(float *x) { x[0] = 1; }', func="one")
x = gp.zeros(1)
gp.synchronize()
future = context.launch(kernel, 1, 1, x)
context.start_session()
child = os.fork()
if child == 0:
    uses = [context.__enter__, context.resize, lambda: context.stats, lambda: context.launch(kernel, 1, 1, x),
            context.destroy, context.unfinished, future.wait, future.cancel, scheduler.list_contexts, scheduler.reset,
            lambda: scheduler.create_context("new"), lambda: scheduler.destroy_context("chat"), scheduler.stats,
            lambda: scheduler.resize_context("chat", share=0.1), gp.synchronize,
            context.synchronize]
    for number, use in enumerate(uses):
        try:
            use()
        except RuntimeError as error:
            assert "forked" in str(error), error
            continue
        os._exit(10 + number)
    assert scheduler.live_contexts() == [] and "chat" in repr(context)
    context.end_session()
    {end}
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
context.end_session()
assert future.wait().success and context.launch(kernel, 1, 1, x).wait().success
context.resize(share=0.7)
assert context.stats.share == 0.7 and scheduler.live_contexts() == [context]
assert context.destroy()
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)", "del context, future, uses; sys.exit(0)"])
def test_a_forked_child_is_told_whose_contexts_they_are(end):
    assert "Traceback" not in run(CONTEXTS.replace("{end}", end))


def test_a_forked_child_may_make_contexts_where_nothing_was_opened():
    code = """
import os
from pygpukit import scheduler
child = os.fork()
if child == 0:
    scheduler.create_context("chat", share=0.5).resize(share=0.6)
    os._exit(0 if scheduler.get_context("chat").stats.share == 0.6 else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert scheduler.list_contexts() == []
"""
    assert "Traceback" not in run(code)


MANY = """
import os, signal, sys, threading
import numpy  # here, as a child cannot load it while a thread of the parent loaded a module
import pygpukit as gp
from pygpukit import scheduler as contexts
from pygpukit.scheduler import Scheduler

SOURCE = 'extern "C" __global__ void one(float *x) { x[0] = 1; }'
scheduler = Scheduler(total_memory=1 << 20, max_queue=100_000, start=False)
scheduler.start()
kernel, x, event, hold = gp.jit(SOURCE, func="one"), gp.zeros(10), gp.Event(), threading.Event()
running = scheduler.submit(hold.wait)
with gp.Stream() as stream, stream.capture() as graph:
    kernel[1, 1](x)
work = [  # of other threads, at the moment of a fork
    lambda: scheduler.submit(int).cancel(),
    lambda: (gp.empty(1000), kernel[1, 1](x), gp.memory.stats()),
    lambda: gp.jit(SOURCE, func="one"),
]
uses = [
    lambda: scheduler.submit(int), scheduler.snapshot, scheduler.close, running.cancel, lambda: running.result(1),
    lambda: Scheduler(total_memory=1).submit(int).result(30), lambda: contexts.create_context("chat"),
    lambda: gp.zeros(10), x.to_numpy, lambda: gp.add(x, x), lambda: kernel[1, 1](x), graph.launch, gp.synchronize,
    gp.Stream, stream.synchronize, event.record, lambda: gp.jit(SOURCE, func="one"),
    lambda: gp.jit(SOURCE.replace("= 1", "= 2"), func="one"),
]
stop = threading.Event()

def churn(work):
    while not stop.wait(0.01):
        for _ in range(5):
            work()

threads = [threading.Thread(target=churn, args=(one,)) for one in work]
for thread in threads: thread.start()
for number in range(1000):
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)  # ends one that hangs
        try:
            uses[number % len(uses)]()
        except RuntimeError as error:
            if "forked" in str(error) and "spawn" in str(error):
                os._exit(0) if number % 50 else sys.exit(0)
        os._exit(3)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended == 0, (number % len(uses), ended)
stop.set()
for thread in threads: thread.join()
hold.set()
assert running.result(30) and x.to_numpy()[0] == 1
scheduler.close()
"""


@pytest.mark.slow
def test_a_thousand_forks_while_threads_are_in_the_core_hang_nobody():
    assert "Traceback" not in run(MANY, timeout_s=280)


POOLS = """
import os, signal, sys, threading
from concurrent.futures import ThreadPoolExecutor
import numpy  # as above
import _pygpukit_rust as rust
import pygpukit as gp
from pygpukit import _core, memory
from pygpukit._core import native
from pygpukit.array import rich  # noqa: F401  as numpy

SIZE = 1 << 20
own, by_number = memory.MemoryPool(64 * SIZE), rust.MemoryPool(64 * SIZE)
pinning = rust.PinnedMemoryManager()
block, number, pin = own.allocate(8 * SIZE), by_number.allocate(8 * SIZE), pinning.allocate(SIZE)[0]
x, moved, pinned = gp.zeros(1000), gp.empty(8 * SIZE, "uint8"), gp.memory.pinned_empty(1000)
y = gp.add(x, x)
native.device_count()  # what follows is told apart from what opens the device

def move():
    _core.pool_evict(0, moved.block)
    native.pin(moved)
    native.unpin(moved)

work = [  # of other threads, which have the locks of one pool or the other at nearly any time
    lambda: _core.pool_hit_ns(0, 256, 100_000),
    move,
    lambda: (own.evict(block), own.restore(block)),
    lambda: (by_number.evict(number), by_number.restore(number), by_number.free(by_number.allocate(64))),
    lambda: (pinning.free(pinning.allocate(100)[0]), memory.pinned_empty(100)),
]
uses = [
    lambda: gp.empty(64), lambda: gp.empty(3 * SIZE), lambda: gp.zeros(10), lambda: gp.full(10, 2.0),
    lambda: gp.from_numpy(numpy.ones(10)), lambda: gp.empty_like(x), lambda: gp.add(x, y), lambda: x + 1,
    lambda: ThreadPoolExecutor(1).submit(gp.empty, 64).result(),
    lambda: ThreadPoolExecutor(1).submit(gp.add, x, y).result(),
    moved.to_numpy, lambda: moved.device_ptr, lambda: x.name, lambda: setattr(x, "name", "x"),
    lambda: native.pin(moved), lambda: native.shorten(y, 10),
    gp.gc, memory.stats, memory.trim, lambda: memory.set_limit(1 << 40), lambda: memory.set_default_pool(own),
    lambda: _core.pool_blocks(0), lambda: _core.pool_segments(0), _core.pool_traffic,
    lambda: _core.pool_evict(0, moved.block), lambda: _core.pool_hit_ns(0, 256, 1),
    lambda: own.used, lambda: own.cached, lambda: own.available, own.stats, own.trim, own.clear,
    lambda: own.allocate(64), lambda: own.free(block), lambda: own.touch(block), lambda: own.evict(block),
    lambda: own.restore(block), lambda: own.read(block, "uint8"), lambda: own.write(block, b"1"), lambda: block.on_gpu,
    lambda: by_number.allocate(64), lambda: by_number.free(number), by_number.stats,
    lambda: by_number.get_block(number),
    lambda: memory.MemoryPool(SIZE).allocate(64), lambda: rust.MemoryPool(SIZE).allocate(64),
    lambda: memory.pinned_empty(10), memory.pinned_stats, memory.pinned_trim,
    lambda: pinning.allocate(64), lambda: pinning.free(pin), pinning.stats, pinning.clear,
    lambda: rust.PinnedMemoryManager().allocate(64),
]
stop = threading.Event()

def churn(work):
    while not stop.is_set():
        work()

threads = [threading.Thread(target=churn, args=(one,), daemon=True) for one in work]
for thread in threads: thread.start()
for round in range({rounds}):
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends one that hangs
        for index, use in enumerate(uses):
            try:
                use()
            except gp.DriverError as error:
                if error.code == 3 and "forked" in str(error) and "spawn" in str(error):
                    continue
            os._exit(1 + index)
        assert not memory.is_pinned(pinned)
        del x, y, moved, pinned, block, own, by_number, pinning, uses, work, use, move
        sys.exit(0) if round % 10 == 0 else os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended == 0, (round, ended)
stop.set()
for thread in threads: thread.join()
assert (gp.add(x, x).to_numpy() == 0).all() and x.name == "" and memory.is_pinned(pinned)
assert own.used == block.size and by_number.used == 8 * SIZE and pinning.stats().current_used > 0
"""


@pytest.mark.parametrize("rounds", [30, pytest.param(100, marks=pytest.mark.turns(7))])
def test_a_forked_child_may_use_no_memory_pool_whatever_threads_do_with_it_at_the_time(rounds):
    """What it inherited goes away quietly there."""
    assert "Traceback" not in run(POOLS.replace("{rounds}", str(rounds)), timeout_s=280)
