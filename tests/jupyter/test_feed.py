"""The status feed: the state at once, then changes only, and no thread when nobody has it open."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kernel_client import ends, kernel

import pygpukit as gp
from pygpukit.jupyter import status
from pygpukit.jupyter.feed import Feed

PERIOD_S = 0.01


class Comm:
    def __init__(self, broken: bool = False) -> None:
        self.sent: list[dict[str, Any]] = []
        self._broken = broken

    def on_close(self, handler: Callable[[Any], None]) -> None:
        self.closed = handler

    def on_msg(self, handler: Callable[[Any], None]) -> None:
        self.said = handler

    def close(self) -> None:
        self.closed({})

    def send(self, data: dict[str, Any]) -> None:
        if self._broken:
            raise RuntimeError("the socket is gone")
        self.sent.append(data)


@pytest.fixture
def feed() -> Iterator[Feed]:
    made = Feed(PERIOD_S)
    yield made
    made.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(PERIOD_S)


def test_the_state_comes_at_once_and_then_only_what_changed(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter([{"backend": "sim", "device": 0, "n": n} for n in (1, 1, 2)])
    last: dict[str, Any] = {}

    def fields() -> dict[str, Any]:
        last.update(next(states, last))
        return dict(last)

    monkeypatch.setattr(status, "fields", fields)
    monkeypatch.setattr(status, "line", lambda now: f"n={now['n']}")
    comm = Comm()
    feed.opened(comm, {})
    until(lambda: len(comm.sent) == 2)
    time.sleep(5 * PERIOD_S)
    assert [(one["n"], one["line"]) for one in comm.sent] == [(1, "n=1"), (2, "n=2")]


def test_every_page_has_its_own_first_message_and_the_thread_ends_with_the_last(feed: Feed) -> None:
    keep = gp.zeros(1000)
    first, second = Comm(), Comm()
    feed.opened(first, {})
    until(lambda: bool(first.sent))
    feed.opened(second, {})
    until(lambda: bool(second.sent))
    assert second.sent[0]["pool_used"] >= keep.nbytes
    first.said({"content": {"data": {"leave": True}}})
    assert feed.running()
    second.closed({})
    until(lambda: not feed.running())


def test_a_broken_page_does_not_end_the_others(feed: Feed) -> None:
    broken, sound = Comm(broken=True), Comm()
    feed.opened(broken, {})
    feed.opened(sound, {})
    until(lambda: bool(sound.sent))
    assert broken.sent == []


def test_a_fault_is_told_to_the_page(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> dict[str, Any]:
        raise RuntimeError("the context is lost")

    monkeypatch.setattr(status, "fields", lost)
    comm = Comm()
    feed.opened(comm, {})
    until(lambda: bool(comm.sent))
    assert comm.sent == [{"backend": None, "line": "RuntimeError: the context is lost"}]


def test_a_page_is_told_while_a_cell_is_busy() -> None:
    with kernel() as page:
        page.run("held = gp.zeros(1000)")
        opened = page.client.session.msg(
            "comm_open", {"comm_id": "feed", "target_name": "pygpukit.status.v1", "data": {}}
        )
        page.client.shell_channel.send(opened)
        page.listen(_tells(4000))
        number = page.send("more = gp.zeros(1 << 20)\ntime.sleep(4)")
        page.listen(_tells(4 << 20))
        assert not any(ends(message, number) for _, message in page.said)


def _tells(nbytes: int) -> Callable[[dict[str, Any]], bool]:
    """Whether a message of the feed says that at least so many bytes are in use."""
    return lambda message: message["msg_type"] == "comm_msg" and message["content"]["data"]["pool_used"] >= nbytes
