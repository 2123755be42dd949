"""Partitions of isolation "mig": each on an instance of its own, simulated here by PYGPUKIT_SIM_MIG."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import process_functions as work
import pytest
from process_help import kept
from scheduler_help import PATIENCE_S

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError, OutOfMemoryError
from pygpukit.core.nvml import MigInstance
from pygpukit.scheduler import Scheduler, instances
from pygpukit.scheduler.instances import choose

MIB = 1 << 20


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_MIG", "64MiB, 128MiB")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def seen() -> tuple[str | None, str, int, int]:
    """Of a worker's process: what it was given, what its device is, how large it is, and the devices there are."""
    return (
        os.environ.get("CUDA_VISIBLE_DEVICES"),
        gp.device_sharing().mig,
        gp.get_device_info().total_memory,
        gp.cuda.device_count(),
    )


def doubled(x: Any) -> Any:
    return gp.add(gp.from_numpy(x), gp.from_numpy(x)).to_numpy()


def on_device() -> Any:
    return {"result": [gp.ones(3)]}


@pytest.mark.usefixtures("divided")
def test_each_has_an_instance_for_itself_and_takes_nothing_of_the_device() -> None:
    with Scheduler(total_memory="100MB") as scheduler:
        scheduler.create_partition("all", memory="100MB", bandwidth=1.0)
        scheduler.create_partition("second", isolation="mig", instance="MIG-simulated-2", memory="100MiB")
        scheduler.create_partition("first", isolation="mig")
        small, large = (scheduler.submit(seen, partition=name).result(PATIENCE_S) for name in ("first", "second"))
        assert small == ("MIG-simulated-1", "instance", 64 * MIB, 1)
        assert large == ("MIG-simulated-2", "instance", 128 * MIB, 1)
        assert scheduler.partitions.get("first").limits.memory_quota == 64 * MIB
        workers = {one.partition: one.instance for one in scheduler.worker_processes()}
        assert workers == {"first": "MIG-simulated-1", "second": "MIG-simulated-2"}
        x = np.arange(10, dtype=np.float32)
        task = scheduler.submit(doubled, x, memory="60MB", bandwidth=1.0, partition="first")
        np.testing.assert_array_equal(task.result(PATIENCE_S), 2 * x)
        with pytest.raises(OutOfMemoryError):
            scheduler.submit(work.allocate, 101 * MIB, partition="second").result(PATIENCE_S)
    assert kept(scheduler)


@pytest.mark.usefixtures("divided")
def test_a_lost_worker_comes_back_on_its_instance() -> None:
    with Scheduler(total_memory="100MB") as scheduler:
        scheduler.create_partition("p", isolation="mig")
        with pytest.raises(gp.DriverError):
            scheduler.submit(work.fault, partition="p").result(PATIENCE_S)
        assert scheduler.submit(seen, partition="p").result(PATIENCE_S)[0] == "MIG-simulated-1"
        scheduler.delete_partition("p")
        scheduler.create_partition("q", isolation="mig")  # it is free again
        assert scheduler.submit(seen, partition="q").result(PATIENCE_S)[0] == "MIG-simulated-1"


@pytest.mark.usefixtures("divided")
def test_arrays_of_another_device_do_not_travel() -> None:
    with Scheduler(total_memory="100MB") as scheduler:
        scheduler.create_partition("p", isolation="mig")
        with pytest.raises(InvalidSpecError, match=r"argument 0 is an array of this process's device.*\.to_numpy\(\)"):
            scheduler.submit(work.doubled, gp.ones(3), partition="p")
        with pytest.raises(TypeError, match=r"array of the instance; return \.to_numpy\(\)"):
            scheduler.submit(on_device, partition="p").result(PATIENCE_S)


@pytest.mark.usefixtures("divided")
def test_what_cannot_be_had_is_refused_by_name() -> None:
    with Scheduler(total_memory="100MB") as scheduler, Scheduler(total_memory="100MB") as other:
        other.create_partition("p", isolation="mig")
        for field, limits, message in (
            ("instance", {"instance": "MIG-simulated-1"}, "has a partition; free are MIG-simulated-2"),
            ("instance", {"instance": "MIG-7"}, "there is MIG-simulated-1, MIG-simulated-2"),
            ("memory", {"memory": "129MiB"}, "instance MIG-simulated-2 has 134217728 bytes"),
            ("lend", {"lend_memory": "1MiB"}, "nothing in common with others"),
            ("instance", {"instance": "MIG-simulated-2", "isolation": "process"}, "is for isolation='mig'"),
        ):
            with pytest.raises(InvalidSpecError, match=message) as error:
                scheduler.create_partition("q", **{"isolation": "mig", **limits})
            assert error.value.field == field
            assert scheduler.partitions.partition_ids() == []
        scheduler.create_partition("q", isolation="mig")
        with pytest.raises(InvalidSpecError, match="the 2 instances of device 0 have a partition each"):
            scheduler.create_partition("r", isolation="mig")
        with pytest.raises(InvalidSpecError, match="memory='1GiB'; instance MIG-simulated-2"):
            scheduler.resize_partition("q", memory="1GiB")
        scheduler.resize_partition("q", memory="1MiB")
        assert scheduler.partitions.get("q").limits.memory_quota == MIB


def test_a_card_that_is_not_divided_says_what_would_divide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_SIM_MIG", raising=False)
    with pytest.raises(InvalidSpecError, match="needs an instance on device 0: MIG is off there"):
        choose(None, 0, ())
    card = gp.DeviceSharing("off", None, "off", None, {}, (), "GPU-1")
    monkeypatch.setattr(instances, "device_sharing", lambda device: card)
    with pytest.raises(InvalidSpecError, match="administrator: sudo nvidia-smi -i GPU-1 -mig 1"):
        choose(None, 0, ())


def test_a_real_instance_is_found_by_its_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "is_sim", lambda: False)
    assert instances.environment(MigInstance("MIG-0a", "1g", 1, 0, None)) == {"CUDA_VISIBLE_DEVICES": "MIG-0a"}
