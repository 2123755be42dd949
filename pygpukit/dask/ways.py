"""By which ways arrays left this process and came to it, and why some took the one over host memory."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Any

_WAYS = ("peer", "host")
_log = logging.getLogger("distributed.worker")  # what Client.get_worker_logs() shows
_lock = threading.Lock()
_bytes: dict[str, Counter[str]] = {"sent": Counter(), "received": Counter()}
_reasons: Counter[str] = Counter()
_logged: set[tuple[str, str]] = set()


def stats() -> dict[str, Any]:
    """Bytes of arrays that this process sent and received by Dask, by the way that they took.

    Those on Dask's disk count as sent and received by the host. `client.run(gp.dask.stats)` asks all workers.

    Returns
    -------
    dict
        "sent" and "received": bytes by "peer", from device to device, and by "host", over host memory. "host because":
        how many arrays that had a reader took that way, by the reason.

    Examples
    --------
    >>> gp.dask.stats()["sent"]  # doctest: +SKIP
    {'peer': 67108864, 'host': 4096}
    """
    with _lock:
        moved = {direction: {way: counts[way] for way in _WAYS} for direction, counts in _bytes.items()}
        return {**moved, "host because": dict(_reasons)}


def count(direction: str, way: str, nbytes: int) -> None:
    """An array was sent or received."""
    with _lock:
        _bytes[direction][way] += nbytes


def by_host(address: str, desk: str, reason: str) -> None:
    """An array for this reader takes the way over host memory; the worker's log has each reason once a desk."""
    with _lock:
        _reasons[reason] += 1
        if (desk, reason) in _logged:
            return
        _logged.add((desk, reason))
    _log.warning("arrays for %s go over host memory: %s", address, reason)
