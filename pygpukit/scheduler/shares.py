"""Shares of a device that tasks get, by the gate: shares over moving windows, device time, time held back."""

from __future__ import annotations

from typing import Any

from pygpukit import _core

_PPM = 1_000_000
WINDOWS = ("share_10ms", "share_100ms", "share_1s")


def shares(core: _core.SchedulerCore, number: int) -> dict[str, float]:
    """The fractions of a device that a task had in the last 10 ms, 100 ms and 1 s; over several devices, their sum.

    Only whole periods of 10 ms that are fully measured count. Zeros for a task that has ended or launched nothing.
    """
    tenants = [device["tenants"][number] for device in core.devices() if number in device["tenants"]]
    return {window: sum(t["shares_ppm"][i] for t in tenants) / _PPM for i, window in enumerate(WINDOWS)}


def devices(core: _core.SchedulerCore) -> list[dict[str, Any]]:
    """The running tasks of one scheduler on each device, and what limits held back. See Scheduler.snapshot().

    Shares are of the device, also of a task that has some of its multiprocessors to itself.
    """
    measured = core.devices()
    records = {record.number: record for record in core.tasks()}  # after measuring: device times are up to date
    by_device: dict[int, dict[str, Any]] = {}
    for device in measured:  # one for each set of multiprocessors of a device
        clock = {name: device[name] for name in ("device", "now_ns", "in_flight_ns")}
        whole = by_device.setdefault(device["device"], {**clock, "tasks": {}, "throttles": []})
        whole["in_flight_ns"] = max(whole["in_flight_ns"], device["in_flight_ns"])
        tasks = whole["tasks"]
        for number, tenant in device["tenants"].items():
            record = records.get(number)
            if record is None:
                continue  # of another scheduler
            before = tasks.get(record.id, dict.fromkeys(WINDOWS, 0.0))
            tasks[record.id] = {
                "number": number,
                "name": record.name,
                "phase": record.phase,
                "bandwidth": record.share_ppm / _PPM,
                "gpu_ns": tenant["gpu_ns"],
                "waited_ns": record.waited_ns,
                "throttled_ns": record.throttled_ns,
                "launches": record.launches,
                "slices": record.slices,
                "waits": tenant["waits"],
                **{window: before[window] + tenant["shares_ppm"][i] / _PPM for i, window in enumerate(WINDOWS)},
            }
        whole["throttles"] += [
            {"task": records[number].id, "from_ns": begin, "until_ns": end}
            for number, begin, end in device["throttles"]
            if number in records
        ]
    return [by_device[device] for device in sorted(by_device)]
