"""What a process with deferred launches may do at any time: exit, and fork. Nothing hangs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from scheduler_help import each_exit

CONTENTION = """
import os, sys, threading, time
import pygpukit as gp
from pygpukit.scheduler import Scheduler

source = '''extern "C" __global__ void NAME(float *out, int rounds) {
    float x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.999f, 1.0f);
    if (x == -1.0f) out[0] = x;
}'''

def endless(name):
    bound, out = gp.jit(source.replace("NAME", name), func=name)[1, 32], gp.zeros(1)
    while True:
        bound(out, 500)

scheduler = Scheduler(workers=2, start=False)
tasks = [scheduler.submit(endless, name, bandwidth=0.5) for name in ("a", "b")]
scheduler.start()
while min(task.pacing_delay_count for task in tasks) < 50:
    time.sleep(0.01)
"""
FORK = """
child = os.fork()
if child == 0:
    try:
        gp.Stream().synchronize()
    except gp.GPUError:
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@each_exit
@pytest.mark.parametrize(
    "rest",
    ["", "sys.exit(0)", "os._exit(0)", "[task.cancel() for task in tasks]\nscheduler.close()", FORK],
    ids=["end", "exit", "_exit", "cancel", "fork"],
)
def test_nothing_hangs(rest: str, _number: int) -> None:
    environment = {**os.environ, "PYGPUKIT_BACKEND": "sim"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CONTENTION + rest],
        env=environment, capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
