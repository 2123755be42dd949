"""The Rust classes of transfers and of pinned host memory."""

from pygpukit._core import (
    AsyncTransferEngine,
    PinnedBlock,
    PinnedMemoryManager,
    PinnedPoolConfig,
    PinnedStats,
    StreamType,
    TransferOp,
    TransferState,
    TransferStats,
    TransferType,
)

__all__ = [
    "AsyncTransferEngine",
    "PinnedBlock",
    "PinnedMemoryManager",
    "PinnedPoolConfig",
    "PinnedStats",
    "StreamType",
    "TransferOp",
    "TransferState",
    "TransferStats",
    "TransferType",
]
