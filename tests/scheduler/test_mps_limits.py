"""A partition's worker under MPS: it is started with its share of the multiprocessors, where a server runs."""

from __future__ import annotations

import os

import pytest

from pygpukit.scheduler import Scheduler, processes

pytestmark = pytest.mark.usefixtures("backend_name")
VARIABLE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"


def told() -> str | None:
    return os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")


@pytest.mark.parametrize(
    ("mps", "limits", "percent"),
    [
        (1, {"bandwidth": 0.25}, "25"),
        (1, {"bandwidth": 0.004}, "1"),
        (1, {"bandwidth": 0.25, "borrow_bandwidth": 0.5}, "75"),
        (1, {"bandwidth": 1.0}, None),
        (1, {}, None),
        (0, {"bandwidth": 0.25}, None),
        (-1, {"bandwidth": 0.25}, None),
    ],
)
def test_a_worker_is_told_its_part_where_a_server_runs(
    monkeypatch: pytest.MonkeyPatch, mps: int, limits: dict[str, float], percent: str | None
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(processes, "device_facts", lambda device: {"mps": mps})
    with Scheduler(total_memory="64MB") as scheduler:
        scheduler.create_partition("apart", memory="32MB", isolation="process", **limits)
        assert scheduler.submit(told, partition="apart").result(120) == percent
    assert VARIABLE not in os.environ
