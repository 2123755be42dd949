"""Work and Total: one launch, graph, copy or fill with its time on the device, and the sum of those of one name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """One launch, graph, copy or fill. Times in nanoseconds on the clock of all records: since the process began.

    kind: "kernel", "graph", "host" (an operation of the simulated device), "copy" or "fill". launches: of a graph
    several. blocks and threads (of a block): of a kernel. nbytes: of a copy or fill. cell and line: of a notebook, ""
    and 0 where unknown. Other libraries are the tenant "other libraries", and their streams have CUPTI's numbers.
    """

    name: str
    kind: str
    begin_ns: int
    end_ns: int
    device: int
    stream: int
    tenant: str
    cell: str
    line: int
    launches: int
    blocks: int
    threads: int
    nbytes: int

    @property
    def duration_us(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e3


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of works of one name. share: of the time in which the device was busy, 0 to 1."""

    name: str
    kind: str
    count: int
    total_us: float
    mean_us: float
    longest_us: float
    nbytes: int
    share: float
