"""Frames of telemetry: without gap, and counting what they leave out or lost."""

from __future__ import annotations

import gc
import struct
from collections.abc import Iterator

import pytest

from pygpukit import _core

pytestmark = pytest.mark.usefixtures("backend_name")

HEADER = struct.Struct("<IHHHHIQQQQQQ")


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """What the collector frees is recorded, too: it waits."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def parsed(frame: bytes) -> tuple[tuple[int, ...], list[tuple[int, int]], dict[int, str]]:
    """Header fields, (sequence, kind) of the records, and names."""
    header = HEADER.unpack_from(frame)
    magic, version, header_bytes, record_bytes, gauges, count = header[:6]
    assert (magic, version, header_bytes, record_bytes, gauges) == (0x314B4750, 1, 64, 64, 16)
    at = header_bytes + 8 * gauges
    records = []
    for _ in range(count):
        records.append(
            (int.from_bytes(frame[at : at + 8], "little"), int.from_bytes(frame[at + 16 : at + 18], "little"))
        )
        at += record_bytes
    (names,) = struct.unpack_from("<I", frame, at)
    at += 4
    table = {}
    for _ in range(names):
        number, length = struct.unpack_from("<II", frame, at)
        table[number] = frame[at + 8 : at + 8 + length].decode()
        at += 8 + (length + 3) // 4 * 4
    assert at == len(frame)
    return header[6:], records, table


def test_frames_join_without_gap() -> None:
    _, since, since_name = _core.telemetry_frame(0, _core.ring_head(), 1)
    pushed = [_core.ring_push(99) for _ in range(5)]
    number = _core.intern("frames join: \u00fc")
    frame, following, next_name = _core.telemetry_frame(0, since, since_name)
    (session, first, after, lost, _, gauge), records, names = parsed(frame)
    assert (first, after, lost) == (since, following, 0) and session
    assert records == [*[(seq, 99) for seq in pushed], (gauge, 80)] and after == gauge + 1
    assert names == {number: "frames join: \u00fc"} and next_name == number + 1
    frame, last, same_name = _core.telemetry_frame(0, following, next_name)
    _, records, names = parsed(frame)
    assert records == [(following, 80)] and names == {} and same_name == next_name and last == following + 1


def test_a_frame_that_is_too_small_counts_what_it_leaves_out() -> None:
    since = _core.ring_head()
    for _ in range(10):
        _core.ring_push(99)
    frame, following, _ = _core.telemetry_frame(0, since, 1, max_records=4)
    (_, first, after, lost, _, gauge), records, _ = parsed(frame)
    assert [seq for seq, _ in records] == [gauge - 3, gauge - 2, gauge - 1, gauge]
    assert (first, after, following, lost) == (gauge - 3, gauge + 1, gauge + 1, 7)
    frame, _, _ = _core.telemetry_frame(0, following, 1, max_records=0)
    assert [kind for _, kind in parsed(frame)[1]] == [80]


def test_what_the_ring_overwrote_is_lost() -> None:
    since = _core.ring_head()
    for _ in range(70_000):
        _core.ring_push(99)
    (_, first, after, lost, _, _), records, _ = parsed(_core.telemetry_frame(0, since, 1, 10**6)[0])
    assert lost + len(records) == after - since and len(records) == 65536 and first == since
    data, following, missed = _core.ring_read(since)
    assert missed + len(data) // 64 == following - since


def test_a_reader_of_another_process_gets_the_newest() -> None:
    frame, following, next_name = _core.telemetry_frame(0, 2**63, 2**31)
    (_, first, after, lost, _, gauge), records, names = parsed(frame)
    assert records == [(gauge, 80)] and (first, after, following, lost) == (gauge, gauge + 1, gauge + 1, 0)
    assert names == {} and next_name == 2**31
