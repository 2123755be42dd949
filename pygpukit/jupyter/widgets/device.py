"""DeviceWidget: what NVML tells of the device."""

from __future__ import annotations

from pygpukit.jupyter.widgets.dashboard import Dashboard
from pygpukit.jupyter.widgets.fallback import device_html
from pygpukit.jupyter.widgets.source import LiveSource, Source


class DeviceWidget(Dashboard):
    """Utilisation, memory, clocks, power, temperature, throttle reasons, PCIe and processes of a device, once a
    second.

    source: a replay, or None for this process. device: its number there. A field that cannot be read says why.
    Raises RuntimeError when the front-end bundle has not been built.
    """

    module = "device.js"

    def __init__(self, source: Source | None = None, *, device: int = 0) -> None:
        self._place = device
        super().__init__(source)

    def live_source(self) -> LiveSource:
        return LiveSource(device=True, place=self._place)

    def fallback_html(self) -> str:
        return device_html(self._source.state())

    def picture_html(self) -> str:
        return device_html(self._source.state(), readings=True)
