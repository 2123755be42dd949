"""One rank of a group whose other ranks are played: their tickets and parts lie in its window before a kernel runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pygpukit as gp
from pygpukit._core import native
from pygpukit.comm import windows

SIZE, RANK, PEER, CALL = 3, 1, 2, 7
Launch = Callable[[bytes, int], None]


def play(rounds: Sequence[Sequence[np.ndarray[Any, Any]]], launch: Launch) -> None:
    """launch(peers, call) with what the ranks wrote, in rounds: an array for each rank, whose own is not looked at.

    All in channel 0.
    """
    own = _window()
    memories = [own if rank == RANK else _window() for rank in range(SIZE)]
    layout = {field.name: field for field in windows._WINDOW.layout.fields}
    image = own.to_numpy()
    tickets = image[layout["tickets"].offset :][: layout["tickets"].size].view("uint64")
    tickets = tickets.reshape(2, windows.CHANNELS, windows.MAX_RANKS)
    parts = image[windows._WINDOW.layout.size :].reshape(-1, SIZE, windows.part_bytes(SIZE))
    for number, arrays in enumerate(rounds, start=1):
        for rank, array in enumerate(arrays):
            if rank != RANK:
                tickets[number % 2, 0, rank] = number << 32 | CALL
                data = np.ascontiguousarray(array).view("uint8").reshape(-1)
                parts[number % 2 * windows.CHANNELS, rank, : data.size] = data
    native.copy_from_host(own, image)
    _launched(memories, launch)
    counted = own.to_numpy()[layout["rounds"].offset :][:4].view("uint32")
    assert counted.tolist() == [len(rounds)], f"{counted} rounds were counted, {len(rounds)} played"


def play_pair(pieces: Sequence[np.ndarray[Any, Any]], launch: Launch) -> bytes:
    """launch(peers, call) with what rank PEER sent in rounds, and with its receipts of as many; what it has afterwards
    of the last two pieces that were sent to it, in the order of parity."""
    memories = [_window() for _ in range(SIZE)]
    own = memories[RANK]
    layout = {field.name: field for field in windows._WINDOW.layout.fields}
    image = own.to_numpy()
    for name in ("posts", "receipts"):
        field = image[layout[name].offset :][: layout[name].size].view("uint64")
        for number in range(1, len(pieces) + 1):
            field.reshape(2, windows.PAIR_CHANNELS, windows.MAX_RANKS)[number % 2, 0, PEER] = number << 32 | CALL
    first = 2 * windows.CHANNELS
    parts = image[windows._WINDOW.layout.size :].reshape(-1, SIZE, windows.part_bytes(SIZE))[first:]
    for number, piece in enumerate(pieces, start=1):
        data = np.ascontiguousarray(piece).view("uint8").reshape(-1)
        parts[number % 2 * windows.PAIR_CHANNELS, PEER, : data.size] = data
    native.copy_from_host(own, image)
    _launched(memories, launch)
    theirs = (
        memories[PEER].to_numpy()[windows._WINDOW.layout.size :].reshape(-1, SIZE, windows.part_bytes(SIZE))[first:]
    )
    return theirs[:: windows.PAIR_CHANNELS, RANK].tobytes()


def _launched(memories: Sequence[gp.GPUArray], launch: Launch) -> None:
    board = np.zeros((1 + SIZE, 8), "uint32")
    peers = windows._PEERS.pack(
        windows=[memory.device_ptr for memory in memories],
        board=board.ctypes.data,
        limit_ns=10**10,
        part_bytes=windows.part_bytes(SIZE),
        rank=RANK,
        size=SIZE,
    )
    launch(peers, CALL)
    gp.synchronize()
    assert not board.any(), f"the kernel failed: {board[1 + RANK].tolist()}"


def _window() -> gp.GPUArray:
    memory = gp.empty(windows.window_bytes(SIZE), "uint8")
    native.fill(memory, bytes(1))
    return memory
