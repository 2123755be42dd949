"""Tasks on several simulated devices: where they run, what they reserve there, and the figures of both."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest
from alone import alone

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError, OutOfMemoryError, TaskRejectedError
from pygpukit.scheduler import Replay, Scheduler, task_devices
from pygpukit.scheduler.processes import AVAILABLE
from pygpukit.scheduler.task import Task

pytestmark = pytest.mark.skipif("gp.backend() != 'sim'", reason="four devices are simulated")


@pytest.fixture(autouse=True)
def _four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_SIM", raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "4")


def where() -> tuple[tuple[int, ...], int, int]:
    """The task's devices, the current one, and that of a new array."""
    return task_devices(), gp.cuda.current_device().id, gp.zeros(3).device


def places() -> None:
    with Scheduler(total_memory="1GB") as scheduler:
        assert (scheduler.device_count, scheduler.total_memory, scheduler.workers) == (4, 4 << 30, 16)
        assert scheduler.submit(where).result() == ((0,), 0, 0)
        for device in (2, "cuda:2", gp.cuda.Device(2)):
            assert scheduler.submit(where, device=device).result() == ((2,), 2, 2)
        assert scheduler.submit(where, devices=[3, 1]).result() == ((1, 3), 1, 1)
        task = scheduler.submit(where, devices=4)
        assert task.result() == ((0, 1, 2, 3), 0, 0)
        assert (task.devices, task.device, task.stats().devices) == ((0, 1, 2, 3), 0, (0, 1, 2, 3))
        (anywhere,), now, new = scheduler.submit(where, device="any").result()
        assert anywhere == now == new
        scheduler.create_partition("chat", memory="100MB", bandwidth=0.5, device=3)
        assert scheduler.submit(where, partition="chat").result() == ((3,), 3, 3)
        assert scheduler.submit(where, partition="chat", device="any").result() == ((3,), 3, 3)
        assert scheduler.snapshot()["partitions"]["chat"]["device"] == 3
    assert (task_devices(), gp.cuda.current_device().id) == ((0,), 0)


def test_a_task_runs_where_it_asks() -> None:
    alone(__file__, "places")


def refused(options: dict[str, Any], field: str, words: str, scheduler: Scheduler) -> None:
    before = scheduler.task_count
    with pytest.raises(InvalidSpecError, match=words) as caught:
        scheduler.submit(int, **options)
    assert (caught.value.field, scheduler.task_count) == (field, before), options


def refusals() -> None:
    scheduler = Scheduler(total_memory=1000, devices=3, start=False)
    scheduler.create_partition("p", memory=100, device=1)
    refused({"device": 3}, "devices", "no device 3; this scheduler has 3, from 0 on", scheduler)
    refused({"device": "cuda"}, "device", "'cuda' is no device", scheduler)
    refused({"device": 1.5}, "device", "is no device", scheduler)
    refused({"devices": 4}, "devices", "4 asked for; give 1 to 3", scheduler)
    refused({"devices": 0}, "devices", "devices=0", scheduler)
    refused({"devices": []}, "devices", "give a device or several", scheduler)
    refused({"devices": 2, "device": 1}, "devices", "give one of the two", scheduler)
    refused({"device": 0, "partition": "p"}, "devices", "'p' is on device 1 alone", scheduler)
    refused({"devices": 2, "partition": "p"}, "devices", "'p' is on device 1 alone", scheduler)
    with pytest.raises(InvalidSpecError, match="no device 3"):
        scheduler.create_partition("q", memory=100, device=3)
    with pytest.raises(InvalidSpecError, match="is on device 1 and cannot move to 2"):
        scheduler.resize_partition("p", memory=100, device=2)
    scheduler.resize_partition("p", memory=200)  # it stays where it is
    assert scheduler.partitions.get("p").limits.device == 1
    with pytest.raises(InvalidSpecError, match="there are 4"):
        Scheduler(devices=5)
    with pytest.raises(InvalidSpecError, match="spread"):
        Scheduler(placement="wide")
    # One device has not enough for what asks for more than it has, however many there are.
    task = scheduler.submit(int, memory=1001, device="any")
    assert (task.reason, task.detail) == ("ExceedsDevice", {"asked": 1001, "available": 1000})
    with pytest.raises(TaskRejectedError):
        task.result()


def test_what_cannot_be_is_refused_by_name() -> None:
    alone(__file__, "refusals")


def submitted(scheduler: Scheduler, **options: Any) -> Task:
    return scheduler.submit(int, **options)


def placed() -> None:
    spread = Scheduler(total_memory=1000, start=False)
    assert [submitted(spread, memory=100, device="any").device for _ in range(6)] == [0, 1, 2, 3, 0, 1]
    assert submitted(spread, memory=100, devices=2).devices == (2, 3)
    assert [submitted(spread, device="any").device for _ in range(3)] == [0, 1, 2]  # nothing asked: the fewest tasks
    pack = Scheduler(total_memory=1000, start=False, placement="pack")
    assert [submitted(pack, memory=400, device="any").device for _ in range(6)] == [0, 0, 1, 1, 2, 2]
    assert submitted(pack, memory=1000, device="any").device == 3
    assert submitted(pack, memory=200, devices=2).devices == (0, 1)
    assert repr(pack).endswith("; placement pack)") and pack.global_stats()["placement"] == "pack"


def test_placement_spreads_or_packs() -> None:
    alone(__file__, "placed")


def reserved() -> None:
    scheduler = Scheduler(total_memory=1000, start=False)
    both = scheduler.submit(int, memory=700, bandwidth=0.5, devices=[0, 2])
    assert (both.phase, scheduler.reserved_memory, scheduler.available_memory) == ("Admitted", 1400, 2600)
    waits = scheduler.submit(int, memory=400, devices=[1, 2])  # device 2 has 300
    assert (waits.phase, waits.reason, waits.devices) == ("Queued", "WaitingForMemory", (1, 2))
    behind = scheduler.submit(int, memory=10, device=1)  # what the earlier task waits for is not taken from it
    elsewhere = scheduler.submit(int, memory=10, device=3)
    assert (behind.phase, elsewhere.phase) == ("Queued", "Admitted")
    view = {device["device"]: device for device in scheduler.snapshot()["reservations"]}
    keys = ("total_memory", "reserved_memory", "reserved_share_ppm", "tasks", "waiting", "waiting_wide")
    assert [tuple(view[i][key] for key in keys) for i in range(4)] == [
        (1000, 700, 500_000, 1, 0, 0),
        (1000, 0, 0, 0, 1, 1),
        (1000, 700, 500_000, 1, 0, 1),
        (1000, 10, 0, 1, 0, 0),
    ]
    (of_both,) = [task for task in scheduler.snapshot()["tasks"] if task["id"] == both.id]
    assert (of_both["device"], of_both["devices"]) == (0, [0, 2])
    both.cancel()
    assert (waits.phase, behind.phase, scheduler.reserved_memory) == ("Admitted", "Admitted", 820)
    choice = scheduler.submit(int, memory=999, device="any")
    chosen = scheduler.submit(int, memory=999, device="any")
    assert (choice.device, chosen.device, chosen.devices) == (0, None, ())  # the rest has too little left
    text = scheduler.prometheus()
    assert 'pygpukit_device_reserved_memory_bytes{device="0"} 999' in text
    assert 'pygpukit_device_waiting_tasks{device="1"} 0' in text
    trace = json.loads(scheduler.chrome_trace())["traceEvents"]
    phases = {event["args"]["device"] for event in trace if event.get("cat") == "task"}
    assert phases == {0, 1, 3, None}
    replay = Replay(scheduler.events(kinds=("task", "queue")).events)
    assert {name: len(line) for name, line in replay.lines.items() if line} == {"several devices, line 0": 1}


def test_all_or_nothing_by_device() -> None:
    alone(__file__, "reserved")


def computes() -> None:
    rng = np.random.default_rng()
    host = rng.standard_normal((37, 5)).astype(np.float32)

    streams: dict[tuple[int, int], int] = {}

    def doubled() -> list[np.ndarray[Any, Any]]:
        parts = []
        for device, part in zip(task_devices(), np.array_split(host, len(task_devices())), strict=True):
            with gp.cuda.Device(device):
                streams[threading.get_ident(), device] = native.current_stream().handle
                parts.append(gp.from_numpy(part) * 2)
        return [part.to_numpy() for part in parts]

    with Scheduler() as scheduler:
        tasks = [scheduler.submit(doubled, devices=count, bandwidth=0.3) for count in (2, 3, 4, 2)]
        for task in tasks:
            np.testing.assert_array_equal(np.concatenate(task.result()), host * 2)
            assert task.stats().kernels == len(task.devices)
    assert len(set(streams.values())) == len(streams)  # a stream of its own for each thread and device


def test_work_goes_to_all_devices_of_a_task() -> None:
    alone(__file__, "computes")


def limited() -> None:
    kept: list[Any] = []

    def fill(nbytes: int) -> None:
        for device in task_devices():
            with gp.cuda.Device(device):
                kept.append(gp.zeros(nbytes, "uint8"))

    with Scheduler() as scheduler:
        scheduler.submit(fill, 3 << 20, devices=[1, 2], memory="4MB", memory_limit="4MB").result()
        with pytest.raises(OutOfMemoryError):
            scheduler.submit(fill, 5 << 20, devices=[1, 2], memory="4MB", memory_limit="4MB").result()
    assert [array.device for array in kept] == [1, 2]


def test_a_memory_limit_is_of_each_device() -> None:
    alone(__file__, "limited")


def ordered() -> None:
    """Tasks of several devices that share one come one after the other; those that share none run side by side."""
    lock, inside, beside = threading.Lock(), set[int](), set[frozenset[int]]()
    together = threading.Barrier(2, timeout=60)

    def alone_there(meet: bool) -> None:
        mine = set(task_devices())
        with lock:
            assert not inside & mine
            inside.update(mine)
        if meet:
            together.wait()
        with lock:
            beside.add(frozenset(inside))
            inside.difference_update(mine)

    with Scheduler(total_memory="1GB") as scheduler:
        pairs = [scheduler.submit(alone_there, True, devices=pair) for pair in ([0, 1], [2, 3])]
        rng = np.random.default_rng()
        others = [
            scheduler.submit(
                alone_there, False, devices=sorted(rng.choice(4, rng.integers(2, 5), replace=False).tolist())
            )
            for _ in range(100)
        ]
        for task in pairs + others:
            task.result(60)
    assert frozenset(range(4)) in beside


def test_tasks_of_several_devices_that_share_one_come_one_after_the_other() -> None:
    alone(__file__, "ordered")


def apart() -> None:
    rng = np.random.default_rng()
    host = rng.standard_normal(11).astype(np.float32)

    def work(x: Any) -> tuple[int, Any]:
        import pygpukit as gp

        return gp.cuda.current_device().id, x * 2 + gp.ones(x.shape)

    with Scheduler() as scheduler:
        for device in (1, 3):
            limits: dict[str, Any] = {"memory": "8MB", "isolation": "process", "device": device}
            scheduler.create_partition(f"p{device}", **limits)
        with gp.cuda.Device(3):
            x = gp.from_numpy(host)
        there, y = scheduler.submit(work, x, partition="p3").result(120)
        assert (there, y.device) == (3, 3)
        np.testing.assert_array_equal(y.to_numpy(), host * 2 + 1)
        with pytest.raises(OutOfMemoryError):
            scheduler.submit(lambda: gp.zeros(16 << 20, "uint8"), partition="p1").result(120)
        devices = {record.partition: (record.device, record.starts) for record in scheduler.worker_processes()}
        assert devices == {"p1": (1, 1), "p3": (3, 1)}
        assert (gp.cuda.current_device().id, native.current_device()) == (0, 0)


@pytest.mark.skipif(not AVAILABLE, reason="worker processes need file descriptors over a socket")
def test_a_worker_process_has_the_device_of_its_partition() -> None:
    alone(__file__, "apart")


def divided() -> None:
    with Scheduler() as scheduler:
        for device in (0, 2):
            scheduler.create_partition(f"sm{device}", bandwidth=0.25, isolation="sm", device=device)
        sms = [scheduler.partitions.get(f"sm{device}").sms for device in (0, 2)]
        assert min(sms) > 0
        task = scheduler.submit(where, partition="sm2")
        assert task.result() == ((2,), 2, 2)
        assert scheduler.submit(where, devices=[0, 2]).result() == ((0, 2), 0, 0)  # on what is left of both
        for name in ("sm0", "sm2"):
            scheduler.delete_partition(name)


def test_multiprocessors_are_divided_by_device() -> None:
    alone(__file__, "divided")
