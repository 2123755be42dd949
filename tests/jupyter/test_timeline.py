"""TimelineWidget: the records that the page asks for, chunk by chunk, are the profile's; what it refuses."""

from __future__ import annotations

import gc
import zlib
from typing import Any

import numpy as np
import pytest
from hostile import VALUES

pytest.importorskip("anywidget")
pytest.importorskip("ipykernel")

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.jupyter.widgets import timeline
from pygpukit.jupyter.widgets.timeline import TimelineWidget
from pygpukit.profiling import Profile, Work, latest

Sent = list[tuple[dict[str, Any], list[bytes]]]


def columns(data: bytes, count: int) -> list[list[int]]:
    """The five columns of a chunk, read as the page reads them."""
    raw, at, read = zlib.decompress(data), 0, []
    for _ in range(5):
        width, at = raw[at], at + 1
        planes = [raw[at + plane * count : at + (plane + 1) * count] for plane in range(width)]
        read.append([sum(plane[i] << 8 * k for k, plane in enumerate(planes)) for i in range(count)])
        at += width * count
    assert at == len(raw)
    return read


def profile_of(count: int) -> Profile:
    """A profile of works on three streams with random times, some of them of a tenant."""
    rng = np.random.default_rng()
    profile = Profile()
    profile.begin_ns = 1000
    begins = np.sort(rng.integers(1000, 10**9, count)).tolist()
    profile._works = [
        Work(f"k{rng.integers(5)}", "kernel", begin, begin + int(rng.integers(0, 10**6)), 0, int(rng.integers(3)),
             "tenant" if rng.random() < 0.3 else "", "<cell>", int(rng.integers(4)), 1, 1, 1, 0)
        for begin in begins
    ]  # fmt: skip
    profile.end_ns = max(work.end_ns for work in profile._works) + 1
    return profile


def look(widget: TimelineWidget, monkeypatch: pytest.MonkeyPatch) -> Sent:
    sent: Sent = []
    monkeypatch.setattr(widget, "send", lambda content, buffers=(): sent.append((content, list(buffers))))
    widget._from_page(widget, {"type": "view"}, [])
    return sent


def test_the_page_gets_every_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "CHUNK", 256)
    profile = profile_of(700)
    widget = TimelineWidget(profile)
    sent = look(widget, monkeypatch)
    head = sent[0][0]
    assert head["type"] == "timeline" and head["span"] == profile.wall_ns
    expected = sorted([*profile.works, *profile.waits(timeline.MIN_WAIT_US)], key=lambda item: item.begin_ns)
    assert head["count"] == len(expected) >= 700
    read: list[list[int]] = [[] for _ in range(5)]
    for chunk in range((head["count"] + 255) // 256):
        widget._from_page(widget, {"type": "want", "chunk": chunk}, [])
        content, (data,) = sent[-1]
        assert content == {"type": "works", "chunk": chunk}
        for column, part in zip(read, columns(data, min(256, head["count"] - 256 * chunk)), strict=True):
            column += part
    steps, times, names, lanes, places = read
    for item, begin, took, name, lane, place in zip(
        expected, np.cumsum(steps).tolist(), times, names, lanes, places, strict=True
    ):
        assert (begin, took) == (item.begin_ns - profile.begin_ns, item.end_ns - item.begin_ns)
        device, stream, tenant, waits = head["lanes"][lane]
        cell, line, detail = head["places"][place]
        assert (device, cell, line) == (item.device, item.cell, item.line)
        if isinstance(item, Work):
            assert (head["names"][name], stream, tenant, waits, detail) == (item.name, item.stream, item.tenant, 0, "")
        else:
            assert (head["names"][name], waits, detail) == (item.cause, 1, item.detail)
    assert widget.dropped == 0
    widget.close()


def test_what_is_not_of_the_channel_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    widget = TimelineWidget(profile_of(10))
    sent = look(widget, monkeypatch)
    known = len(sent)
    wrong = [{"type": "want", "chunk": value} for value in (-1, 1, True, None, "0", 2**70)]
    for count, content in enumerate([*wrong, *VALUES][:30], 1):
        widget._from_page(widget, content, [])
        assert widget.dropped == count
    assert len(sent) == known
    widget.close()


def test_real_work_is_on_the_timeline_and_its_static_form_is_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    x = gp.ones(100)
    with gp.profiling.profile() as p:
        gp.add(x, x).to_numpy()
    widget = gp.dashboard.timeline(p)
    head = look(widget, monkeypatch)[0][0]
    assert "copy to the host" in head["names"] and head["notes"]
    assert widget.fallback() == {"text/html": p._repr_html_(), "text/plain": str(p)}
    assert repr(widget) == f"TimelineWidget({len(p.works)} works)"
    widget.close()


def test_a_profile_that_has_not_ended_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match="a profile whose block runs"):
        TimelineWidget(Profile())
    with pytest.raises(InvalidSpecError, match="profile is list"):
        TimelineWidget([])  # type: ignore[arg-type]


def test_without_a_profile_it_shows_the_one_that_ended_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest, "_latest", None)
    monkeypatch.setattr(latest, "_subscribers", [])
    widget = TimelineWidget()
    assert "No profile has ended yet" in widget.fallback()["text/plain"] and repr(widget) == "TimelineWidget(0 works)"
    sent = look(widget, monkeypatch)
    assert sent[-1][0]["type"] == "none" and "%%gpu_profile" in sent[-1][0]["text"]
    widget._from_page(widget, {"type": "want", "chunk": 0}, [])
    assert widget.dropped == 1
    for count in (1, 2):
        with gp.profiling.profile() as p:
            x = gp.ones(3)
            for _ in range(count):
                x = gp.add(x, x)
        assert sent[-1][0] == {"type": "ended"}
        widget._from_page(widget, {"type": "view"}, [])
        head = next(content for content, _ in reversed(sent) if content["type"] == "timeline")
        assert head["count"] == len(p.works) + len(p.waits(timeline.MIN_WAIT_US)) and head["span"] == p.wall_ns
        widget._from_page(widget, {"type": "want", "chunk": 0}, [])
        assert sent[-1][0] == {"type": "works", "chunk": 0}
    assert TimelineWidget().profile is p
    held = TimelineWidget(p)
    with gp.profiling.profile():
        pass
    assert held.profile is p and widget.profile is not p


def test_who_is_gone_is_told_nothing_and_a_profile_that_is_gone_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest, "_latest", None)
    monkeypatch.setattr(latest, "_subscribers", [])
    widget = TimelineWidget()
    assert len(latest._subscribers) == 1
    widget.close()
    del widget
    gc.collect()
    with gp.profiling.profile():
        pass
    assert latest._subscribers == []
    gc.collect()
    assert latest.latest() is None
