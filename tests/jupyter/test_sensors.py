"""The device strip's readings against a stand-in for NVML: every field has a value or says why it has none."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pygpukit.core.nvml import NvmlDevice, NvmlUnavailableError
from pygpukit.telemetry.sensors import FIELDS, DeviceSampler

UUID = bytes(range(16))


def fields(sample: dict[str, Any]) -> dict[str, tuple[float | None, str]]:
    return {field["key"]: (field["value"], field["note"]) for field in sample["fields"]}


def test_every_field_is_what_the_library_says(library: str) -> None:
    sample = DeviceSampler(0, library, UUID).sample()
    assert sample["source"] == "NVML, driver 570.1"
    assert fields(sample) == {
        "gpu_utilization": (61, ""),
        "memory_utilization": (17, ""),
        "memory_used": (3 << 30, "of 8.0 GiB"),
        "sm_clock": (1410, "at most 1980"),
        "memory_clock": (2619, "at most 2619"),
        "power": (312.5, "of 700"),
        "temperature": (57, ""),
        "throttle": (2, "idle, power cap, hardware thermal slowdown"),
        "pcie_sent": (100 << 10, ""),
        "pcie_received": (200 << 10, ""),
        "pcie_link": (16, "generation 5"),
    }


def test_processes_without_a_size_say_so(library: str) -> None:
    rows = DeviceSampler(0, library, UUID).sample()["processes"]
    assert len(rows) == 100 and rows[1][2] == -1 and rows[5][2] == 5 << 20
    assert rows[0][1] == Path("/proc/1/comm").read_text().strip()
    own = NvmlDevice(UUID, library).processes()
    assert not isinstance(own, str) and own[1].used_bytes is None


def test_processors_near_the_device(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert NvmlDevice(UUID, library).cpus() == {0, 2, 64, 4095}
    setenv(monkeypatch, "FAKE_NVML_MISSING", "affinity")
    assert NvmlDevice(UUID, library).cpus() == "Not Supported"


MISSING = {
    "utilization": ["gpu_utilization", "memory_utilization"],
    "memory": ["memory_used"],
    "clock": ["sm_clock", "memory_clock"],
    "power": ["power"],
    "temperature": ["temperature"],
    "throttle": ["throttle"],
    "pcie": ["pcie_sent", "pcie_received"],
    "process": [],
}


@pytest.mark.parametrize("what", MISSING)
def test_a_field_that_cannot_be_read_says_why(what: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fields(DeviceSampler(0, library, UUID).sample())
    setenv(monkeypatch, "FAKE_NVML_MISSING", what)
    sample = DeviceSampler(0, library, UUID).sample()
    got = fields(sample)
    for key in whole:
        assert got[key] == ((None, "Not Supported") if key in MISSING[what] else whole[key])
    if what == "process":
        assert sample["processes"] == [] and NvmlDevice(UUID, library).processes() == "Not Supported"


def setenv(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """For C code too: os.environ calls putenv()."""
    monkeypatch.setitem(os.environ, name, value)


def test_pcie_is_measured_seldom(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    real = NvmlDevice.pcie_bytes_per_s

    def counted(self: NvmlDevice) -> Any:
        nonlocal calls
        calls += 1
        return real(self)

    monkeypatch.setattr(NvmlDevice, "pcie_bytes_per_s", counted)
    sampler = DeviceSampler(0, library, UUID)
    for _ in range(10):
        assert fields(sampler.sample())["pcie_sent"][0] == 100 << 10
    assert calls == 2


@pytest.mark.parametrize(
    ("uuid", "words"), [(bytes(16), "nvmlDeviceGetHandleByUUID: Not Found"), (UUID, "nvmlInit_v2: Driver Not Loaded")]
)
def test_a_device_that_nvml_does_not_know(
    uuid: bytes, words: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if uuid == UUID:
        setenv(monkeypatch, "FAKE_NVML_BROKEN", "1")
    with pytest.raises(NvmlUnavailableError, match=words):
        NvmlDevice(uuid, library)
    sample = DeviceSampler(0, library, uuid).sample()
    assert sample["source"] == words
    assert fields(sample) == {key: (None, words) for key, _, _ in FIELDS}


def test_without_the_library_every_field_says_so() -> None:
    sample = DeviceSampler(0, "libno-such-nvml.so.1", UUID).sample()
    assert sample["source"].startswith("NVML could not be opened: libno-such-nvml.so.1")
    assert all(value is None and "could not be opened" in note for value, note in fields(sample).values())


def test_a_library_without_the_functions_says_so(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler for the stand-in")
    (tmp_path / "empty.c").write_text("int nothing;\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "e.so", tmp_path / "empty.c"], check=True)
    with pytest.raises(NvmlUnavailableError, match="this NVML has no nvmlInit_v2"):
        NvmlDevice(UUID, str(tmp_path / "e.so"))


def test_a_simulated_device_has_no_sensors() -> None:
    from pygpukit import backend

    if backend() != "sim":
        pytest.skip("there is a device")
    sample = DeviceSampler(0).sample()
    assert sample["source"] == "the device is simulated: it has no sensors"
    assert all(value is None for value, _ in fields(sample).values())
