"""Texts that UTF-8 cannot hold, and exceptions that cannot be told: no thread of a scheduler ends of them."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import process_functions as work
import pytest
from process_help import P, with_process
from scheduler_help import PATIENCE_S, wait_until

import _pygpukit_rust as rust
import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import CompileError
from pygpukit.core.text import storable
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.scheduler import MB, Scheduler

FOREIGN = os.fsdecode(b"\xff.bin")  # a lone surrogate
ESCAPED = r"\udcff.bin"


class Silent(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError(FOREIGN)


def raising(error: BaseException) -> Any:
    def fails() -> None:
        raise error

    return fails


@pytest.fixture
def two_workers() -> Any:
    made = Scheduler(total_memory="100MB", workers=2, start=False)
    yield made
    made._shut(PATIENCE_S)


def all_dispatch(scheduler: Scheduler) -> bool:
    """Whether both dispatchers can still be in a task, at once."""
    both = threading.Barrier(2)
    tasks = [scheduler.submit(lambda: both.wait(PATIENCE_S)) for _ in range(2)]
    return sorted(task.result(PATIENCE_S) for task in tasks) == [0, 1]


@pytest.mark.parametrize("error", [ValueError("cannot read " + FOREIGN), Silent(), Silent("\ud800")], ids=type)
def test_dispatchers_survive_what_a_task_raises(two_workers: Scheduler, error: Exception) -> None:
    tasks = [two_workers.submit(raising(error), name="r") for _ in range(4)]
    for task in tasks:
        with pytest.raises(type(error)):
            task.result(PATIENCE_S)
        told = task.record.error
        assert (ESCAPED in told) if isinstance(error, ValueError) else told.startswith("Silent: its text could not")
    assert all_dispatch(two_workers)


def test_dispatchers_survive_a_report_that_fails(two_workers: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    from pygpukit.scheduler import runner

    told: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    with monkeypatch.context() as patched:
        patched.setattr(runner, "report", raising(OSError("no way to tell")))
        patched.setattr(runner, "report", lambda *_, **__: raising(OSError("no way to tell"))())
        tasks = [two_workers.submit(lambda: None) for _ in range(4)]
        for task in tasks:
            with pytest.raises(gp.GPUError, match="telling the core how it ended failed: OSError"):
                task.result(PATIENCE_S)
    wait_until(lambda: len(told) == 4)
    assert all_dispatch(two_workers)


def test_dispatchers_survive_a_callback_that_exits(two_workers: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    gate = threading.Event()
    tasks = [two_workers.submit(gate.wait) for _ in range(2)]
    for task in tasks:
        task._future.add_done_callback(lambda _: raising(SystemExit(3))())
    gate.set()
    for task in tasks:
        assert task.result(PATIENCE_S) is True
    assert all_dispatch(two_workers)


def test_a_worker_process_survives_them() -> None:
    scheduler = with_process(Scheduler(total_memory="100MB", start=False))
    try:
        for _ in range(2):
            with pytest.raises(LookupError, match="cannot read"):
                scheduler.submit(work.fail, "cannot read " + FOREIGN, **P).result(PATIENCE_S)
        assert scheduler.submit(work.echo, FOREIGN, **P).result(PATIENCE_S) == FOREIGN
    finally:
        scheduler._shut(PATIENCE_S)


def test_every_name_enters_the_core() -> None:
    assert _core.name(_core.intern(FOREIGN)) == ESCAPED
    scheduler = Scheduler(total_memory="100MB", start=False)
    try:
        scheduler.create_partition(FOREIGN, memory=MB)
        task = scheduler.submit(lambda: 3, name=FOREIGN, partition=FOREIGN)
        assert task.result(PATIENCE_S) == 3
        assert task.record.name == ESCAPED
        scheduler.delete_partition(FOREIGN)
    finally:
        scheduler._shut(PATIENCE_S)
    array = gp.zeros(3)
    array.name = FOREIGN
    assert array.name == ESCAPED
    native.host_launch(FOREIGN, lambda: None, [])


def test_every_text_enters_the_documented_classes() -> None:
    table = rust.Scheduler()
    task = rust.TaskMeta(FOREIGN, FOREIGN)
    assert table.submit(task) == ESCAPED
    assert table.start_task(FOREIGN)
    assert table.fail_task(FOREIGN, FOREIGN)
    assert table.get_task(FOREIGN).error == ESCAPED
    partitions = rust.PartitionManager(rust.PartitionConfig(total_memory=1 << 20))
    partitions.create_partition(FOREIGN, FOREIGN, rust.PartitionLimits())
    partitions.assign_task(FOREIGN, FOREIGN)
    assert partitions.get_task_partition(FOREIGN).id == ESCAPED
    assert rust.QosTaskMeta.best_effort(FOREIGN, FOREIGN).name == ESCAPED


def test_kernel_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = gp.jit(f"// {FOREIGN}\n__global__ void k(int *o) {{ *o = 7; }}", "k")
    out = gp.zeros(1, dtype="int32")
    kernel(out)
    assert out.to_numpy()[0] == 7
    with pytest.raises(CompileError) as caught:
        compile_source("__global__ void k(int *o) {\n  *o = \udcff;\n}", arch="sim", name=FOREIGN)
    assert caught.value.diagnostics[0].line == 2


def test_texts_stay_as_they_are_where_they_can() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        text = "".join(map(chr, rng.integers(0, 0xD800, 20)))
        assert storable(text) == text and _core.name(_core.intern(text)) == text
        broken = text + chr(0xD800 + int(rng.integers(0x800)))
        assert storable(broken).encode() and _core.name(_core.intern(broken)) == storable(broken)
