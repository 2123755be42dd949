"""Limits of a partition as people write them, and what each isolation level really keeps apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import SupportsFloat, SupportsIndex

from pygpukit import _core
from pygpukit.core.device import DeviceLike
from pygpukit.core.errors import InvalidSpecError
from pygpukit.scheduler import units

_PPM = 1_000_000
_AS_ASKED = {"compute": "bandwidth", "id": "partition_id", "partition": "partition_id"}
_ANY_PRIORITY = (-(2**31), 2**31 - 1)


def partition_limits(
    *,
    memory: units.MemoryLike = None,
    bandwidth: SupportsFloat | None = None,
    borrow_memory: units.MemoryLike = None,
    borrow_bandwidth: SupportsFloat | None = None,
    lend_memory: units.MemoryLike = None,
    lend_bandwidth: SupportsFloat | None = None,
    priorities: tuple[SupportsIndex, SupportsIndex] = _ANY_PRIORITY,
    weight: SupportsIndex = 1,
    max_streams: SupportsIndex = 16,
    isolation: str = "shared",
    device: DeviceLike = 0,
) -> _core.PartitionLimits:
    """The reservations and limits of a partition. Raises InvalidSpecError naming the field.

    memory, bandwidth: the quota, in bytes ("4GB") and as a fraction of the device; others never get it.
    borrow_*: how far its tasks may go over the quota together, out of what others lend or no one keeps.
    lend_*: how much of the quota others may use while it lies idle; its own tasks then wait for theirs to end.
    priorities: lowest and highest priority of its tasks. weight: turns at the dispatcher, against other partitions.
    max_streams: most tasks of it that run at a time. isolation: see isolation_levels(): "shared", "sm" for
    multiprocessors of its own, which needs bandwidth, or a worker process, which runs one task at a time: "process",
    "timesliced" for one that takes turns with those of the other partitions of this level, "mig" for one on an instance
    of the card, of which the quota is then.
    device: that it is a part of, as a number, a gp.cuda.Device or "cuda:1"; it stays there.
    """
    try:
        lowest, highest = priorities
    except (TypeError, ValueError):
        text = f"priorities={priorities!r}; give the lowest and the highest"
        raise InvalidSpecError(text, "priorities") from None
    return _core.PartitionLimits(
        units.parse_memory(memory),
        units.parse_share(bandwidth) / _PPM,
        0.0,
        units.parse_count(max_streams, "max_streams"),
        priorities=(units.parse_priority(lowest), units.parse_priority(highest)),
        weight=units.parse_count(weight, "weight"),
        isolation=units.parse_text(isolation, "isolation"),
        device=units.parse_device(device),
        borrow=(
            units.parse_memory(borrow_memory, "borrow_memory"),
            units.parse_share(borrow_bandwidth, "borrow_bandwidth") / _PPM,
        ),
        lend=(
            units.parse_memory(lend_memory, "lend_memory"),
            units.parse_share(lend_bandwidth, "lend_bandwidth") / _PPM,
        ),
    )


@contextmanager
def fields_as_asked() -> Iterator[None]:
    """The core has its own names for a partition's share and id. Who asked here wrote others, and so do errors."""
    try:
        yield
    except InvalidSpecError as error:
        field = _AS_ASKED.get(error.field)
        if field is None:
            raise
        raise InvalidSpecError(field + str(error).removeprefix(error.field), field) from None


def isolation_levels() -> dict[str, dict[str, bool]]:
    """By level, what it keeps apart and what not: those in a process of their own isolate faults and addresses."""
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in _core.isolation_table().splitlines()
    ]
    return {level: {what: cell == "yes" for what, cell in zip(head[1:], cells, strict=True)} for level, *cells in rows}
