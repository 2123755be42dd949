"""Dashboard widgets that are closed, shown again and collected; what they keep alive, and what they do not."""

from __future__ import annotations

import gc
import struct
import threading
import weakref
from typing import Any

import pytest
from widget_page import WIDGETS, look, wait_for

pytest.importorskip("anywidget")
pytest.importorskip("ipykernel")


from pygpukit import _core
from pygpukit.core.records import SEQUENCES
from pygpukit.jupyter.widgets import MemoryWidget, SchedulerWidget
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry import sampler as telemetry


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


def test_a_past_is_kept_for_a_view_until_it_is_closed(widget: Any) -> None:
    assert telemetry._sampler.running() and widget in telemetry._sampler._sinks
    wait_for(lambda: not telemetry._sampler.sending())
    widget.close()
    assert widget not in telemetry._sampler._sinks
    assert struct.calcsize("<24xQQ") == SEQUENCES.size == 40
