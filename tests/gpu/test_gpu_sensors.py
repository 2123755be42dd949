"""The device strip on a real card: NVML's readings are plausible, and its memory agrees with the pool's."""

from __future__ import annotations

from typing import Any

import pygpukit as gp
from pygpukit import _core
from pygpukit.telemetry.sensors import FIELDS, DeviceSampler

GIB = 1 << 30


def values(sample: dict[str, Any]) -> dict[str, float | None]:
    return {field["key"]: field["value"] for field in sample["fields"]}


def test_every_field_has_a_value_or_says_why_it_has_none() -> None:
    gp.ones(4)
    sample = DeviceSampler(0).sample()
    assert sample["source"].startswith("NVML, driver "), sample["source"]
    assert [field["key"] for field in sample["fields"]] == [key for key, _, _ in FIELDS]
    for field in sample["fields"]:
        assert field["value"] is not None or field["note"], field
    read = values(sample)
    total = gp.get_device_info().total_memory
    for key, low, high in (
        ("gpu_utilization", 0, 100),
        ("memory_utilization", 0, 100),
        ("memory_used", 1, total * 1.1),
        ("sm_clock", 100, 5_000),
        ("memory_clock", 100, 20_000),
        ("power", 10, 2_000),
        ("temperature", 10, 110),
    ):
        value = read[key]
        assert value is not None and low <= value <= high, (key, value)


def test_memory_agrees_with_the_pool_within_one_percent() -> None:
    gp.ones(4)
    sampler = DeviceSampler(0)

    def used() -> float:
        value = values(sampler.sample())["memory_used"]
        assert value is not None
        return value

    def held() -> int:
        stats = _core.pool_stats(0)
        return stats.used + stats.cached

    _core.pool_trim(0)
    before, before_pool = used(), held()
    blocks = [gp.empty(4 * GIB, dtype="uint8") for _ in range(2)]
    rise, rise_pool = used() - before, held() - before_pool
    assert rise_pool >= 8 * GIB
    assert abs(rise - rise_pool) <= 0.01 * rise_pool, (rise, rise_pool)
    del blocks
    _core.pool_trim(0)
    assert abs(used() - before) <= 0.01 * 8 * GIB
