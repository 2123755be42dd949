"""Ranks as processes on simulated devices: what they exchange, and what is left when one is killed, late or wrong."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated_ranks import BOUND_S, SIMULATED, WAIT_S, group, on

import pygpukit as gp
from pygpukit.core import errors


def process_group(timeout: float = WAIT_S) -> gp.comm.ProcessGroup:
    return gp.comm.ProcessGroup(timeout=timeout)


def all_of_them(rank: gp.comm.Rank, rows: np.ndarray[Any, Any]) -> list[Any]:
    """Every collective of this rank's row."""
    x = gp.from_numpy(rows[rank.index])
    after, before = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    if rank.index == 0:
        rank.send(x, after)
        passed = rank.recv(x, before)
    else:
        passed = rank.recv(x, before)
        rank.send(x, after)
    parts = gp.from_numpy(np.stack([rows[rank.index] + k for k in range(rank.size)]))
    with gp.Stream().capture() as graph:
        counted = rank.all_reduce(x, "max")
    for _ in range(3):
        graph.launch()
    results = [
        rank.all_reduce(x),
        rank.all_gather(x[::2]),
        rank.reduce_scatter(parts),
        rank.broadcast(x, 1),
        rank.all_to_all(parts),
        passed,
        counted,
    ]
    rank.barrier()
    return [one.to_numpy() for one in results]


def numbers() -> None:
    with process_group() as ranks:
        size = ranks.size
        for count in (1, 1001):  # twice in the same processes
            rows = np.random.default_rng().integers(-1000, 1000, (size, count)).astype("float32")
            for index, results in enumerate(ranks.run(all_of_them, rows)):
                parts = np.stack([rows + k for k in range(size)], 1)
                expected = [
                    rows.sum(0),
                    rows[:, ::2],
                    parts[:, index].sum(0),
                    rows[1],
                    parts[:, index],
                    rows[(index - 1) % size],
                    rows.max(0),
                ]
                for result, value in zip(results, expected, strict=True):
                    np.testing.assert_array_equal(result, value)
        factor = 3
        assert ranks.run(lambda rank: [rank.device * factor, os.getpid()]) == [
            [3 * device, pid] for device, pid in enumerate(ranks.pids)
        ]
        assert len({os.getpid(), *ranks.pids}) == size + 1


@SIMULATED
@pytest.mark.parametrize("devices", [1, 2, 3])
def test_collectives_of_processes_give_numpys_results(devices: int) -> None:
    if devices == 1:
        on(1, __file__, "alone_in_a_group")
    else:
        on(devices, __file__, "numbers")


def alone_in_a_group() -> None:
    with process_group() as ranks:
        assert ranks.run(lambda rank: rank.all_gather(gp.arange(3)).tolist()) == [[[0, 1, 2]]]


def ends(ranks: gp.comm.ProcessGroup, work: Any, error: type[BaseException], match: str, *args: Any) -> None:
    """run() raises the error, soon; all processes have ended, and the group is of no use any more."""
    pids = ranks.pids
    start = time.monotonic()
    with pytest.raises(error, match=match):
        ranks.run(work, *args)
    assert time.monotonic() - start < BOUND_S
    assert ranks.pids == (None,) * ranks.size
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    with pytest.raises(gp.comm.CollectiveError, match=r"make a new|waits in|has failed"):
        ranks.run(lambda rank: None)


def dies_after(rank: gp.comm.Rank, victim: int, calls: int, beside: bool) -> None:
    """One rank's process is killed after some calls, by itself or while its kernels wait."""
    import threading

    x = gp.ones(5)
    for number in range(100):
        if number == calls and rank.index == victim:
            if beside:  # wherever it is then
                threading.Timer(0.05 * random.random(), os.kill, (os.getpid(), signal.SIGKILL)).start()
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        rank.all_reduce(x, "max", out=x)
    while rank.index == victim:
        time.sleep(0.01)
    rank.barrier()
    rank.synchronize()


def killed() -> None:
    draw = random.Random()
    descriptors = -1
    for beside in (False, True, False, True):
        victim = draw.randrange(gp.device_count())
        ranks = process_group()
        sentence = f"the process of rank {victim}, device {victim}, ended with signal 9"
        ends(ranks, dies_after, gp.comm.CollectiveError, sentence, victim, draw.randrange(20), beside)
        ranks.close()
        now = len(list(Path("/proc/self/fd").iterdir()))
        assert descriptors in (-1, now)  # memory of a process lives as long as somebody has its descriptor
        descriptors = now


@SIMULATED
def test_a_killed_rank_ends_the_others() -> None:
    on(2, __file__, "killed")


def failing() -> None:
    def raises(rank: gp.comm.Rank) -> None:
        rank.barrier()
        if rank.index == 1:
            raise KeyError("the weights")
        rank.all_reduce(gp.ones(5)).to_numpy()

    ends(process_group(), raises, KeyError, "the weights")

    def leaves(rank: gp.comm.Rank) -> None:
        if rank.index == 1:
            raise SystemExit(3)
        while True:  # never asks whether the group has failed, and is killed
            time.sleep(0.01)

    ends(process_group(), leaves, gp.worker.WorkerTaskError, "rank 1: SystemExit: 3")

    def orders(rank: gp.comm.Rank) -> None:
        for _ in range(2):
            rank.all_reduce(gp.ones(5))
        (rank.all_reduce if rank.index else rank.all_gather)(gp.ones(5))
        rank.synchronize()

    ends(
        process_group(),
        orders,
        gp.comm.CollectiveError,
        "rank 1 waits in all_reduce #3 for rank 0, which is in all_gather #3|"
        "rank 0 waits in all_gather #3 for rank 1, which is in all_reduce #3",
    )

    def fewer(rank: gp.comm.Rank) -> None:
        if rank.index:
            rank.barrier()
            rank.synchronize()

    ends(process_group(), fewer, gp.comm.CollectiveError, "rank 1 waits in barrier #1 for rank 0, which has ended")


@SIMULATED
def test_failures_of_processes_say_what_happened() -> None:
    on(2, __file__, "failing")


def late() -> None:
    def stopped(rank: gp.comm.Rank) -> None:
        rank.barrier()
        rank.synchronize()
        if rank.index:
            os.kill(os.getpid(), signal.SIGSTOP)
        rank.all_reduce(gp.ones(5)).to_numpy()

    ends(
        process_group(timeout=1.0),
        stopped,
        gp.comm.CollectiveError,
        "rank 0 waits in all_reduce #2 for rank 1, which did not come within 1 s; its last call: barrier #1",
    )

    def graphs(rank: gp.comm.Rank) -> None:  # which tell of no calls: kernels find it
        x = gp.ones(5)
        with gp.Stream().capture() as graph:
            (rank.barrier if rank.index else lambda: rank.all_reduce(x))()
        graph.launch()
        rank.synchronize()

    ends(process_group(), graphs, gp.comm.CollectiveError, r"rank . waits in \w+ #1 for rank ., which is in \w+ #1")


@SIMULATED
def test_a_rank_that_does_not_come_is_named() -> None:
    on(2, __file__, "late")


def rounds(kind: str) -> None:
    def many(rank: gp.comm.Rank, count: int) -> list[int]:
        import gc

        from pygpukit import _core

        x = gp.ones(5) * (rank.index + 1)
        held = []
        for n in range(count):
            x = rank.all_reduce(x, "max")
            if n % (count // 2) == count // 2 - 1:
                for turn in range(rank.size):  # threads share their files, and reading a folder opens one
                    rank.barrier()
                    rank.synchronize()
                    if turn == rank.index:
                        gc.collect()
                        held.append([_core.pool_stats(rank.device).used, len(list(Path("/proc/self/fd").iterdir()))])
        assert x.tolist() == [rank.size] * 5
        return held

    with process_group() if kind == "processes" else group() as ranks:
        for half, whole in ranks.run(many, 10_000):
            assert half == whole


@SIMULATED
@pytest.mark.parametrize("kind", ["processes", "threads"])
def test_ten_thousand_rounds_keep_nothing(kind: str) -> None:
    on(2, __file__, "rounds", kind)


def checked() -> None:
    os.environ["PYGPUKIT_CHECK"] = "1"
    with pytest.raises(gp.InvalidSpecError, match=r"checked mode .*ProcessGroup"):
        gp.comm.Group()
    assert gp.comm.Group([0]).run(lambda rank: rank.all_reduce(gp.ones(3)).tolist()) == [[1, 1, 1]]

    def work(rank: gp.comm.Rank) -> list[float]:
        x = gp.ones(5)
        if rank.index:
            time.sleep(0.2)  # the other one waits for it, and looks at the board
        result = rank.all_reduce(x)
        rank.recv(x, 0) if rank.index else rank.send(x, 1)
        return list(result.tolist())

    with process_group() as ranks:
        assert ranks.run(work) == [[2] * 5] * 2

    source = """__global__ void beyond(float *x) { x[5] = 1; }"""

    def wrong(rank: gp.comm.Rank) -> None:
        x = gp.ones(5)
        if rank.index:
            gp.jit(source, func="beyond")[1, 1](x)
        rank.all_reduce(x).to_numpy()

    ends(process_group(), wrong, errors.KernelCheckError, "beyond")


@SIMULATED
def test_processes_meet_in_checked_mode_and_groups_of_one_process_refuse_it() -> None:
    on(2, __file__, "checked")


def refusals() -> None:
    for devices, error in (
        ([0, 0], gp.DeviceMismatchError),
        ([0, 9], gp.DeviceMismatchError),
        ([], gp.InvalidSpecError),
    ):
        with pytest.raises(error, match="ProcessGroup"):
            gp.comm.ProcessGroup(devices)
    with pytest.raises(gp.InvalidSpecError, match="timeout=0"):
        gp.comm.ProcessGroup(timeout=0)
    with process_group() as ranks:
        with pytest.raises(TypeError, match="GPUArray of this process"):
            ranks.run(lambda rank, x: None, gp.ones(3))
        with pytest.raises(TypeError, match="cannot travel"):
            ranks.run(lambda rank, x: None, object())
        assert ranks.run(lambda rank: rank.index) == [0, 1]  # nothing of this was begun
        pids = ranks.pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    with pytest.raises(gp.comm.CollectiveError, match="closed"):
        ranks.run(lambda rank: None)
    ends(process_group(), lambda rank: gp.ones(3), TypeError, "GPUArray of the rank's process")


@SIMULATED
def test_wrong_arguments_of_processes_are_refused() -> None:
    on(2, __file__, "refusals")
