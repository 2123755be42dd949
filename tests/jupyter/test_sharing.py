"""MIG and MPS as a fake NVML and a fake driver tell of them."""

from __future__ import annotations

import os

import pytest

import pygpukit as gp
from pygpukit.core import sharing
from pygpukit.core.nvml import NvmlDevice
from pygpukit.telemetry.sensors import DeviceSampler

UUID = bytes(range(16))


def setenv(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """For C code too: os.environ calls putenv()."""
    monkeypatch.setitem(os.environ, name, value)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch):
    """What device_sharing() answers where the driver has this device, and MPS as given."""

    def tell(library: str, mps: int = 0, uuid: bytes = UUID) -> gp.DeviceSharing:
        monkeypatch.setattr(sharing, "device_facts", lambda device: {"uuid": uuid, "mps": mps})
        return gp.device_sharing(library=library)

    return tell


@pytest.mark.parametrize(
    ("mode", "mig", "instance"), [("", "off", None), ("on", "on", None), ("instance", "instance", (7, 1))]
)
def test_mig(library: str, told, monkeypatch: pytest.MonkeyPatch, mode: str, mig: str, instance) -> None:
    setenv(monkeypatch, "FAKE_NVML_MIG", mode)
    found = told(library)
    assert (found.mig, found.instance, found.reasons) == (mig, instance, {})
    assert str(found) == {"off": "MIG off", "on": "MIG on", "instance": "MIG instance 7/1"}[mig] + ", MPS off"


def test_a_card_that_has_no_mig(library: str, told, monkeypatch: pytest.MonkeyPatch) -> None:
    setenv(monkeypatch, "FAKE_NVML_MISSING", "mig")
    assert (told(library).mig, told(library).reasons) == ("off", {})


@pytest.mark.parametrize(("mps", "word"), [(0, "off"), (1, "on"), (-1, "unknown")])
def test_mps(library: str, told, monkeypatch: pytest.MonkeyPatch, mps: int, word: str) -> None:
    setenv(monkeypatch, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "30")
    found = told(library, mps)
    assert (found.mps, found.mps_threads_percent) == (word, 30.0 if mps == 1 else None)
    assert list(found.reasons) == (["mps"] if mps < 0 else [])
    assert ("30 % of the multiprocessors" in str(found)) == (mps == 1)


def test_what_nvml_cannot_tell_is_unknown_with_the_reason(library: str, told) -> None:
    assert told("libno-such-nvml.so.1").reasons["mig"].startswith("NVML could not be opened")
    other = told(library, uuid=bytes(16))
    assert other.mig == "unknown" and "nvmlDeviceGetHandleByUUID: Not Found" in str(other)


def test_the_device_strip_tells(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert DeviceSampler(0, library, UUID).sample()["source"] == "NVML, driver 570.1"
    setenv(monkeypatch, "FAKE_NVML_MIG", "instance")
    assert DeviceSampler(0, library, UUID).sample()["source"] == "NVML, driver 570.1, MIG instance 7/1"
    assert NvmlDevice(UUID, library).memory()[0].value == 3 << 30


def test_a_simulated_device_is_shared_with_nobody() -> None:
    if gp.backend() != "sim":
        pytest.skip("there is a device")
    assert str(gp.device_sharing()) == "MIG off, MPS off"
