"""Static pictures of the dashboard widgets in saved notebooks: their content, share of time, hostile texts."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from llm import tiny
from widget_page import WIDGETS, Recorder, look

pytest.importorskip("anywidget")
pytest.importorskip("ipykernel")


import pygpukit as gp
from pygpukit import _core
from pygpukit.jupyter.widgets import MemoryWidget, SchedulerWidget, base, dashboard
from pygpukit.jupyter.widgets.fallback import device_html, memory_html, scheduler_html
from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry import sampler as telemetry
from pygpukit.telemetry.state import Block, State

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
