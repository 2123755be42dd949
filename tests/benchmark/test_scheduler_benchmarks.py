"""Suite scheduler: kernels that count their ends, requests by a schedule, and a row for every goal."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from bench import scheduler_latency as latency
from bench.scheduler_latency import KERNELS, Seen, arrivals, closed_loop, open_loop
from bench.scheduler_load import Tenant, make_tenant
from pygpukit import _core
from pygpukit.benchmark.goals import GOALS
from pygpukit.scheduler import Scheduler

LOADS = ("multiply_adds", "storm", "triad", "one_wave")


@pytest.mark.parametrize("of_memory", [False, True])
def test_kernels_count_their_ends(of_memory: bool) -> None:
    tenant = make_tenant(f"counted_{of_memory}", 200.0, waves=3, of_memory=of_memory)
    before = tenant.ended()
    tenant.launch(37)
    _core.native.synchronize()
    assert tenant.ended() - before == 37
    with Scheduler(workers=1) as scheduler:
        task = scheduler.submit(tenant.launch, 23, bandwidth=0.5)
        task.result()
        _core.native.synchronize()
        assert tenant.ended() - before - 37 == task.stats().launches == 23


def test_arrivals_are_at_random_and_the_same_each_time() -> None:
    due = arrivals(4000, 200.0)
    assert due == arrivals(4000, 200.0) and due == sorted(due)
    assert arrivals(4000, 400.0) == pytest.approx([at / 2 for at in due])
    assert due[-1] / 4000 == pytest.approx(1 / 200, rel=0.1)
    gaps = [late - early for early, late in pairwise(due)]
    mean = sum(gaps) / len(gaps)
    assert sum((gap - mean) ** 2 for gap in gaps) / len(gaps) == pytest.approx(mean**2, rel=0.2), "not memoryless"


def test_a_request_that_waits_for_the_last_is_late_by_that() -> None:
    slow = Tenant("slow", lambda _: time.sleep(0.02), 100.0, lambda: 0)
    in_turn = open_loop([0.0, 0.001, 0.002])(slow)
    assert [us >= 20_000 * (i + 1) - 1000 * i for i, us in enumerate(in_turn)] == [True] * 3
    begin = time.perf_counter()
    open_loop([0.03])(slow)
    assert time.perf_counter() - begin >= 0.05, "before it was due"


def test_a_guaranteed_tenant_beside_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "SETTLE_S", 0.2)  # the load is under way by then, on a busy host, too
    asking, load = make_tenant("asks", 100.0), make_tenant("beside", 200.0)
    seen = latency._gated(asking, load, closed_loop(4), 0.5, "guaranteed")
    assert len(seen.us) == 4 and seen.asked == 4 * KERNELS and seen.loaded > 0
    assert seen.seconds >= sum(seen.us) / 1e6


def test_every_goal_of_guaranteed_tenants_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def gated(asking: Tenant, load: Tenant | None, _: object, bandwidth: float, policy: str) -> Seen:
        assert policy == "guaranteed"
        us = [1000.0, 1000.0] if load is None else [1000.0, 1080.0]
        return Seen(us, 2.0, 5000, 700, 0.0)

    monkeypatch.setattr(latency, "_gated", gated)
    monkeypatch.setattr(Tenant, "alone_us", lambda tenant: tenant.kernel_us)
    asking = Tenant("request", lambda _: None, 100.0, lambda: 0)
    loads = [Tenant(name, lambda _: None, 2000.0, lambda: 0) for name in LOADS]
    rows = {row.key: row for row in latency.guaranteed_rows(asking, loads, 2)}
    goals = {goal.key for goal in GOALS if "guaranteed request" in goal.key}
    assert len(goals) == 6 and goals <= rows.keys()
    of_storm = "[bandwidth=0.5,load=storm]"
    assert rows[f"scheduler/guaranteed request beside a load over alone, p99{of_storm}"].value == pytest.approx(1.08)
    assert rows[f"scheduler/total throughput kept{of_storm}"].value == pytest.approx(25 + 70)

    names = {row.key for row in latency.open_loop_rows(asking, loads, 2)}
    for load in latency.OPEN_LOADS:
        for rate in latency.RATES:
            for part in latency.PARTS:
                assert f"scheduler/open-loop request alone, {part}[rate={rate}]" in names
                assert f"scheduler/open-loop request beside a load over alone, {part}[load={load},rate={rate}]" in names
