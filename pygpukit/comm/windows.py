"""Memory that the ranks of a group share: a window on the device of each, and the board on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core import peers
from pygpukit.core.device import current_device
from pygpukit.core.errors import DeviceMismatchError
from pygpukit.kernels.structure import in_header

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

MAX_RANKS, CHANNELS, PAIR_CHANNELS = 64, 128, 16  # peers.cuh: kMaxRanks, kChannels, kPairChannels
_WINDOW, _PEERS = in_header("peers.cuh", "Window"), in_header("peers.cuh", "Peers")
_FIELDS = 8  # peers.cuh: kFields
_ALL_PARTS_BYTES = 32 << 20  # of a window
_PART_BYTES = (4 << 10, 64 << 10)
_LINE_BYTES = 128
REASONS = ("", "late", "other call")  # peers.cuh: Failure


def part_bytes(size: int) -> int:
    """Bytes that one rank gives another in one round of a channel, in a group of so many ranks."""
    smallest, largest = _PART_BYTES
    return max(smallest, min(largest, _ALL_PARTS_BYTES // (2 * CHANNELS * size) // _LINE_BYTES * _LINE_BYTES))


def window_bytes(size: int) -> int:
    """Bytes of a rank's window in a group of so many ranks."""
    return _WINDOW.layout.size + 2 * (CHANNELS + PAIR_CHANNELS) * size * part_bytes(size)


def enable_access(devices: Sequence[int]) -> None:
    """Each device may use the others' memory from here on. Raises DeviceMismatchError naming two that cannot."""
    for device in devices:
        for peer in devices:
            if device != peer and not peers.can_access_peer(device, peer):
                raise DeviceMismatchError(
                    f"Group: device {device} cannot use the memory of device {peer} (gp.cuda.can_access_peer says so); "
                    "make groups of devices that are linked"
                )
    for device in devices:
        for peer in devices:
            if device != peer:
                peers.enable_peer_access(device, peer)


class Windows:
    """The windows and the board of a group, as long as anybody has it. limit_s: how long a rank waits for another."""

    def __init__(self, devices: Sequence[int], limit_s: float) -> None:
        from pygpukit.memory.pinned import pinned_empty

        self.size = len(devices)
        self._part_bytes = part_bytes(self.size)
        self.nbytes = window_bytes(self.size)
        enable_access(devices)
        self._memory: list[GPUArray] = []
        self._limit_ns = int(limit_s * 1e9)
        self.board = pinned_empty((1 + self.size, _FIELDS), "uint32")
        self.board[:] = 0
        for device in devices:
            with current_device(device):
                memory = native.empty(self.nbytes, "uint8")
                memory.name = "comm window"
                native.pin(memory)
                self._memory.append(memory)
                native.fill(native.view(memory, (_WINDOW.layout.size // 8,), (8,), 0, "uint64"), bytes(8))
                native.synchronize()

    def fields(self, rank: int) -> bytes:
        """peers.cuh's Peers of a rank."""
        return _PEERS.pack(
            windows=[memory.device_ptr for memory in self._memory],
            board=self.board.ctypes.data,
            limit_ns=self._limit_ns,
            part_bytes=self._part_bytes,
            rank=rank,
            size=self.size,
        )

    def stop(self) -> None:
        """Every wait of a kernel ends soon, and every later one."""
        self.board[0, 0] = 1

    @property
    def stopped(self) -> bool:
        """A kernel's wait has failed, or stop() was called."""
        return bool(self.board[0, 0])

    def failures(self) -> list[tuple[int, str, int, int, int]]:
        """(rank, reason, peer, own ticket, the peer's ticket) of every rank whose kernel has failed."""
        rows: list[tuple[int, str, int, int, int]] = []
        for rank in range(self.size):
            state, reason, peer, own, seen = (int(word) for word in self.board[1 + rank, :5])
            if state:
                rows.append((rank, REASONS[reason], peer, own, seen))
        return rows

    def free(self, *_: Any) -> None:
        """Give the windows back. No kernel may use them any more."""
        while self._memory:
            native.unpin(self._memory.pop())
