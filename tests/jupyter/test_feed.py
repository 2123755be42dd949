"""The status feed: the state at once, then changes only, no thread when nobody follows, no belief in who left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kernel_client import ends, kernel

import pygpukit as gp
from pygpukit.jupyter import feed as feed_module
from pygpukit.jupyter import status
from pygpukit.jupyter.feed import Feed

PERIOD_S = 0.01
LEASE_S = 0.1


class Line:
    """Keeps what was sent to a page."""

    def __init__(self, name: str) -> None:
        self.sent: list[dict[str, Any]] = []
        self.dropped = 0
        self._broken = name == "broken"

    def send(self, message: dict[str, Any]) -> None:
        if self._broken:
            raise RuntimeError("the socket is gone")
        self.sent.append(message)

    def drop(self) -> None:
        self.dropped += 1


class Pages(dict[str, Line]):
    """The line of each page, made when it is first asked for."""

    def __missing__(self, name: str) -> Line:
        return self.setdefault(name, Line(name))


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
def feed(pages: Pages) -> Iterator[Feed]:
    made = Feed(PERIOD_S, LEASE_S, pages.__getitem__)
    yield made
    made.close()


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is another one at each look."""
    count = iter(range(1, 1 << 30))
    monkeypatch.setattr(status, "fields", lambda: {"backend": "sim", "device": 0, "n": next(count)})
    monkeypatch.setattr(status, "line", lambda now: "")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(PERIOD_S)


def test_the_state_comes_at_once_and_then_only_what_changed(
    feed: Feed, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = iter([{"backend": "sim", "device": 0, "n": n} for n in (1, 1, 2)])
    last: dict[str, Any] = {}

    def fields() -> dict[str, Any]:
        last.update(next(states, last))
        return dict(last)

    monkeypatch.setattr(status, "fields", fields)
    monkeypatch.setattr(status, "line", lambda now: f"n={now['n']}")
    feed.follow("page", apart=True)
    until(lambda: len(pages["page"].sent) == 2)
    time.sleep(5 * PERIOD_S)
    assert [(one["n"], one["line"]) for one in pages["page"].sent] == [(1, "n=1"), (2, "n=2")]


def test_every_page_has_its_own_first_message_and_the_thread_ends_with_the_last(feed: Feed, pages: Pages) -> None:
    keep = gp.zeros(1000)
    feed.follow("first", apart=True)
    until(lambda: bool(pages["first"].sent))
    feed.follow("second", apart=True)
    until(lambda: bool(pages["second"].sent))
    assert pages["second"].sent[0]["pool_used"] >= keep.nbytes
    feed.leave("first")
    assert feed.running()
    feed.leave("second")
    until(lambda: not feed.running())
    assert [page.dropped for page in pages.values()] == [1, 1]
    feed.leave("second")  # once more is nothing


def test_following_again_is_a_renewal(feed: Feed, pages: Pages) -> None:
    feed.follow("page", apart=True)
    until(lambda: bool(pages["page"].sent))
    feed.follow("page", apart=True)
    time.sleep(5 * PERIOD_S)
    assert len(pages["page"].sent) == 1
    feed.leave("page")
    until(lambda: not feed.running())


def test_a_broken_page_does_not_end_the_others(feed: Feed, pages: Pages) -> None:
    feed.follow("broken", apart=True)
    feed.follow("sound", apart=True)
    until(lambda: bool(pages["sound"].sent) and pages["broken"].dropped == 1)


def test_a_fault_is_told_to_the_page(feed: Feed, pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> dict[str, Any]:
        raise RuntimeError("the context is lost")

    monkeypatch.setattr(status, "fields", lost)
    feed.follow("page", apart=True)
    until(lambda: bool(pages["page"].sent))
    assert pages["page"].sent == [{"backend": None, "line": "RuntimeError: the context is lost"}]


def test_a_page_that_left_without_a_word_is_asked_and_then_gone(feed: Feed, pages: Pages, ticks: None) -> None:
    feed.follow("page", apart=True)
    until(lambda: pages["page"].dropped == 1)
    until(lambda: not feed.running())
    assert any("answer" in one for one in pages["page"].sent)
    assert "answer" not in pages["page"].sent[0]


def test_a_page_that_answers_stays(feed: Feed, pages: Pages, ticks: None) -> None:
    feed.follow("page", apart=True)
    for _ in range(3):
        until(lambda: any("answer" in one for one in pages["page"].sent))
        pages["page"].sent.clear()
        feed.follow("page", apart=True)
    assert pages["page"].dropped == 0


def test_a_page_that_cannot_be_heard_while_a_cell_runs_stays_and_is_asked_once(
    feed: Feed, pages: Pages, ticks: None
) -> None:
    feed.follow("page", apart=False)
    time.sleep(5 * LEASE_S)
    assert pages["page"].dropped == 0
    assert sum("answer" in one for one in pages["page"].sent) == 1


def test_pages_are_limited_in_number(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "MAX_PAGES", 2)
    for name in ("one", "two", "two"):
        feed.follow(name, apart=True)
    with pytest.raises(ValueError, match="2 pages follow this kernel already"):
        feed.follow("three", apart=True)


def test_a_close_does_not_wait_for_a_page_that_follows_meanwhile(feed: Feed, pages: Pages) -> None:
    feed.follow("page", apart=True)
    until(lambda: bool(pages["page"].sent))
    pages["page"].drop = lambda: feed.follow("late", apart=True)  # type: ignore[method-assign]
    closing = threading.Thread(target=feed.close, daemon=True)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()
    until(lambda: bool(pages["late"].sent))
    feed.close()
    assert not feed.running()


def test_a_page_is_told_while_a_cell_is_busy() -> None:
    with kernel() as page:
        page.run("held = gp.zeros(1000)")
        page.open_control()
        page.request("follow", {"comm": "feed"})
        number = page.send("more = gp.zeros(1 << 20)\ntime.sleep(4)")
        page.listen(_tells(4 << 20))
        assert not any(ends(message, number) for _, message in page.said)
        page.listen(lambda message: ends(message, number))


def test_a_page_that_left_is_sent_nothing_more_not_even_a_close() -> None:
    with kernel() as page:
        page.open_control()
        page.request("follow", {"comm": "feed"})
        page.run("held = gp.zeros(1000); time.sleep(1.5)")
        assert any(_tells(4000)(message) for _, message in page.said)
        page.request("leave", {"comm": "feed"})
        said = len(page.said)
        page.run("import gc; more = gp.zeros(1000); gc.collect(); time.sleep(1.5)")
        comms = [m for _, m in page.said[said:] if m["msg_type"].startswith("comm_")]
        assert comms == []


def test_a_comm_of_something_else_is_not_taken_for_a_pages() -> None:
    with kernel() as page:
        page.open_control()
        assert "is another one's" in page.request("follow", {"comm": "control"})["error"]


def _tells(nbytes: int) -> Callable[[dict[str, Any]], bool]:
    """Whether a message of the feed says that at least so many bytes are in use."""
    return lambda message: (
        message["msg_type"] == "comm_msg" and message["content"]["data"].get("pool_used", -1) >= nbytes
    )
