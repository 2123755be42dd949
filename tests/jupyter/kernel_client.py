"""Talks to a real ipykernel as a page does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ipykernel
from jupyter_client.manager import KernelManager


class Page:
    """A kernel, and what it has said about each of the requests."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client
        self.said: list[tuple[float, dict[str, Any]]] = []
        self._subshell: str | None = None
        self._requests = 0

    def send(self, code: str, cell: str | None = None) -> str:
        """Ask for a cell to be run; the request's id. cell: the front end's id of it."""
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        metadata = {} if cell is None else {"cellId": cell}
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def listen(self, until: Any, timeout_s: float = 60) -> None:
        """Take messages until `until(message)` is true."""
        deadline = time.monotonic() + timeout_s
        while True:
            message = self.client.get_iopub_msg(timeout=max(deadline - time.monotonic(), 0.01))
            self.said.append((time.monotonic(), message))
            if until(message):
                return

    def begin(self, code: str) -> str:
        """Ask for a cell and wait until it has begun; the request's id."""
        number = self.send(code)
        self.listen(lambda message: of(message, number) and message["msg_type"] == "execute_input")
        return number

    def busy(self, number: str) -> bool:
        """Whether nothing was heard yet of the end of a cell."""
        return not any(ends(message, number) for _, message in self.said)

    def finish(self, number: str) -> None:
        """Take messages until a cell has ended, which may have been told already."""
        if self.busy(number):
            self.listen(lambda message: ends(message, number))

    def run(self, code: str, cell: str | None = None) -> str:
        """Run a cell to its end; the request's id. cell: the front end's id of it."""
        number = self.send(code, cell)
        self.finish(number)
        return number

    def open_control(self) -> None:
        """Open the control channel, in a subshell where the kernel has them."""
        self._open_subshell()
        self._send_comm("comm_open", {"comm_id": "control", "target_name": "pygpukit.control.v1", "data": {}})

    def request(self, action: str, args: dict[str, Any]) -> dict[str, Any]:
        """The answer to a control request."""
        self._requests += 1
        data = {"id": self._requests, "action": action, "args": args}
        self._send_comm("comm_msg", {"comm_id": "control", "data": data})
        return self._answer(lambda said: said if said.get("id") == data["id"] else None)

    def press(self, model: str, action: str) -> dict[str, Any]:
        """The answer to a request of a dashboard, whose model's id it is, from a subshell where the kernel has them."""
        self._open_subshell()
        self._requests += 1
        content = {"type": "request", "id": self._requests, "action": action, "args": {}}
        self._send_comm("comm_msg", {"comm_id": model, "data": {"method": "custom", "content": content}})

        def answer(said: dict[str, Any]) -> dict[str, Any] | None:
            of_view = said.get("content", {})
            return of_view if of_view.get("type") == "answer" and of_view["id"] == content["id"] else None

        return self._answer(answer)

    def _answer(self, among: Callable[[dict[str, Any]], dict[str, Any] | None]) -> dict[str, Any]:
        """The first message on a comm that `among` finds an answer in."""
        found: list[dict[str, Any]] = []

        def answers(message: dict[str, Any]) -> bool:
            answer = among(message["content"]["data"]) if message["msg_type"] == "comm_msg" else None
            found.extend([] if answer is None else [answer])
            return answer is not None

        self.listen(answers)
        return found[0]

    def _open_subshell(self) -> None:
        if self._subshell is None and int(ipykernel.__version__.split(".")[0]) >= 7:
            self.client.control_channel.send(self.client.session.msg("create_subshell_request"))
            self._subshell = self.client.get_control_msg(timeout=60)["content"]["subshell_id"]

    def _send_comm(self, kind: str, content: dict[str, Any]) -> None:
        message = self.client.session.msg(kind, content)
        if self._subshell is not None:
            message["header"]["subshell_id"] = self._subshell
        self.client.shell_channel.send(message)

    def outputs(self, number: str) -> list[dict[str, Any]]:
        """What a request was answered with: content of stream, display, result and error messages."""
        kinds = ("stream", "display_data", "execute_result", "error")
        return [m["content"] for _, m in self.said if of(m, number) and m["msg_type"] in kinds]

    def text(self, number: str, stream: str = "stdout") -> str:
        """What a request printed."""
        return "".join(one["text"] for one in self.outputs(number) if one.get("name") == stream)


def of(message: dict[str, Any], number: str) -> bool:
    return message["parent_header"].get("msg_id") == number


def ends(message: dict[str, Any], number: str) -> bool:
    return of(message, number) and message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"


def until_there(path: Path) -> str:
    """Code that keeps a cell busy until a file is there: as long as a test needs it, however slow the machine is."""
    return f"import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)"


@contextmanager
def kernel() -> Iterator[Page]:
    """A fresh kernel with the extension loaded. Its sockets are files: a port that was free may be another's by now."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    with TemporaryDirectory(prefix="pygpukit-") as folder:
        manager = KernelManager(transport="ipc", connection_file=f"{folder}/kernel.json")
        manager.start_kernel(env=environment)  # under pytest it would not see C's stdout
        client = manager.blocking_client()
        try:
            client.start_channels()
            client.wait_for_ready(timeout=60)
            page = Page(manager, client)
            loading = page.run("%load_ext pygpukit\nimport threading, time\nimport pygpukit as gp")
            assert page.outputs(loading) == [], "loading prints nothing"
            yield page
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
