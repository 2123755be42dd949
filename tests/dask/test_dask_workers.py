"""A worker a device: what its process sees, its limits and processors, and the commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
from alone import alone

import pygpukit as gp
from pygpukit.core import device as devices_of_core
from pygpukit.core.nvml import NvmlUnavailableError
from pygpukit.dask import devices

pytest.importorskip("distributed", reason="extra dask")
SIMULATED = pytest.mark.skipif("gp.backend() != 'sim'", reason="the devices are simulated")
UUID = bytes(range(16))
ITS_NAME = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"


class Cards:
    """Stands for the driver and NVML of a host with two cards."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, near: set[int] | str) -> None:
        def facts(number: int) -> dict[str, Any]:
            return {"name": f"Card {number}", "total_memory_bytes": 8 << 30, "uuid": UUID}

        def nvml(uuid: bytes, library: str) -> Any:
            if library == "none":
                raise NvmlUnavailableError("NVML could not be opened")
            return type("Nvml", (), {"cpus": lambda self: near})()

        for home, name, value in (
            (devices, "device_facts", facts),
            (devices, "device_count", lambda: 2),
            (devices_of_core, "device_count", lambda: 2),
            (devices, "backend", lambda: "cuda"),
            (devices, "NvmlDevice", nvml),
        ):
            monkeypatch.setattr(home, name, value)


def test_a_worker_of_a_card_sees_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    Cards(monkeypatch, set())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    seen = [one.environment["CUDA_VISIBLE_DEVICES"] for one in devices.host_devices()]
    assert seen == [ITS_NAME, ITS_NAME]  # the UUID, whatever order the driver numbers cards in
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, MIG-7")
    assert [one.environment["CUDA_VISIBLE_DEVICES"] for one in devices.host_devices()] == ["3", "MIG-7"]
    assert devices.host_devices([1])[0].environment == {"CUDA_VISIBLE_DEVICES": "MIG-7", "PYGPUKIT_BACKEND": "cuda"}


def test_a_worker_is_pinned_near_its_card(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    Cards(monkeypatch, {allowed[0], 4095})
    assert devices.host_devices([0])[0].cpus == (allowed[0],)
    assert f"CPUs {allowed[0]}" in str(devices.host_devices([0])[0])
    Cards(monkeypatch, {4095})
    assert "CPUs not pinned (none of those near it is this process's)" in str(devices.host_devices([0])[0])
    Cards(monkeypatch, "Not Supported")
    assert str(devices.host_devices([1])[0]) == "device 1 (Card 1, 8 GiB), CPUs not pinned (Not Supported)"
    assert "CPUs not pinned (NVML could not be opened)" in str(devices.host_devices([0], "none")[0])


def test_ranges_of_processors_are_short() -> None:
    assert devices._ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8" and devices._ranges([]) == ""


@SIMULATED
def test_a_worker_of_a_simulated_device_has_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM", "sms=3,memory=64MiB,devices=2")
    environment = devices.host_devices([0])[0].environment
    memory = gp.get_device_info(0).total_memory
    assert environment == {
        "PYGPUKIT_BACKEND": "sim",
        "PYGPUKIT_SIM_DEVICES": "1",
        "PYGPUKIT_SIM": f"sms=3,memory={memory}B",
    }


def pinned() -> None:
    from pygpukit.dask.workers import pin

    began, end = threading.Event(), threading.Event()
    seen: list[set[int]] = []

    def other() -> None:
        began.set()
        end.wait()
        seen.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=other)
    thread.start()
    began.wait()
    cpu = max(os.sched_getaffinity(0))
    pin((cpu,))
    end.set()
    thread.join()
    assert os.sched_getaffinity(0) == {cpu} and seen == [{cpu}]  # threads that are there already, too


def test_all_threads_of_a_worker_are_pinned() -> None:
    alone(__file__, "pinned")


def looked_at() -> tuple[int, int, str, float]:
    limit = gp.memory.stats()["quota"]
    try:
        gp.zeros(64 << 20, "uint8")
    except gp.OutOfMemoryError:
        return gp.device_count(), limit, os.environ["PYGPUKIT_BACKEND"], gp.ones(3).sum().item()
    raise AssertionError("64 MiB were given within 32")


def limits() -> None:
    from distributed import get_worker

    with gp.dask.cluster(device_memory="32MB", memory_limit="1GB") as cluster, cluster.get_client() as client:
        assert client.submit(looked_at, resources={"GPU": 1}).result() == (1, 32 << 20, "sim", 3.0)
        limit = client.submit(lambda: get_worker().memory_manager.memory_limit).result()
        assert limit == 1 << 30
        with gp.dask.cluster([1]) as other:  # Dask takes clusters of one name for one, and so their clients
            second = other.get_client()
            assert second.scheduler_info()["address"] == other.scheduler_address != cluster.scheduler_address
            second.close()
        resources = [one["resources"] for one in client.scheduler_info(n_workers=-1)["workers"].values()]
        assert resources == [{"GPU": 1}, {"GPU": 1}]


@SIMULATED
def test_limits_hold_in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_SIM", raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "2")
    alone(__file__, "limits")


def begin(*words: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYGPUKIT_SIM_DEVICES": "2"}
    env.pop("PYGPUKIT_SIM", None)
    return subprocess.Popen(
        [sys.executable, "-m", "pygpukit", "dask", *words],
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def use(address: str) -> None:
    from distributed import Client

    client = Client(address, set_as_default=False)  # the one that is handed over is used, and no other
    client.wait_for_workers(2)
    assert sorted(gp.dask.map(abs, [-2, 1], client=client)) == [1, 2]
    with gp.dask.serve(str, replicas=1, client=client) as model:
        assert model.ask("upper") == ""
    client.close()


@SIMULATED
def test_the_commands_start_workers_and_end_them(tmp_path: Any) -> None:
    cluster = begin("cluster", "--port", "0", "--devices", "1", "--local-directory", str(tmp_path))
    workers = None
    try:
        address = re.fullmatch(r"scheduler at (tcp://127\.0\.0\.1:\d+)\n", cluster.stdout.readline())[1]
        assert re.match(r"device-1: device 1 \(.*\), CPUs not pinned \(.*\), arrays up to ", cluster.stdout.readline())
        workers = begin("worker", address, "--devices", "0", "--name", "more", "--device-memory", "16MB")
        line = workers.stdout.readline()
        assert re.match(r"more-0: device 0 \(.*\), CPUs not pinned \(.*\), arrays up to 16 MiB, ", line), line
        alone(__file__, "use", address)
        cluster.send_signal(signal.SIGTERM)
        assert cluster.wait() == 0
        _, words = workers.communicate()
        assert workers.returncode == 1 and f"the scheduler at {address} ended, and its workers with it" in words
    finally:
        for process in filter(None, (cluster, workers)):
            process.kill()
            process.communicate()


@SIMULATED
def test_a_command_that_cannot_begin_says_why() -> None:
    for words, expected in (
        (("cluster", "--devices", "5"), "pygpukit dask cluster: devices: there is no device 5; this process has 2"),
        (("worker", "tcp://127.0.0.1:1", "--memory-limit", "much"), "memory_limit='much' is no size"),
        (("worker", "tcp://127.0.0.1:1", "--devices", "one"), "argument --devices"),
    ):
        process = begin(*words)
        _, error = process.communicate()
        assert process.returncode in (1, 2) and expected in error, error
