"""Request: what a submission may ask for beside memory and share.

A default of a keyword-only argument is looked up by name at every call: fifteen of them would be a tenth of what a
submission costs. So those that are mostly left out come as `**options`, and are told here from the function's own.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, ParamSpec, SupportsFloat, SupportsIndex, TypeVar, cast

from pygpukit import _core
from pygpukit.core.device import DeviceLike
from pygpukit.core.errors import InvalidSpecError
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
    device: DeviceLike | None = None,
    devices: SupportsIndex | Iterable[DeviceLike] | None = None,
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
    "device": ("devices", units.parse_place),
    "devices": ("devices", units.parse_devices),
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
            if field in asked:
                raise InvalidSpecError("devices: device= is given, too; give one of the two", "devices")
            asked[field] = parse(value)
    return asked


def decided(
    self: Scheduler, label: str, memory: Any, bandwidth: Any, options: dict[str, Any]
) -> tuple[units.MemoryLike, float | None]:
    """(memory, bandwidth) by the plugin's policy that `options` names, with the rest of its decision in `options`; as
    they are where that is one of the classes.

    Raises InvalidSpecError naming the field, PluginError, and TaskRejectedError where the policy refuses.
    """
    from pygpukit.plugins.policy import Demand, policy

    name = options["policy"]
    if not isinstance(name, str) or units.is_class(name) or (decide := policy(name)) is None:
        return memory, bandwidth
    demand = decide(
        Demand(
            units.parse_text(options.get("name", label), "name"),
            0 if memory is None else units.parse_memory(memory),
            units.parse_share(bandwidth) / 1e6,
            None,
            units.parse_priority(options.get("priority", 0)),
            options.get("deadline"),
            options.get("partition") or "",
            self.total_memory,
            self.available_memory,
        )
    )
    options |= {"name": demand.name, "priority": demand.priority}
    for field in ("policy", "deadline", "partition"):
        options.pop(field, None)
        if getattr(demand, field):
            options[field] = getattr(demand, field)
    return demand.memory or None, demand.bandwidth or None


def documented(
    fn: Callable[..., Any], args: tuple[Any, ...], memory: Any, bandwidth: Any, options: dict[str, Any]
) -> tuple[Any, Any] | None:
    """(memory, bandwidth) of a call submit(fn, memory, bandwidth, policy), whose policy goes to options.

    They can be meant where the function takes nothing by position: its arguments come where those of the documented
    call did. None where it takes some. Raises TypeError for more than three, and for one that is given by name, too.
    """
    inner, bound = (fn.__func__, 1) if isinstance(fn, MethodType) else (fn, 0)
    if not isinstance(inner, FunctionType) or inner.__code__.co_flags & inspect.CO_VARARGS:
        return None
    if inner.__code__.co_argcount > bound or "__wrapped__" in inner.__dict__:
        return None
    if len(args) > 3:
        raise TypeError(f"submit: {inner.__name__}() takes no arguments by position, and {len(args)} were given for it")
    named = {"memory": memory, "bandwidth": bandwidth, "policy": options.get("policy")}
    for name, value in zip(named, args, strict=False):
        if named[name] is not None and value is not None:
            raise TypeError(f"submit: {name} is given by position and by name; give it by name")
        named[name] = value if named[name] is None else named[name]
    warnings.warn("submit: give memory=, bandwidth= and policy= by name", DeprecationWarning, stacklevel=3)
    if named["policy"] is not None:
        options["policy"] = named["policy"]
    return named["memory"], named["bandwidth"]


def signature_of(prototype: Callable[_P, _T]) -> Callable[[Callable[..., _T]], Callable[_P, _T]]:
    """Show and check calls of the function below by the signature of another one."""

    def decorate(function: Callable[..., _T]) -> Callable[_P, _T]:
        function.__signature__ = inspect.signature(prototype)  # type: ignore[attr-defined]
        return cast("Callable[_P, _T]", function)

    return decorate
