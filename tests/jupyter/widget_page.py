"""A page that looks at a dashboard widget, for tests of several files."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("ipykernel")


from pygpukit.jupyter.widgets import CellsWidget, DeviceWidget, MemoryWidget, SchedulerWidget

WIDGETS = [MemoryWidget, SchedulerWidget, DeviceWidget, CellsWidget]


class Recorder:
    """Stands for the page: keeps what a widget sends."""

    def __init__(self, widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: list[tuple[dict[str, Any], list[bytes]]] = []
        monkeypatch.setattr(widget, "send", lambda content, buffers=(): self.messages.append((content, list(buffers))))

    def kinds(self) -> list[str]:
        return [content["type"] for content, _ in self.messages]


def look(widget: Any, visible: bool = True) -> None:
    """Send the message of a page that somebody begins, or ceases, to look at."""
    widget._handle_custom_msg({"type": "view", "visible": visible}, [])


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
