"""Races: which block touched each element of an array last, at which line, and what orders the accesses of blocks.

Blocks run one after the other, whole; two accesses of one element race unless an atomic operation that releases, after
the first, is seen by one that acquires, before the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pygpukit.cutile.block import place, shown

Array: TypeAlias = "np.ndarray[Any, Any]"
_KEPT = 256  # clocks of releases, before those that no element refers to any more are dropped


@dataclass(frozen=True)
class Order:
    """The order of an access with those of other blocks. atomic: it does not race with atomic ones."""

    atomic: bool = False
    acquires: bool = False
    releases: bool = False


@dataclass(frozen=True)
class Conflict:
    """An earlier access that races with one now. at: the element, among those of the access."""

    at: int
    did: str
    block: tuple[int, int, int]
    where: str


class History:
    """The accesses of one launch: each site is a block at a line, between two of its releases."""

    def __init__(self, blocks: int) -> None:
        self._clocks: dict[int, Array] = {}
        self._released: dict[int, Array] = {}
        self._sites: list[tuple[tuple[int, int, int], tuple[str, int]]] = []
        self._numbers = np.zeros(64, np.int32)  # of each site's block
        self._epochs = np.zeros(64, np.int32)
        self._last: tuple[Any, ...] = ()
        self._releases = 0
        self.count = blocks
        self.number, self.index, self.epoch = -1, (0, 0, 0), 0

    def enter(self, number: int, index: tuple[int, int, int]) -> None:
        """A block begins."""
        self._clocks.pop(self.number, None)
        self.number, self.index, self.epoch, self._last = number, index, 0, ()

    def site(self) -> int:
        """The current block at its line, as a number."""
        key = (self.number, self.epoch, place())
        if key != self._last:
            at = len(self._sites)
            if at == len(self._numbers):
                self._numbers, self._epochs = (np.concatenate([one, one]) for one in (self._numbers, self._epochs))
            self._sites.append((self.index, key[2]))
            self._numbers[at], self._epochs[at] = self.number, self.epoch
            self._last = key
        return len(self._sites) - 1

    def others(self, sites: Array) -> Array:
        """True where a site (-1: none) is of another block, and nothing orders it before the current one."""
        others = (sites >= 0) & (self._numbers[sites] != self.number)
        clock = self._clocks.get(self.number)
        return others if clock is None else others & (clock[self._numbers[sites]] < self._epochs[sites])

    def is_own(self, sites: Array) -> Array:
        """True where a site is of the current block, or there is none."""
        return (sites < 0) | (self._numbers[sites] == self.number)

    def described(self, site: int) -> tuple[tuple[int, int, int], str]:
        """The block of a site, and its line."""
        index, where = self._sites[site]
        return index, shown(*where)

    def acquire(self, releases: Array) -> None:
        """The current block sees these releases (-1: none)."""
        for one in np.unique(releases[releases >= 0]).tolist():
            clock = self._clocks.setdefault(self.number, np.full(self.count, -1, np.int32))
            np.maximum(clock, self._released[one], out=clock)

    def release(self) -> int:
        """A release of the current block, as a number; what it does from here on comes later."""
        clock = self._clocks.get(self.number)
        known = np.full(self.count, -1, np.int32) if clock is None else clock.copy()
        known[self.number] = self.epoch
        self._released[self._releases] = known
        self._releases += 1
        self.epoch += 1
        return self._releases - 1

    def keep(self, used: Array) -> None:
        """Drop the releases that no element refers to."""
        if len(self._released) > _KEPT:
            alive = set(np.unique(used).tolist())
            self._released = {at: clock for at, clock in self._released.items() if at in alive}


class Elements:
    """The last accesses of the elements of one piece of memory. Of readers and atomics two blocks are kept each."""

    def __init__(self, count: int, history: History) -> None:
        self._count, self._history = count, history
        self._slots: dict[str, Array] = {}

    def _slot(self, name: str) -> Array:
        if name not in self._slots:
            self._slots[name] = np.full(self._count, -1, np.int32)
        return self._slots[name]

    def access(self, units: Array, writes: bool, order: Order) -> Conflict | None:
        """Remember an access of these elements; the earlier one that it races with, None where there is none."""
        if order.acquires and "release" in self._slots:
            self._history.acquire(self._slots["release"][units])
        conflict = self._conflict(units, writes, order)
        site = self._history.site()
        kind = "atomic" if order.atomic else "written" if writes else "read"
        if kind == "written":
            self._slot(kind)[units] = site
        else:
            first = self._slot(kind)
            own = self._history.is_own(first[units])
            first[units[own]] = site
            if not own.all():
                self._slot(f"{kind} too")[units[~own]] = site
        if order.releases:
            self._slot("release")[units] = self._history.release()
            self._history.keep(self._slots["release"])
        return conflict

    def _conflict(self, units: Array, writes: bool, order: Order) -> Conflict | None:
        kinds = [("written", "wrote")]
        if not order.atomic:
            kinds += [("atomic", "changed atomically"), ("atomic too", "changed atomically")]
        if writes:
            kinds += [("read", "read"), ("read too", "read")]
        for kind, did in kinds:
            if kind in self._slots:
                sites = self._slots[kind][units]
                others = self._history.others(sites)
                if others.any():
                    at = int(np.argmax(others))
                    return Conflict(at, did, *self._history.described(int(sites[at])))
        return None
