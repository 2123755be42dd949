"""Request: what a submission may ask for beside memory and share.

A default of a keyword-only argument is looked up by name at every call: fifteen of them would be a tenth of what a
submission costs. So those that are mostly left out come as `**options`, and are told here from the function's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, SupportsFloat, SupportsIndex, TypeVar, cast

from pygpukit import _core
from pygpukit.scheduler import units

if TYPE_CHECKING:
    from pygpukit.scheduler.scheduler import Scheduler
    from pygpukit.scheduler.task import Task

_P = ParamSpec("_P")
_T = TypeVar("_T")


def submit(
    self: Scheduler,
    fn: Callable[..., Any],
    *args: Any,
    memory: units.MemoryLike = None,
    bandwidth: SupportsFloat | None = None,
    policy: units.PolicyLike = None,
    priority: SupportsIndex = 0,
    depends_on: Iterable[Task | str] | Task | str | None = None,
    deadline: SupportsFloat | None = None,
    task_id: str | None = None,
    name: str | None = None,
    partition: str | None = None,
    retry: SupportsIndex | None = None,
    idempotent: bool = False,
    memory_limit: units.MemoryLike = None,
    bandwidth_limit: SupportsFloat | None = None,
    estimate: SupportsFloat | None = None,
    **kwargs: Any,
) -> Task:
    """Stands for the signature of Scheduler.submit()."""
    raise NotImplementedError


# What each of `options` is to the core, by name, and what parses it.
_OPTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "policy": ("policy", units.parse_policy),
    "priority": ("priority", units.parse_priority),
    "depends_on": ("depends_on", units.parse_ids),
    "deadline": ("deadline_ns", lambda deadline: units.parse_deadline(deadline, _core.now_ns())),
    "task_id": ("id", lambda text: units.parse_text(text, "task_id")),
    "name": ("name", lambda text: units.parse_text(text, "name")),
    "partition": ("partition", lambda text: units.parse_text(text, "partition")),
    "retry": ("retry", units.parse_retry),
    "idempotent": ("idempotent", bool),
    "memory_limit": ("memory_limit", lambda memory: units.parse_memory(memory, "memory_limit")),
    "bandwidth_limit": ("share_limit_ppm", lambda share: units.parse_share(share, "bandwidth_limit")),
    "estimate": ("run_ns", units.parse_estimate),
}
_NONE_IS_NO_DEFAULT = "priority"


def take(options: dict[str, Any]) -> dict[str, Any]:
    """Take what is asked of the scheduler out of a call's keyword arguments, as SchedulerCore.submit() takes it.

    What is left is the function's. Raises InvalidSpecError naming the field.
    """
    asked = {}
    for option in [name for name in options if name in _OPTIONS]:
        value = options.pop(option)
        if value is not None or option == _NONE_IS_NO_DEFAULT:
            field, parse = _OPTIONS[option]
            asked[field] = parse(value)
    return asked


def signature_of(prototype: Callable[_P, _T]) -> Callable[[Callable[..., _T]], Callable[_P, _T]]:
    """Show and check calls of the function below by the signature of another one."""

    def decorate(function: Callable[..., _T]) -> Callable[_P, _T]:
        function.__signature__ = inspect.signature(prototype)  # type: ignore[attr-defined]
        return cast("Callable[_P, _T]", function)

    return decorate
