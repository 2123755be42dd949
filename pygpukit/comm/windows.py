"""Memory that the ranks of a group share: a window on the device of each; and the board on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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


def check_access(devices: Sequence[int], what: str) -> None:
    """Raises DeviceMismatchError naming two devices that cannot use each other's memory."""
    for device in devices:
        for peer in devices:
            if device != peer and not peers.can_access_peer(device, peer):
                raise DeviceMismatchError(
                    f"{what}: device {device} cannot use the memory of device {peer} (gp.cuda.can_access_peer says "
                    "so); make groups of devices that are linked"
                )


def enable_access(devices: Sequence[int]) -> None:
    """Each device may use the others' memory of this process from here on. Errors as check_access()."""
    check_access(devices, "Group")
    for device in devices:
        for peer in devices:
            if device != peer:
                peers.enable_peer_access(device, peer)


def new_window(size: int) -> GPUArray:
    """A window on the current device for a rank of so many, pinned and ready for the others."""
    memory = native.empty(window_bytes(size), "uint8")
    memory.name = "comm window"
    native.pin(memory)
    native.fill(native.view(memory, (_WINDOW.layout.size // 8,), (8,), 0, "uint64"), bytes(8))
    native.synchronize()
    return memory


def fields(addresses: Sequence[int], board: Board, limit_s: float, rank: int) -> bytes:
    """peers.cuh's Peers of a rank. addresses: of all ranks' windows, as its device sees them. limit_s: how long it
    waits for another rank."""
    return _PEERS.pack(
        windows=addresses,
        board=board.address,
        limit_ns=int(limit_s * 1e9),
        part_bytes=part_bytes(len(addresses)),
        rank=rank,
        size=len(addresses),
    )


class Failed(NamedTuple):
    """A row of the board, by a kernel whose wait failed. reason: of REASONS. own, seen: its ticket and its peer's."""

    rank: int
    reason: str
    peer: int
    own: int
    seen: int


class Board:
    """Memory of the host by which kernels of this process tell a failure, and are told to stop."""

    def __init__(self, size: int) -> None:
        from pygpukit.memory.pinned import pinned_empty

        self._words = pinned_empty((1 + size, _FIELDS), "uint32")
        self._words[:] = 0
        self.address: int = self._words.ctypes.data

    def stop(self) -> None:
        """Every wait of a kernel ends soon, and every later one."""
        self._words[0, 0] = 1

    @property
    def stopped(self) -> bool:
        """A kernel's wait has failed, or stop() was called."""
        return bool(self._words[0, 0])

    def failures(self) -> list[Failed]:
        """Of every rank whose kernel has failed."""
        rows: list[Failed] = []
        for rank, words in enumerate(self._words[1:]):
            state, reason, peer, own, seen = (int(word) for word in words[:5])
            if state:
                rows.append(Failed(rank, REASONS[reason], peer, own, seen))
        return rows


class Windows:
    """The windows of a group in one process, as long as anybody has them."""

    def __init__(self, devices: Sequence[int]) -> None:
        enable_access(devices)
        self._memory: list[GPUArray] = []
        for device in devices:
            with current_device(device):
                self._memory.append(new_window(len(devices)))

    def addresses(self) -> list[int]:
        """By rank."""
        return [memory.device_ptr for memory in self._memory]

    def free(self, *_: Any) -> None:
        """Give the windows back. No kernel may use them any more."""
        while self._memory:
            native.unpin(self._memory.pop())
