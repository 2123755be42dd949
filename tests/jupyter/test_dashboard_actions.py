"""Control actions of the dashboards: what a press does, and that a bad one changes nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit.jupyter import control
from pygpukit.scheduler import Scheduler


def ask(action: str, **args: Any) -> dict[str, Any]:
    return control.answer({"id": 1, "action": action, "args": args})


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler(workers=2)
    yield made
    made._shut()


def test_controls_are_those_that_exist() -> None:
    actions = ask("controls")["result"]["actions"]
    assert actions == ["cancel", "pause", "resume", "quota", "trim"]
    for action in actions:
        assert "unknown action" not in ask(action).get("error", "")


def test_pause_holds_tasks_back_and_returns_at_once(scheduler: Scheduler) -> None:
    release = threading.Event()
    scheduler.start()
    running = scheduler.submit(release.wait, name="running")
    while running.record.phase != "Running":
        time.sleep(0.001)
    begun = time.monotonic()
    assert ask("pause")["ok"] is True
    assert time.monotonic() - begun < 1, "it does not wait for the task under way"
    time.sleep(0.1)
    waiting = scheduler.submit(lambda: 7, name="waiting")
    release.set()
    time.sleep(0.3)
    assert waiting.record.phase == "Admitted"
    assert ask("resume")["result"]["resumed"] >= 1
    assert waiting.result() == 7


def test_quota_is_set_in_bytes_or_words() -> None:
    gp.ones(1)
    before = _core.pool_stats(0).quota
    try:
        assert ask("quota", limit="512MB")["result"] == {"limit": 512 << 20, "note": "the limit is 512 MiB"}
        assert _core.pool_stats(0).quota == 512 << 20
        assert ask("quota", limit=64 << 20)["ok"] and _core.pool_stats(0).quota == 64 << 20
        for bad in (None, True, -1, 0, "0", "much", "-2GB", 1.5, [], {}, "9" * 40, float("nan")):
            answer = ask("quota", limit=bad)
            assert answer["ok"] is False and answer["error"], bad
        assert _core.pool_stats(0).quota == 64 << 20
    finally:
        _core.pool_set_limit(0, before)


def test_trim_releases_what_is_cached() -> None:
    gp.ones(1 << 20)
    answer = ask("trim")["result"]
    assert answer["released"] >= 0 and "released" in answer["note"]
    assert ask("trim")["result"]["released"] == 0


def test_cells_are_rows() -> None:
    assert isinstance(ask("cells")["result"]["rows"], list)
