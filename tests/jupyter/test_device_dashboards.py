"""Dashboards of several devices: whose memory a view shows, links and their figures, a track a device in traces."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from alone import alone

import pygpukit as gp
from pygpukit import _core
from pygpukit.core import records

pytestmark = pytest.mark.skipif("gp.backend() != 'sim'", reason="the devices are simulated")


@pytest.fixture(autouse=True)
def _two(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYGPUKIT_SIM", "PYGPUKIT_SIM_PEERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "2")
    monkeypatch.setenv("PYGPUKIT_SIM_LINK", "390GB/s,7us")


def memory() -> None:
    from pygpukit.telemetry import sampler, state
    from pygpukit.telemetry.feed import Feed

    here, there = gp.zeros(3 << 20, "uint8"), gp.zeros(5 << 20, "uint8", device=1)
    for place, array in ((0, here), (1, there)):
        messages, _, _ = Feed("label", place=place).begin()
        snapshot = messages[0][0]
        assert snapshot["place"] == place
        assert [block[0] for block in snapshot["blocks"]] == [array.device_ptr]
        shown = state.live("label", [], [], place=place)
        assert [block.address for block in shown.blocks] == [array.device_ptr]
        assert shown.gauges["used"] == _core.pool_stats(place).used >= array.nbytes

    class Sink:
        visible, since, since_name = True, 1, 0

        def __init__(self, device: int) -> None:
            self.device = device

        def send_frame(self, frame: bytes) -> None:
            self.used = records.GAUGES.unpack_from(frame, records.HEADER.size)[0]

    sinks = [Sink(0), Sink(1)]
    sampler._sampler._tick(sinks)  # as its thread does
    assert [sink.used for sink in sinks] == [_core.pool_stats(place).used for place in (0, 1)]
    used = [np.frombuffer(sampler.history(place)).reshape(-1, 4)[-1, 1] for place in (0, 1)]
    assert used == [sink.used for sink in sinks]


def test_views_show_the_memory_of_their_device() -> None:
    alone(__file__, "memory")


def links() -> None:
    from pygpukit.telemetry import messages
    from pygpukit.telemetry.feed import Feed

    gp.ones(1000).to(1)
    feed = Feed("label", links=True)
    told = [content for content, _ in feed.begin()[0] if content["type"] == "links"]
    assert len(told) == 1 and messages.check(told[0]) == "links"
    link = {"kind": "simulated", "lanes": 0, "bytesPerS": 390e9, "hostBytes": 0}
    assert told[0]["rows"] == [
        {"from": 0, "to": 1, "directBytes": 4000, **link},
        {"from": 1, "to": 0, "directBytes": 0, **link},
    ]
    assert not [content for content, _ in Feed("label").begin()[0] if content["type"] == "links"]


def test_links_are_told_to_who_wants_them() -> None:
    alone(__file__, "links")


def widgets() -> None:
    pytest.importorskip("anywidget")
    with gp.cuda.Device(1):
        kept = gp.zeros(1000)
    memory = gp.dashboard.memory(device="cuda:1")
    assert memory.device == 1 and "device 1: pygpukit simulated GPU" in memory.fallback_html()
    assert gp.dashboard.memory().device == 0 and gp.dashboard.device(1).device == 1 and kept.device == 1
    text = gp.dashboard.links().fallback_html()
    assert "2 links between devices" in text and "simulated" in text
    with pytest.raises(gp.DeviceMismatchError, match="memory: there is no device 2"):
        gp.dashboard.memory(device=2)


def test_widgets_are_of_a_device() -> None:
    alone(__file__, "widgets")


def trace() -> None:
    x = gp.ones(1000)
    with gp.profiling.profile() as profile:
        y = x + 1
        with gp.cuda.Device(1):
            z = gp.ones(500) * 3
        w = y.to(1)
        gp.synchronize()
    assert z.device == w.device == 1
    assert {work.device for work in profile.works} == {0, 1}
    assert "copy to another device" in {work.name for work in profile.works}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(path)
        events = json.loads(path.read_text())["traceEvents"]
    named = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert named == {0: "device 0", 1: "device 1"}
    assert {event["pid"] for event in events if event["ph"] == "X"} == {0, 1}


def test_a_trace_has_a_track_a_device() -> None:
    alone(__file__, "trace")
