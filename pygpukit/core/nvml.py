"""NVIDIA's management library, opened at run time by ctypes: one device's readings, each a value or a reason."""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable
from dataclasses import dataclass

LIBRARY = "libnvidia-ml.so.1"
_SUCCESS, _NOT_SUPPORTED, _INSUFFICIENT_SIZE = 0, 3, 7
_TEMPERATURE_GPU, _PCIE_TX, _PCIE_RX = 0, 0, 1
_CLOCKS = {"sm": 1, "memory": 2}
_MAX_PROCESSES = 4096
_UNREPORTED = 2**64 - 1
_MAX_CPUS, _WORD = 4096, 8 * ctypes.sizeof(ctypes.c_ulong)  # bits
_MAX_TEXT = 96  # of a name or a UUID, with its end

# Bits of nvmlDeviceGetCurrentClocksThrottleReasons, as its documentation names them.
THROTTLE_REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}


class NvmlUnavailableError(RuntimeError):
    """There is no NVML, or it does not know the device. The text is the reason."""


@dataclass(frozen=True)
class Reading:
    """A number, or None and why there is none."""

    value: float | None
    reason: str = ""


@dataclass(frozen=True)
class Process:
    """A process with a context on the device. used_bytes is None where the driver does not tell."""

    pid: int
    used_bytes: int | None


@dataclass(frozen=True)
class MigInstance:
    """A MIG instance of a card. uuid: what CUDA_VISIBLE_DEVICES takes. gpu_instance, compute_instance: its numbers.
    memory_bytes: all that it has; None where the driver does not tell."""

    uuid: str
    name: str
    gpu_instance: int
    compute_instance: int
    memory_bytes: int | None


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class NvmlDevice:
    """The device with a UUID (16 bytes, as the CUDA driver gives it: both libraries number devices in their own order).

    Raises NvmlUnavailableError. Thread-safe, as NVML is.
    """

    def __init__(self, device_uuid: bytes, library: str = LIBRARY) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise NvmlUnavailableError(f"NVML could not be opened: {error}") from None
        self._check("nvmlInit_v2")
        self._handle = ctypes.c_void_p()
        # A MIG instance goes by a name of its own.
        names = [f"{kind}-{uuid.UUID(bytes=device_uuid)}".encode() for kind in ("MIG", "GPU")]
        if self._call("nvmlDeviceGetHandleByUUID", names[0], ctypes.byref(self._handle)):
            self._check("nvmlDeviceGetHandleByUUID", names[1], ctypes.byref(self._handle))

    def driver_version(self) -> str:
        """Such as "570.86.15"; "" where it is not told."""
        text = ctypes.create_string_buffer(80)
        return (
            ""
            if self._call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(80))
            else text.value.decode("utf-8", "replace")
        )

    def mig(self) -> tuple[str, tuple[int, int] | None] | str:
        """("instance", its GPU and compute instance), ("on", None) or ("off", None); the reason where it is not told.

        "on" is a whole card that is divided.
        """
        is_instance = ctypes.c_uint()
        if not self._call("nvmlDeviceIsMigDeviceHandle", self._handle, ctypes.byref(is_instance)) and is_instance.value:
            instances = (ctypes.c_uint(), ctypes.c_uint())
            for which, number in zip(("Gpu", "Compute"), instances, strict=True):
                if reason := self._call(f"nvmlDeviceGet{which}InstanceId", self._handle, ctypes.byref(number)):
                    return reason
            return "instance", (instances[0].value, instances[1].value)
        now, pending = ctypes.c_uint(), ctypes.c_uint()
        function = self._function("nvmlDeviceGetMigMode")
        if function is None:
            return "this NVML has no nvmlDeviceGetMigMode"
        code = function(self._handle, ctypes.byref(now), ctypes.byref(pending))
        if code not in (_SUCCESS, _NOT_SUPPORTED):
            return self._words(code)
        return ("on" if code == _SUCCESS and now.value else "off"), None

    def mig_instances(self) -> list[MigInstance] | str:
        """The instances that there are of a card that is divided; the reason where they are not told."""
        max_count = ctypes.c_uint()
        if reason := self._call("nvmlDeviceGetMaxMigDeviceCount", self._handle, ctypes.byref(max_count)):
            return reason
        instances = []
        for number in range(max_count.value):
            handle = ctypes.c_void_p()
            if self._call(
                "nvmlDeviceGetMigDeviceHandleByIndex", self._handle, ctypes.c_uint(number), ctypes.byref(handle)
            ):
                continue  # there may be fewer
            texts = [ctypes.create_string_buffer(_MAX_TEXT) for _ in range(2)]
            for which, text in zip(("UUID", "Name"), texts, strict=True):
                if reason := self._call(f"nvmlDeviceGet{which}", handle, text, ctypes.c_uint(_MAX_TEXT)):
                    return f"nvmlDeviceGet{which}: {reason}"
            numbers = [ctypes.c_uint() for _ in range(2)]
            for which, value in zip(("Gpu", "Compute"), numbers, strict=True):
                if reason := self._call(f"nvmlDeviceGet{which}InstanceId", handle, ctypes.byref(value)):
                    return f"nvmlDeviceGet{which}InstanceId: {reason}"
            sizes = _Memory()
            untold = self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(sizes))
            uuid_text, name = (text.value.decode("utf-8", "replace") for text in texts)
            gpu, compute = (one.value for one in numbers)
            instances.append(MigInstance(uuid_text, name, gpu, compute, None if untold else sizes.total))
        return instances

    def utilization(self) -> tuple[Reading, Reading]:
        """Per cent of the time in which a kernel ran, and in which memory was read or written."""
        rates = _Utilization()
        reason = self._call("nvmlDeviceGetUtilizationRates", self._handle, ctypes.byref(rates))
        return (Reading(None, reason),) * 2 if reason else (Reading(rates.gpu), Reading(rates.memory))

    def memory(self) -> tuple[Reading, Reading]:
        """Bytes in use by every process, and in all."""
        sizes = _Memory()
        reason = self._call("nvmlDeviceGetMemoryInfo", self._handle, ctypes.byref(sizes))
        return (Reading(None, reason),) * 2 if reason else (Reading(sizes.used), Reading(sizes.total))

    def clock_mhz(self, which: str) -> Reading:
        """Clock now, of "sm" or "memory"."""
        return self._uint("nvmlDeviceGetClockInfo", ctypes.c_int(_CLOCKS[which]))

    def max_clock_mhz(self, which: str) -> Reading:
        """Highest clock, of "sm" or "memory"."""
        return self._uint("nvmlDeviceGetMaxClockInfo", ctypes.c_int(_CLOCKS[which]))

    def power_watts(self) -> Reading:
        return self._uint("nvmlDeviceGetPowerUsage", scale=1e-3)

    def power_limit_watts(self) -> Reading:
        return self._uint("nvmlDeviceGetEnforcedPowerLimit", scale=1e-3)

    def temperature_celsius(self) -> Reading:
        return self._uint("nvmlDeviceGetTemperature", ctypes.c_int(_TEMPERATURE_GPU))

    def throttle_reasons(self) -> Reading:
        """Bits, see THROTTLE_REASONS."""
        bits = ctypes.c_ulonglong()
        reason = self._call("nvmlDeviceGetCurrentClocksThrottleReasons", self._handle, ctypes.byref(bits))
        return Reading(None, reason) if reason else Reading(bits.value)

    def pcie_bytes_per_s(self) -> tuple[Reading, Reading]:
        """Sent and received by the device. NVML measures for 20 ms in each of two calls: ask seldom."""
        sent = self._uint("nvmlDeviceGetPcieThroughput", ctypes.c_int(_PCIE_TX), scale=1024)
        return sent, self._uint("nvmlDeviceGetPcieThroughput", ctypes.c_int(_PCIE_RX), scale=1024)

    def pcie_link(self) -> tuple[Reading, Reading]:
        """Generation and lanes of the link as it is now."""
        return self._uint("nvmlDeviceGetCurrPcieLinkGeneration"), self._uint("nvmlDeviceGetCurrPcieLinkWidth")

    def cpus(self) -> set[int] | str:
        """Numbers of the host's processors near the device, by its NUMA node; the reason where they are not told."""
        words = (ctypes.c_ulong * (_MAX_CPUS // _WORD))()
        if reason := self._call("nvmlDeviceGetCpuAffinity", self._handle, ctypes.c_uint(len(words)), words):
            return reason
        return {n for n in range(_MAX_CPUS) if words[n // _WORD] >> n % _WORD & 1}

    def processes(self) -> list[Process] | str:
        """Processes with a compute context; the reason where they are not told."""
        count = ctypes.c_uint(64)
        while True:
            rows = (_Process * count.value)()
            function = self._function("nvmlDeviceGetComputeRunningProcesses_v3")
            if function is None:
                return "this NVML has no nvmlDeviceGetComputeRunningProcesses_v3"
            code = function(self._handle, ctypes.byref(count), rows)
            if code == _INSUFFICIENT_SIZE and len(rows) < _MAX_PROCESSES:
                count = ctypes.c_uint(min(2 * max(count.value, len(rows)), _MAX_PROCESSES))
            elif code != _SUCCESS:
                return self._words(code)
            else:
                break
        return [Process(row.pid, None if row.used == _UNREPORTED else row.used) for row in rows[: count.value]]

    def _uint(self, name: str, *args: object, scale: float = 1) -> Reading:
        value = ctypes.c_uint()
        reason = self._call(name, self._handle, *args, ctypes.byref(value))
        return Reading(None, reason) if reason else Reading(value.value * scale if scale != 1 else value.value)

    def _call(self, name: str, *args: object) -> str:
        """Why a function failed; "" when it did not."""
        function = self._function(name)
        if function is None:
            return f"this NVML has no {name}"
        code = function(*args)
        return "" if code == _SUCCESS else self._words(code)

    def _check(self, name: str, *args: object) -> None:
        if reason := self._call(name, *args):
            raise NvmlUnavailableError(f"{name}: {reason}")

    def _function(self, name: str) -> Callable[..., int] | None:
        return getattr(self._library, name, None)

    def _words(self, code: int) -> str:
        function = getattr(self._library, "nvmlErrorString", None)
        if function is None:
            return f"NVML error {code}"
        function.restype = ctypes.c_char_p
        return (function(ctypes.c_int(code)) or b"").decode("utf-8", "replace") or f"NVML error {code}"
