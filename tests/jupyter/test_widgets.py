"""The dashboard widgets' Python side: bundles and the protocol with the page."""

from __future__ import annotations

import itertools
import struct
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hostile import VALUES
from widget_page import WIDGETS, Recorder, look, wait_for

pytest.importorskip("anywidget")
pytest.importorskip("ipykernel")

from ipykernel.comm.comm import BaseComm

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.records import SEQUENCES
from pygpukit.jupyter import allowance, comms
from pygpukit.jupyter.widgets import SchedulerWidget, base
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry import feed
from pygpukit.telemetry import sampler as telemetry

JUNK = [None, 3, "view", [], {}, {"type": "view"}, {"type": "view", "visible": "yes"}, {"type": "x"}]
REQUEST = {"type": "request", "id": 1, "action": "status", "args": {}}
JUNK += [{**REQUEST, **change} for change in ({"id": True}, {"id": "1"}, {"id": None}, {"action": 3}, {"args": []})]
JUNK += [{**REQUEST, "action": "x" * 1_000_000}, {**REQUEST, "args": {str(i): i for i in range(10_000)}}]
JUNK += [{"type": float("nan")}, {"type": "view", "visible": 1}, {"type": ["view"]}, {"type": "request"}, b"view"]


def test_bundle_travels_as_text(widget: Any) -> None:
    assert isinstance(widget._esm, str) and "export" in widget._esm
    assert isinstance(widget._css, str) and ".gk-panel" in widget._css
    assert type(widget)()._esm is widget._esm  # read once


@pytest.mark.parametrize("cls", WIDGETS)
def test_missing_bundle_says_how_to_build_it(cls: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "STATIC", tmp_path)
    base.bundle.cache_clear()
    try:
        with pytest.raises(RuntimeError, match=r"build_frontend\.py"):
            cls()
    finally:
        base.bundle.cache_clear()


def test_repr_and_text_are_stable(widget: Any) -> None:
    assert repr(widget) == f"{type(widget).__name__}()" == repr(type(widget)())
    data, _ = widget._repr_mimebundle_()
    assert data["text/plain"] == repr(widget)
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id


@pytest.mark.parametrize("cls", WIDGETS)
def test_unknown_keyword_is_refused(cls: Any) -> None:
    with pytest.raises(TypeError, match="rate"):
        cls(rate=5)


def test_scheduler_widget_refuses_what_has_no_tasks() -> None:
    with pytest.raises(TypeError, match="int; it must be a Scheduler"):
        SchedulerWidget(3)  # type: ignore[arg-type]


def test_page_gets_state_and_past_then_live_frames(widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Recorder(widget, monkeypatch)
    array = gp.ones(1 << 16)
    assert not widget.visible
    look(widget)
    assert page.kinds()[:3] == ["snapshot", "history", "frame"]
    snapshot = page.messages[0][0]
    assert array.device_ptr in [row[0] for row in snapshot["blocks"]]
    assert all(len(row) == 8 for row in snapshot["blocks"])
    _, following = SEQUENCES.unpack_from(page.messages[2][1][0])
    assert snapshot["seq"] < following
    wait_for(lambda: page.kinds().count("frame") >= 4)
    frames = [buffers[0] for content, buffers in page.messages if content["type"] == "frame"]
    ranges = [SEQUENCES.unpack_from(frame) for frame in frames]
    assert all(first <= before for (_, before), (first, _) in itertools.pairwise(ranges)), ranges
    look(widget, visible=False)
    wait_for(lambda: not telemetry._sampler.sending())  # a frame under way may still come
    count = len(page.messages)
    time.sleep(0.3)
    assert len(page.messages) == count


def test_state_follows_where_records_are_missing(widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Recorder(widget, monkeypatch)
    for name in ("NAMES_S", "DEVICE_S"):
        monkeypatch.setattr(feed, name, 3600.0)  # not due in this test, however long it takes
    _, since, _ = widget._source.feed.begin()
    frame, following, _ = _core.telemetry_frame(0, since, 0)
    widget.send_frame(frame)
    assert page.kinds() == ["frame"]
    for _ in range(3):
        _core.ring_push(18)
    frame, _, _ = _core.telemetry_frame(0, following + 2, 0)
    widget.send_frame(frame)
    assert page.kinds() == ["frame", "frame", "snapshot"]


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_junk_from_the_page_is_dropped_and_counted(widget: Any, junk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Recorder(widget, monkeypatch)
    widget._handle_custom_msg(junk, [])
    assert page.messages == [] and not widget.visible and widget.dropped == 1


def test_fuzzed_messages_never_raise(widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Recorder(widget, monkeypatch)
    monkeypatch.setattr(allowance, "PER_S", 1e9)  # what they say is at stake here, not how many they are
    random = Random(7)
    words = ["controls", "status", "cancel", "quota", "trim", "request", "view"]
    values = [*VALUES, *words, {"limit": {}}, {"limit": "-1"}, {"task": 3}]
    for _ in range(3000):
        keys = random.sample(["type", "id", "action", "args", "visible", "extra"], random.randrange(7))
        widget._handle_custom_msg({key: random.choice(values) for key in keys}, [])
    assert widget.dropped > 1000
    widget._handle_custom_msg(REQUEST, [])
    assert page.messages[-1][0]["ok"] is True


def test_a_flood_is_dropped_and_counted_and_ends(widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Recorder(widget, monkeypatch)
    monkeypatch.setattr(allowance, "PER_S", 0.0)
    for _ in range(5000):
        widget._handle_custom_msg(REQUEST, [])
    assert len(page.messages) == allowance.BURST and widget.dropped == 5000 - allowance.BURST
    monkeypatch.setattr(allowance, "PER_S", 1e9)
    widget._handle_custom_msg(REQUEST, [])
    assert page.messages[-1][0]["ok"] is True, "afterwards it is heard again"


def test_the_sampler_tells_who_is_not_looked_at() -> None:
    told = threading.Event()

    class Sink:
        visible, since, since_name = False, 0, 0

        def send_frame(self, frame: bytes) -> None:
            raise AssertionError("nobody looks")

        def unseen(self) -> None:
            told.set()

    sink = Sink()
    telemetry.add_sink(sink)
    try:
        assert told.wait(60)
    finally:
        telemetry.remove_sink(sink)


def test_the_page_says_which_subshell_answers_whoever_publishes(widget: Any) -> None:
    made = BaseComm(primary=False)
    made._reply_subshell_id = None  # what ipykernel 7.4 notes when the main shell publishes
    comms.keep_reply_route(made)
    assert made._reply_subshell_for({"method": "custom"}, "a subshell") == "a subshell"
    for _ in range(2):
        assert widget.comm._reply_subshell_for({"method": "custom"}, "a subshell") == "a subshell"
        widget.close()
        widget.open()


def test_tasks_of_a_scheduler_are_in_the_snapshot() -> None:
    with Scheduler() as scheduler:
        scheduler.submit(lambda: None, name="quick").result()
        widget = SchedulerWidget(scheduler)
        (row,) = widget._source.feed.snapshot()["tasks"]
        assert (row["name"], row["phase"]) == ("quick", "Succeeded")
        assert row["submittedNs"] <= row["startedNs"] <= row["finishedNs"]
        assert row["number"] == scheduler.tasks()[0].number
        widget.close()


def test_clock_of_tasks_is_the_clock_of_records() -> None:
    """The page draws both on one axis."""
    before = _core.now_ns()
    with Scheduler() as scheduler:
        scheduler.submit(lambda: None).result()
        record = scheduler.tasks()[0]
    assert before <= record.submitted_ns <= record.finished_ns <= _core.now_ns()


def test_a_view_that_was_out_of_sight_gets_the_time_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "IDLE_S", 0.05)
    with Scheduler() as scheduler:
        widget = SchedulerWidget(scheduler)
        page = Recorder(widget, monkeypatch)
        look(widget)
        look(widget, visible=False)
        wait_for(lambda: not telemetry._sampler.sending())
        page.messages.clear()
        began_ns = _core.now_ns()
        scheduler.submit(lambda: [gp.ones(1 << 12) + 1.0 for _ in range(50)], name="unseen").result()
        ended_ns = _core.now_ns()
        wait_for(lambda: struct.unpack_from("<d", telemetry.history()[-32:])[0] > ended_ns)
        assert page.messages == [], "nothing is sent"
        look(widget)
        sent = {content["type"]: (content, buffers) for content, buffers in page.messages}
        times = [row[0] for row in struct.iter_unpack("<4d", sent["history"][1][0])]
        assert any(began_ns < time_ns for time_ns in times)
        rows = [(end, length, dict(busy)) for end, length, busy in sent["past"][0]["rows"] if end > began_ns]
        assert rows[0][0] - rows[0][1] <= began_ns, "no time is left out"
        assert all(before == end - length for (before, _, _), (end, length, _) in itertools.pairwise(rows))
        assert sum(busy.get("unseen", 0) for _, _, busy in rows) == scheduler.tasks()[0].gpu_ns > 0
        widget.close()
