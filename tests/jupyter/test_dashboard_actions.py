"""Control actions of the dashboards: what a press does, and that a bad one changes nothing."""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

import _pygpukit_rust as rust
import pygpukit as gp
from pygpukit import _core
from pygpukit.jupyter import control
from pygpukit.jupyter.widgets.fallback import memory_html, scheduler_html
from pygpukit.jupyter.widgets.source import LiveSource
from pygpukit.scheduler import Scheduler, contexts, create_context
from pygpukit.telemetry import feed, rows, state, trace


def ask(action: str, **args: Any) -> dict[str, Any]:
    return control.answer({"id": 1, "action": action, "args": args})


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler(workers=2, start=False)
    yield made
    made._shut()


def test_controls_are_those_that_exist() -> None:
    actions = ask("controls")["result"]["actions"]
    assert actions == ["cancel", "pause", "resume", "pause_task", "resume_task", "quota", "share", "priority", "trim"]
    for action in actions:
        assert "unknown action" not in ask(action).get("error", "")


def test_pause_holds_tasks_back_and_returns_at_once(scheduler: Scheduler) -> None:
    release = threading.Event()
    scheduler.start()
    threads = list(scheduler._desk._threads)
    running = scheduler.submit(release.wait, name="running")
    while running.record.phase != "Running":
        time.sleep(0.001)
    assert ask("pause")["ok"] is True  # and does not wait for the task under way, which would be for ever
    while sum(thread.is_alive() for thread in threads) > 1:
        time.sleep(0.001)
    waiting = scheduler.submit(lambda: 7, name="waiting")
    release.set()
    for thread in threads:
        thread.join()
    assert waiting.record.phase == "Admitted"
    assert ask("resume")["result"]["resumed"] >= 1
    assert waiting.result() == 7


def test_what_is_pressed_last_counts(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler.start()
    late: list[threading.Thread] = []  # what the pause leaves to threads, which run when they can
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda thread: late.append(thread))
        ask("pause")
    assert not scheduler._desk.running
    ask("resume")
    for thread in late:
        thread.start()
        thread.join()
    assert scheduler._desk.running
    assert scheduler.submit(lambda: 7).result(timeout=60) == 7


def test_one_task_is_paused_and_goes_on(scheduler: Scheduler) -> None:
    held, other = scheduler.submit(int, name="train"), scheduler.submit(int, name="serve")
    assert ask("pause_task", task=held.id)["result"] == {"changed": True, "note": "train is paused"}
    assert ask("pause_task", task=held.id)["result"] == {"changed": False, "note": "train was paused already"}
    assert (held.paused, held.phase, other.paused, other.phase) == (True, "Queued", False, "Admitted")
    [row] = [row for row in ask("snapshot")["result"]["tasks"] if row["id"] == held.id]
    assert (row["paused"], row["reason"]) == (True, "WaitingForResume")
    assert ask("resume_task", task=held.id)["result"] == {"changed": True, "note": "train goes on"}
    assert ask("resume_task", task=held.id)["result"] == {"changed": False, "note": "train was not paused"}
    assert (held.paused, held.phase) == (False, "Admitted")
    held.cancel()
    for action in ("pause_task", "resume_task"):
        assert "has ended" in ask(action, task=held.id)["error"]
        for bad in (None, 3, "nobody", "x" * 100_000, []):
            answer = ask(action, task=bad)
            assert answer["ok"] is False and len(answer["error"]) < 200, bad


def test_quota_is_set_in_bytes_or_words() -> None:
    gp.ones(1)
    before = _core.pool_stats(0).quota
    room = (_core.pool_stats(0).reserved >> 30) + 1  # earlier tests may have left arrays behind
    try:
        answer = ask("quota", limit=f"{room}GiB")
        assert answer["result"] == {"limit": room << 30, "note": f"the limit is {room} GiB"}
        assert _core.pool_stats(0).quota == room << 30
        assert ask("quota", limit=(room + 1) << 30)["ok"] and _core.pool_stats(0).quota == (room + 1) << 30
        for bad in (None, True, -1, 0, "0", "much", "-2GB", 1.5, [], {}, "9" * 40, float("nan")):
            answer = ask("quota", limit=bad)
            assert answer["ok"] is False and answer["error"], bad
        assert _core.pool_stats(0).quota == (room + 1) << 30
    finally:
        _core.pool_set_limit(0, before)


def test_trim_releases_what_is_cached() -> None:
    gc.collect()  # what earlier tests left in cycles would come to the cache between the two requests
    gp.ones(1 << 20)
    gp.synchronize()
    answer = ask("trim")["result"]
    assert answer["released"] >= 0 and "released" in answer["note"]
    assert ask("trim")["result"]["released"] == 0


def test_cells_are_rows() -> None:
    assert isinstance(ask("cells")["result"]["rows"], list)


def test_priority_and_share_of_a_task_act_at_once(scheduler: Scheduler) -> None:
    task = scheduler.submit(int, name="train", bandwidth=0.2)
    assert ask("priority", task=task.id, priority="5")["result"] == {"priority": 5, "note": "train has priority 5"}
    assert task.priority == 5
    for written, share in (("30 %", 0.3), ("0.4", 0.4), (0.5, 0.5), ("12.5%", 0.125), (0, 0.0)):
        answer = ask("share", task=task.id, share=written)
        assert answer["ok"] and task.bandwidth == share, written
    assert ask("share", task=task.id, share="30 %")["result"]["note"] == "train is promised 30 % of the device"


def test_the_share_of_a_partition_acts_at_once(scheduler: Scheduler) -> None:
    scheduler.create_partition("serving", memory="1MB", bandwidth=0.2)
    answer = ask("share", partition="serving", share="40 %")
    assert answer["result"]["note"] == "partition serving keeps 40 % of the device"
    assert scheduler.partitions.get("serving").limits.compute_share == 0.4
    assert "no partition" in ask("share", partition="other", share=0.1)["error"]


NO_NUMBERS = (None, True, "", "much", "nan", "inf", [], {}, float("nan"), float("inf"), 10**400, "1" * 40)


def test_bad_priorities_and_shares_are_refused_with_a_sentence_and_change_nothing(scheduler: Scheduler) -> None:
    task = scheduler.submit(int, bandwidth=0.2, priority=1)
    for bad in (*NO_NUMBERS, 1.5, "2.5", 2**31, "-1e30"):
        answer = ask("priority", task=task.id, priority=bad)
        assert answer["ok"] is False and "priority" in answer["error"], bad
    for bad in (*NO_NUMBERS, -0.1, "101 %", 2, "-1 %"):
        answer = ask("share", task=task.id, share=bad)
        assert answer["ok"] is False and "share" in answer["error"], bad
    for bad in (None, 3, "nobody", "x" * 100_000, []):
        for action in ("priority", "share"):
            answer = ask(action, task=bad, priority=1, share=0.1)
            assert answer["ok"] is False and len(answer["error"]) < 200, bad
    assert (task.priority, task.bandwidth) == (1, 0.2)


def test_a_page_is_told_of_what_no_event_tells(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "FACTS_S", 0.0)
    monkeypatch.setattr(feed, "NAMES_S", 3600.0)  # not in this test, however long it takes
    task = scheduler.submit(int, bandwidth=0.2)
    page = feed.Feed("test")
    page.begin()
    frame, _, _ = _core.telemetry_frame(0, _core.ring_head(), 0)
    list(page.follow(frame))
    assert list(page.follow(frame)) == [({"type": "frame"}, (frame,))], "nothing is new"
    task.pause()
    told = {content["type"]: content for content, _ in page.follow(frame)}
    assert [row["paused"] for row in told["tasks"]["rows"] if row["id"] == task.id] == [True]
    scheduler.set_priority(task, 9)
    scheduler.create_partition("serving", memory="1MB", bandwidth=0.2)
    told = {content["type"]: content for content, _ in page.follow(frame)}
    assert [row["priority"] for row in told["tasks"]["rows"] if row["id"] == task.id] == [9]
    assert {"id": "serving", "sharePpm": 200_000, "usedPpm": 0} in told["partitions"]["rows"]


def test_a_page_shows_contexts_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "FACTS_S", 0.0)
    monkeypatch.setattr(feed, "SHARES_S", 1e9)  # those fall while nothing else is new
    monkeypatch.setattr(contexts, "_ended", deque(maxlen=64))  # of other tests
    controller, page = rust.MultiLLMController(), feed.Feed("test")
    chat = create_context("chat", max_vram="1MB", share=0.7)
    try:
        controller.create_context("speech", 0, 0.2)
        with chat:
            kept = gp.ones(1000)
        chat.synchronize()
        messages, _, _ = page.begin()
        told = {content["type"]: content for content, _ in messages}
        assert [_core.name(block[3]) for block in told["snapshot"]["blocks"] if block[2] == kept.block] == ["chat"]
        rows_by_name = {row["name"]: row for row in told["contexts"]["rows"]}
        assert rows_by_name["chat"].items() >= {"sharePpm": 700_000, "memoryBytes": 1 << 20}.items()
        assert rows_by_name["speech"].items() >= {"sharePpm": 200_000, "memoryBytes": 0, "gpuNs": 0}.items()
        frame, _, _ = _core.telemetry_frame(0, _core.ring_head(), 0)
        list(page.follow(frame))
        assert not any(content["type"] == "contexts" for content, _ in page.follow(frame)), "nothing is new"
        chat.resize(share=0.3)
        told = {content["type"]: content for content, _ in page.follow(frame)}
        assert [row["sharePpm"] for row in told["contexts"]["rows"]] == [300_000, 200_000]
        with chat:
            _ = kept + kept
        chat.synchronize()
        before = rows_by_name["chat"]["gpuNs"]
        told = {content["type"]: content for content, _ in page.follow(frame)}
        assert told["contexts"]["rows"][0]["gpuNs"] > before
        shown = state.live("test", [], feed.contexts())
        assert "<td" in scheduler_html(shown) and "2 contexts" in scheduler_html(shown)
        for text in (">chat<", ">context<", ">30 %<", ">1 MiB<", ">speech<", ">20 %<"):
            assert text in scheduler_html(shown), text
        shown.blocks = [block for block in shown.blocks if block.address == kept.device_ptr]  # of other tests: too many
        assert [block.owner for block in shown.blocks] == ["chat"] and ">chat<" in memory_html(shown)
        entries = [trace.Entry(0, content, tuple(buffers)) for content, buffers in [*messages, *page.follow(frame)]]
        assert [row["name"] for row in state.of_entries("test", entries).contexts] == ["chat", "speech"]
    finally:
        chat.destroy()
        controller.reset()
    told = {content["type"]: content for content, _ in page.follow(frame)}
    ended = {row["name"]: row for row in told["contexts"]["rows"]}
    assert ended["chat"]["endedNs"] > ended["chat"]["createdNs"] > 0, "a tenant is shown after its end"
    assert ended["chat"]["gpuNs"] > 0 and ">context, ended<" in scheduler_html(state.live("test", [], feed.contexts()))
    messages, _, _ = feed.Feed("later").begin()
    told = {content["type"]: content for content, _ in messages}
    assert "chat" in {row["name"] for row in told["contexts"]["rows"]}, "also in a view that opens then"


def test_views_say_that_a_scheduler_was_not_started(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "FACTS_S", 0.0)
    waits, page = scheduler.submit(int, name="waits"), feed.Feed("test")
    source, told = LiveSource(), page.begin()[0][0][0]["tasks"]
    assert [row["unstarted"] for row in told if row["id"] == waits.id] == [True]
    assert "not started, start() or result() runs its tasks" in scheduler_html(source.state())
    assert waits.result(60.0) == 0 and scheduler.started
    told = page.begin()[0][0][0]["tasks"]
    assert [row["unstarted"] for row in told if row["id"] == waits.id] == [False]
    assert scheduler.label not in source.state().unstarted


def test_a_context_says_why_it_had_less_than_it_was_promised() -> None:
    context = create_context("idle", share=0.4)
    try:
        stats = context.stats
        assert stats is not None and stats.shortfall == "not asked for"
    finally:
        context.destroy()


def test_numbers_behind_a_reason_are_words(scheduler: Scheduler) -> None:
    scheduler.submit(int, memory="1GB", bandwidth=0.9)
    too_big = scheduler.submit(int, memory=scheduler.total_memory + (1 << 30))
    words = rows.task_row(too_big.record)["detail"]
    assert words.startswith("asked ") and "GiB" in words and "e+" not in words
    waits = scheduler.submit(int, bandwidth=0.5)
    words = rows.task_row(waits.record)["detail"]
    assert "asked 50 % of the device" in words and "available 10 % of the device" in words
