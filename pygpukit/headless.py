"""Runs notebooks without a browser and prints what their cells say: `python -m pygpukit.headless FILE.ipynb ...`"""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CELL_TIMEOUT_S = 300
ALIVE_S = 1  # how often a kernel that says nothing is asked whether it lives
LAST_WORDS_S = 0.2  # how long an ended kernel's messages may be under way
MAY_FAIL = "raises-exception"  # the tag of a cell that shows an error on purpose
SKIPPED = "skip-execution"  # the tag of a cell that is not run
# As a Python program does at its end: a kernel that is told to end waits for no thread and prints nothing more. Pools
# that were left open end once they are told that the program does.
JOIN = """
[end() for end in [getattr(__import__("sys").modules.get(f"concurrent.futures.{kind}"), "_python_exit", None)
                   for kind in ("process", "thread")] if end];
[thread.join() for thread in __import__("threading").enumerate()
 if not thread.daemon and thread is not __import__("threading").main_thread()];
"""


class CellFailed(Exception):
    """A cell ended with an error, took too long, or its kernel died."""


class Notebook:
    """A kernel, and what it says printed as it comes, whichever cell it comes from: also behind that cell's end."""

    def __init__(self, folder: Path, kernel: str) -> None:
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel(kernel_name=kernel, cwd=str(folder))
        self.line_open = False  # the last text printed lacks its line's end
        self.shown: dict[str, str] = {}  # the text last printed of each output that can be updated

    def execute(self, source: str, may_fail: bool) -> None:
        """Run a cell and print until it has ended. Raises CellFailed."""
        request = self.client.execute(source, allow_stdin=False, stop_on_error=False)
        deadline_s = time.monotonic() + CELL_TIMEOUT_S
        error = ""
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=ALIVE_S)
            except queue.Empty:
                if not self.client.is_alive():
                    raise CellFailed("the kernel died") from None
                message = None
            if message is not None:
                mine = message["parent_header"].get("msg_id") == request
                if mine and message["msg_type"] == "error" and not may_fail:
                    error = "\n".join(message["content"]["traceback"])
                elif mine and message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                    break
                else:
                    self.show(message)
            if time.monotonic() > deadline_s:
                raise CellFailed(f"no end within {CELL_TIMEOUT_S} s")
        if error:
            raise CellFailed(error)

    def join_threads(self) -> None:
        """Wait for the threads that cells left behind, but for daemons. Raises CellFailed."""
        try:
            self.execute(JOIN, may_fail=False)
        except CellFailed as error:
            raise CellFailed(f"waiting for the threads that cells began: {error}") from None

    def show(self, message: Any) -> None:
        """Print an output; pictures and widgets by their text form. Other messages have nothing to print, nor has an
        update that says what was said before, as of a picture that is drawn while a cell runs."""
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            self.print(content["text"], end="")
        elif kind in ("execute_result", "display_data", "update_display_data"):
            text, name = content["data"].get("text/plain", ""), content.get("transient", {}).get("display_id")
            if kind != "update_display_data" or self.shown.get(name) != text:
                self.print(text)
            if name is not None:
                self.shown[name] = text
        elif kind == "error":
            self.print(f"{content['ename']}: {content['evalue']}")

    def print(self, text: str, end: str = "\n") -> None:
        """As print(); what is no stream begins a line."""
        begin = "\n" if self.line_open and end else ""
        print(begin + text, end=end, flush=True)
        self.line_open = not (text + end).endswith("\n")

    def close(self) -> None:
        """End the kernel and print what it said until then."""
        try:
            self.manager.shutdown_kernel()
            while True:
                self.show(self.client.get_iopub_msg(timeout=LAST_WORDS_S))
        except queue.Empty:
            pass
        finally:
            self.client.stop_channels()


def run_notebook(path: Path) -> int:
    """Execute every cell in a fresh kernel; print the text of their results. Exit code 0, or 1 at the first error."""
    import nbformat

    book = nbformat.read(path, as_version=4)
    begin_s = time.monotonic()
    count = 0
    notebook = Notebook(path.parent, book.metadata.get("kernelspec", {}).get("name", "python3"))
    try:
        for cell in book.cells:
            tags = cell.metadata.get("tags", [])
            if cell.cell_type != "code" or SKIPPED in tags:
                continue
            count += 1
            notebook.print(f"--- cell {count}: {first_line(cell.source)}")
            notebook.execute(cell.source, MAY_FAIL in tags)
        notebook.join_threads()
    except CellFailed as error:
        print(error, file=sys.stderr)
        print(f"{path.name}: cell {count} failed", file=sys.stderr)
        return 1
    finally:
        notebook.close()
    notebook.print(f"{path.name}: {count} cells ran in {time.monotonic() - begin_s:.1f} s")
    return 0


def main(paths: Sequence[str]) -> int:
    """Run notebooks one after the other. Exit code 0, 1 when one failed, 2 when none is given."""
    if not paths:
        print("python -m pygpukit.headless FILE.ipynb ...: name the notebooks to run", file=sys.stderr)
        return 2
    return max(run_notebook(Path(path)) for path in paths)


def first_line(source: str) -> str:
    """The cell's first line that is not a comment, as its title."""
    lines = [line.strip() for line in source.splitlines()]
    return next((line for line in lines if line and not line.startswith("#")), "(empty)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
