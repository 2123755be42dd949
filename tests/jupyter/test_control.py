"""The control channel: every request has one answer, right or wrong, and none needs the running cell to end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hostile import VALUES

import pygpukit as gp
from pygpukit import _core
from pygpukit.jupyter import allowance, control


class Comm:
    """A comm's two ends in one: what the page sends in, what it gets back."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.closed = False
        self.handle_msg: Any = None  # without it a message fires the shell's events

    def close(self) -> None:
        self.closed = True

    def send(self, data: dict[str, Any]) -> None:
        self.sent.append(json.loads(json.dumps(data)))

    def ask(self, request: Any) -> dict[str, Any]:
        self.handle_msg({"content": {"data": request}})
        return self.sent[-1]


class Manager:
    def __init__(self) -> None:
        self.targets: dict[str, Any] = {}

    def register_target(self, name: str, callback: Any) -> None:
        self.targets[name] = callback

    def unregister_target(self, name: str, callback: Any) -> None:
        assert self.targets.pop(name) is callback


class Shell:
    """The part of a kernel's shell that the channel needs."""

    def __init__(self) -> None:
        self.kernel = type("Kernel", (), {"comm_manager": Manager()})()


@pytest.fixture
def comm() -> Iterator[Comm]:
    shell = Shell()
    assert control.install(shell)
    made = Comm()
    shell.kernel.comm_manager.targets["pygpukit.control.v1"](made, {})
    yield made
    control.remove(shell)
    assert shell.kernel.comm_manager.targets == {}
    control.remove(shell)


def test_once_the_extension_is_unloaded_a_page_that_asks_is_closed() -> None:
    shell = Shell()
    assert control.install(shell)
    made = Comm()
    shell.kernel.comm_manager.targets["pygpukit.control.v1"](made, {})
    control.remove(shell)
    made.handle_msg({"content": {"data": {"id": 1, "action": "hello"}}})
    assert made.closed and made.sent == []


@pytest.mark.parametrize("action", ["follow", "leave"])
@pytest.mark.parametrize("name", [None, 7, "", "a b", "x" * 65, "<script>"])
def test_what_is_no_comms_id_is_refused(comm: Comm, action: str, name: object) -> None:
    answer = comm.ask({"id": 1, "action": action, "args": {"comm": name}})
    assert answer == {
        "id": 1,
        "ok": False,
        "error": f"{action} needs args {{'comm': id of the page's end of the status feed}}",
    }


def test_a_terminal_has_no_channel() -> None:
    assert control.install(object()) is False
    control.remove(object())


def test_hello(comm: Comm) -> None:
    answer = comm.ask({"id": 1, "action": "hello", "args": {}})
    assert (answer["id"], answer["ok"]) == (1, True)
    assert answer["result"]["pygpukit"] == _core.__version__
    assert (answer["result"]["control"], answer["result"]["telemetry"]) == (1, 1)
    assert comm.ask({"id": 2, "action": "hello"})["result"]["session"] == answer["result"]["session"]


def test_status_has_the_line_and_its_numbers(comm: Comm) -> None:
    keep = gp.zeros(1 << 20)
    result = comm.ask({"id": 3, "action": "status"})["result"]
    assert result["backend"] == gp.backend()
    assert result["pool_used"] >= keep.nbytes
    assert result["line"].startswith(f"{gp.backend()}:0 ")
    assert "4.0 MiB" in result["line"] or result["pool_used"] != 4 << 20


def test_snapshot_has_pool_and_tasks(comm: Comm) -> None:
    keep = gp.zeros(1000)
    result = comm.ask({"id": 4, "action": "snapshot"})["result"]
    assert result["pool"]["used"] >= keep.nbytes
    assert result["pool"]["active_blocks"] >= 1
    assert isinstance(result["tasks"], list)


def test_tasks_are_seen_and_cancelled(comm: Comm) -> None:
    from pygpukit.scheduler import Scheduler

    scheduler = Scheduler(total_memory=1 << 20, start=False)
    try:
        first = scheduler.submit(lambda: None, memory=1 << 19)
        first.result(timeout=60)
        tasks = {task["id"]: task for task in comm.ask({"id": 5, "action": "snapshot"})["result"]["tasks"]}
        assert tasks[first.id]["phase"] == "Succeeded"
        assert comm.ask({"id": 6, "action": "cancel", "args": {"task": first.id}}) == {
            "id": 6,
            "ok": True,
            "result": {"cancelled": False},
        }
    finally:
        scheduler.close()


@pytest.mark.parametrize(
    ("request_", "number", "error"),
    [
        ({"id": 7, "action": "format_disk", "args": {}}, 7, "unknown action 'format_disk'; there are hello"),
        ({"id": 8}, 8, "malformed request"),
        ({"id": 9, "action": 5}, 9, "malformed request"),
        ({"id": 10, "action": "hello", "args": []}, 10, "malformed request"),
        ({"id": 11, "action": "cancel"}, 11, "cancel needs args"),
        ({"id": 12, "action": "cancel", "args": {"task": "no-such-task"}}, 12, "no task 'no-such-task'"),
        ({"action": "hello"}, -1, "malformed request"),
        ({"id": True, "action": "hello"}, -1, "malformed request"),
        ({"id": "1", "action": "hello"}, -1, "malformed request"),
        ([], -1, "malformed request"),
        (None, -1, "malformed request"),
    ],
)
def test_wrong_requests_are_answered_with_an_error(comm: Comm, request_: Any, number: int, error: str) -> None:
    answer = comm.ask(request_)
    assert (answer["id"], answer["ok"]) == (number, False)
    assert answer["error"].startswith(error)


def test_a_fault_inside_is_an_answer_too(comm: Comm, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_device: int) -> Any:
        raise RuntimeError("out of luck")

    gp.zeros(1)
    monkeypatch.setattr(control._core, "pool_stats", broken)
    assert comm.ask({"id": 13, "action": "snapshot"}) == {"id": 13, "ok": False, "error": "RuntimeError: out of luck"}


def test_fuzzed_requests_never_raise_and_have_one_answer_each(comm: Comm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "PER_S", 1e9)  # what they say is at stake here, not how many they are
    dropped = control.dropped()
    malformed = 0
    random, unlimited = Random(5), _core.pool_stats(0).quota
    actions = ["status", "cancel", "quota", "share", "priority", "pause_task", "resume_task", "follow", "leave", "view"]
    keys = ["task", "limit", "share", "priority", "partition", "comm", "view", "unknown"]
    for number in range(5000):
        args = {key: random.choice(VALUES) for key in random.sample(keys, random.randrange(4))}
        request = {"id": number, "action": random.choice([*actions, *VALUES]), "args": args}
        request |= {key: random.choice(VALUES) for key in random.sample(["id", "args", "unknown"], random.randrange(2))}
        answer = comm.ask(request)
        assert len(comm.sent) == number + 1
        assert not answer["ok"] or request["action"] == "status", request
        assert len(answer.get("error", "")) < 1.1 * control.MAX_ERROR_CHARACTERS
        malformed += answer.get("error", "").startswith("malformed request")
    assert control.dropped() - dropped == malformed > 100
    assert _core.pool_stats(0).quota == unlimited
    assert comm.ask({"id": 1, "action": "hello"})["ok"]


def test_a_flood_is_dropped_and_counted_and_ends(comm: Comm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "PER_S", 0.0)
    dropped = control.dropped()
    for number in range(5000):
        comm.ask({"id": number, "action": "hello"})
    assert [answer["id"] for answer in comm.sent] == list(range(allowance.BURST))
    assert control.dropped() - dropped == 5000 - allowance.BURST
    monkeypatch.setattr(allowance, "PER_S", 1e9)
    answer = comm.ask({"id": 7000, "action": "snapshot"})
    assert (answer["id"], answer["result"]["dropped"]) == (7000, control.dropped()), "afterwards it is heard again"


def test_a_page_that_floods_takes_nothing_from_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "PER_S", 0.0)
    shell = Shell()
    assert control.install(shell)
    pages = Comm(), Comm()
    for page in pages:
        shell.kernel.comm_manager.targets["pygpukit.control.v1"](page, {})
    try:
        for number in range(100):
            pages[0].ask({"id": number, "action": "hello"})
        assert pages[1].ask({"id": 1, "action": "hello"})["ok"]
    finally:
        control.remove(shell)
