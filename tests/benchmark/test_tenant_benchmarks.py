"""Suites overcommit and churn: what goes wrong is counted, and what they promise holds on the simulation."""

from __future__ import annotations

import gc
import random
import threading
import time
from collections.abc import Iterator

import pytest

import pygpukit as gp
from bench import churn, overcommit
from bench.churn import Season, ledger, season_rows
from pygpukit import _core
from pygpukit.memory import pool
from pygpukit.scheduler import Scheduler, create_context


@pytest.fixture
def kernels() -> Iterator[overcommit.Kernels]:
    """What tenants launch; the memory limit and the memory of arrays, wherever it is, are in the end as they were."""
    before = figures()
    yield overcommit._kernels("sim")
    assert figures() == before


def figures() -> tuple[int, int]:
    """Bytes: the limit, and of arrays on the device and on the host."""
    gc.collect()
    stats = pool.stats()
    return stats["quota"], stats["used"] + stats["evicted"]


@pytest.fixture
def tenant(kernels: overcommit.Kernels) -> Iterator[overcommit.Churner]:
    """One without a quota, that has made nothing."""
    context = create_context("churner")
    made = overcommit.Churner(context, kernels, random.Random(0))
    yield made
    made.arrays.clear()
    made.wrong = None
    context.destroy()


@pytest.mark.parametrize("kept_mib", [(), (1,) * 20, (90, 3)], ids=["alone", "beside small ones", "beside large ones"])
def test_overcommitted_tenants_keep_every_byte_and_their_quotas(
    kernels: overcommit.Kernels, kept_mib: tuple[int, ...]
) -> None:
    """Beside arrays that nobody uses, and the holes that freed ones left between them."""
    kept = [gp.ones(mib << 18) for mib in kept_mib for _ in range(2)]
    del kept[::2]
    found = {row.name: row.value for row in overcommit.contest(kernels, 2, 0.3)}
    assert found["work"] and found["evictions"] and found["restores"], "nothing was overcommitted"
    assert found["requests over a quota"] and found["wrong bytes"] == found["refused within a quota"] == 0
    assert found["not refused with the exact numbers"] == 0
    assert all((array.to_numpy() == 1).all() for array in kept)


def test_without_overcommit_nothing_moves(kernels: overcommit.Kernels) -> None:
    found = {row.name: row.value for row in overcommit.contest(kernels, 1, 0.1)}
    assert found["evictions"] == found["restores"] == found["evicted"] == 0


def test_a_changed_byte_is_seen_by_the_host_and_by_the_kernel(tenant: overcommit.Churner) -> None:
    tenant.fill()
    assert tenant.wrong_bytes() == 0
    tenant.arrays[3][77] = int(tenant.arrays[3][77].item()) ^ 0x00FF0001
    gp.synchronize()
    assert tenant.wrong_bytes() == 2, "by the host"
    with tenant.context:
        tenant._visit(3)
    assert tenant.wrong_bytes() == 2, "by the kernel, which wrote over it"


def test_what_is_not_refused_is_counted(tenant: overcommit.Churner) -> None:
    with tenant.context:
        tenant._ask_too_much()
    assert (tenant.asked_too_much, tenant.refused_exactly) == (1, 0)


def test_tenants_that_join_and_leave_leave_nothing() -> None:
    gc.collect()
    used = pool.stats()["used"]
    found = {row.name: row for row in season_rows(60, 300.0)}
    assert found["tenants that joined"].value == 60
    for name in ("tasks lost", "tasks that ended twice", "tasks stuck", "wrong results", "left in the ledger"):
        assert found[name].value == 0, name
    assert found["events overwritten unread"].value == 0
    assert found["growth of file descriptors"].value == 0
    waits = [found[f"{wait}, p99"].samples for wait in ("submit to admit", "submit to start", "submit to done")]
    assert [len(us) for us in waits] == [60, 60, 60]
    assert all(0 < admit <= start < done for admit, start, done in zip(*waits, strict=True))
    gc.collect()
    assert pool.stats()["used"] == used


def test_what_a_season_leaves_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that does not end in time is stuck, and its partition and reservations are in the ledger until it does."""
    monkeypatch.setattr(churn, "PATIENCE_S", 0.05)
    let_go = threading.Event()
    monkeypatch.setattr(churn, "_work", lambda kernel, tenant: let_go.wait(30) and tenant != 2)
    kernel = gp.jit(churn.SOURCE, func="greet")
    with Scheduler() as scheduler:
        course = Season(scheduler, kernel, 1, 2, 1000.0).run()
        assert course.stuck == 2 and ledger(scheduler) > 2
        let_go.set()
    assert course.joined == 2 and not course.ends
    monkeypatch.setattr(churn, "PATIENCE_S", 20.0)
    with Scheduler() as scheduler:
        course = Season(scheduler, kernel, 1, 2, 1000.0).run()
        assert (course.wrong, course.stuck, ledger(scheduler)) == (1, 0, 0)


def test_a_refused_tenant_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(kernel: object, tenant: int) -> bool:
        raise gp.InvalidSpecError("no room", "memory")

    monkeypatch.setattr(churn, "_work", refused)
    with Scheduler() as scheduler, pytest.raises(gp.InvalidSpecError, match="no room"):
        Season(scheduler, gp.jit(churn.SOURCE, func="greet"), 1, 3, 1000.0).run()


def test_names_are_counted_without_the_probe_s_own() -> None:
    probe = churn.Probe()
    first = probe()["interned names"]
    assert probe()["interned names"] == first
    _core.intern(f"a name of this test {time.perf_counter_ns()}")
    assert probe()["interned names"] == first + 1
