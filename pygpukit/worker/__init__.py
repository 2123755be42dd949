"""A worker process with a device context of its own: start it, hand arrays over, run a named function, restart it."""

from .errors import WorkerDiedError, WorkerError, WorkerTaskError, WorkerTimeoutError
from .parent import Worker

__all__ = ["Worker", "WorkerDiedError", "WorkerError", "WorkerTaskError", "WorkerTimeoutError"]


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
