"""The order of the ranks' calls: which call meets which, and which ranks wait for each other for ever.

A collective goes on when all ranks have come to it, a send when its receiver has come to the receive, and the other way
round: whatever their sizes. Nothing here knows a device.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

SEND, RECV = "send", "recv"


@dataclass(frozen=True)
class Call:
    """One call of a rank: a collective, or with `peer` a send or receive. details: what must be the same besides the
    name, as text."""

    name: str
    details: str = ""
    peer: int | None = None

    def meets(self, rank: int, other: Call, other_rank: int) -> bool:
        """True where this call of a rank and the other rank's go on together."""
        if self.peer is None or other.peer is None:
            return self == other
        names = {self.name, other.name}
        return names == {SEND, RECV} and (self.peer, other.peer) == (other_rank, rank) and self.details == other.details


class Orders:
    """The calls of all ranks that have not met, each rank's in its order."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._waiting: list[deque[tuple[int, Call]]] = [deque() for _ in range(size)]
        self._calls = [0] * size
        self._last = [""] * size
        self._ended: set[int] = set()

    def add(self, rank: int, call: Call) -> str:
        """One more call of a rank; it may meet those of others. Returns "" or, in a sentence, who waits for whom for
        ever."""
        self._calls[rank] += 1
        self._waiting[rank].append((self._calls[rank], call))
        self._last[rank] = f"{call.name} #{self._calls[rank]}"
        if len(self._waiting[rank]) > 1:  # its first call is what others see
            return ""
        self._go_on()
        return self._circle()

    def end(self, rank: int) -> str:
        """The rank makes no more calls. Returns as add()."""
        self._ended.add(rank)
        return self._circle()

    def calls(self, rank: int) -> int:
        """The number of calls that the rank has made."""
        return self._calls[rank]

    def last(self, rank: int) -> str:
        """The rank's last call, "" when it made none."""
        return self._last[rank]

    def _go_on(self) -> None:
        """Take away what has met, until nothing does."""
        while self._step():
            pass

    def _step(self) -> bool:
        heads = [waiting[0][1] if waiting else None for waiting in self._waiting]
        for rank, call in enumerate(heads):
            if call is None:
                continue
            others = range(self.size) if call.peer is None else (call.peer,)
            if all((other := heads[one]) is not None and call.meets(rank, other, one) for one in others):
                for one in {rank, *others}:
                    self._waiting[one].popleft()
                return True
        return False

    def _waits_for(self, rank: int) -> Iterator[int]:
        """The ranks that have not come to the first call of this one, or are in another one."""
        if not self._waiting[rank]:
            return
        call = self._waiting[rank][0][1]
        for other in range(self.size) if call.peer is None else (call.peer,):
            if other == rank:
                continue
            queue = self._waiting[other]
            if not queue or not call.meets(rank, queue[0][1], other):
                yield other

    def _circle(self) -> str:
        """Who waits for ever: in a circle of ranks, or for one that has ended."""
        seen: dict[int, int] = {}  # rank: whom it waits for, along the walk
        finished: set[int] = set()

        def walk(rank: int) -> str:
            for other in self._waits_for(rank):
                if not self._waiting[other]:
                    if other in self._ended:
                        return self._sentence(rank, other)
                    continue
                if other in seen:
                    return self._sentence(rank, other)
                if other not in finished:
                    seen[other] = rank
                    if sentence := walk(other):
                        return sentence
                    del seen[other]
            finished.add(rank)
            return ""

        for rank in range(self.size):
            if rank not in finished:
                seen = {rank: rank}
                if sentence := walk(rank):
                    return sentence
        return ""

    def _sentence(self, rank: int, other: int) -> str:
        number, call = self._waiting[rank][0]
        if not self._waiting[other]:
            last = f", its last call {self._last[other]}" if self._last[other] else ", without a call"
            return f"rank {rank} waits in {call.name} #{number} for rank {other}, which has ended{last}"
        their_number, theirs = self._waiting[other][0]
        mine, its = f"{call.name} #{number}", f"{theirs.name} #{their_number}"
        if call.name == theirs.name or {call.name, theirs.name} == {SEND, RECV}:
            mine, its = f"{mine} ({_described(call)})", f"{its} ({_described(theirs)})"
        return f"rank {rank} waits in {mine} for rank {other}, which is in {its}"


def _described(call: Call) -> str:
    if call.peer is None:
        return call.details
    return f"{'to' if call.name == SEND else 'from'} rank {call.peer}, {call.details}"
