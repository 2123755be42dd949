"""How busy and warm the device is, for the status feed: NVML's readings, and nothing in their place."""

from __future__ import annotations

import os

import pytest

import pygpukit as gp
from pygpukit.jupyter import status
from pygpukit.jupyter.health import Health
from pygpukit.telemetry import sensors

UUID = bytes(range(16))
BOTH = {"gpu_utilization": 61, "temperature": 57}


@pytest.mark.parametrize(
    ("missing", "left"),
    [
        ("", BOTH),
        ("utilization", {"temperature": 57}),
        ("temperature", {"gpu_utilization": 61}),
        ("utilization temperature", {}),
    ],
)
def test_only_what_the_library_says(
    missing: str, left: dict[str, float], library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "FAKE_NVML_MISSING", missing)
    assert Health(library, UUID).fields(0) == left


@pytest.mark.parametrize(("name", "uuid"), [("libno-such-nvml.so.1", UUID), (None, bytes(16))])
def test_without_nvml_there_are_no_readings_and_it_is_asked_once(
    name: str | None, uuid: bytes, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = sensors.open_nvml

    def counted(device: int, library: str, device_uuid: bytes | None) -> object:
        asked.append(device)
        return real(device, library, device_uuid)

    monkeypatch.setattr("pygpukit.jupyter.health.open_nvml", counted)
    health = Health(name or library, uuid)
    assert [health.fields(0), health.fields(0), health.fields(1)] == [{}, {}, {}]
    assert asked == [0, 1]


def test_a_page_is_told_them_beside_memory_and_launches(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = gp.zeros(1000)
    monkeypatch.setattr(status, "health", Health(library, UUID))
    told = status.live()
    assert {name: told[name] for name in BOTH} == BOTH
    assert told["pool_used"] >= keep.nbytes and told["line"] == status.line(told)


def test_a_simulated_device_has_neither() -> None:
    gp.zeros(1)
    if gp.backend() != "sim":
        pytest.skip("there is a device")
    assert not BOTH.keys() & status.live().keys()
