"""Threads of ranks launch side by side, and no thread waits for one that cannot come."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from simulated_ranks import SIMULATED, group, on

import pygpukit as gp
from pygpukit.comm import pace
from pygpukit.comm.pace import Pace

PATIENCE_S = 60.0


def walked(size: int, work: Any) -> None:
    together = Pace(size)
    threads = [threading.Thread(target=together.walk, args=(rank, work(rank))) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_nobody_is_more_than_a_piece_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_PATIENCE_S", PATIENCE_S)
    done = [0, 0, 0]

    def work(rank: int) -> Iterator[None]:
        for _ in range(50 + rank):  # those that have more are not held up by those that have ended
            assert done[rank] <= min(done[other] for other in range(3) if done[other] < 50 + other or other == rank) + 1
            done[rank] += 1
            yield

    walked(3, work)
    assert done == [50, 51, 52]


def test_a_thread_that_cannot_come_holds_nobody_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_PATIENCE_S", 0.001)
    ahead = threading.Event()

    def work(rank: int) -> Iterator[None]:
        if rank:
            assert ahead.wait(PATIENCE_S)  # as for a kernel that waits for what rank 0 has yet to launch
        for _ in range(3):
            yield
        ahead.set()

    walked(2, work)


def walks() -> None:
    ranks = group()
    results = [[] for _ in range(ranks.size)]

    def work(rank: gp.comm.Rank) -> Iterator[None]:
        x = gp.ones(5) * (rank.index + 1)
        for _ in range(3):
            x = rank.all_reduce(x)
            yield
        results[rank.index].append(x)

    ranks.walk(work)
    ranks.walk(work)
    for rank in ranks.ranks:
        rank.synchronize()
    assert [[x.tolist() for x in row] for row in results] == [[[12.0] * 5] * 2] * 2

    def fails(rank: gp.comm.Rank) -> Iterator[None]:
        yield
        if rank.index:
            raise KeyError("the weights")
        rank.all_reduce(gp.ones(5))
        yield

    with pytest.raises(KeyError, match="the weights"):
        ranks.walk(fails)
    with pytest.raises(gp.comm.CollectiveError, match="the weights"):
        ranks.walk(work)


@SIMULATED
def test_a_walk_launches_the_work_of_all_ranks() -> None:
    on(2, __file__, "walks")
