"""The state of a scheduler's tasks, computed from its events alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pygpukit.scheduler.events import Event, MemoryEvent, QueueEvent, TaskEvent, ThrottleEvent


class Replay:
    """State by applying events in order, from a scheduler's first one on.

    phases: phase by task number. lines: task numbers in order of service, by partition. host_bytes: bytes in host
    memory by tenant. throttled_ns: nanoseconds that limits held tasks back, by task number.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.phases: dict[int, str] = {}
        self.lines: dict[str, list[int]] = {}
        self.host_bytes: Counter[str] = Counter()
        self.throttled_ns: Counter[int] = Counter()
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Raises ValueError for an event that does not follow from those before, since some of them are missing."""
        if isinstance(event, TaskEvent):
            before = self.phases.get(event.number, "Submitted")
            if before != event.source:
                raise _gap(event, f"task {event.number} was {before} and leaves {event.source}")
            self.phases[event.number] = event.target
        elif isinstance(event, QueueEvent):
            self._move(event)
        elif isinstance(event, ThrottleEvent):
            self.throttled_ns[event.number] += event.throttled_ns
        elif isinstance(event, MemoryEvent):
            self.host_bytes[event.name] += event.bytes if event.action == "evicted" else -event.bytes

    def _move(self, event: QueueEvent) -> None:
        name = event.waits_for
        line, at = self.lines.setdefault(name, []), event.position - 1
        if event.came and at <= len(line):
            line.insert(at, event.number)
        elif not event.came and line[at : at + 1] == [event.number]:
            del line[at]
        else:
            raise _gap(event, f"task {event.number} has no place {event.position} in the line {name!r}")
        if len(line) != event.depth:
            raise _gap(event, f"the line {name!r} has {len(line)} tasks and not {event.depth}")

    @property
    def counts(self) -> Counter[str]:
        """Tasks by phase."""
        return Counter(self.phases.values())

    def position(self, number: int) -> int | None:
        """The place of a task in its line, from 1; None when it is in none."""
        return next((line.index(number) + 1 for line in self.lines.values() if number in line), None)


def _gap(event: Event, what: str) -> ValueError:
    return ValueError(f"event {event.sequence}: {what}; events before it are missing, read from the first one on")
