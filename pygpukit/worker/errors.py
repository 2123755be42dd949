"""Errors of a worker, as types."""

from __future__ import annotations

from ..core.errors import GPUError


class WorkerError(GPUError):
    """Root of the worker's errors: a call that could not be made, or a worker that could not be started."""


class WorkerDiedError(WorkerError):
    """The process is gone. Field: exit_code (negative: the signal that ended it; None: it was never started)."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class WorkerTimeoutError(WorkerError):
    """The call outlasted its time limit and the worker was killed. Field: timeout_s."""

    def __init__(self, message: str, timeout_s: float) -> None:
        super().__init__(message)
        self.timeout_s = timeout_s


class WorkerTaskError(WorkerError):
    """The function raised in the worker. Fields: kind (the exception's type name there), remote_traceback."""

    def __init__(self, message: str, kind: str, remote_traceback: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.remote_traceback = remote_traceback


class WorkerStoppedError(WorkerError):
    """The worker was killed because nobody wants the answer any more."""
