"""Partitions of isolation "timesliced": workers of one device that take turns, one task at a time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import process_functions as work
import pytest
from process_help import kept
from scheduler_help import PATIENCE_S, wait_until

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.scheduler import Scheduler
from pygpukit.worker import WorkerDiedError


def turn(folder: str) -> tuple[int, bool]:
    """The process, and whether nobody else had its turn meanwhile: each leaves a file while it has one."""
    mine = Path(folder) / str(os.getpid())
    mine.touch()
    alone = []
    for _ in range(10):
        alone.append([one.name for one in Path(folder).iterdir()] == [mine.name])
        time.sleep(0.002)
    mine.unlink()
    return os.getpid(), all(alone)


def with_turns(names: str = "ab") -> Scheduler:
    scheduler = Scheduler(total_memory="100MB")
    for name in names:
        scheduler.create_partition(name, memory="20MB", bandwidth=0.2, isolation="timesliced")
    return scheduler


def test_workers_have_the_device_in_turns(tmp_path: Path) -> None:
    with with_turns("abc") as scheduler:
        tasks = [scheduler.submit(turn, str(tmp_path), partition=name) for _ in range(4) for name in "abc"]
        results = [task.result(PATIENCE_S) for task in tasks]
    assert all(alone for _, alone in results)
    assert len({pid for pid, _ in results}) == 3 and os.getpid() not in {pid for pid, _ in results}
    assert kept(scheduler)


def test_what_runs_here_goes_on_beside_a_turn(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    with with_turns() as scheduler:
        first = scheduler.submit(work.wait_for, str(flag), partition="a")
        second = scheduler.submit(work.pid, partition="b")
        wait_until(lambda: first.phase == "Running")
        assert scheduler.submit(lambda: float(gp.ones(3).to_numpy()[0])).result(PATIENCE_S) == 1.0
        assert second.phase == "Admitted", "it waits for the turn of the other one"
        flag.touch()
        assert first.result(PATIENCE_S) == "waited" and second.result(PATIENCE_S)


def test_a_worker_that_dies_gives_its_turn_back() -> None:
    with with_turns() as scheduler:
        dies = scheduler.submit(work.leave, 3, partition="a")
        after = [scheduler.submit(work.pid, partition=name) for name in "ba"]
        with pytest.raises(WorkerDiedError, match="exit code 3"):
            dies.result(PATIENCE_S)
        assert len({task.result(PATIENCE_S) for task in after}) == 2
        faults = scheduler.submit(work.fault, partition="b")
        assert scheduler.submit(work.pid, partition="a").result(PATIENCE_S)
        assert faults.phase == "Failed"
    assert kept(scheduler)


def test_a_cancelled_turn_ends_with_its_worker() -> None:
    with with_turns() as scheduler:
        endless = scheduler.submit(work.spin_for_ever, partition="a")
        waits = scheduler.submit(work.pid, partition="b")
        wait_until(lambda: endless.phase == "Running")
        scheduler.cancel(endless)
        assert waits.result(PATIENCE_S)
    assert kept(scheduler)


def test_the_level_stays_and_pausing_is_refused(tmp_path: Path) -> None:
    with with_turns() as scheduler:
        with pytest.raises(InvalidSpecError, match="'a' is 'timesliced' and cannot become 'process'"):
            scheduler.resize_partition("a", isolation="process")
        flag = tmp_path / "flag"
        task = scheduler.submit(work.wait_for, str(flag), partition="a")
        wait_until(lambda: task.phase == "Running")
        with pytest.raises(RuntimeError, match="worker process"):
            scheduler.pause(task)
        flag.touch()
        task.result(PATIENCE_S)
