"""MemoryProfiler: the pool's figures at named points, and what changed between two of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.device import get_device_info
from pygpukit.core.sizes import MB
from pygpukit.memory import stats


class Leak(NamedTuple):
    """Blocks that came between two snapshots and are still there, of one owner: "" and 0 where it is not known.

    name: of arrays that have one, or what allocated. cell and line: of the notebook. nbytes and blocks: their sums.
    """

    cell: str
    line: int
    name: str
    tenant: str
    nbytes: int
    blocks: int


@dataclass
class MemorySnapshot:
    """The figures of the current device's pool at one time. Sizes in bytes; timestamp in seconds of time.time()."""

    name: str
    timestamp: float
    quota: int
    used: int
    cached: int
    available: int
    active_blocks: int
    free_blocks: int
    allocation_count: int
    reuse_count: int
    cudamalloc_count: int
    # Bytes, tenant, name, cell and line of each block by its id, which no later block gets.
    blocks: dict[int, tuple[int, int, int, int, int]] = field(default_factory=dict, repr=False)

    @property
    def used_mb(self) -> float:
        """MiB that arrays use."""
        return self.used / MB

    @property
    def cached_mb(self) -> float:
        """MiB that the pool keeps for the next arrays."""
        return self.cached / MB

    @property
    def available_mb(self) -> float:
        """MiB that may yet be used."""
        return self.available / MB

    @property
    def utilization(self) -> float:
        """Used of the quota, in per cent; 0 without a quota."""
        return 100.0 * self.used / self.quota if self.quota else 0.0

    @property
    def reuse_rate(self) -> float:
        """Allocations that the pool served from what it had, in per cent."""
        return 100.0 * self.reuse_count / self.allocation_count if self.allocation_count else 0.0


class MemoryProfiler:
    """Takes snapshots of the pool that arrays come from, and compares them.

    Examples
    --------
    >>> memory = gp.profiling.MemoryProfiler()
    >>> before = memory.snapshot("before")
    >>> x = gp.ones(1 << 20)
    >>> after = memory.snapshot("after")
    >>> memory.diff("before", "after")["used"] >= 4 << 20
    True
    """

    def __init__(self) -> None:
        self._snapshots: list[MemorySnapshot] = []

    @property
    def snapshots(self) -> list[MemorySnapshot]:
        """A copy of the list, the oldest first."""
        return list(self._snapshots)

    @property
    def peak_used_bytes(self) -> int:
        """The most that a snapshot saw in use; what lay between two snapshots is not in it."""
        return max((snapshot.used for snapshot in self._snapshots), default=0)

    @property
    def peak_used_mb(self) -> float:
        return self.peak_used_bytes / MB

    def snapshot(self, name: str = "") -> MemorySnapshot | None:
        """Take and keep the pool's figures now. name: "snapshot_N" where none is given."""
        taken = _now(name or f"snapshot_{len(self._snapshots)}")
        self._snapshots.append(taken)
        return taken

    def get_snapshot(self, name: str) -> MemorySnapshot | None:
        """The newest snapshot of a name, None where there is none."""
        return next((snapshot for snapshot in reversed(self._snapshots) if snapshot.name == name), None)

    def diff(self, name1: str, name2: str) -> dict[str, int | float] | None:
        """The second snapshot less the first: bytes, counts and seconds. None where either is missing."""
        first, second = self.get_snapshot(name1), self.get_snapshot(name2)
        if first is None or second is None:
            return None
        changed: dict[str, int | float] = {
            name: getattr(second, name) - getattr(first, name)
            for name in ("used", "cached", "available", "active_blocks", "free_blocks", "allocation_count",
                         "reuse_count", "cudamalloc_count")
        }  # fmt: skip
        return {**changed, "used_mb": changed["used"] / MB, "elapsed_s": second.timestamp - first.timestamp}

    def leaks(self, name1: str, name2: str) -> list[Leak] | None:
        """Blocks that came after the first snapshot and are there at the second, by cell and line, most bytes first.

        None where either is missing. Arrays that are meant to stay are among them: run the work twice, and compare the
        snapshots after each time.
        """
        first, second = self.get_snapshot(name1), self.get_snapshot(name2)
        if first is None or second is None:
            return None
        owners: dict[tuple[int, int, int, int], list[int]] = {}
        for block in second.blocks.keys() - first.blocks.keys():
            nbytes, *owner = second.blocks[block]
            owners.setdefault((owner[0], owner[1], owner[2], owner[3]), []).append(nbytes)
        leaks = [
            Leak(_core.name(cell), line, _core.name(name), _core.name(tenant), sum(sizes), len(sizes))
            for (tenant, name, cell, line), sizes in owners.items()
        ]
        return sorted(leaks, key=lambda leak: (-leak.nbytes, leak))

    def clear(self) -> None:
        self._snapshots.clear()

    def print_report(self) -> None:
        """Print a line a snapshot."""
        print(f"{'snapshot':<24} {'used MiB':>12} {'cached MiB':>12} {'blocks':>8} {'allocations':>12} {'reused %':>9}")
        for taken in self._snapshots:
            print(
                f"{taken.name:<24} {taken.used_mb:>12.2f} {taken.cached_mb:>12.2f} {taken.active_blocks:>8} "
                f"{taken.allocation_count:>12} {taken.reuse_rate:>9.1f}"
            )

    def print_diff(self, name1: str, name2: str) -> None:
        """Print what changed between two snapshots, or which is missing."""
        changed = self.diff(name1, name2)
        if changed is None:
            missing = [name for name in (name1, name2) if self.get_snapshot(name) is None]
            print(f"no snapshot named {', '.join(map(repr, missing))}")
            return
        print(f"from {name1!r} to {name2!r}:")
        for name, value in changed.items():
            print(f"  {name:<18} {value:+.3f}" if isinstance(value, float) else f"  {name:<18} {value:+d}")
        for leak in self.leaks(name1, name2) or ():
            where = (
                f"{leak.cell or 'a cell that is not known'}, line {leak.line}"
                if leak.line
                else "a line that is not known"
            )
            what = " of ".join(filter(None, (leak.name, leak.tenant)))
            print(f"  {leak.nbytes:+d} bytes in {leak.blocks} blocks came in {where}{what and ': ' + what}")


def get_current_memory_usage() -> dict[str, Any]:
    """The current pool's figures: sizes in bytes and in MiB, counts.

    Returns
    -------
    dict
        The fields of MemorySnapshot, its MiB and its rates.
    """
    taken = _now("now")
    rates = ("used_mb", "cached_mb", "available_mb", "utilization", "reuse_rate")
    figures = {name: value for name, value in vars(taken).items() if name != "blocks"}
    return {**figures, **{name: getattr(taken, name) for name in rates}}


def print_memory_summary() -> None:
    """Print the current pool's figures."""
    taken = _now("now")
    used = f"in use {taken.used_mb:.2f} MiB in {taken.active_blocks} blocks"
    print(f"{used}, cached {taken.cached_mb:.2f} MiB, quota {taken.quota / MB:.0f} MiB")
    print(f"{taken.allocation_count} allocations, {taken.reuse_rate:.1f} % served by the pool")


def _now(name: str) -> MemorySnapshot:
    """The pool's figures. Where it has no limit of its own, the device's memory is its quota."""
    figures = stats()
    fields = MemorySnapshot.__dataclass_fields__.keys() - {"name", "timestamp", "blocks"}
    taken = MemorySnapshot(name=name, timestamp=time.time(), **{field: figures[field] for field in fields})
    taken.blocks = {
        block: (nbytes, tenant, owner, cell, line)
        for block, _, nbytes, tenant, owner, cell, line, _ in _core.pool_blocks(native.current_device())
    }
    total = get_device_info().total_memory
    if taken.quota > total:
        taken.quota, taken.available = total, max(total - taken.used, 0)
    return taken
