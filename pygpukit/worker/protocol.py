"""Messages between parent and worker: a 4-byte little-endian length, then JSON; file descriptors travel beside it.

Nothing that arrives is executed or unpickled: a message can only name a function the worker can already import.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

VERSION = 3
MAX_MESSAGE_BYTES = 64 << 20
MAX_DESCRIPTORS = 250  # the kernel's limit of one message is 253
_LENGTH = struct.Struct("<I")


def encode(message: dict[str, Any]) -> bytes:
    """The bytes of a message. Raises ValueError when it is too large."""
    body = json.dumps(message).encode()
    if len(body) > MAX_MESSAGE_BYTES:
        raise ValueError(f"a worker message of {len(body)} bytes is over the limit of {MAX_MESSAGE_BYTES}; pass arrays")
    return body


def send(channel: socket.socket, body: bytes, descriptors: Sequence[int] = ()) -> None:
    """Send an encoded message, and descriptors beside it. Raises OSError when the other side is gone."""
    head = _LENGTH.pack(len(body))
    if descriptors:
        socket.send_fds(channel, [head], list(descriptors))  # 4 bytes always fit: never a partial send
    else:
        channel.sendall(head)
    channel.sendall(body)


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next message and its descriptors, which the caller closes. Raises EOFError when the other side is gone."""
    head, descriptors, _, _ = socket.recv_fds(channel, _LENGTH.size, MAX_DESCRIPTORS)
    try:
        while len(head) < _LENGTH.size:
            head += _some(channel, _LENGTH.size - len(head))
        (size,) = _LENGTH.unpack(head)
        if size > MAX_MESSAGE_BYTES:
            raise ValueError(f"a worker message announces {size} bytes; the limit is {MAX_MESSAGE_BYTES}")
        body = bytearray()
        while len(body) < size:
            body += _some(channel, size - len(body))
        message = json.loads(body)
        if not isinstance(message, dict):
            raise ValueError(f"a worker message is a {type(message).__name__}, not an object")
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return message, descriptors


def _some(channel: socket.socket, count: int) -> bytes:
    data = channel.recv(min(count, 1 << 20))
    if not data:
        raise EOFError("the other side closed the channel")
    return data


def plain(what: str, value: Any) -> Any:
    """The value if JSON carries it unchanged. Raises TypeError naming what it is."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [plain(what, item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(what, item) for key, item in value.items()}
    raise TypeError(
        f"{what} is a {type(value).__name__}; between a process and its worker go numbers, strings, booleans, None, "
        "lists and dictionaries with text keys, and arrays as arguments"
    )
