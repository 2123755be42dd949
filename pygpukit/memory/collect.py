"""gp.gc(): lets go of arrays that the interactive shell still holds, and says whose memory that freed."""

from __future__ import annotations

import gc as collector
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.text import human_bytes
from pygpukit.memory.held import release

_Owner = tuple[int, int, int]  # interned name, interned cell, line


@dataclass(frozen=True)
class FreedOwner:
    """One owner of freed arrays. name: of the array, "" when it had none. cell, line: that made it, "" and 0: none."""

    name: str
    cell: str
    line: int
    nbytes: int
    blocks: int

    def __str__(self) -> str:
        place = f"{self.cell} line {self.line}" if self.cell else "outside of cells"
        return f"{human_bytes(self.nbytes):>10}  {self.name or 'unnamed'}, made in {place}"


@dataclass(frozen=True)
class Freed:
    """The result of gc(): freed device bytes as the pool counts them, in all and by owner, the largest first."""

    nbytes: int
    owners: tuple[FreedOwner, ...]

    def __repr__(self) -> str:
        if not self.owners:
            return "nothing to free"
        return "\n".join([f"freed {human_bytes(self.nbytes)}", *map(str, self.owners)])


def gc() -> Freed:
    """Free device memory that nobody's program holds; what was freed, by owner.

    Taken from the shell: results with arrays in Out and _, __, ___, _1, ...; local variables of the last traceback (so
    %debug has nothing to show afterwards); the record of the last cell. Other results stay. Tables that transforms keep
    go, too, and are made again when they are needed. Then Python's own collector runs. Freed memory stays in the pool,
    ready for reuse. Waits for nothing on the device.
    """
    from pygpukit.ops.fft.tables import TABLES

    if native.backend_name() is None:
        return Freed(0, ())
    native.release_quarantine()  # nobody holds those blocks
    before = _blocks()
    _release_shell()
    TABLES.clear()
    collector.collect()
    native.release_quarantine()
    after = _blocks()
    sizes: Counter[_Owner] = Counter()
    counts: Counter[_Owner] = Counter()
    for block, (owner, nbytes) in before.items():
        if block not in after:
            sizes[owner] += nbytes
            counts[owner] += 1
    owners = tuple(
        FreedOwner(_core.name(owner[0]), _core.name(owner[1]), owner[2], nbytes, counts[owner])
        for owner, nbytes in sizes.most_common()
    )
    return Freed(sizes.total(), owners)


def _release_shell() -> None:
    import sys

    if "IPython" in sys.modules:
        from IPython.core.getipython import get_ipython

        shell = get_ipython()
        if shell is not None:
            release(shell)


def _blocks() -> dict[tuple[int, int], tuple[_Owner, int]]:
    """By device and block id: (owner, bytes) of the live blocks."""
    return dict(_live())


def _live() -> Iterator[tuple[tuple[int, int], tuple[_Owner, int]]]:
    for device in range(native.device_count()):
        for block, _, nbytes, _, name, cell, line, _ in _core.pool_blocks(device):
            yield (device, block), ((name, cell, line), nbytes)
