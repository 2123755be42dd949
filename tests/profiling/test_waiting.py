"""Waits of a device: each cause from records that a test makes, and from work that really waited."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import profiling
from pygpukit.core import records
from pygpukit.core.records import Record
from pygpukit.profiling import Profile, Work, waiting

NAMES = ["", "a", "b", "unit", "task"]
numbers = count(1)


def record(kind: int, t_ns: int, name: str = "", a: int = 0, b: int = 0, stream: int = 0) -> Record:
    return Record(next(numbers), t_ns, kind, 0, stream, 0, NAMES.index(name), a, b, 0, 0, 0)


def work(name: str, begin: int, end: int, kind: str = "kernel", stream: int = 0, launches: int = 1) -> Work:
    return Work(name, kind, begin, end, 0, stream, "", "In [1]", 7, launches, 1, 1, 0)


def explained(works: list[Work], kept: list[Record], end: int, complete_ns: int = 0) -> list[tuple[int, int, str, str]]:
    log = waiting.Log(complete_ns)
    log.add(kept, NAMES.__getitem__)
    return [(wait.begin_ns, wait.end_ns, wait.cause, wait.detail) for wait in waiting.waits(works, 0, end, log)]


LAUNCH, COPY = records.LAUNCH, records.COPY


def test_the_host_was_late_or_the_device_was() -> None:
    works = [work("a", 100, 200), work("b", 1200, 1300), work("a", 2300, 2400)]
    kept = [record(LAUNCH, 90, "a"), record(LAUNCH, 1190, "b"), record(LAUNCH, 1250, "a")]
    assert explained(works, kept, 2500) == [
        (0, 100, waiting.HOST, ""),
        (200, 1200, waiting.HOST, ""),
        (1300, 2300, waiting.START, "submitted 1.1 us before it began"),
        (2400, 2500, waiting.END, ""),
    ]


def test_a_compile_a_limit_a_read_and_an_idle_notebook_are_kept_apart() -> None:
    works = [
        work("copy to the host", 0, 100, "copy"),
        work("a", 1100, 1200),
        work("a", 2200, 2300),
        work("a", 9300, 9400),
    ]
    kept = [
        record(COPY, 100, b=1),
        record(LAUNCH, 1090, "a"),
        record(records.COMPILE, 2100, "unit", a=800),
        record(records.COMPILE, 2101, "task", a=800, b=2),  # from the disk: no compile
        record(LAUNCH, 2190, "a"),
        record(records.CELL_END, 2350),
        record(records.EVICT, 3000),
        record(records.EVICT, 3001),
        record(records.RESTORE, 3002),
        record(records.CELL_BEGIN, 9200),
        record(LAUNCH, 9290, "a"),
    ]
    assert [(cause, detail) for _, _, cause, detail in explained(works, kept, 9400)] == [
        (waiting.RESULT, ""),
        (waiting.COMPILING, "unit"),
        (waiting.CELL, "memory was evicted 2 times, memory was restored 1 times"),
    ]
    held = [record(records.THROTTLE, 1000, "task", b=700), record(LAUNCH, 1090, "a")]
    assert explained([work("a", 1100, 1200)], held, 1200) == [(0, 1100, waiting.LIMIT, "")]


def test_records_that_are_gone_are_no_cause() -> None:
    works = [work("a", 100, 200), work("a", 400, 500), work("a", 900, 950)]
    assert [cause for _, _, cause, _ in explained(works, [], 950)] == [waiting.UNKNOWN] * 3
    later = [record(LAUNCH, 880, "a")]
    assert [cause for _, _, cause, _ in explained(works, later, 950, 450)] == [waiting.UNKNOWN] * 2 + [waiting.HOST]
    assert [cause for _, _, cause, _ in explained(works, later, 950)] == [waiting.UNKNOWN] * 2 + [waiting.HOST]


def test_launches_of_a_graph_are_not_those_that_come_after() -> None:
    works = [work("graph of 2 launches from a", 10, 100, "graph", launches=2), work("b", 1000, 1100)]
    kept = [record(LAUNCH, 9, "a"), record(LAUNCH, 9, "b"), record(LAUNCH, 990, "b")]
    assert [cause for _, _, cause, _ in explained(works, kept, 1100)] == [waiting.HOST, waiting.HOST]


def test_streams_overlap_and_devices_wait_for_themselves() -> None:
    rng = np.random.default_rng()
    works, kept = [], []
    for begin in sorted(rng.integers(0, 10_000, 300).tolist()):
        stream = int(rng.integers(3))
        works.append(work("a", begin, begin + int(rng.integers(0, 200)), stream=stream))
        kept.append(record(LAUNCH, begin, "a", stream=stream))
    stretches = explained(works, kept, 20_000)
    busy = np.zeros(20_000, bool)
    for one in works:
        busy[one.begin_ns : one.end_ns] = True
    for begin, end, _, _ in stretches:
        assert not busy[begin:end].any()
        busy[begin:end] = True
    assert busy.all()


@pytest.fixture
def profiled(backend_name: str) -> Iterator[Profile]:
    """Work, a pause of the host, a result that is read, and work again."""
    x = gp.ones(100)
    gp.add(x, x)
    gp.synchronize()
    with profiling.profile() as p:
        gp.add(x, x)
        gp.synchronize()
        time.sleep(0.05)
        gp.add(x, x).to_numpy()
        time.sleep(0.05)
        gp.add(x, x)
    yield p


def test_real_work_that_waited(profiled: Profile) -> None:
    long = profiled.waits(min_us=49_000)
    assert [wait.cause for wait in long] == [waiting.HOST, waiting.RESULT]
    assert all(wait.duration_us >= 49_000 and wait.device == 0 for wait in long)
    assert waiting.HOST in str(profiled) and waiting.RESULT in profiled._repr_html_()
    idle = sum(wait.end_ns - wait.begin_ns for wait in profiled.waits(min_us=0))
    assert idle == profiled.wall_ns - profiled.busy_ns


def test_a_profile_without_works_waited_for_nothing(backend_name: str) -> None:
    with profiling.profile() as p:
        pass
    assert p.waits() == [] and "waited" not in str(p)
