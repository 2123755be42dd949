"""Slices on the simulated device: what its driver refuses, checked mode, and the documented slice scheduler."""

from __future__ import annotations

import struct

import pytest

import _pygpukit_rust as rust
import pygpukit as gp
from pygpukit import _core
from pygpukit.core.errors import DriverError, KernelCheckError

SLICE, COOPERATIVE = 8, 1
SOURCE = 'extern "C" __global__ void k(int *out) { out[blockIdx.x + gridDim.x * blockIdx.y] = blockIdx.x; }'


@pytest.mark.parametrize(
    ("grid", "first", "whole"),
    [
        ((2, 2, 1), (0, 0, 0), (4, 4, 1)),  # two halves of rows
        ((4, 2, 1), (1, 0, 0), (4, 4, 1)),  # past the end of a row
        ((4, 1, 1), (0, 4, 0), (4, 4, 1)),
        ((1, 1, 1), (0xFFFFFFFF, 0, 0), (4, 4, 1)),
        ((1, 1, 1), (0, 0, 0), (0, 4, 1)),
        ((1, 1, 1), (0, 0, 0), (1, 65536, 1)),
    ],
)
def test_a_slice_that_is_no_run_of_blocks_is_refused(
    grid: tuple[int, int, int], first: tuple[int, ...], whole: tuple[int, ...]
) -> None:
    out = gp.zeros(16, dtype="int32")
    bound = gp.jit(SOURCE).sliced(1)._native.bind(grid, (1, 1, 1), 0, None, SLICE)
    with pytest.raises(DriverError, match="are no run of blocks of the grid"):
        bound(out, pk_slice=struct.pack("6I", *first, *whole))


def test_a_cooperative_slice_is_refused() -> None:
    bound = gp.jit(SOURCE).sliced(1)._native.bind((1, 1, 1), (1, 1, 1), 0, None, SLICE | COOPERATIVE)
    with pytest.raises(DriverError, match="cannot be sliced") as refused:
        bound(gp.zeros(16, dtype="int32"), pk_slice=struct.pack("6I", 0, 0, 0, 4, 1, 1))
    assert refused.value.code == 801


def test_findings_name_the_block_of_the_whole_grid() -> None:
    kernel = gp.jit(SOURCE, check=True)
    out = gp.zeros(5, dtype="int32")
    with pytest.raises(KernelCheckError) as found:
        kernel.sliced(2)[(3, 2), 1](out)
        gp.synchronize()
    assert found.value.findings[0].block == (2, 1, 0)
    assert found.value.findings[0].array == "out"


@pytest.mark.parametrize(("grid", "blocks"), [((0, 1, 1), 1), ((1, 1, 1), 0), ((1 << 30, 1, 1), 1)])
def test_a_plan_without_meaning_is_refused(grid: tuple[int, int, int], blocks: int) -> None:
    with pytest.raises(ValueError, match="blocks is"):
        _core.slice_plan(grid, blocks)


def test_the_documented_scheduler_hands_out_slices_in_turn() -> None:
    scheduler = rust.SliceScheduler(rust.SliceConfig(max_items_per_slice=512, adaptive=False))
    first = scheduler.submit(11, 1000, (256, 1, 1), 0)
    second = scheduler.submit_for_task("task", 22, 600, (128, 1, 1), 64, 0)
    assert (scheduler.pending_kernels(), scheduler.pending_slices()) == (2, 4)
    handed = []
    while (one := scheduler.get_next_slice()) is not None:
        handed.append((one.kernel_handle, one.offset, one.count, one.grid, one.task_id, one.shared_mem))
    assert handed == [
        (11, 0, 512, (2, 1, 1), None, 0),
        (22, 0, 512, (4, 1, 1), "task", 64),
        (11, 512, 488, (2, 1, 1), None, 0),
        (22, 512, 88, (1, 1, 1), "task", 64),
    ]
    scheduler.complete_slice(0.5)
    assert [(one.executed, one.exec_time_ms) for one in scheduler.slices(first)] == [(True, 0.5), (False, None)]
    assert [one.offset for one in scheduler.slices(second)] == [0, 512]
    for _ in range(3):
        scheduler.complete_slice(0.5)
    stats = scheduler.stats()
    assert (stats.total_slices, stats.completed_slices, stats.completed_kernels) == (4, 4, 2)
    assert (stats.pending_slices, stats.pending_kernels, stats.total_kernels) == (0, 0, 2)
    with pytest.raises(RuntimeError, match="without a slice"):
        scheduler.complete_slice(0.5)


def test_more_urgent_kernels_go_first_and_times_set_the_size() -> None:
    scheduler = rust.SliceScheduler(rust.SliceConfig(max_items_per_slice=4096, max_duration_ms=1.0, min_slices=4))
    scheduler.submit_for_task("idle", 1, 4096, (64, 1, 1), 0, -1)
    scheduler.submit_for_task("urgent", 2, 4096, (64, 1, 1), 0, 5)
    first = scheduler.get_next_slice()
    assert first is not None and (first.task_id, first.count, first.priority) == ("urgent", 1024, 5)
    scheduler.complete_slice(8.0)  # 8 ms for 1024 items: 128 fit into one
    then = scheduler.get_next_slice()
    assert then is not None and (then.task_id, then.count) == ("urgent", 128)
    scheduler.clear()
    assert scheduler.get_next_slice() is None


def test_a_slice_may_be_less_than_a_block_and_never_more_than_asked() -> None:
    scheduler = rust.SliceScheduler(rust.SliceConfig(max_items_per_slice=100))
    scheduler.submit(1, 250, (256, 1, 1), 0)
    handed = []
    while (one := scheduler.get_next_slice()) is not None:
        handed.append((one.offset, one.count, one.grid))
        scheduler.complete_slice(0.001)  # short: as far as the time goes, later ones could be longer
    assert handed == [(0, 100, (1, 1, 1)), (100, 100, (1, 1, 1)), (200, 50, (1, 1, 1))]


@pytest.mark.parametrize(
    "settings",
    [{"max_items_per_slice": 0}, {"min_slices": 0}, {"min_slices": 9, "max_slices": 8}, {"max_duration_ms": 0.0},
     {"max_duration_ms": float("nan")}],
)  # fmt: skip
def test_bad_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="|".join(settings)):
        rust.SliceConfig(**settings)  # type: ignore[arg-type]


def test_bad_kernels_are_refused() -> None:
    scheduler = rust.SliceScheduler()
    assert scheduler.config().max_items_per_slice == 65536
    for items, block in ((0, (32, 1, 1)), (5, (0, 1, 1)), (5, (1024, 2, 1))):
        with pytest.raises(ValueError):
            scheduler.submit(1, items, block, 0)
    assert rust.dispatch.SliceScheduler is rust.SliceScheduler
