"""Load and temperature of a device, for the status feed: only what NVML tells, nothing where it does not."""

from __future__ import annotations

from pygpukit.core.nvml import LIBRARY, NvmlDevice, NvmlUnavailableError
from pygpukit.telemetry.sensors import open_nvml


class Health:
    """Readings of devices; NVML is opened for each with its first. library and device_uuid are for tests."""

    def __init__(self, library: str = LIBRARY, device_uuid: bytes | None = None) -> None:
        self._library, self._uuid = library, device_uuid
        self._devices: dict[int, NvmlDevice | None] = {}  # None: NVML does not have it, and is not asked again

    def fields(self, device: int) -> dict[str, float]:
        """`gpu_utilization` in per cent and `temperature` in degrees Celsius; what cannot be read is absent."""
        if device not in self._devices:
            try:
                self._devices[device] = open_nvml(device, self._library, self._uuid)
            except NvmlUnavailableError:
                self._devices[device] = None
        nvml = self._devices[device]
        if nvml is None:
            return {}
        busy, _memory_busy = nvml.utilization()
        readings = {"gpu_utilization": busy, "temperature": nvml.temperature_celsius()}
        return {name: reading.value for name, reading in readings.items() if reading.value is not None}
