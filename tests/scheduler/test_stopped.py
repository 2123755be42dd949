"""A process that is stopped for a while, as by SIGSTOP or with its machine: no time limit passes meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pygpukit as gp
from pygpukit.worker import Worker, WorkerTimeoutError

LIMIT_S, STOPPED_S = 5.0, 7.0
PROGRAM = """
import sys, threading
import numpy as np
import pygpukit as gp
from pygpukit._core import native
from pygpukit.scheduler import Scheduler
from pygpukit.worker import Worker

source = "__global__ void hold(int *flag) { while (*(volatile int *)flag == 0) {} flag[0] = 7; }"
hold, flag = gp.jit(source, func="hold"), gp.zeros(1, "int32")
gp.synchronize()
worker, scheduler = Worker("stopped"), Scheduler(workers=3)
answers, release = [], threading.Event()
hold[1, 1](flag)  # it may run for LIMIT_S
calling = threading.Thread(target=lambda: answers.append(worker.call("time:sleep", 1.0, timeout_s=LIMIT_S)))
calling.start()
tasks = [scheduler.submit(lambda: release.wait(60), bandwidth=0.3) for _ in range(2)]
scheduler.start()
print(worker.pid, flush=True)
sys.stdin.readline()
with gp.Stream():
    native.copy_from_host(flag, np.ones(1, np.int32))
gp.synchronize()
assert flag.to_numpy()[0] == 7
calling.join(60)
assert answers == [None] and worker.alive, answers
worker.close()
release.set()
assert all(task.result(60) for task in tasks)
assert scheduler.submit(lambda: gp.add(gp.ones(3), gp.ones(3)).to_numpy().tolist()).result(60) == [2.0] * 3
scheduler.close()
print("well", flush=True)
""".replace("LIMIT_S", str(LIMIT_S))


def test_a_stop_passes_no_time_limit() -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(gp.__file__).parent.parent),
        "PYGPUKIT_BACKEND": "sim",
        "PYGPUKIT_SIM_TIMEOUT_S": str(LIMIT_S),
    }
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout is not None and child.stdin is not None
        pids = [child.pid, int(child.stdout.readline())]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        said, _ = child.communicate("go on\n", timeout=120)
    assert (child.returncode, said) == (0, "well\n")


def test_time_in_which_another_thread_keeps_the_interpreter_counts() -> None:
    ended = []

    def call() -> None:
        try:
            ended.append(worker.call("time:sleep", 600, timeout_s=1.0))
        except WorkerTimeoutError as error:
            ended.append(error)

    with Worker("kept") as worker:
        worker.call("time:sleep", 0.0, timeout_s=60)  # what the first call loads is there
        calling = threading.Thread(target=call)
        calling.start()
        end = time.monotonic() + 60
        while calling.is_alive() and time.monotonic() < end:
            sum(range(40_000_000))  # one call of C, in which no other thread of Python runs
        worker.kill()
        calling.join(60)
    assert [type(one) for one in ended] == [WorkerTimeoutError]
