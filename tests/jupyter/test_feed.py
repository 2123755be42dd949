"""The status feed: the state at once, then changes only, no thread when nobody follows, no belief in who left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_client import kernel, until_there

import pygpukit as gp
from pygpukit.jupyter import status
from pygpukit.jupyter import status_feed as feed_module
from pygpukit.jupyter.status_feed import StatusFeed

PERIOD_S = 0.01
LEASE_S = 10.0


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


class Clock:
    """The feed's own time, by which leases end: it passes when a test says so, however slow the machine is."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def pass_a_lease(self) -> None:
        self.now_s += 1.1 * LEASE_S


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(feed_module, "time", made)
    return made


@pytest.fixture
def feed(pages: Pages, clock: Clock) -> Iterator[StatusFeed]:
    made = StatusFeed(PERIOD_S, LEASE_S, pages.__getitem__)
    yield made
    made.close()


class States:
    """What the feed finds at each look: these states, and then the last one for ever; or, without any, always another
    one."""

    def __init__(self, *states: int) -> None:
        self.looks = 0
        self._states = states

    def fields(self) -> dict[str, Any]:
        n = self._states[min(self.looks, len(self._states) - 1)] if self._states else self.looks
        self.looks += 1
        return {"backend": "sim", "device": 0, "n": n}

    def wait_for_looks(self, more: int) -> None:
        seen = self.looks
        until(lambda: self.looks >= seen + more)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> Callable[..., States]:
    """States() in the place of the process's own."""

    def put(*given: int) -> States:
        made = States(*given)
        monkeypatch.setattr(status, "fields", made.fields)
        monkeypatch.setattr(status, "line", lambda now: f"n={now['n']}")
        return made

    return put


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(PERIOD_S)


def asks(message: dict[str, Any]) -> bool:
    """Whether the page is asked to say that it is there."""
    return "answer" in message


def test_the_state_comes_at_once_and_then_only_what_changed(
    feed: StatusFeed, pages: Pages, states: Callable[..., States]
) -> None:
    given = states(1, 1, 2)
    feed.follow("page", apart=True)
    until(lambda: len(pages["page"].sent) == 2)
    given.wait_for_looks(5)
    assert [(one["n"], one["line"]) for one in pages["page"].sent] == [(1, "n=1"), (2, "n=2")]


def test_every_page_has_its_own_first_message_and_the_thread_ends_with_the_last(feed: StatusFeed, pages: Pages) -> None:
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


def test_following_again_is_a_renewal(feed: StatusFeed, pages: Pages, states: Callable[..., States]) -> None:
    given = states(1)
    feed.follow("page", apart=True)
    until(lambda: bool(pages["page"].sent))
    feed.follow("page", apart=True)
    given.wait_for_looks(5)
    assert len(pages["page"].sent) == 1
    feed.leave("page")
    until(lambda: not feed.running())


def test_a_broken_page_does_not_end_the_others(feed: StatusFeed, pages: Pages) -> None:
    feed.follow("broken", apart=True)
    feed.follow("sound", apart=True)
    until(lambda: bool(pages["sound"].sent) and pages["broken"].dropped == 1)


def test_a_fault_is_told_to_the_page(feed: StatusFeed, pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> dict[str, Any]:
        raise RuntimeError("the context is lost")

    monkeypatch.setattr(status, "fields", lost)
    feed.follow("page", apart=True)
    until(lambda: bool(pages["page"].sent))
    assert pages["page"].sent == [{"backend": None, "line": "RuntimeError: the context is lost"}]


def test_a_page_that_left_without_a_word_is_asked_and_then_gone(
    feed: StatusFeed, pages: Pages, states: Callable[..., States], clock: Clock
) -> None:
    given, page = states(), pages["page"]
    feed.follow("page", apart=True)
    given.wait_for_looks(5)
    assert page.sent and not any(map(asks, page.sent))
    clock.pass_a_lease()
    until(lambda: any(map(asks, page.sent)))
    given.wait_for_looks(5)
    assert page.dropped == 0, "it has as long to say that it is there"
    clock.pass_a_lease()
    until(lambda: page.dropped == 1)
    until(lambda: not feed.running())


def test_a_page_that_answers_stays(feed: StatusFeed, pages: Pages, states: Callable[..., States], clock: Clock) -> None:
    given, page = states(), pages["page"]
    feed.follow("page", apart=True)
    for _ in range(3):
        clock.pass_a_lease()
        until(lambda: any(map(asks, page.sent)))
        feed.follow("page", apart=True)
        page.sent.clear()
        given.wait_for_looks(3)
        assert page.sent and not any(map(asks, page.sent)) and page.dropped == 0


def test_a_page_that_cannot_be_heard_while_a_cell_runs_stays_and_is_asked_once(
    feed: StatusFeed, pages: Pages, states: Callable[..., States], clock: Clock
) -> None:
    given, page = states(), pages["page"]
    feed.follow("page", apart=False)
    for _ in range(4):
        clock.pass_a_lease()
        given.wait_for_looks(3)
    assert page.dropped == 0
    assert sum(map(asks, page.sent)) == 1


def test_pages_are_limited_in_number(feed: StatusFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "MAX_PAGES", 2)
    for name in ("one", "two", "two"):
        feed.follow(name, apart=True)
    with pytest.raises(ValueError, match="2 pages follow this kernel already"):
        feed.follow("three", apart=True)


def test_a_close_does_not_wait_for_a_page_that_follows_meanwhile(feed: StatusFeed, pages: Pages) -> None:
    feed.follow("page", apart=True)
    until(lambda: bool(pages["page"].sent))
    pages["page"].drop = lambda: feed.follow("late", apart=True)  # type: ignore[method-assign]
    closing = threading.Thread(target=feed.close, daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()
    until(lambda: bool(pages["late"].sent))
    feed.close()
    assert not feed.running()


def test_a_page_is_told_while_a_cell_is_busy(tmp_path: Path) -> None:
    with kernel() as page:
        page.run("held = gp.zeros(1000)")
        page.open_control()
        page.request("follow", {"comm": "feed"})
        number = page.send("more = gp.zeros(1 << 20)\n" + until_there(tmp_path / "go"))
        page.listen(_tells(4 << 20))
        assert page.busy(number)
        (tmp_path / "go").touch()
        page.finish(number)
        assert page.outputs(number) == []


def test_a_page_that_left_is_sent_nothing_more_not_even_a_close() -> None:
    with kernel() as page:
        page.open_control()
        page.request("follow", {"comm": "feed"})
        page.send("held = gp.zeros(1000)")
        page.listen(_tells(4000))
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
