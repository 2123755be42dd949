"""MIG and MPS as a fake NVML and a fake driver tell of them."""

from __future__ import annotations

import os

import pytest

import pygpukit as gp
from pygpukit.core import sharing
from pygpukit.core.nvml import MigInstance, NvmlDevice
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
    shown = {"off": "MIG off", "on": "MIG on", "instance": "MIG instance 7/1"}[mig]
    assert str(found).partition(";")[0] == f"{shown}, MPS off"


def test_instances_of_a_divided_card_are_listed(library: str, told, monkeypatch: pytest.MonkeyPatch) -> None:
    setenv(monkeypatch, "FAKE_NVML_MIG", "on")
    found = told(library)
    name = "NVIDIA H100 MIG 1g.10gb"
    assert found.instances == (MigInstance("MIG-0a", name, 9, 0, 8 << 30), MigInstance("MIG-2c", name, 11, 0, 8 << 30))
    assert f"; 11/0 {name} MIG-2c" in str(found)
    setenv(monkeypatch, "FAKE_NVML_MISSING", "memory")
    assert [one.memory_bytes for one in told(library).instances] == [None, None]
    for what in ("instances", "names"):
        setenv(monkeypatch, "FAKE_NVML_MISSING", what)
        assert told(library).instances == () and "Not Supported" in told(library).reasons["instances"]


def test_commands_of_an_administrator_are_text(library: str, told, monkeypatch: pytest.MonkeyPatch) -> None:
    card = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert f"sudo nvidia-smi -i {card} -mig 1" in told(library).commands()
    assert "nvidia-cuda-mps-control -d" in told(library).commands()
    assert "nvidia-cuda-mps-control -d" not in told(library, mps=1).commands()
    setenv(monkeypatch, "FAKE_NVML_MIG", "on")
    divided = told(library).commands()
    assert divided[:2] == [f"sudo nvidia-smi mig -i {card} -lgip", f"sudo nvidia-smi mig -i {card} -cgi PROFILE -C"]
    assert divided[2:] == ["CUDA_VISIBLE_DEVICES=MIG-0a jupyter lab", "CUDA_VISIBLE_DEVICES=MIG-2c jupyter lab"]
    setenv(monkeypatch, "FAKE_NVML_MIG", "instance")
    assert told(library).commands() == []


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
    assert str(gp.device_sharing()) == "MIG off, MPS off" and gp.device_sharing().commands() == []
