"""When LinAlgError is raised: the one place that waits for what the device says of its matrices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_asked: ContextVar[bool] = ContextVar("pygpukit_linalg_asked", default=True)


@contextmanager
def unchecked() -> Iterator[None]:
    """Within it gp.linalg neither waits for the device nor raises LinAlgError: what has no result is NaN.

    For this thread and what it awaits. Shapes and types are checked as always. Use it in graphs that are captured, and
    where the host must not wait; ask with gp.isnan(). lstsq() waits all the same: its results' shapes depend on ranks.
    """
    token = _asked.set(False)
    try:
        yield
    finally:
        _asked.reset(token)


def check(info: GPUArray, what: str, problem: str, remedy: str) -> None:
    """Raises LinAlgError where info, one number a matrix, is not zero. Waits for it, but within unchecked()."""
    if not _asked.get():
        return
    failed = [
        tuple(map(int, place)) for place in zip(*info.to_numpy().reshape(info.shape or (1,)).nonzero(), strict=True)
    ]
    if not failed:
        return
    from pygpukit.ops.linalg.errors import LinAlgError

    if info.ndim:
        first = failed[0] if info.ndim > 1 else failed[0][0]
        which = f"{len(failed)} of {info.size} matrices, the first at {first},"
    else:
        which, failed = "the matrix", [()]
    raise LinAlgError(f"{what}: {which} {problem}; {remedy}", failed)
