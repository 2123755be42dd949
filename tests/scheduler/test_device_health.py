"""A device that failed: which reason its tasks end with, what is refused from then on, and that it comes back."""

from __future__ import annotations

from typing import Any

import process_functions as work
import pytest
from mock_cuda import build, run
from scheduler_help import PATIENCE_S, wait_until
from sim_table import start

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core import faults
from pygpukit.core.errors import ContextLostError, DriverError, TaskRejectedError
from pygpukit.scheduler import Scheduler
from pygpukit.scheduler.runner import reason_of

ENDLESS = """
import process_functions as work
import pygpukit as gp
from pygpukit._core import native
from pygpukit.scheduler import Scheduler
scheduler = Scheduler(total_memory="100MB", workers=1, start=False)
"""


def failure(task: Any) -> Exception:
    with pytest.raises(DriverError) as caught:
        task.result(PATIENCE_S)
    return caught.value


# ---- the watchdog ----


def test_a_kernel_that_the_watchdog_ended_is_its_tasks_reason_and_is_not_run_again() -> None:
    start(
        ENDLESS
        + """
task = scheduler.submit(work.spin_for_ever, retry=3, idempotent=True)
try:
    task.result(60)
except gp.DriverError as error:
    assert error.code == 702 and "longer than 0.3 s" in str(error), error
assert (task.phase, task.reason, task.execution_count) == ("Failed", "WatchdogTimeout", 1), task
assert "PYGPUKIT_SIM_TIMEOUT_S" in task.stats().error
assert scheduler.submit(lambda: float(gp.ones(3).to_numpy().sum())).result(60) == 3, "the simulated device works on"
""",
        PYGPUKIT_SIM_TIMEOUT_S="0.3",
    )


def test_in_a_worker_too_and_the_worker_is_replaced(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_TIMEOUT_S", "0.3")
    scheduler.create_partition("p", memory="40MB", bandwidth=0.2, isolation="process")
    task = scheduler.submit(work.spin_for_ever, partition="p", retry=3, idempotent=True)
    error = failure(task)
    assert "in the worker of partition 'p'" in str(error) and "longer than 0.3 s" in str(error)
    assert (task.phase, task.reason, task.execution_count) == ("Failed", "WatchdogTimeout", 1)
    lost = scheduler.worker_processes()[0]
    assert lost.losses == 1 and "longer than 0.3 s" in lost.cause
    assert scheduler.submit(work.echo, 7, partition="p").result(PATIENCE_S) == 7, "a fresh worker is healthy"


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_kernel_that_somebody_cancelled_is_no_matter_of_the_watchdog(scheduler: Scheduler, cancelled: bool) -> None:
    task = scheduler.submit(work.spin_for_ever, memory="1MB")
    scheduler.start()
    wait_until(lambda: task.stats().launches > 0)
    if cancelled:
        assert task.cancel()
    # A launch that the gate still held went with its task.
    wait_until(lambda: native.sim_cancel() > 0 or scheduler.reserved_memory == 0)
    wait_until(lambda: scheduler.reserved_memory == 0)
    expected = ("Cancelled", "") if cancelled else ("Failed", "StickyDeviceError")
    assert (task.phase, task.reason) == expected
    wait_until(lambda: not native.busy_streams())


def test_what_a_lost_context_answers_later_is_not_the_watchdogs(monkeypatch: pytest.MonkeyPatch) -> None:
    first, later = (ContextLostError("", faults.TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT") for _ in range(2))
    monkeypatch.setattr(faults, "_lost", first)
    assert [reason_of(error) for error in (first, later)] == ["WatchdogTimeout", "StickyDeviceError"]
    assert reason_of(DriverError("", faults.TIMEOUT)) == "WatchdogTimeout"


# ---- a device that answers nothing ----


def break_the_simulated_device() -> str:
    """A fault that a launch met and no wait has cleared; what it says."""
    kernel, x = gp.jit(work.SOURCE, func="wild"), gp.zeros(64)
    kernel[2, 32](x)
    told: list[str] = []

    def seen() -> bool:
        try:
            kernel[2, 32](x)
        except DriverError as error:
            told.append(str(error))
        return bool(told)

    wait_until(seen)
    return told[0]


def test_a_failed_device_is_refused_until_it_is_cleared(scheduler: Scheduler) -> None:
    scheduler.create_partition("p", memory="10MB", isolation="process")
    admitted = scheduler.submit(lambda: 1, memory="60MB")
    waiting = scheduler.submit(lambda: 2, memory="60MB")
    told = break_the_simulated_device()
    try:
        refused = scheduler.submit(lambda: 3)
        later = scheduler.submit(lambda: 4, depends_on=refused)
        with pytest.raises(TaskRejectedError) as caught:
            refused.result(PATIENCE_S)
        assert caught.value.reason == refused.reason == "DeviceUnhealthy" and refused.phase == "Rejected"
        for words in (told, "kernel wild", "pygpukit.synchronize()", 'isolation="process"'):
            assert words in str(caught.value) and words in refused.stats().error
        assert (waiting.phase, waiting.reason) == ("Rejected", "DeviceUnhealthy")
        assert (admitted.phase, admitted.reason) == ("Failed", "StickyDeviceError")
        with pytest.raises(gp.GPUError, match="kernel wild"):
            admitted.result(PATIENCE_S)
        assert later.phase == "Rejected"
        assert scheduler.submit(work.echo, 5, partition="p").result(PATIENCE_S) == 5, "its device is another"
        other = Scheduler(total_memory="1MB", start=False)
        assert other.submit(lambda: 6).reason == "DeviceUnhealthy", "every scheduler of the process knows"
    finally:
        with pytest.raises(DriverError, match="kernel wild"):
            gp.synchronize()
    assert scheduler.submit(lambda: float(gp.ones(3).to_numpy().sum())).result(PATIENCE_S) == 3
    assert scheduler.reserved_memory == 0


def test_a_task_that_breaks_the_simulated_device_leaves_it_cleared(scheduler: Scheduler) -> None:
    bad = scheduler.submit(break_the_simulated_device)
    assert "kernel wild" in str(failure(bad)) and bad.reason == "StickyDeviceError"
    assert scheduler.submit(lambda: 1).result(PATIENCE_S) == 1


def test_the_remedy_names_the_device_that_failed() -> None:
    start(
        ENDLESS
        + """
import time
native.set_device(1)
kernel, x, error = gp.jit(work.SOURCE, func="wild"), gp.zeros(64), None
while error is None:
    try:
        kernel[2, 32](x)
        time.sleep(0.001)
    except gp.DriverError as raised:
        error = raised
native.set_device(0)
gp.synchronize()  # of another device
refused = scheduler.submit(lambda: 1)
assert refused.reason == "DeviceUnhealthy"
for words in ("simulated device 1 has failed", "A wait on device 1, such as pygpukit.synchronize()"):
    assert words in refused.stats().error, refused.stats().error
native.set_device(1)
try:
    gp.synchronize()
except gp.DriverError:
    native.set_device(0)
assert scheduler.submit(lambda: 1).result(60) == 1
""",
        PYGPUKIT_SIM="devices=2",
    )


LOST = """
import os
from pygpukit.scheduler import Scheduler
kernel = gp.jit("__global__ void slow(float* x, int n) { x[0] = 1; }", func="slow")
x = gp.ones(1000)
scheduler = Scheduler(total_memory="100MB", start=False)
def breaks():
    kernel[4, 64](x, 5)
    os.environ["MOCK_CUDA_FAIL"] = ",".join(f"{name}:702" for name in (
        "cuStreamQuery", "cuLaunchKernel", "cuMemcpyDtoHAsync", "cuMemCreate", "cuEventQuery"))
    gp.synchronize()
task = scheduler.submit(breaks, memory="60MB", retry=3)
admitted = scheduler.submit(lambda: 1)
waiting = scheduler.submit(lambda: 2, memory="60MB")
assert scheduler.step() is task
assert (task.phase, task.reason, task.execution_count) == ("Failed", "WatchdogTimeout", 1), (task, task.stats().error)
assert (admitted.phase, admitted.reason) == ("Failed", "StickyDeviceError"), admitted
assert (waiting.phase, waiting.reason) == ("Rejected", "DeviceUnhealthy"), waiting
for made in (scheduler, Scheduler(total_memory="1MB")):
    refused = made.submit(lambda: 3)
    try:
        refused.result(60)
    except gp.TaskRejectedError as error:
        print(error)
    assert refused.reason == "DeviceUnhealthy"
"""


def test_on_cuda_it_stays_refused() -> None:
    if gp.get_nvrtc_version() is None:
        pytest.skip("NVRTC is not installed (extra cuda13)")
    lines = run(LOST, build() / "mock").splitlines()
    assert len(lines) == 2
    for line in lines:
        for words in ("was rejected: the device has failed: ", "slow (4 blocks of 64", "Restart the process"):
            assert words in line
