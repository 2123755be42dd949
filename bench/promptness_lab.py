"""Promptness of a page while a cell waits for the device: how soon Ctrl-C ends the cell, how soon an answer comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

SETTLE_S = 0.05  # from a cell's begin to what is done to it
PATIENCE_S = 60.0
SETUP = """
%load_ext pygpukit
import pygpukit as gp
from bench.promptness import LongKernel
kernel = LongKernel()
"""
BUSY = "kernel.launch(); gp.synchronize()"
COMM = {"comm_id": "promptness", "target_name": "pygpukit.control.v1", "data": {}}


class Kernel:
    """A fresh kernel with the extension loaded, and a page's control channel to it."""

    def __init__(self) -> None:
        from jupyter_client.manager import KernelManager

        # Its sockets are files: a port that was free may be another's by now.
        self.folder = TemporaryDirectory(prefix="pygpukit-")
        self.manager = KernelManager(transport="ipc", connection_file=f"{self.folder.name}/kernel.json")
        self.manager.start_kernel()
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.ended: set[str] = set()  # requests

    def prepare(self) -> None:
        self.client.wait_for_ready(timeout=PATIENCE_S)
        self.run(SETUP)
        # Answers come while a cell runs only in a subshell.
        self.client.control_channel.send(self.client.session.msg("create_subshell_request"))
        self.subshell = self.client.get_control_msg(timeout=PATIENCE_S)["content"].get("subshell_id")
        self.send("comm_open", COMM)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.folder.cleanup()

    def listen(self, until: Callable[[str, Any, Any], bool]) -> None:
        """Take messages until `until(type, content, request)` is true. queue.Empty after PATIENCE_S of silence."""
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE_S)
            kind, content, request = message["msg_type"], message["content"], message["parent_header"].get("msg_id")
            if kind == "status" and content["execution_state"] == "idle":
                self.ended.add(request)
            if until(kind, content, request):
                return

    def begin(self, code: str) -> str:
        request = str(self.client.execute(code))
        self.listen(lambda kind, _, of: kind == "execute_input" and of == request)
        return request

    def finish(self, request: str) -> None:
        if request not in self.ended:
            self.listen(lambda *_: request in self.ended)

    def run(self, code: str) -> None:
        self.finish(self.begin(code))

    def send(self, kind: str, content: dict[str, Any]) -> None:
        message = self.client.session.msg(kind, content)
        message["header"]["subshell_id"] = self.subshell
        self.client.shell_channel.send(message)

    def answer_ms(self, number: int) -> float:
        """Milliseconds from a request of the page to its answer."""
        sent_s = time.perf_counter()
        self.send("comm_msg", {"comm_id": COMM["comm_id"], "data": {"id": number, "action": "snapshot", "args": {}}})
        self.listen(lambda kind, said, _: kind == "comm_msg" and said["data"].get("id") == number)
        return (time.perf_counter() - sent_s) * 1e3

    def samples(self, count: int) -> tuple[list[float], list[float]]:
        """Milliseconds from Ctrl-C to the end of the cell, and of an answer while the cell was busy.

        Of so many cells behind a first one: IPython loads what shows a traceback when it shows its first.
        """
        ends, answers = [], []
        for number in range(count + 1):
            cell = self.begin(BUSY)
            time.sleep(SETTLE_S)
            answers.append(self.answer_ms(number))
            if cell in self.ended:
                raise RuntimeError(f"the cell ended before it was interrupted: the answer took {answers[-1]:.0f} ms")
            sent_s = time.perf_counter()
            self.manager.interrupt_kernel()
            self.finish(cell)
            ends.append((time.perf_counter() - sent_s) * 1e3)
            self.run("gp.synchronize()")  # a GPU's kernel runs on
        return ends[1:], answers[1:]


def subshells() -> bool:
    """True where kernels here can answer while a cell runs."""
    try:
        import ipykernel
        import jupyter_client.manager  # noqa: F401
    except ImportError:
        return False
    return int(ipykernel.__version__.split(".")[0]) >= 7


def lab_samples(count: int) -> tuple[list[float], list[float]]:
    kernel = Kernel()
    try:
        kernel.prepare()
        return kernel.samples(count)
    finally:
        kernel.close()
