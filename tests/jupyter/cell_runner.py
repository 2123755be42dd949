"""Runs cells in a test's shell, and reads what they left on record."""

from __future__ import annotations

import atexit
import struct
import sys
from typing import Any

from pygpukit import _core

LAUNCH, COPY, COMPILE = 16, 18, 48
AXPY = """__global__ void axpy(const float* x, const float* y, float* z, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}
"""


def run(shell: Any, cell: str) -> Any:
    """The value of a cell. Raises what the cell raised."""
    result = shell.run_cell(cell, store_history=True)
    result.raise_error()
    return result.result


def error_of(shell: Any, cell: str) -> BaseException:
    """What a cell that must fail raised."""
    error: BaseException | None = shell.run_cell(cell, store_history=True).error_in_exec
    assert error is not None, "the cell must fail"
    return error


def cuda(shell: Any, options: str, body: str = AXPY) -> Any:
    """The value of a %%cuda cell."""
    return run(shell, f"%%cuda {options}\n{body}")


def failure(shell: Any, options: str, body: str = AXPY) -> BaseException:
    """What a %%cuda cell that must fail raised."""
    return error_of(shell, f"%%cuda {options}\n{body}")


def records(since: int, kind: int) -> list[tuple[int, int, int]]:
    """(a, b, c) of every record of a kind from `since` on."""
    data, _, _ = _core.ring_read(since)
    rows = [data[at : at + 64] for at in range(0, len(data), 64)]
    return [struct.unpack_from("<QQQ", row, 32) for row in rows if struct.unpack_from("<H", row, 16) == (kind,)]


def compiles(since: int) -> int:
    """How many units were really compiled."""
    return sum(source == 0 for _, source, _ in records(since, COMPILE))


def clear(shell: Any) -> None:
    """What cells made goes now: while a checked kernel lives no freed array gives its memory back."""
    shell.reset(new_session=False)
    _forget()


def let_go(shell: Any) -> None:
    """End a shell, with what its cells made. Else all shells end with the process, and each collects garbage then."""
    shell.atexit_operations()
    atexit.unregister(shell.atexit_operations)
    _forget()


def _forget() -> None:
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
