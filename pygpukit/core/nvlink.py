"""NVLink and PCIe between two devices, as NVML says: how many links are up, and the rate of all of them."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from pygpukit.core.nvml import NvmlDevice

_MAX_LINKS = 64
_REMOTE_GPU, _REMOTE_SWITCH = 0, 2
_FIELD_LINK_SPEED = 164  # NVML_FI_DEV_NVLINK_GET_SPEED, MB/s each way of the link in scopeId
_VALUE_BYTES = {0: 8, 1: 4, 2: 8, 3: 8, 4: 8}  # double, unsigned int, unsigned long, unsigned long long, long long
_PCIE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}  # a lane each way


class _Pci(ctypes.Structure):
    _fields_ = [
        ("legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("device_id", ctypes.c_uint),
        ("subsystem_id", ctypes.c_uint),
        ("text", ctypes.c_char * 32),
    ]


class _Field(ctypes.Structure):
    _fields_ = [
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("kind", ctypes.c_uint),
        ("status", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    ]


class Wire(NamedTuple):
    """kind: "nvlink", "nvswitch" or "pcie". lanes: NVLinks, or PCIe lanes. bytes_per_s: of all of them each way, None
    where NVML does not say."""

    kind: str
    lanes: int
    bytes_per_s: float | None


def wire(device: NvmlDevice, peer: NvmlDevice) -> Wire | None:
    """The fastest wire that NVML names between two devices; None where it names none."""
    counts = {"nvlink": 0, "nvswitch": 0}
    rates: list[float] = []
    place = _place(peer)
    for link in range(_MAX_LINKS):
        active = ctypes.c_uint()
        if device._call("nvmlDeviceGetNvLinkState", device._handle, ctypes.c_uint(link), ctypes.byref(active)):
            break  # there are no more, or none at all
        kind = _end(device, link, place) if active.value else ""
        if kind:
            counts[kind] += 1
            rates += [rate for rate in [_rate(device, link)] if rate]
    for kind, count in counts.items():
        if count:
            return Wire(kind, count, sum(rates) if len(rates) == count else None)
    return _pcie(device)


def _place(device: NvmlDevice) -> tuple[int, int, int] | None:
    pci = _Pci()
    if device._call("nvmlDeviceGetPciInfo_v3", device._handle, ctypes.byref(pci)):
        return None
    return pci.domain, pci.bus, pci.device


def _end(device: NvmlDevice, link: int, peer: tuple[int, int, int] | None) -> str:
    """The other end of a link: "nvlink" for the peer itself, "nvswitch" for a switch, "" for anything else."""
    kind, pci = ctypes.c_int(-1), _Pci()
    device._call("nvmlDeviceGetNvLinkRemoteDeviceType", device._handle, ctypes.c_uint(link), ctypes.byref(kind))
    if kind.value == _REMOTE_SWITCH:
        return "nvswitch"
    if device._call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device._handle, ctypes.c_uint(link), ctypes.byref(pci)):
        return ""
    return "nvlink" if (pci.domain, pci.bus, pci.device) == peer else ""


def _rate(device: NvmlDevice, link: int) -> float | None:
    asked = _Field(field=_FIELD_LINK_SPEED, scope=link)
    if device._call("nvmlDeviceGetFieldValues", device._handle, ctypes.c_int(1), ctypes.byref(asked)) or asked.status:
        return None
    size = _VALUE_BYTES.get(asked.kind, 0)
    raw = asked.value.to_bytes(8, "little")[:size]
    if asked.kind == 0:
        return ctypes.c_double.from_buffer_copy(raw).value * 1e6
    return int.from_bytes(raw, "little") * 1e6 if size else None


def _pcie(device: NvmlDevice) -> Wire | None:
    generation, lanes = (device._uint(f"nvmlDeviceGetMaxPcieLink{which}").value for which in ("Generation", "Width"))
    if not lanes:
        return None
    rate = _PCIE_BYTES_PER_S.get(int(generation or 0))
    return Wire("pcie", int(lanes), rate and rate * lanes)
