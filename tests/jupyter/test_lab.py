"""gp.lab.open(): a page that listens is asked; where none does, or for an unknown view, an error says what to do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kernel_client import kernel

import pygpukit as gp
from pygpukit import lab
from pygpukit.jupyter import control, views
from pygpukit.jupyter.feed import Feed


class Page:
    """A page's end of the feed."""

    def __init__(self, broken: bool = False) -> None:
        self.asked: list[dict[str, Any]] = []
        self._broken = broken

    def on_close(self, handler: Any) -> None:
        self.closed = handler

    def on_msg(self, handler: Any) -> None:
        self.said = handler

    def close(self) -> None:
        self.closed({})

    def send(self, data: dict[str, Any]) -> None:
        if self._broken:
            raise RuntimeError("the socket is gone")
        if "open" in data:
            self.asked.append(data)


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Feed]:
    made = Feed(0.01)
    monkeypatch.setattr(control, "_feed", made)
    monkeypatch.setattr(lab, "_PATIENCE_S", 0.05)
    yield made
    made.close()


def test_every_page_is_asked(feed: Feed) -> None:
    pages = [Page(), Page(broken=True), Page()]
    for page in pages:
        feed.opened(page, {})
    gp.lab.open("workbench")
    gp.lab.open("assembly")
    asked = [{"open": "workbench"}, {"open": "assembly"}]
    assert [page.asked for page in pages] == [asked, [], asked]


def test_a_dashboard_is_one_widget_however_often_it_is_opened(feed: Feed) -> None:
    page = Page()
    feed.opened(page, {})
    for view in (*lab.DASHBOARDS, *lab.DASHBOARDS):
        gp.lab.open(view)
    models = [one["model"] for one in page.asked]
    assert models[:4] == models[4:] and len(set(models)) == 4
    answer = control.answer({"id": 1, "action": "view", "args": {"view": "memory"}})
    assert answer == {"id": 1, "ok": True, "result": {"model": models[0]}}
    views._made["memory"].close()
    gp.lab.open("memory")
    assert page.asked[-1]["model"] not in models


def test_the_page_may_come_a_moment_later(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "_PATIENCE_S", 10.0)
    page = Page()
    timer = threading.Timer(0.1, feed.opened, (page, {}))
    timer.start()
    gp.lab.open("workbench")
    timer.join()
    assert page.asked == [{"open": "workbench"}]


def test_without_a_page_the_error_says_what_to_do(feed: Feed) -> None:
    with pytest.raises(
        RuntimeError, match=r"no page listens, so the view 'workbench' was not opened: .*%load_ext pygpukit"
    ):
        gp.lab.open("workbench")
    page = Page()
    feed.opened(page, {})
    page.closed({})
    with pytest.raises(RuntimeError, match="no page listens"):
        gp.lab.open("workbench")


def test_an_unknown_view_is_refused(feed: Feed) -> None:
    words = "there is no view 'memroy': it is one of memory, scheduler, device, cells, assembly, workbench"
    with pytest.raises(ValueError, match=words):
        gp.lab.open("memroy")
    answer = control.answer({"id": 1, "action": "view", "args": {"view": "workbench"}})
    assert (
        answer["error"]
        == "view needs args {'view': kind}, a kind of memory, scheduler, device, cells; it has 'workbench'"
    )


def test_a_page_of_a_real_kernel_is_asked_while_the_cell_runs() -> None:
    with kernel() as page:
        opened = page.client.session.msg(
            "comm_open", {"comm_id": "feed", "target_name": "pygpukit.status.v1", "data": {}}
        )
        page.client.shell_channel.send(opened)
        number = page.run('gp.lab.open("memory")')
        assert not page.outputs(number)
        asked = [
            message["content"]["data"]
            for _, message in page.said
            if message["msg_type"] == "comm_msg" and "open" in message["content"]["data"]
        ]
        (made,) = {m["content"]["comm_id"] for _, m in page.said if _is_view(m)}
        assert asked == [{"open": "memory", "model": made}]


def _is_view(message: dict[str, Any]) -> bool:
    """Whether a message opens a dashboard's widget."""
    if message["msg_type"] != "comm_open" or message["content"]["target_name"] != "jupyter.widget":
        return False
    return "_esm" in message["content"]["data"]["state"]
