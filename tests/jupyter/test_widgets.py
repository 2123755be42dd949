"""The dashboard widgets' Python side: bundles, protocol with the page, static fallback, and that none is kept alive."""

from __future__ import annotations

import gc
import itertools
import math
import re
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from hostile import VALUES
from llm import tiny

pytest.importorskip("anywidget")
pytest.importorskip("ipykernel")

from ipykernel.comm.comm import BaseComm

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.records import SEQUENCES
from pygpukit.jupyter import allowance, comms
from pygpukit.jupyter.widgets import CellsWidget, DeviceWidget, MemoryWidget, SchedulerWidget, base, dashboard
from pygpukit.jupyter.widgets.fallback import device_html, memory_html, scheduler_html
from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry import feed
from pygpukit.telemetry import sampler as telemetry
from pygpukit.telemetry.state import Block, State

WIDGETS = [MemoryWidget, SchedulerWidget, DeviceWidget, CellsWidget]


class Recorder:
    """Stands for the page: keeps what a widget sends."""

    def __init__(self, widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: list[tuple[dict[str, Any], list[bytes]]] = []
        monkeypatch.setattr(widget, "send", lambda content, buffers=(): self.messages.append((content, list(buffers))))

    def kinds(self) -> list[str]:
        return [content["type"] for content, _ in self.messages]


@pytest.fixture(params=WIDGETS, ids=lambda cls: cls.__name__)
def widget(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = request.param()
    yield made
    made.close()


def look(widget: Any, visible: bool = True) -> None:
    """What a page sends when somebody begins, or ceases, to look."""
    widget._handle_custom_msg({"type": "view", "visible": visible}, [])


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


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


def test_fallback_is_a_picture_without_addresses(widget: Any) -> None:
    held = [gp.ones(1 << 18) for _ in range(3)]
    html = widget._repr_mimebundle_()[0]["text/html"]
    root = ElementTree.fromstring(html.replace("<br>", "<br/>"))
    assert root.tag == "div"
    assert "sim" in "".join(root.itertext())
    assert not any(f"{array.device_ptr:x}" in html or str(array.device_ptr) in html for array in held)
    if isinstance(widget, MemoryWidget):
        assert len(root.findall(".//rect")) >= 3 + len(held)
        assert "live blocks" in html
        assert root.findall(".//td"), "the picture is a table too"


def test_fallback_escapes_names() -> None:
    with Scheduler() as scheduler:
        scheduler.submit(lambda: None, name="<script>alert(1)</script>").result()
        assert "<script" not in SchedulerWidget(scheduler).fallback_html()


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


HOSTILE = (
    "<script>hit()</script>",
    "<img src=x onerror=hit()>",
    '"><svg onload=hit()>',
    "' onmouseover='hit()",
    '" onfocus="hit()" autofocus="',
    "</td></tr></table><iframe src=javascript:hit()>",
    "<a href=javascript:hit()>x</a>",
    "]]><script>hit()</script>",
    "&lt;script&gt;hit()&lt;/script&gt;",
    "\u202e\u2066<b>gnp.x",
)
JUNK = [None, 3, "view", [], {}, {"type": "view"}, {"type": "view", "visible": "yes"}, {"type": "x"}]


REQUEST = {"type": "request", "id": 1, "action": "status", "args": {}}
JUNK += [{**REQUEST, **change} for change in ({"id": True}, {"id": "1"}, {"id": None}, {"action": 3}, {"args": []})]
JUNK += [{**REQUEST, "action": "x" * 1_000_000}, {**REQUEST, "args": {str(i): i for i in range(10_000)}}]
JUNK += [{"type": float("nan")}, {"type": "view", "visible": 1}, {"type": ["view"]}, {"type": "request"}, b"view"]


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


@pytest.mark.parametrize("cls", WIDGETS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_static_picture_runs_a_hostile_text(cls: Any, hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = gp.ones(64)
    held.name = hostile
    with Scheduler() as scheduler:
        scheduler.submit(int, name=hostile).result()
        made = cls()
        made._source.label = hostile
        html = made.fallback_html()
        made.close()
    elements = list(ElementTree.fromstring(html.replace("<br>", "<br/>")).iter())  # well formed, so no text is markup
    attributes = {name for element in elements for name in element.attrib}
    assert not any(name.startswith("on") or name in ("href", "src", "srcdoc") for name in attributes)
    drawn = drawn_by_the_lab()
    for element in elements:
        assert set(element.attrib) <= drawn[element.tag] | {"class", "style"}


def drawn_by_the_lab() -> dict[str, set[str]]:
    """The elements that the lab extension lets into a notebook that is saved, with the attributes that draw."""
    source = (Path(__file__).parents[2] / "extension/labext/src/markup.ts").read_text(encoding="utf-8")
    listed = re.findall(r"^    (\w+): \[(.*)\],$", source, re.MULTILINE)
    assert {"div", "svg"} < {name for name, _ in listed}
    return {name: set(re.findall(r"'([\w-]+)'", attributes)) for name, attributes in listed}


def pictures(page: Recorder) -> list[dict[str, Any]]:
    return [content for content, _ in page.messages if content["type"] == "still"]


def test_a_saved_notebook_gets_a_new_picture_when_it_is_another(widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Recorder(widget, monkeypatch)
    drawn = iter(["first", "first", "second"])
    monkeypatch.setattr(widget, "picture_html", lambda: next(drawn))
    monkeypatch.setattr(base, "STILL_S", 0.0)
    monkeypatch.setattr(base, "STILL_SHARE", math.inf)
    telemetry._sampler.stop()  # no frame but those of this test
    monkeypatch.setattr(telemetry, "wake", lambda: None)
    frame, _, _ = _core.telemetry_frame(0, _core.ring_head(), 0)
    widget.send_frame(frame)
    assert pictures(page) == [], "nobody has looked yet"
    monkeypatch.setattr(telemetry, "add_sink", lambda sink: None)
    look(widget)
    for _ in range(3):
        widget.send_frame(frame)
    assert [one["data"]["text/html"] for one in pictures(page)] == [
        f'<div class="gk-live">{text}</div>' for text in ("first", "second")
    ]
    assert {one["model"] for one in pictures(page)} == {widget.model_id}


def test_a_view_that_nobody_looks_at_is_saved_as_cells_left_it(widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Recorder(widget, monkeypatch)
    ran = 1
    monkeypatch.setattr(dashboard, "get_ipython", lambda: SimpleNamespace(execution_count=ran))
    monkeypatch.setattr(base, "STILL_SHARE", math.inf)
    telemetry._sampler.stop()  # nothing but what this test calls
    widget._cells_kept = ran
    widget._still_due_s = 0.0
    widget.unseen()
    assert pictures(page) == [], "no cell has run since it was shown"
    ran, widget._still_due_s = 2, math.inf
    widget.unseen()
    assert pictures(page) == [], "too soon"
    monkeypatch.setattr(widget, "picture_html", lambda: "left")
    for _ in range(2):
        widget._still_due_s = 0.0
        widget.unseen()
    assert [one["data"]["text/html"] for one in pictures(page)] == ['<div class="gk-live">left</div>']


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


def test_pictures_keep_to_their_share_of_time(widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Recorder(widget, monkeypatch)
    now_s = 100.0
    monkeypatch.setattr(base, "time", SimpleNamespace(monotonic=lambda: now_s))
    drawn = []

    def draw() -> str:
        nonlocal now_s
        now_s += 0.125
        drawn.append(now_s)
        return ""

    monkeypatch.setattr(widget, "picture_html", draw)
    widget._still_due_s = 0.0
    for _ in range(900):
        widget._send_still()
        now_s += 0.125
    assert len(drawn) == 2, "an eighth of a second at a 500th of the time: every 62.5 s"
    widget._still_due_s = 0.0
    monkeypatch.setattr(widget, "picture_html", lambda: drawn.append(now_s) or "")
    drawn.clear()
    for _ in range(80):
        widget._send_still()
        now_s += 0.125
    assert len(drawn) == 5, "at most every two seconds"


def test_a_picture_of_memory_has_blocks_in_their_segments_and_no_more_shapes_than_can_be_seen() -> None:
    blocks = [Block(address, size, "x", True) for address, size in ((90, 5), (100, 10), (190, 20), (1000, 300))]
    html = memory_html(State("a device", segments=[(100, 100), (1000, 300)], blocks=blocks))
    drawn = [
        (float(one.attrib["x"]), float(one.attrib["width"]))
        for one in ElementTree.fromstring(html.replace("<br>", "<br/>")).findall(".//rect")
    ]
    assert drawn[3:] == [(0, 479), (0, 479.5), (480, 159), (480, 15.5), (624, 31.5)]
    small = State("a device", segments=[(at << 21, 1 << 21) for at in range(5000)])
    assert memory_html(small).count("<rect") < 1000


def test_a_picture_of_memory_has_who_holds_the_blocks_of_kv_caches() -> None:
    row = {"cache": "<b>small</b>", "holder": "ann 7", "blocks": 3, "shared": 2, "bytes": 3 << 20}
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", memory_html(State("a device", caches=[row])))
    assert cells == ["&lt;b&gt;small&lt;/b&gt;", "ann 7", "3", "2", "3 MiB"]
    assert "KV cache" not in memory_html(State("a device"))
    loop = Loop(tiny.model("llama", context=256).engine.network, 5, name="pictured")
    loop.open(sequence := Sequence([1, 2], 3, client="ann"))
    loop.next(sequence)
    widget = MemoryWidget()
    rows = re.findall(r"<tr>(.*?)</tr>", widget.fallback_html())
    own = [re.findall(r"<td[^>]*>([^<]*)</td>", one)[1:4] for one in rows if ">pictured<" in one]
    assert own == [[f"ann {sequence.number}", "1", "0"], ["earlier prompts", "0", "0"], ["free", "4", "0"]]
    loop.close(sequence)
    widget.close()


def test_the_picture_of_the_device_has_its_readings() -> None:
    fields = [
        {"key": "gpu_utilization", "label": "GPU busy", "value": 61.0, "unit": "%", "note": ""},
        {"key": "memory_used", "label": "Memory used", "value": 3 << 30, "unit": "B", "note": "of 80.0 GiB"},
        {"key": "power", "label": "Power", "value": None, "unit": "W", "note": "not permitted"},
    ]
    state = State("a device", device_sample={"source": "NVML", "fields": fields})
    stable, picture = device_html(state), device_html(state, readings=True)
    assert "61" not in stable and "live only" in stable and "<svg" in stable
    root = ElementTree.fromstring(picture.replace("<br>", "<br/>"))
    assert [one.text for one in root.findall(".//text")][1::2] == ["61 %", "3 GiB", "not available"]
    assert [float(one.attrib["width"]) for one in root.findall(".//rect")] == [300, 183, 300, 0, 300, 0]
    assert "of 80.0 GiB" in picture and "not permitted" in picture


def test_the_page_says_which_subshell_answers_whoever_publishes(widget: Any) -> None:
    made = BaseComm(primary=False)
    made._reply_subshell_id = None  # what ipykernel 7.4 notes when the main shell publishes
    comms.keep_reply_route(made)
    assert made._reply_subshell_for({"method": "custom"}, "a subshell") == "a subshell"
    for _ in range(2):
        assert widget.comm._reply_subshell_for({"method": "custom"}, "a subshell") == "a subshell"
        widget.close()
        widget.open()


def test_the_picture_of_the_scheduler_has_a_label_for_each_phase() -> None:
    phases = ["Succeeded"] * 5 + ["Rejected", "Cancelled"]
    tasks = {n: {"number": n, "name": f"t{n}", "phase": phase} for n, phase in enumerate(phases)}
    page = scheduler_html(State("x", {}, tasks=tasks))
    svg = page[page.index("<svg") : page.index("</svg>")]
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert labels == ["5 succeeded", "1 cancelled", "1 rejected"]
    fills = re.findall(r'<rect [^>]*fill="([^"]*)"', svg)
    assert all(fills.count(fills[2 * n]) == 2 for n in range(3)), "a label has the colour of its part of the bar"
    height = float(re.search(r'viewBox="0 0 \d+ (\d+)"', svg).group(1))  # type: ignore[union-attr]
    assert all(float(y) < height for y in re.findall(r'<text x="[^"]*" y="([^"]*)"', svg))


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


@pytest.mark.parametrize("cls", WIDGETS)
def test_a_closed_widget_is_shown_again(cls: Any) -> None:
    made = cls()
    model = made.model_id
    made.close()
    assert made.comm is None
    assert made._repr_mimebundle_()[0]["application/vnd.jupyter.widget-view+json"]["model_id"] == model
    assert made.comm is not None and made.layout.comm is not None
    made.close()


def test_a_widget_that_was_closed_while_a_page_began_to_look_is_served_no_more(widget: Any) -> None:
    widget.close()
    widget.visible = True  # what the page's thread says last
    frame, _, _ = _core.telemetry_frame(0, _core.ring_head(), 0)
    widget.send_frame(frame)
    assert not widget.visible


@pytest.mark.parametrize("cls", WIDGETS)
def test_closed_widgets_are_collected(cls: Any) -> None:
    references = []
    for _ in range(50):
        made = cls()
        references.append(weakref.ref(made))
        made.close()
    del made
    gc.collect()
    assert sum(reference() is not None for reference in references) == 0


def test_a_hundred_runs_of_a_cell_leave_one_thread_and_no_widget_that_was_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    references = []
    for _ in range(100):
        made = MemoryWidget()
        monkeypatch.setattr(made, "send", lambda content, buffers=(): None)
        references.append(weakref.ref(made))
        look(made)
        # The one before may be on its way out still.
        wait_for(lambda: sum(thread.name == "pygpukit-telemetry" for thread in threading.enumerate()) == 1)
        look(made, visible=False)
        made.close()
    monkeypatch.undo()
    del made
    wait_for(lambda: not telemetry._sampler.sending())
    gc.collect()
    assert [reference() for reference in references if reference() is not None] == []


def test_widget_does_not_keep_its_scheduler_alive() -> None:
    scheduler = Scheduler(start=False)
    reference = weakref.ref(scheduler)
    widget = SchedulerWidget(scheduler)
    del scheduler
    gc.collect()
    assert reference() is None
    assert widget._source.feed.snapshot()["tasks"] == []
    widget.close()


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


def test_a_past_is_kept_for_a_view_until_it_is_closed(widget: Any) -> None:
    assert telemetry._sampler.running() and widget in telemetry._sampler._sinks
    wait_for(lambda: not telemetry._sampler.sending())
    widget.close()
    assert widget not in telemetry._sampler._sinks
    assert struct.calcsize("<24xQQ") == SEQUENCES.size == 40
