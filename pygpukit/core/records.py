"""Event records: the 64 bytes that the core writes of each thing that happens. docs/seams.md says what a, b and c mean.

A telemetry frame holds the same records behind a header and gauges.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from pygpukit import _core

# Kinds of records.
ALLOC, FREE, EVICT, RESTORE, SEGMENT_MAP, SEGMENT_UNMAP, OUT_OF_MEMORY = range(1, 8)
LAUNCH, HOST_LAUNCH, COPY = 16, 17, 18
TASK, WORKER, QUEUE, THROTTLE, SHARE = 32, 33, 34, 35, 36
COMPILE = 48
CELL_BEGIN, CELL_END = 64, 65
GAUGE = 80

LAYOUT = struct.Struct("<QQHHIIIQQQII")
BYTES = LAYOUT.size
KIND_AT = 16  # low byte of the kind in a record; no kind needs the other

# A frame: magic, version, header bytes, record bytes, gauges, records, session, first and next sequence number, lost
# records, time, sequence number of its GAUGE record; then the gauges, then the records.
HEADER = struct.Struct("<IHHHHIQQQQQQ")
RECORDS = struct.Struct("<12xI")  # of the header, how many
SEQUENCES = struct.Struct("<24xQQ")  # of the header, first and next
GAUGES = struct.Struct("<16Q")
IN_FRAME = HEADER.size + GAUGES.size  # where the records begin


class Record(NamedTuple):
    """One record. stream, tenant, name and cell are ids: _core.name() tells names."""

    seq: int
    t_ns: int
    kind: int
    device: int
    stream: int
    tenant: int
    name: int
    a: int
    b: int
    c: int
    cell: int
    line: int


def unpack(data: bytes) -> Iterator[Record]:
    """The records in bytes of nothing else."""
    return map(Record._make, LAYOUT.iter_unpack(data))


def since(first: int) -> Iterator[Record]:
    """Every record that the ring still has from a sequence number on, those that come meanwhile, too."""
    while True:
        data, following, _ = _core.ring_read(first)
        yield from unpack(data)
        if following == first:
            return
        first = following
