"""Holdings: who has how many blocks of the KV caches of this process, as the memory dashboard shows them."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pygpukit.llm.engine.loop import Loop

_live: weakref.WeakSet[Loop] = weakref.WeakSet()
_changing = threading.Lock()


class Holding(NamedTuple):
    """Blocks of one holder: a sequence, prompts that can be found again, or nobody. shared: of them, those that other
    sequences use, too."""

    holder: str
    blocks: int
    shared: int


def remember(loop: Loop) -> None:
    """Its blocks are in rows() as long as it is there."""
    with _changing:
        _live.add(loop)


def rows() -> list[dict[str, str | int]]:
    """The holdings of all models, as a page takes them."""
    with _changing:
        loops = sorted(_live, key=lambda loop: (loop.name, id(loop)))
    return [
        {
            "cache": loop.name,
            "holder": holding.holder,
            "blocks": holding.blocks,
            "shared": holding.shared,
            "bytes": holding.blocks * loop.cache.block_bytes,
        }
        for loop in loops
        for holding in loop.holdings()
    ]
