"""The state of device and pool in a few numbers, and as the one line that %gpu prints. Opens nothing by itself."""

from __future__ import annotations

from typing import Any

from pygpukit import _core
from pygpukit._core import native
from pygpukit.jupyter.health import Health

health = Health()


def live() -> dict[str, Any]:
    """The status for a page: the fields, how busy and warm the device is where NVML has that, and the line."""
    now = fields()
    if now["backend"] is None:
        return {**now, "line": line(now)}
    return {**now, **health.fields(now["device"]), "line": line(now)}


def fields() -> dict[str, Any]:
    """Backend, device and pool; `backend` is None, and the rest is absent, while no backend is open. Sizes in bytes."""
    backend = native.backend_name()
    if backend is None:
        return {"backend": None}
    device = native.current_device()
    info = native.device_info(device)
    free, total = native.memory_info()
    pool = _core.pool_stats(device)
    counters = _core.counters()
    return {
        "backend": backend,
        "device": device,
        "name": info["name"],
        "multiprocessors": info["multiprocessor_count"],
        "memory_total": total,
        "memory_free": free,
        "pool_used": pool.used,
        "pool_reserved": pool.reserved,
        "pool_limit": pool.quota,
        "pool_blocks": pool.active_blocks,
        "launches": counters["launches"],
        "host_launches": counters["host_launches"],
    }


def line(status: dict[str, Any]) -> str:
    """One line for people."""
    if status["backend"] is None:
        return "no backend is open yet: it opens with the first array or kernel"
    launches = status["launches"] + status["host_launches"]
    return (
        f"{status['backend']}:{status['device']} {status['name']}, {status['multiprocessors']} multiprocessors | "
        f"device {size(status['memory_total'] - status['memory_free'])} of {size(status['memory_total'])} | "
        f"pool {size(status['pool_used'])} used, {size(status['pool_reserved'])} reserved, "
        f"{status['pool_blocks']} block{'s' * (status['pool_blocks'] != 1)} | "
        f"{launches} launch{'es' * (launches != 1)}"
    )


def size(nbytes: int) -> str:
    """A size as people read it: "512 B", "1.5 MiB"."""
    if nbytes < 1024:
        return f"{nbytes} B"
    power = min((nbytes.bit_length() - 1) // 10, 4)
    return f"{nbytes / 1024**power:.1f} {' KMGT'[power]}iB"
