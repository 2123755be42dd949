"""Errors that tasks raised on workers, as those of this package."""

from __future__ import annotations

import traceback

from distributed import KilledWorker

from pygpukit.core.text import words_of
from pygpukit.worker.errors import WorkerDiedError, WorkerError, WorkerTaskError


def failure(what: str, error: BaseException) -> WorkerError:
    """The error of a task of Dask in its own words, what in front of them; error is its cause."""
    kind, words = type(error).__name__, words_of(error)
    if isinstance(error, KilledWorker):
        failed: WorkerError = WorkerDiedError(
            f"{what}: every worker that ran it died; the last was {error.last_worker.name}"
        )
    else:
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        failed = WorkerTaskError(f"{what}: {kind}: {words}", kind, trace)
    failed.__cause__ = error
    return failed
