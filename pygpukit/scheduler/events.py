"""Events of tasks in the event ring: typed events with sequence numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.device import device_facts
from pygpukit.core.errors import InvalidSpecError

_SEVERAL = 1 << 31


class TaskEvent(NamedTuple):
    """One task left one phase and entered another."""

    sequence: int  # of all events of the process, ascending
    t_ns: int
    number: int  # of the task, as in its record
    name: str
    source: str
    target: str
    reason: str
    device: int | None = 0  # the first that it is on; None while it leaves the choice and waits


class QueueEvent(NamedTuple):
    """One task came into the line of its partition, or left it. Those behind moved by one: see Replay."""

    sequence: int
    t_ns: int
    number: int
    name: str
    partition: str  # "" for the default
    came: bool
    position: int  # that it took or left, from 1
    depth: int  # tasks in the line from then on
    device: int | None = 0  # as of TaskEvent
    line: int = 0  # its number: device k's own, without a partition, has k; from 2**31 on they are of several devices

    @property
    def waits_for(self) -> str:
        """The line's name: the partition's, "" for what none keeps of device 0."""
        if self.partition or not self.line:
            return self.partition
        several = self.line - _SEVERAL
        return f"device {self.line}" if several < 0 else f"several devices, line {several}"


class ThrottleEvent(NamedTuple):
    """Its limit held one task back, perhaps often, from from_ns to t_ns; no longer than about 0.1 s."""

    sequence: int
    t_ns: int
    number: int
    name: str
    device: int
    from_ns: int
    throttled_ns: int  # of that time
    throttles: int  # so often


class ShareEvent(NamedTuple):
    """Shares of a device that a task got, as fractions: ten times a second while it gets anything, and at its end."""

    sequence: int
    t_ns: int
    number: int
    name: str
    device: int
    share_10ms: float
    share_100ms: float
    share_1s: float


class MemoryEvent(NamedTuple):
    """A block went to host memory, came back, or was freed there."""

    sequence: int
    t_ns: int
    number: int  # of the one task that runs under this name; 0 = none or several
    name: str  # whose block it is, "" for what belongs to none
    device: int
    action: str  # "evicted", "restored" or "freed"
    bytes: int
    block: int


class LaunchEvent(NamedTuple):
    """One task launched a kernel. Deferred launches are told when they are submitted."""

    sequence: int
    t_ns: int
    number: int  # of the one task that runs under this name; 0 = several
    name: str
    device: int
    kernel: str
    blocks: int
    threads: int  # of a block
    shared_bytes: int
    occupancy: float | None  # see _occupancy()


Event = TaskEvent | QueueEvent | ThrottleEvent | ShareEvent | MemoryEvent | LaunchEvent

EVENT_KINDS = ("task", "queue", "throttle", "share", "memory", "launch")


class TaskEvents(NamedTuple):
    """Transitions from one sequence number on. `lost`: events of any kind that were overwritten before this read."""

    events: list[TaskEvent]
    next_sequence: int
    lost: int


class Events(NamedTuple):
    """Events of several kinds from one sequence number on; as TaskEvents."""

    events: list[Event]
    next_sequence: int
    lost: int


def transitions(core: _core.SchedulerCore, since: int, max_events: int) -> TaskEvents:
    records, following, lost = core.events(since, max_events, ["task"])
    return TaskEvents([TaskEvent(*fields) for _, *fields in records], following, lost)


def read(core: _core.SchedulerCore, since: int, max_events: int, kinds: Iterable[str]) -> Events:
    """Raises InvalidSpecError for an unknown kind."""
    kind_list = [kinds] if isinstance(kinds, str) else list(kinds)
    for kind in kind_list:
        if kind not in EVENT_KINDS:
            raise InvalidSpecError(f"kinds has {kind!r}; there are {', '.join(EVENT_KINDS)}", "kinds")
    records, following, lost = core.events(since, max_events, kind_list)
    occupancies: dict[tuple[Any, ...], float | None] = {}
    return Events([_event(occupancies, *fields) for fields in records], following, lost)


_PLAIN: dict[str, Callable[..., Event]] = {
    "task": TaskEvent,
    "queue": QueueEvent,
    "throttle": ThrottleEvent,
    "share": ShareEvent,
    "memory": MemoryEvent,
}


def _event(occupancies: dict[tuple[Any, ...], float | None], kind: str, *fields: Any) -> Event:
    if kind != "launch":
        return _PLAIN[kind](*fields)
    sequence, t_ns, number, name, *launch = fields
    device, kernel, blocks, threads, shared_bytes = configuration = tuple(launch)
    if configuration not in occupancies:
        occupancies[configuration] = _occupancy(*configuration)
    where = (sequence, t_ns, number, name, device, _core.name(kernel))
    return LaunchEvent(*where, blocks, threads, shared_bytes, occupancies[configuration])


def _occupancy(device: int, kernel: int, blocks: int, threads: int, shared_bytes: int) -> float | None:
    """The most warps of a launch that the device holds at once, as a fraction of all that it can hold.

    From the driver's figure for the newest kernel of this name and the size of the grid; None where the kernel is gone
    or of another device than the current one.
    """
    if device != native.current_device():
        return None
    resident = native.resident_blocks(kernel, threads, shared_bytes)
    if resident < 1:
        return None
    facts = device_facts(device)
    warp, processors = facts["warp_size"], facts["multiprocessor_count"]
    room = processors * (facts["max_threads_per_multiprocessor"] // warp)
    return cast(float, min(blocks, resident * processors) * -(-threads // warp) / room)
