"""The past of a process is recorded whether somebody looks or not, and every view gets it, whenever it opens."""

from __future__ import annotations

import sys
import time
from types import ModuleType

import pytest

from pygpukit._core import native
from pygpukit.core import recording
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry import feed, sampler
from pygpukit.telemetry import past as past_module
from pygpukit.telemetry.past import Past

PATIENCE_S = 60.0


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> sampler.Sampler:
    """A sampler and a past of this test's own."""
    made, noted = sampler.Sampler(), Past()
    monkeypatch.setattr(sampler, "IDLE_S", 0.06)
    monkeypatch.setattr(sampler, "_sampler", made)
    for module in (sampler, feed, past_module):
        monkeypatch.setattr(module, "past", noted)
    return made


def work() -> None:
    native.host_launch("work", lambda: time.sleep(0.2), [])


def test_a_view_that_opens_after_the_run_gets_what_was_recorded(
    fresh: sampler.Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    try:
        with Scheduler(total_memory="1GB") as scheduler:
            assert fresh.running() and not fresh.sending(), "recorded from the first scheduler on, with nobody looking"
            time.sleep(0.2)  # a first note
            scheduler.submit(work, name="early", memory="1MB", bandwidth=0.5).result(PATIENCE_S)
            until = time.monotonic() + PATIENCE_S
            while time.monotonic() < until and not told_of("early"):
                time.sleep(0.02)
        assert told_of("early") > 100_000_000
    finally:
        fresh.stop()


def told_of(tenant: str) -> int:
    """Device time of a tenant in the past that a view gets that opens now."""
    messages, _, _ = feed.Feed("test").begin()
    rows = next((content["rows"] for content, _ in messages if content["type"] == "past"), [])
    return sum(ns for _, _, had in rows for name, ns in had if name == tenant)


def test_outside_of_notebooks_nothing_is_recorded(fresh: sampler.Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    recording.begin()
    assert not fresh.running()
