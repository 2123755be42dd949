"""Division and sharing of a device by the system: MIG instances and MPS servers, as the drivers tell."""

from __future__ import annotations

import os
from dataclasses import dataclass
from uuid import UUID

from pygpukit.core.backend import backend
from pygpukit.core.device import device_facts
from pygpukit.core.nvml import LIBRARY, MigInstance, NvmlDevice, NvmlUnavailableError
from pygpukit.core.sizes import parse_memory


@dataclass(frozen=True)
class DeviceSharing:
    """The sharing of a device with other processes by the system's own means. `str()` of it is one line.

    mig: "instance" (the device is a MIG instance, a fixed part of a card), "on" (the card is in MIG mode, and this is
    not an instance), "off" or "unknown". instance: the numbers of the GPU instance and the compute instance.
    mps: "on" (an MPS server runs the kernels of this process and of others), "off" or "unknown".
    mps_threads_percent: the part of the multiprocessors that the server lets this process use, where one is set.
    reasons: why something is unknown, by field.
    instances: of a card in MIG mode, those that there are; each is a device of its own for a process whose
    CUDA_VISIBLE_DEVICES is its uuid. uuid: the device's, as nvidia-smi takes it; "" on the simulation.
    """

    mig: str
    instance: tuple[int, int] | None
    mps: str
    mps_threads_percent: float | None
    reasons: dict[str, str]
    instances: tuple[MigInstance, ...] = ()
    uuid: str = ""

    def commands(self) -> list[str]:
        """Shell commands by which an administrator would divide the card, or share it by MPS, and this user use that:
        as text, nothing is run."""
        if not self.uuid:
            return []
        if self.mig == "instance":
            return []  # a part of a card is divided no further
        card = f"sudo nvidia-smi -i {self.uuid}"
        if self.mig == "on":
            divide = [
                f"sudo nvidia-smi mig -i {self.uuid} -lgip",
                f"sudo nvidia-smi mig -i {self.uuid} -cgi PROFILE -C",
            ]
            return [*divide, *(f"CUDA_VISIBLE_DEVICES={one.uuid} jupyter lab" for one in self.instances)]
        share = [] if self.mps == "on" else ["nvidia-cuda-mps-control -d"]
        return [f"{card} -mig 1", *share, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50 jupyter lab"]

    def __str__(self) -> str:
        place = "" if self.instance is None else f" {self.instance[0]}/{self.instance[1]}"
        part = "" if self.mps_threads_percent is None else f", {self.mps_threads_percent:g} % of the multiprocessors"
        why = "".join(f"; {field}: {reason}" for field, reason in self.reasons.items())
        there = "".join(f"; {one.gpu_instance}/{one.compute_instance} {one.name} {one.uuid}" for one in self.instances)
        return f"MIG {self.mig}{place}, MPS {self.mps}{part}{there}{why}"


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
        return _simulated(device_id)
    reasons: dict[str, str] = {}
    mig, instance, instances = _mig(facts["uuid"], library, reasons)
    mps = {0: "off", 1: "on"}.get(facts["mps"], "unknown")
    if mps == "unknown":
        reasons["mps"] = "this driver does not tell; a newer one does"
    percent = _threads_percent() if mps == "on" else None
    name = f"{'MIG' if mig == 'instance' else 'GPU'}-{UUID(bytes=facts['uuid'])}"
    return DeviceSharing(mig, instance, mps, percent, reasons, instances, name)


def _simulated(device_id: int) -> DeviceSharing:
    """PYGPUKIT_SIM_MIG="512MiB,1GiB" divides device 0 into instances, which say so in a process that has one."""
    sizes = [one.strip() for one in os.environ.get("PYGPUKIT_SIM_MIG", "").split(",") if one.strip()]
    if not sizes or device_id:
        return DeviceSharing("off", None, "off", None, {})
    instances = tuple(
        MigInstance(
            f"MIG-simulated-{number}", f"simulated MIG {size}", number, 0, parse_memory(size, "PYGPUKIT_SIM_MIG")
        )
        for number, size in enumerate(sizes, 1)
    )
    here = [one for one in instances if one.uuid == os.environ.get("CUDA_VISIBLE_DEVICES")]
    if here:
        return DeviceSharing("instance", (here[0].gpu_instance, 0), "off", None, {}, (), here[0].uuid)
    return DeviceSharing("on", None, "off", None, {}, instances)


def _mig(
    uuid: bytes, library: str | None, reasons: dict[str, str]
) -> tuple[str, tuple[int, int] | None, tuple[MigInstance, ...]]:
    try:
        device = NvmlDevice(uuid, LIBRARY if library is None else library)
    except NvmlUnavailableError as error:
        reasons["mig"] = str(error)
        return "unknown", None, ()
    is_mig = device.mig()
    if isinstance(is_mig, str):
        reasons["mig"] = is_mig
        return "unknown", None, ()
    instances = device.mig_instances() if is_mig[0] == "on" else []
    if isinstance(instances, str):
        reasons["instances"] = instances
        instances = []
    return *is_mig, tuple(instances)


def _threads_percent() -> float | None:
    try:
        return float(os.environ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"])
    except (KeyError, ValueError):
        return None
