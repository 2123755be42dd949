"""Recording and replaying: the same messages, at any speed, without a device; a wrong file is refused."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.records import SEQUENCES
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry import sampler as telemetry
from pygpukit.telemetry import state, trace

TRACE = Path(__file__).parents[2] / "notebooks/data/dashboards.pgktrace"
MESSAGE = ({"type": "tasks", "tNs": 1, "rows": []}, ())


def wait_for(condition: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


class View:
    """Stands for a widget."""

    def __init__(self) -> None:
        self.visible = False
        self.messages: list[tuple[dict[str, Any], tuple[bytes, ...]]] = []

    def tell_page(self, content: dict[str, Any], *buffers: bytes) -> None:
        self.messages.append((content, buffers))


def header(about: dict[str, Any] | None = None) -> bytes:
    text = json.dumps(about or {}).encode()
    return trace.HEADER.pack(trace.MAGIC, trace.VERSION, trace.TELEMETRY_VERSION, len(text)) + text


def test_a_recording_holds_what_happened(tmp_path: Path) -> None:
    path = tmp_path / "a.pgktrace"
    with gp.dashboard.record(path) as recorder, Scheduler() as scheduler:
        assert repr(recorder) == "Recorder('a.pgktrace', recording)"
        held = gp.ones(1 << 17)
        held.name = "held"
        scheduler.submit(lambda: gp.ones(8) + gp.ones(8), name="adds", bandwidth=0.25, memory="1MB").result()
        refused = scheduler.submit(print, memory=scheduler.total_memory + 1, name="big")
        written = recorder.entries
        wait_for(lambda: recorder.entries >= written + 3)
    assert refused.record.phase == "Rejected"
    whole = trace.read(path)
    kinds = [entry.content["type"] for entry in whole.entries]
    assert kinds[:3] == ["snapshot", "history", "frame"] and kinds.count("frame") >= 3
    frames = [entry.buffers[0] for entry in whole.entries if entry.content["type"] == "frame"]
    places = [SEQUENCES.unpack_from(frame) for frame in frames]
    assert all(first == before for (_, before), (first, _) in itertools.pairwise(places))
    end = state.of_entries("x", whole.entries)
    tasks = {row["name"]: row for row in end.tasks.values()}
    assert (tasks["adds"]["phase"], tasks["adds"]["sharePpm"]) == ("Succeeded", 250_000)
    assert tasks["big"]["phase"] == "Rejected" and "asked" in tasks["big"]["detail"]
    assert {block.address: block.owner for block in end.blocks}[held.device_ptr] == "held"
    assert len(end.blocks) == end.gauges["live_blocks"]
    assert sum(block.size for block in end.blocks if block.resident) == end.gauges["used"]
    assert sum(block.size for block in end.blocks if not block.resident) == end.gauges["evicted"]
    evicted = sum(not block.resident for block in end.blocks)  # which other tests may have left, without memory
    assert 0 <= end.gauges["segments"] - len(end.segments) <= evicted


def test_recording_ends_with_its_thread_and_leaves_nothing(tmp_path: Path) -> None:
    recorder = gp.dashboard.record(tmp_path / "a.pgktrace")
    assert recorder.stop() == tmp_path / "a.pgktrace"
    assert recorder.stop().is_file(), "twice is once"
    entries = recorder.entries
    recorder.send_frame(_core.telemetry_frame(0, _core.ring_head(), 0)[0])
    assert recorder.entries == entries and repr(recorder).endswith("stopped)")
    wait_for(lambda: not telemetry._sampler.sending())


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    with pytest.raises(FileExistsError):
        gp.dashboard.record(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "mine"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a telemetry trace"),
        (b"PNG" * 30, "not a telemetry trace"),
        (trace.HEADER.pack(trace.MAGIC, 2, 1, 0), "version 2 with telemetry version 1; this pygpukit reads"),
        (trace.HEADER.pack(trace.MAGIC, 1, 9, 2) + b"{}", "telemetry version 9"),
        (trace.HEADER.pack(trace.MAGIC, 1, 1, 99) + b"{}", "ends inside its header"),
        (trace.HEADER.pack(trace.MAGIC, 1, 1, 2) + b"[]", "is a list, not an object"),
        (header() + b"\1\0", "ends inside an entry"),
        (header() + trace.ENTRY.pack(1, 9, 0) + b"{}", "ends inside an entry of 9 bytes"),
        (header() + trace.ENTRY.pack(7, 2, 0) + b"{}", "kind 7"),
        (header() + trace.ENTRY.pack(1, 1, 0) + b"{", "not JSON"),
        (header() + trace.ENTRY.pack(1, 2, 5) + b"{}" + trace.ENTRY.pack(1, 2, 4) + b"{}", "4 ns after one at 5 ns"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_sentence(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.pgktrace"
    path.write_bytes(data)
    with pytest.raises(gp.dashboard.TraceError, match=words) as caught:
        gp.dashboard.replay(path)
    assert "bad.pgktrace" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"a": 1}, "without a type"),
        ({"type": 3}, "without a type"),
        ({"type": "snapshot"}, "without 'seq'"),
        ({"type": "tasks", "rows": [{"name": "x"}]}, "without 'number'"),
        ({"type": "tasks", "rows": [{"number": "x"}]}, "number is 'x'"),
        ({"type": "cells", "rows": [{"launches": 1, "kept": 1e300, "leaked": 0}]}, "kept is 1e"),
        ({"type": "contexts", "rows": [{"sharePpm": "x"}]}, "sharePpm is 'x'"),
        ({"type": "caches", "rows": [{"cache": "m", "holder": "a 1", "blocks": 1.5}]}, "blocks is 1.5"),
        ({"type": "device", "fields": 3}, "a list was expected, not 3"),
        ({"type": "names", "rows": [[1, 2]]}, "not 3 whole numbers"),
    ],
)
def test_a_message_that_lacks_something_is_refused(message: dict[str, Any], words: str, tmp_path: Path) -> None:
    text = json.dumps(message).encode()
    (tmp_path / "a").write_bytes(header() + trace.ENTRY.pack(trace.MESSAGE, len(text), 0) + text)
    with pytest.raises(gp.dashboard.TraceError, match=words):
        gp.dashboard.replay(tmp_path / "a")


def _mutated(value: Any, random: Random) -> Any:
    """The value with one of its parts replaced, or gone."""
    if isinstance(value, (dict, list)) and value and random.random() < 0.9:
        changed = value.copy()
        key = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))
        if random.random() < 0.1:
            del changed[key]
        else:
            changed[key] = _mutated(value[key], random)
        return changed
    return random.choice([None, "x", -1, 0, 3, 2.5, 1e300, 1 << 70, True, [], {}, [1], {"a": 1}])


def test_pictures_of_any_messages_are_drawn_or_refused() -> None:
    """Valid entries with parts replaced: pictures, or TraceError, and nothing else."""
    fallback = pytest.importorskip("pygpukit.jupyter.widgets.fallback")
    random = Random(5)
    entries = [entry for entry in trace.read(TRACE).entries if entry.content["type"] != "frame"][:40]
    held = {"type": "caches", "rows": [{"cache": "m", "holder": "a 1", "blocks": 1, "shared": 0, "bytes": 9}]}
    entries.append(trace.Entry(entries[-1].t_ns, held, ()))
    drawn = 0
    for _ in range(1500):
        at = random.randrange(len(entries))
        message = _mutated(entries[at].content, random)
        if not isinstance(message, dict):
            continue
        changed = [*entries[:at], trace.Entry(entries[at].t_ns, message, entries[at].buffers), *entries[at + 1 :]]
        with contextlib.suppress(trace.TraceError):
            end = state.of_entries("x", changed)
            for picture in (fallback.memory_html, fallback.scheduler_html, fallback.cells_html):
                assert "</" in picture(end)
            assert "</" in fallback.device_html(end, readings=True)
            drawn += 1
    assert drawn > 100


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(header())
    with pytest.raises(gp.dashboard.TraceError, match="nothing was recorded"):
        gp.dashboard.replay(tmp_path / "a")


@pytest.mark.parametrize("speed", [0, -1, math.nan])
def test_a_speed_is_above_zero(speed: float) -> None:
    with pytest.raises(ValueError, match="speed"):
        gp.dashboard.replay(TRACE, speed)


def test_the_parser_takes_any_bytes() -> None:
    """Mutated and random files: a trace, or TraceError, and nothing else."""
    whole = TRACE.read_bytes()
    random = Random(11)
    for turn in range(400):
        data = bytearray(whole[: random.randrange(len(whole))] if turn % 3 == 0 else whole[:20_000])
        for _ in range(random.randrange(1, 20)):
            if data:
                data[random.randrange(min(len(data), 3000))] = random.randrange(256)
        with contextlib.suppress(trace.TraceError):
            state.of_entries("x", trace.parse(bytes(data)).entries)


def test_the_committed_trace_is_replayed_whole() -> None:
    replay = gp.dashboard.replay(TRACE, math.inf)
    assert repr(replay) == repr(gp.dashboard.replay(TRACE))
    first, second = View(), View()
    for view in (first, second):
        replay.looked_at(view)  # type: ignore[arg-type]
    assert first.messages == second.messages
    kinds = [content["type"] for content, _ in first.messages]
    assert kinds[:4] == ["replay", "snapshot", "history", "frame"]
    assert [content["state"] for content, _ in first.messages if content["type"] == "replay"] == ["begins", "ended"]
    assert kinds[-1] == "replay" and len(kinds) == len(trace.read(TRACE).entries) + 2
    assert replay.position_s == replay.duration_s > 1
    end = replay.state()
    phases = {row["phase"] for row in end.tasks.values()}
    assert {"Succeeded", "Rejected", "Cancelled"} <= phases
    assert {block.owner for block in end.blocks} >= {"weights", "table"}
    assert "simulated" in end.device_sample["source"]


def test_time_goes_on_only_while_somebody_looks() -> None:
    replay = gp.dashboard.replay(TRACE, 4)
    view = View()
    replay.looked_at(view)  # type: ignore[arg-type]
    wait_for(lambda: len(view.messages) > 6)
    view.visible = False
    wait_for(lambda: not any(thread.name == "pygpukit-replay" for thread in threading.enumerate()))
    count, position = len(view.messages), replay.position_s
    time.sleep(0.3)
    assert (len(view.messages), replay.position_s) == (count, position)
    view.messages.clear()
    replay.looked_at(view)  # type: ignore[arg-type]
    assert len(view.messages) >= count, "whoever looks again gets all up to now"
    assert view.messages[0][0] == {"type": "replay", "state": "begins"}, "and the page forgets what it had"
    view.visible = False
    replay.left(view)  # type: ignore[arg-type]


def test_a_replay_refuses_controls() -> None:
    answer = gp.dashboard.replay(TRACE).answer({"id": 4, "action": "pause", "args": {}})
    assert (answer["id"], answer["ok"]) == (4, False) and "replay" in answer["error"]


@pytest.mark.parametrize("name", ["memory", "scheduler", "device", "cells"])
def test_static_pictures_of_a_replay_are_those_of_its_end(name: str) -> None:
    pytest.importorskip("anywidget")
    pages = set()
    for _ in range(3):
        widget = getattr(gp.dashboard.replay(TRACE), name)()
        pages.add(widget.fallback_html())
        assert repr(widget) == f"{type(widget).__name__}()"
        widget.close()
    (page,) = pages
    assert "replay" in page and "<td" in page and "<svg" in page
