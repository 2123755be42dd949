"""Device samples: NVML's readings as the fields of the device strip. What cannot be read is a field that says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pygpukit import _core
from pygpukit.core.backend import backend
from pygpukit.core.nvml import LIBRARY, THROTTLE_REASONS, NvmlDevice, NvmlUnavailableError, Reading

_PCIE_EVERY = 5  # samples: NVML blocks for 40 ms
_IDLE = 0x1

# Key, label and unit of every field, in the order in which they are shown.
FIELDS = (
    ("gpu_utilization", "GPU busy", "%"),
    ("memory_utilization", "Memory busy", "%"),
    ("memory_used", "Memory used", "B"),
    ("sm_clock", "SM clock", "MHz"),
    ("memory_clock", "Memory clock", "MHz"),
    ("power", "Power", "W"),
    ("temperature", "Temperature", "\u00b0C"),
    ("throttle", "Throttled by", ""),
    ("pcie_sent", "PCIe sent", "B/s"),
    ("pcie_received", "PCIe received", "B/s"),
    ("pcie_link", "PCIe link", "lanes"),
)

Values = dict[str, tuple[Reading, str]]


def open_nvml(device: int, library: str = LIBRARY, device_uuid: bytes | None = None) -> NvmlDevice:
    """NVML's view of a CUDA device. Raises NvmlUnavailableError, also for a simulated device.

    library and device_uuid are for tests; None is the CUDA device's own.
    """
    if device_uuid is None and backend() == "sim":
        raise NvmlUnavailableError("the device is simulated: it has no sensors")
    return NvmlDevice(device_uuid or _core.native.device_info(device)["uuid"], library)


class DeviceSampler:
    """Samples of one device. It opens NVML with the first one; nothing is polled in between."""

    def __init__(self, device: int, library: str = LIBRARY, device_uuid: bytes | None = None) -> None:
        self._device, self._library, self._uuid = device, library, device_uuid
        self._nvml: NvmlDevice | None = None
        self._reason = ""
        self._shared = ""
        self._opened = False
        self._samples = 0
        self._pcie: Values = {}
        self._newest: dict[str, Any] | None = None

    def sample(self) -> dict[str, Any]:
        """The message of the device strip. Never raises: a device that cannot be read is part of the message."""
        if not self._opened:
            self._opened = True
            self._open()
        nvml = self._nvml
        values: Values = {} if nvml is None else self._read(nvml)
        self._samples += 1
        missing = (Reading(None), self._reason)
        fields = []
        for key, label, unit in FIELDS:
            reading, note = values.get(key, missing)
            fields.append(
                {"key": key, "label": label, "value": reading.value, "unit": unit, "note": reading.reason or note}
            )
        processes = nvml.processes() if nvml is not None else []
        self._newest = {
            "type": "device",
            "tNs": _core.now_ns(),
            "source": f"NVML, driver {nvml.driver_version()}{self._shared}" if nvml is not None else self._reason,
            "fields": fields,
            "processes": []
            if isinstance(processes, str)
            else [[p.pid, _name(p.pid), -1 if p.used_bytes is None else p.used_bytes] for p in processes],
        }
        return self._newest

    def newest(self) -> dict[str, Any]:
        """The sample that was made last; a first one where there is none."""
        return self._newest or self.sample()

    def _open(self) -> None:
        try:
            self._nvml = open_nvml(self._device, self._library, self._uuid)
            self._shared = _sharing(self._nvml, self._device if self._uuid is None else None)
        except NvmlUnavailableError as error:
            self._reason = str(error)

    def _read(self, nvml: NvmlDevice) -> Values:
        gpu, memory_busy = nvml.utilization()
        used, total = nvml.memory()
        throttle = nvml.throttle_reasons()
        bits = int(throttle.value or 0)
        names = ", ".join(name for bit, name in THROTTLE_REASONS.items() if bits & bit)
        causes = Reading(None, throttle.reason) if throttle.value is None else Reading((bits & ~_IDLE).bit_count())
        if self._samples % _PCIE_EVERY == 0:
            sent, received = nvml.pcie_bytes_per_s()
            generation, lanes = nvml.pcie_link()
            self._pcie = {
                "pcie_sent": (sent, ""),
                "pcie_received": (received, ""),
                "pcie_link": (lanes, _of("generation", generation)),
            }
        return {
            "gpu_utilization": (gpu, ""),
            "memory_utilization": (memory_busy, ""),
            "memory_used": (used, "" if total.value is None else f"of {total.value / 2**30:.1f} GiB"),
            "sm_clock": (nvml.clock_mhz("sm"), _of("at most", nvml.max_clock_mhz("sm"))),
            "memory_clock": (nvml.clock_mhz("memory"), _of("at most", nvml.max_clock_mhz("memory"))),
            "power": (nvml.power_watts(), _of("of", nvml.power_limit_watts())),
            "temperature": (nvml.temperature_celsius(), ""),
            "throttle": (causes, names or "nothing"),
            **self._pcie,
        }


def _of(word: str, reading: Reading) -> str:
    return "" if reading.value is None else f"{word} {reading.value:g}"


def _name(pid: int) -> str:
    """A process's name, where the system tells it."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "not told"


def _sharing(nvml: NvmlDevice, device: int | None) -> str:
    """The description of a device that the system divides or shares; empty for others. None: no device."""
    mig = nvml.mig()
    mode, instance = ("off", None) if isinstance(mig, str) else mig
    text = "" if mode == "off" else f", MIG {mode}"
    if instance is not None:
        text += f" {instance[0]}/{instance[1]}"
    served = device is not None and _core.native.device_info(device)["mps"] == 1
    return text + (", MPS on" if served else "")
