"""The devices of this host, each as a worker of its own sees it: alone, as number 0."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from pygpukit.core.backend import backend
from pygpukit.core.child import one_simulated_device
from pygpukit.core.device import device_count, device_facts, index_of
from pygpukit.core.nvml import LIBRARY, NvmlDevice, NvmlUnavailableError
from pygpukit.core.text import human_bytes


@dataclass(frozen=True)
class HostDevice:
    """A device of this host. environment: what makes it the only one of a process. cpus: those near it, () where that
    is not known, and why_not then says why. memory_bytes: all that it has."""

    number: int
    name: str
    memory_bytes: int
    environment: dict[str, str]
    cpus: tuple[int, ...] = ()
    why_not: str = ""

    def __str__(self) -> str:
        near = f"CPUs {_ranges(self.cpus)}" if self.cpus else f"CPUs not pinned ({self.why_not})"
        return f"device {self.number} ({self.name}, {human_bytes(self.memory_bytes)}), {near}"


def host_devices(numbers: Sequence[int] | None = None, library: str = LIBRARY) -> list[HostDevice]:
    """The devices of this process with these numbers, or all. library: NVML's file.

    Raises DeviceMismatchError for one that there is not.
    """
    chosen = range(device_count()) if numbers is None else [index_of(number, "devices") for number in numbers]
    return [_host_device(number, library) for number in chosen]


def _host_device(number: int, library: str) -> HostDevice:
    facts = device_facts(number)
    name, memory = str(facts["name"]), int(facts["total_memory_bytes"])
    if backend() == "sim":
        return HostDevice(
            number, name, memory, one_simulated_device(memory), why_not="a simulated device is near to all"
        )
    uuid = bytes(facts["uuid"])
    try:
        near = NvmlDevice(uuid, library).cpus()
    except NvmlUnavailableError as error:
        near = str(error)
    cpus = () if isinstance(near, str) else tuple(sorted(near & os.sched_getaffinity(0)))
    why_not = near if isinstance(near, str) else "none of those near it is this process's"
    return HostDevice(number, name, memory, _one_visible(number, uuid), cpus, "" if cpus else why_not)


def _one_visible(number: int, uuid: bytes) -> dict[str, str]:
    """The value of CUDA_VISIBLE_DEVICES: the entry that the process itself was given, or the device's UUID."""
    entries = [entry.strip() for entry in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if entry.strip()]
    return {
        "CUDA_VISIBLE_DEVICES": entries[number] if number < len(entries) else f"GPU-{UUID(bytes=uuid)}",
        "PYGPUKIT_BACKEND": "cuda",
    }


def _ranges(numbers: Sequence[int]) -> str:
    """0-15,32 of sorted numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
