"""Division and sharing of a device by the system: MIG instances and MPS servers, as the drivers tell."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pygpukit.core.backend import backend
from pygpukit.core.device import device_facts
from pygpukit.core.nvml import LIBRARY, NvmlDevice, NvmlUnavailableError


@dataclass(frozen=True)
class DeviceSharing:
    """The sharing of a device with other processes by the system's own means. `str()` of it is one line.

    mig: "instance" (the device is a MIG instance, a fixed part of a card), "on" (the card is in MIG mode, and this is
    not an instance), "off" or "unknown". instance: the numbers of the GPU instance and the compute instance.
    mps: "on" (an MPS server runs the kernels of this process and of others), "off" or "unknown".
    mps_threads_percent: the part of the multiprocessors that the server lets this process use, where one is set.
    reasons: why something is unknown, by field.
    """

    mig: str
    instance: tuple[int, int] | None
    mps: str
    mps_threads_percent: float | None
    reasons: dict[str, str]

    def __str__(self) -> str:
        place = "" if self.instance is None else f" {self.instance[0]}/{self.instance[1]}"
        part = "" if self.mps_threads_percent is None else f", {self.mps_threads_percent:g} % of the multiprocessors"
        why = "".join(f"; {field}: {reason}" for field, reason in self.reasons.items())
        return f"MIG {self.mig}{place}, MPS {self.mps}{part}{why}"


_divided = False


def divide() -> None:
    """Remember that this process gives tasks multiprocessors of their own."""
    global _divided
    _divided = True


def divided() -> bool:
    """True where kernels may get a few multiprocessors that lie anywhere: some are tasks', or MPS gives a part."""
    return _divided or "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" in os.environ


def device_sharing(device_id: int = 0, *, library: str | None = None) -> DeviceSharing:
    """Finds out if a device is a MIG instance, and if an MPS server serves this process. Changes nothing.

    library: the file of NVML to ask about MIG; None is the system's. Raises DriverError when there is no such device.
    """
    facts = device_facts(device_id)
    if library is None and backend() == "sim":
        return DeviceSharing("off", None, "off", None, {})
    reasons: dict[str, str] = {}
    mig, instance = _mig(facts["uuid"], library, reasons)
    mps = {0: "off", 1: "on"}.get(facts["mps"], "unknown")
    if mps == "unknown":
        reasons["mps"] = "this driver does not tell; a newer one does"
    return DeviceSharing(mig, instance, mps, _threads_percent() if mps == "on" else None, reasons)


def _mig(uuid: bytes, library: str | None, reasons: dict[str, str]) -> tuple[str, tuple[int, int] | None]:
    try:
        is_mig = NvmlDevice(uuid, LIBRARY if library is None else library).mig()
    except NvmlUnavailableError as error:
        reasons["mig"] = str(error)
        return "unknown", None
    if isinstance(is_mig, str):
        reasons["mig"] = is_mig
        return "unknown", None
    return is_mig


def _threads_percent() -> float | None:
    try:
        return float(os.environ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"])
    except (KeyError, ValueError):
        return None
