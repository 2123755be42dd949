"""gp.lab.open(): a page that listens is asked; where none does, or for an unknown view, an error says what to do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kernel_client import ends, kernel

import pygpukit as gp
from pygpukit import lab
from pygpukit.jupyter import control, views
from pygpukit.jupyter.status_feed import StatusFeed


class Line:
    """A page's comm; a page that is there answers what it is asked."""

    def __init__(self, feed: StatusFeed, name: str) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answers: list[threading.Thread] = []
        self._feed = feed
        self._name = name

    def send(self, message: dict[str, Any]) -> None:
        if self._name == "broken":
            raise RuntimeError("the socket is gone")
        if "open" in message:
            self.asked.append({key: value for key, value in message.items() if key != "answer"})
        if "answer" in message and self._name != "left":
            answer = threading.Thread(target=self._feed.follow, args=(self._name, True))
            answer.start()
            self.answers.append(answer)

    def drop(self) -> None: ...


@pytest.fixture(autouse=True)
def _views() -> None:
    views.install()  # as %load_ext does


@pytest.fixture
def pages() -> dict[str, Line]:
    return {}


@pytest.fixture
def feed(pages: dict[str, Line], monkeypatch: pytest.MonkeyPatch) -> Iterator[StatusFeed]:
    """The kernel's feed; it waits for a page for as long as that takes, see `impatient`."""
    made = StatusFeed(0.01, line=lambda name: pages.setdefault(name, Line(made, name)))
    monkeypatch.setattr(control, "_feed", made)
    monkeypatch.setattr(lab, "_PATIENCE_S", 60.0)
    yield made
    for page in pages.values():
        for answer in page.answers:
            answer.join()
    made.close()


@pytest.fixture
def impatient(feed: StatusFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no page answers, there is nothing to wait for."""
    monkeypatch.setattr(lab, "_PATIENCE_S", 0.2)


def test_every_page_is_asked(feed: StatusFeed, pages: dict[str, Line]) -> None:
    for name in ("one", "broken", "two"):
        feed.follow(name, apart=True)
    gp.lab.open("workbench")
    gp.lab.open("assembly")
    asked = [{"open": "workbench"}, {"open": "assembly"}]
    assert [page.asked for page in pages.values()] == [asked, [], asked]


def test_a_dashboard_is_one_widget_however_often_it_is_opened(feed: StatusFeed, pages: dict[str, Line]) -> None:
    feed.follow("page", apart=True)
    for view in (*lab.PANES, *lab.PANES):
        gp.lab.open(view)
    models = [one["model"] for one in pages["page"].asked]
    count = len(lab.PANES)
    assert models[:count] == models[count:] and len(set(models)) == count
    answer = control.answer({"id": 1, "action": "view", "args": {"view": "memory"}})
    assert answer == {"id": 1, "ok": True, "result": {"model": models[0]}}
    views._views["memory"].close()
    gp.lab.open("memory")
    assert pages["page"].asked[-1]["model"] == models[0]
    assert views._views["memory"].comm is not None, "what was closed is open again"


def test_the_page_may_come_a_moment_later_also_while_one_is_believed_in_that_left(
    feed: StatusFeed, pages: dict[str, Line]
) -> None:
    feed.follow("left", apart=True)
    timer = threading.Timer(0.1, feed.follow, ("page", True))
    timer.start()
    gp.lab.open("workbench")
    timer.join()
    assert pages["page"].asked == [{"open": "workbench"}]


@pytest.mark.usefixtures("impatient")
def test_without_a_page_the_error_says_what_to_do(feed: StatusFeed) -> None:
    words = r"no page listens, so the view 'workbench' was not opened: .*%load_ext pygpukit"
    with pytest.raises(RuntimeError, match=words):
        gp.lab.open("workbench")
    feed.follow("page", apart=True)
    feed.leave("page")
    with pytest.raises(RuntimeError, match=words):
        gp.lab.open("workbench")


@pytest.mark.usefixtures("impatient")
def test_a_page_that_left_without_a_word_is_not_believed_in(feed: StatusFeed, pages: dict[str, Line]) -> None:
    feed.follow("left", apart=True)
    with pytest.raises(RuntimeError, match="no page listens"):
        gp.lab.open("workbench")
    assert pages["left"].asked == [{"open": "workbench"}]


def test_where_pages_are_heard_between_cells_it_is_enough_to_have_asked(
    feed: StatusFeed, pages: dict[str, Line]
) -> None:
    feed.follow("left", apart=False)
    gp.lab.open("workbench")


def test_an_unknown_view_is_refused(feed: StatusFeed) -> None:
    words = (
        "there is no view 'memroy': it is one of memory, scheduler, device, links, cells, timeline, assembly, workbench"
    )
    with pytest.raises(ValueError, match=words):
        gp.lab.open("memroy")
    answer = control.answer({"id": 1, "action": "view", "args": {"view": "workbench"}})
    assert (
        answer["error"]
        == "view needs args {'view': kind}, a kind of memory, scheduler, device, links, cells, timeline; "
        "it has 'workbench'"
    )


def test_a_page_of_a_real_kernel_is_asked_while_the_cell_runs() -> None:
    with kernel() as page:
        page.run("gp.lab._PATIENCE_S = 60")
        page.open_control()
        page.request("follow", {"comm": "feed"})
        number = page.send('gp.lab.open("memory")')
        page.listen(lambda message: _asks(message) or ends(message, number))
        page.request("follow", {"comm": "feed"})  # it is there
        page.finish(number)
        assert not page.outputs(number)
        asked = [message["content"]["data"] for _, message in page.said if _asks(message)]
        (made,) = {m["content"]["comm_id"] for _, m in page.said if _is_view(m)}
        assert asked == [{"open": "memory", "model": made, "answer": True}]


def _asks(message: dict[str, Any]) -> bool:
    return message["msg_type"] == "comm_msg" and "open" in message["content"]["data"]


def _is_view(message: dict[str, Any]) -> bool:
    """Whether a message opens a dashboard's widget."""
    if message["msg_type"] != "comm_open" or message["content"]["target_name"] != "jupyter.widget":
        return False
    return "_esm" in message["content"]["data"]["state"]
