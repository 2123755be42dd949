"""Requests as people write them, turned into integers: "512MB", 0.2, "guaranteed", 1.5 seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import SupportsFloat, SupportsIndex

from pygpukit.core.device import DeviceLike, index_of
from pygpukit.core.errors import DeviceMismatchError, InvalidSpecError
from pygpukit.core.sizes import GB as GB
from pygpukit.core.sizes import KB as KB
from pygpukit.core.sizes import MB as MB
from pygpukit.core.sizes import MemoryLike as MemoryLike
from pygpukit.core.sizes import parse_memory as parse_memory
from pygpukit.core.sizes import whole
from pygpukit.core.text import nearest

_WHOLE_PPM = 1_000_000
_INT32 = 2**31
_FIRST_PAUSE_NS = 10_000_000
_LONGEST_PAUSE_NS = 1_000_000_000


class TaskState(Enum):
    """The phases of a task (docs/task-phases.md). PENDING and COMPLETED are documented second names of two of them."""

    SUBMITTED = "Submitted"
    REJECTED = "Rejected"
    QUEUED = "Queued"  # waits for memory, share or other tasks
    ADMITTED = "Admitted"  # has what it asked for and waits for a dispatcher
    RUNNING = "Running"
    SUSPENDED = "Suspended"  # runs, and is paused
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    EXPIRED = "Expired"
    PENDING = ADMITTED
    COMPLETED = SUCCEEDED

    @property
    def is_terminal(self) -> bool:
        """True for the phases that a task never leaves."""
        return self in _TERMINAL


_TERMINAL = {
    TaskState.REJECTED,
    TaskState.SUCCEEDED,
    TaskState.FAILED,
    TaskState.CANCELLED,
    TaskState.EXPIRED,
}


class TaskPolicy(Enum):
    """The QoS class of a task, derived from its requests and limits as in Kubernetes."""

    GUARANTEED = "Guaranteed"  # request = limit, for memory and share, both set
    BURSTABLE = "Burstable"  # at least the request
    BEST_EFFORT = "BestEffort"  # no request: what others leave over


PolicyLike = str | TaskPolicy | None


def parse_share(bandwidth: SupportsFloat | None, field: str = "bandwidth") -> int:
    """Parts per million of a compute share given as a fraction from 0 to 1; None is 0. Raises InvalidSpecError."""
    if bandwidth is None:
        return 0
    expected = "a fraction of the device from 0 to 1, such as 0.2"
    fraction = _number(bandwidth, field, expected)
    if not 0 <= fraction <= 1:
        raise InvalidSpecError(f"{field}={bandwidth!r} is out of range; give {expected}", field)
    share_ppm = round(fraction * _WHOLE_PPM)
    if fraction > 0 and share_ppm == 0:
        raise InvalidSpecError(f"{field}={bandwidth!r} is less than the smallest share, 0.000001", field)
    return share_ppm


def parse_policy(policy: PolicyLike) -> str | None:
    """The core's name of a policy given by name or member; None is None: the class follows from requests and limits.

    Raises InvalidSpecError for an unknown name.
    """
    if policy is None:
        return None
    if isinstance(policy, str):
        member_by_name = _member(policy)
    else:
        member_by_name = policy if isinstance(policy, TaskPolicy) else None
    if member_by_name is None:
        known = '"guaranteed", "burstable" or "best_effort"'
        raise InvalidSpecError(f"policy={policy!r} is unknown; use {known}", "policy")
    return member_by_name.value


def is_class(policy: str) -> bool:
    """True for the name of a QoS class, as parse_policy() takes it."""
    return _member(policy) is not None


def _member(policy: str) -> TaskPolicy | None:
    name = re.sub("[-_ ]", "", policy).upper()
    return next((member for member in TaskPolicy if member.name.replace("_", "") == name), None)


def parse_name(name: str, field: str, known: Sequence[str]) -> str:
    """One of the known names. Raises InvalidSpecError, with the one that is most like it."""
    if name not in known:
        meant = nearest(name, known) if isinstance(name, str) else ""
        raise InvalidSpecError(f"{field}={name!r} is unknown; {meant}use {', '.join(map(repr, known))}", field)
    return name


def parse_retry(retry: SupportsIndex | None) -> tuple[int, int, int] | None:
    """(retries, first pause, longest pause in nanoseconds) of a number of retries; None is None. InvalidSpecError."""
    if retry is None:
        return None
    retries = whole(retry, "retry", "how often to run again, a whole number")
    if not 0 <= retries < _INT32:
        raise InvalidSpecError(f"retry={retry!r} is out of range; give 0 or more", "retry")
    return retries, _FIRST_PAUSE_NS, _LONGEST_PAUSE_NS


def parse_estimate(estimate: SupportsFloat | None) -> int:
    """Nanoseconds of a run time in seconds, more than 0; None is 0. Raises InvalidSpecError."""
    if estimate is None:
        return 0
    seconds = _number(estimate, "estimate", "seconds")
    if not 0 < seconds < 1e9:
        raise InvalidSpecError(f"estimate={estimate!r} is out of range; give seconds, more than 0", "estimate")
    return max(1, round(seconds * 1e9))


def parse_priority(priority: SupportsIndex) -> int:
    """A 32-bit integer; higher runs first. Raises InvalidSpecError."""
    number = priority if type(priority) is int else whole(priority, "priority", "a whole number; higher runs first")
    if not -_INT32 <= number < _INT32:
        raise InvalidSpecError(f"priority={priority!r} does not fit in 32 bits", "priority")
    return number


def parse_deadline(deadline: SupportsFloat | None, now_ns: int) -> int:
    """A deadline in seconds from now as nanoseconds on the scheduler's clock; None is 0. Raises InvalidSpecError."""
    if deadline is None:
        return 0
    seconds = _number(deadline, "deadline", "seconds from now")
    if not 0 <= seconds < 1e9:
        raise InvalidSpecError(f"deadline={deadline!r} is out of range; give seconds from now, 0 or more", "deadline")
    return max(1, now_ns + round(seconds * 1e9))


def parse_ids(tasks: object) -> list[str]:
    """Ids of one task or of several to depend on, each given as a task or an id. Raises InvalidSpecError."""
    if isinstance(tasks, str) or hasattr(tasks, "id"):
        tasks = (tasks,)
    if not isinstance(tasks, Iterable):
        raise InvalidSpecError(f"depends_on={tasks!r} is neither a task nor a sequence of tasks", "depends_on")
    return [parse_id(task, "depends_on") for task in tasks]


def parse_id(task: object, field: str = "task") -> str:
    """The id of a task given as itself or by its id. Raises InvalidSpecError."""
    identity = task if isinstance(task, str) else getattr(task, "id", None)
    if not isinstance(identity, str):
        raise InvalidSpecError(f"{field}: {task!r} is neither a task nor the id of one", field)
    return identity


def parse_device(device: DeviceLike) -> int:
    """The number of a device that is said as a number, a gp.cuda.Device or "cuda:1"."""
    # Whether there is such a one is the core's to say, of its own devices.
    if type(device) is int and device >= 0:
        return device
    try:
        return index_of(device, "device")
    except (DeviceMismatchError, TypeError) as error:
        raise InvalidSpecError(str(error), "device") from None


def parse_place(device: DeviceLike) -> int | list[int]:
    """A device as SchedulerCore.submit() takes it: "any" is one, whichever."""
    return 1 if device == "any" else [parse_device(device)]


def parse_devices(devices: SupportsIndex | Iterable[DeviceLike]) -> int | list[int]:
    """Devices as SchedulerCore.submit() takes them: how many, whichever, or which."""
    if not isinstance(devices, (str, bytes)) and isinstance(devices, Iterable):
        return [parse_device(device) for device in devices]
    return parse_count(devices, "devices")  # type: ignore[arg-type]


def parse_text(text: object, field: str) -> str:
    """A string as it is. Raises InvalidSpecError for anything else."""
    if not isinstance(text, str):
        raise InvalidSpecError(f"{field}={text!r} is not a string", field)
    return text


def parse_positive(number: SupportsFloat, field: str) -> float:
    """A number more than 0. Raises InvalidSpecError."""
    value = _number(number, field, "a number more than 0")
    if value <= 0:
        raise InvalidSpecError(f"{field}={number!r}; give a number more than 0", field)
    return value


def parse_count(number: SupportsIndex, field: str) -> int:
    """A whole number, 1 or more. Raises InvalidSpecError."""
    value = whole(number, field, "a whole number, 1 or more")
    if value < 1:
        raise InvalidSpecError(f"{field}={number!r}; give a whole number, 1 or more", field)
    return value


def _number(value: SupportsFloat, field: str, expected: str) -> float:
    if isinstance(value, (bool, str)):
        raise InvalidSpecError(f"{field}={value!r}; give {expected}", field)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidSpecError(f"{field}={value!r}; give {expected}", field) from None
    if not math.isfinite(number):
        raise InvalidSpecError(f"{field}={value!r}; give {expected}", field)
    return number
