"""The block that the interpreter runs: where it is, and errors that name it with the kernel's own line."""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from pygpukit.core.errors import Finding, GPUError, KernelCheckError

_PACKAGE = __name__.rpartition(".")[0]
_MAX_SPINS = 5000
_current = threading.local()


class TileCheckError(KernelCheckError):
    """A kernel of cuTile did in the interpreter what it must not. Fields: those of KernelCheckError."""

    def _render_traceback_(self) -> list[str]:
        """IPython shows this text instead of a traceback: it has the kernel's line."""
        return [f"KernelCheckError: {self}"]


@dataclass
class Block:
    """A block while it runs. number: its place among all, x first. spins: atomic operations in a row that changed
    nothing, by line."""

    kernel: str
    index: tuple[int, int, int]
    extents: tuple[int, int, int]
    number: int = 0
    spins: dict[tuple[str, int], int] = field(default_factory=dict)


@contextmanager
def running(block: Block) -> Iterator[None]:
    """The block is the current one of this thread."""
    before, _current.block = getattr(_current, "block", None), block
    try:
        yield
    finally:
        _current.block = before


def current(what: str) -> Block:
    """The block that runs. Raises GPUError outside of a kernel."""
    block: Block | None = getattr(_current, "block", None)
    if block is None:
        raise GPUError(f"ct.{what} is for kernels: launch one by gp.cutile.Kernel(kernel)[grid](...)")
    return block


def place() -> tuple[str, int]:
    """File and line of the kernel, or of the function it calls, that runs now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(f"{_PACKAGE}."):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def shown(file: str, line: int) -> str:
    """ "line 7 (y = ct.load(...))", with the file's name where it is one on disk."""
    text = linecache.getline(file, line).strip()
    name = f" of {Path(file).name}" if Path(file).is_file() and "ipykernel" not in file else ""
    return f"line {line}{name}" + (f" ({text:.100})" if text else "")


def named(message: str) -> str:
    """The message behind the kernel's name, the block and the line; as it is outside of a kernel."""
    block: Block | None = getattr(_current, "block", None)
    if block is None:
        return message
    return f"{block.kernel}, block {block.index}, {shown(*place())}: {message}"


def refused(error: GPUError) -> GPUError:
    """The error that is raised in a kernel for what the compiler refuses, with its line."""
    error.args = (named(str(error)), *error.args[1:])
    return error


def finding(kind: str, message: str, array: str = "", index: int | None = None) -> KernelCheckError:
    """The error for what a kernel does that it must not."""
    block = current("load()")
    one = Finding(kind, message, block.kernel, block.index, (0, 0, 0), place()[1], array, index)
    return TileCheckError(named(f"{kind}: {message}"), findings=[one])


def count_spin(idle: bool) -> None:
    """Count an atomic operation that changed nothing. Raises KernelCheckError after so many at a line in a row."""
    block = current("load()")
    where = place()
    block.spins[where] = block.spins.get(where, 0) + 1 if idle else 0
    if block.spins[where] > _MAX_SPINS:
        raise finding(
            "deadlock",
            f"{_MAX_SPINS} atomic operations in a row changed nothing: the block waits for another one, and blocks run "
            "one after the other; on a device, too, nothing promises that two run at a time",
        )


def plain(value: Any, what: str) -> Any:
    """A value that must be known when a kernel is compiled. Raises GPUError for one that is not."""
    if isinstance(value, (tuple, list)):
        return tuple(plain(one, what) for one in value)
    if hasattr(value, "undetermined"):  # a tile
        raise refused(GPUError(f"{what} must be known when the kernel is compiled: annotate it as ct.Constant[int]"))
    return value
