"""KernelRecord: how long one piece of work took, and the rates that follow from what it computed and moved."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class KernelRecord:
    """One measured piece of work.

    Parameters
    ----------
    name : str
    elapsed_ms, elapsed_us : float
        Its time on the device, in milliseconds and in microseconds.
    flops : int, optional
        Floating-point operations in it.
    bytes_transferred : int, optional
        Bytes that it read and wrote.
    timestamp : float
        When it was recorded, in seconds of time.time().
    """

    name: str
    elapsed_ms: float
    elapsed_us: float
    flops: int | None = None
    bytes_transferred: int | None = None
    timestamp: float = field(default_factory=time.time)

    @property
    def tflops(self) -> float | None:
        """10**12 operations a second; None without flops, or without a time."""
        return _rate(self.flops, self.elapsed_us, 1e6)

    @property
    def bandwidth_gb_s(self) -> float | None:
        """10**9 bytes a second; None without bytes_transferred, or without a time."""
        return _rate(self.bytes_transferred, self.elapsed_us, 1e3)

    @classmethod
    def from_native(cls, native_record: Any) -> KernelRecord:
        """A record of any object that has a name and elapsed_ms; flops and bytes_transferred where it has them."""
        milliseconds = float(native_record.elapsed_ms)
        return cls(
            name=str(native_record.name),
            elapsed_ms=milliseconds,
            elapsed_us=milliseconds * 1e3,
            flops=_positive(native_record, "flops"),
            bytes_transferred=_positive(native_record, "bytes_transferred"),
        )


def _rate(amount: int | None, microseconds: float, scale: float) -> float | None:
    """Amount a microsecond, in units of scale * 10**6 a second."""
    return amount / (microseconds * scale) if amount is not None and microseconds > 0 else None


def _positive(record: Any, name: str) -> int | None:
    """The older project's records say -1 for what is unknown."""
    value = getattr(record, name, None)
    return int(value) if value is not None and value >= 0 else None
