"""The trace file: a header, then entries as a page would get them (docs/seams.md). Little endian.

Header: magic "PGKTRACE", u16 trace version, u16 telemetry version, u32 bytes of the JSON object that follows.
Entry: u32 kind (1 message, 2 frame, 3 history), u32 payload bytes, u64 nanoseconds since the recorder's process began.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"PGKTRACE"
VERSION = 1
TELEMETRY_VERSION = 1
HEADER = struct.Struct("<8sHHI")
ENTRY = struct.Struct("<IIQ")
MESSAGE, FRAME, HISTORY = 1, 2, 3
MAX_ENTRY_BYTES = 1 << 26
MAX_TRACE_BYTES = 1 << 30
_CONTENTS: dict[int, dict[str, Any]] = {FRAME: {"type": "frame"}, HISTORY: {"type": "history"}}

Message = tuple[dict[str, Any], tuple[bytes, ...]]


class TraceError(ValueError):
    """A file that is not a trace of this version. The text is one sentence that names the file."""


@dataclass(frozen=True)
class Entry:
    """One message and when it was sent, in nanoseconds."""

    t_ns: int
    content: dict[str, Any]
    buffers: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Trace:
    """A whole trace. about: what the recorder said of itself, such as "device"."""

    about: dict[str, Any]
    entries: tuple[Entry, ...]

    @property
    def duration_ns(self) -> int:
        return self.entries[-1].t_ns - self.entries[0].t_ns if self.entries else 0


def write_header(file: BinaryIO, about: dict[str, Any]) -> None:
    text = json.dumps(about, sort_keys=True).encode()
    file.write(HEADER.pack(MAGIC, VERSION, TELEMETRY_VERSION, len(text)) + text)


def write_entry(file: BinaryIO, t_ns: int, message: Message) -> None:
    content, buffers = message
    kind = {"frame": FRAME, "history": HISTORY}.get(content["type"], MESSAGE)
    payload = json.dumps(content).encode() if kind == MESSAGE else buffers[0]
    file.write(ENTRY.pack(kind, len(payload), t_ns) + payload)


def read(path: str | os.PathLike[str]) -> Trace:
    """The whole trace in a file. Raises TraceError, or OSError where the file cannot be read."""
    name = os.fspath(path)
    if (size := Path(path).stat().st_size) > MAX_TRACE_BYTES:
        raise TraceError(f"{name} has {size} bytes; a trace has at most {MAX_TRACE_BYTES}")
    return parse(Path(path).read_bytes(), name)


def parse(data: bytes, name: str = "the trace") -> Trace:
    """The trace in some bytes; `name` is what an error calls it. Raises TraceError, whatever the bytes are."""
    if len(data) < HEADER.size or not data.startswith(MAGIC):
        raise TraceError(f"{name} is not a telemetry trace: make one with gp.dashboard.record(path)")
    _, version, telemetry, about_bytes = HEADER.unpack_from(data)
    if (version, telemetry) != (VERSION, TELEMETRY_VERSION):
        raise TraceError(
            f"{name} is a trace of version {version} with telemetry version {telemetry}; this pygpukit reads version "
            f"{VERSION} with {TELEMETRY_VERSION}: record it again with this pygpukit, or replay it with the one that "
            "recorded it"
        )
    start = HEADER.size + about_bytes
    about = _json(data[HEADER.size : start], name) if start <= len(data) else None
    if about is None:
        raise TraceError(f"{name} ends inside its header: {len(data)} bytes, {start} needed")
    return Trace(about, tuple(_entries(data, start, name)))


def _entries(data: bytes, at: int, name: str) -> Iterator[Entry]:
    before_ns = 0
    while at < len(data):
        if at + ENTRY.size > len(data):
            raise TraceError(f"{name} ends inside an entry at byte {at}: it was not closed, or not copied whole")
        kind, size, t_ns = ENTRY.unpack_from(data, at)
        at += ENTRY.size
        if size > MAX_ENTRY_BYTES or at + size > len(data):
            raise TraceError(f"{name} ends inside an entry of {size} bytes at byte {at}: it was not copied whole")
        payload = data[at : at + size]
        at += size
        if t_ns < before_ns:
            raise TraceError(f"{name} has an entry at {t_ns} ns after one at {before_ns} ns")
        before_ns = t_ns
        if kind == MESSAGE:
            yield Entry(t_ns, _json(payload, name))
        elif kind in _CONTENTS:
            yield Entry(t_ns, dict(_CONTENTS[kind]), (payload,))
        else:
            raise TraceError(f"{name} has an entry of kind {kind}; version {VERSION} has kinds 1 to 3")


def _json(text: bytes, name: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{name} has a message that is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise TraceError(f"{name} has a message that is a {type(value).__name__}, not an object")
    return value
