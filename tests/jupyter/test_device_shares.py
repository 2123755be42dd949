"""What the dashboards call achieved is the device time that the scheduler measured, of tasks that still run too."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import pygpukit as gp
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry import feed


def gpu_ns_of(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {row["name"]: row["gpuNs"] for row in rows if row["name"] in ("large", "small")}


def test_reported_device_times_are_those_of_the_scheduler_while_tasks_run() -> None:
    stop = threading.Event()

    def add(elements: int) -> Callable[[], None]:
        def work() -> None:
            array = gp.ones(elements)
            while not stop.is_set():
                array + array
                time.sleep(0.001)

        return work

    with Scheduler(workers=2) as scheduler:
        tasks = [scheduler.submit(add(size), name=name) for size, name in ((1 << 18, "large"), (1 << 12, "small"))]
        subscriber = feed.Feed("test")
        try:
            deadline = time.monotonic() + 60
            while not all(task.stats().launches > 50 for task in tasks):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            before = {task.name: task.stats().gpu_ns for task in tasks}
            told = gpu_ns_of(subscriber.snapshot()["tasks"])
            after = {task.name: task.stats().gpu_ns for task in tasks}
            assert all(0 < before[name] <= told[name] <= after[name] for name in before), (before, told, after)
        finally:
            stop.set()
        for task in tasks:
            task.result(60)
        ended = gpu_ns_of(subscriber.snapshot()["tasks"])
        assert ended == {task.name: task.stats().gpu_ns for task in tasks}


def test_the_device_is_measured_before_the_tasks_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    class Core:
        def devices(self) -> list[Any]:
            calls.append("measure")
            return []

        def tasks(self) -> list[Any]:
            calls.append("read")
            return []

    made = [Core(), Core()]
    monkeypatch.setattr("pygpukit.scheduler.live_cores", lambda: made)
    started = {"started": True, "closed": False}
    shown = [SimpleNamespace(label=str(number), core=core, **started) for number, core in enumerate(made)]
    monkeypatch.setattr("pygpukit.scheduler.all_schedulers", lambda: shown)
    feed.Feed("test").snapshot()
    assert calls == ["measure", "read", "read"]
