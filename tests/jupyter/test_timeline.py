"""TimelineWidget: the records that the page asks for, chunk by chunk, are the profile's; what it refuses."""

from __future__ import annotations

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
from pygpukit.profiling import Profile, Work

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
