"""Groups whose ranks fail: the others end soon, with an error that says why, and the memory is given back."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from simulated_ranks import BOUND_S, SIMULATED, group, on

import pygpukit as gp
from pygpukit.core import peers


def ends(ranks: gp.comm.Group, work: Callable[[gp.comm.Rank], object], error: type[BaseException], match: str) -> float:
    """Seconds in which run() raised the error."""
    start = time.monotonic()
    with pytest.raises(error, match=match):
        ranks.run(work)
    took = time.monotonic() - start
    assert took < BOUND_S
    with pytest.raises(gp.comm.CollectiveError):
        ranks.run(lambda rank: None)
    return took


def raises() -> None:
    def work(rank: gp.comm.Rank) -> None:
        rank.barrier()
        if rank.index == 1:
            raise KeyError("the weights")
        rank.all_reduce(gp.ones(5)).to_numpy()

    ends(group(), work, KeyError, "the weights")

    def leaves(rank: gp.comm.Rank) -> None:
        if rank.index == 1:
            raise SystemExit(3)
        while True:
            time.sleep(0.01)

    ends(group(), leaves, SystemExit, "3")


@SIMULATED
def test_a_rank_that_raises_ends_the_others_with_its_own_error() -> None:
    on(3, __file__, "raises")


def orders() -> None:
    def work(rank: gp.comm.Rank) -> None:
        x = gp.ones(5)
        for _ in range(2):
            rank.all_reduce(x)
        if rank.index == 0:
            rank.barrier()
        else:
            rank.all_reduce(x)
        rank.synchronize()

    ends(
        group(),
        work,
        gp.comm.CollectiveError,
        "rank 1 waits in all_reduce #3 for rank 0, which is in barrier #3|"
        "rank 0 waits in barrier #3 for rank 1, which is in all_reduce #3",
    )

    def sizes(rank: gp.comm.Rank) -> None:
        rank.all_reduce(gp.ones(5 + rank.index)).to_numpy()

    ends(
        group(), sizes, gp.comm.CollectiveError, r"all_reduce #1 \(sum of . float32\) for rank .* \(sum of . float32\)"
    )

    def both_send(rank: gp.comm.Rank) -> None:
        rank.send(gp.ones(5), 1 - rank.index)
        rank.recv(gp.ones(5), 1 - rank.index)

    ends(group(), both_send, gp.comm.CollectiveError, r"rank . waits in send #1 \(to rank ., 5 float32\) for rank .,")

    def fewer(rank: gp.comm.Rank) -> None:
        if rank.index:
            rank.barrier()
            rank.synchronize()

    ends(group(), fewer, gp.comm.CollectiveError, "rank 1 waits in barrier #1 for rank 0, which has ended")


@SIMULATED
def test_calls_in_other_orders_are_told_by_name() -> None:
    on(2, __file__, "orders")


def interrupted() -> None:
    """Ctrl-C while ranks wait: in the caller's thread, and the ranks end."""
    ranks = group()
    started = threading.Event()

    def work(rank: gp.comm.Rank) -> None:
        if rank.index:
            started.wait()
        else:
            started.set()
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            rank.all_reduce(gp.ones(5)).to_numpy()
        while True:
            time.sleep(0.01)

    ends(ranks, work, KeyboardInterrupt, "")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rank ")]


@SIMULATED
def test_ctrl_c_ends_all_ranks() -> None:
    on(2, __file__, "interrupted")


def kernels_see_it() -> None:
    """Graphs make no calls: there the kernels themselves see that a peer is in another one, or does not come."""
    ranks = group()
    graphs = []
    for rank in ranks.ranks:
        with rank:
            x = gp.ones(5)
            with gp.Stream().capture() as graph:
                (rank.barrier if rank.index else lambda x=x, rank=rank: rank.all_reduce(x))()
            graphs.append(graph)
    with pytest.raises(gp.comm.CollectiveError, match=r"rank . waits in \w+ #1 for rank ., which is in \w+ #1"):
        ranks.launch(graphs)
        for rank in ranks.ranks:
            rank.synchronize()
    for device in range(2):  # said once: what else is on the devices goes on
        assert gp.ones(3, device=device).to_numpy().tolist() == [1, 1, 1]
    with pytest.raises(gp.comm.CollectiveError, match="waits in"):
        ranks.ranks[1].synchronize()
    late = gp.comm.Group(timeout=0.2)
    y = late.ranks[1].all_reduce(gp.ones(5, device=1))
    with pytest.raises(
        gp.comm.CollectiveError,
        match=r"rank 1 waits in all_reduce #1 for rank 0, which did not come within 0.2 s; its last call: none",
    ):
        y.to_numpy()
    y.to_numpy()  # what else is on the device works on
    assert gp.ones(3, device=1).to_numpy().tolist() == [1, 1, 1]
    with pytest.raises(gp.comm.CollectiveError, match="rank 1 waits in all_reduce #1 for rank 0"):
        late.ranks[0].barrier()


@SIMULATED
def test_kernels_tell_who_waits_for_whom() -> None:
    on(2, __file__, "kernels_see_it")


def memory() -> None:
    def free() -> list[int]:
        from pygpukit import _core

        for device in range(gp.device_count()):
            _core.pool_trim(device)
        return [gp.cuda.Device(k).mem_info[0] for k in range(gp.device_count())]

    for _ in range(3):
        before = free()
        with group() as ranks:
            ranks.run(lambda rank: rank.all_reduce(gp.ones(5)).to_numpy())
            assert all(after < one for after, one in zip(free(), before, strict=True))
    assert free() == before  # from the second on: modules stay
    with pytest.raises(gp.comm.CollectiveError, match="closed"):
        ranks.run(lambda rank: None)
    failing = group()
    ends(failing, lambda rank: rank.all_reduce(gp.ones(4 + rank.index)).to_numpy(), gp.comm.CollectiveError, "float32")
    failing.close()
    gc.collect()  # the error had frames with arrays
    assert free() == before
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rank ")]


@SIMULATED
def test_memory_is_given_back() -> None:
    on(2, __file__, "memory")


def refusals() -> None:
    for devices, error in (
        ([0, 0], gp.DeviceMismatchError),
        ([0, 9], gp.DeviceMismatchError),
        ([], gp.InvalidSpecError),
    ):
        with pytest.raises(error, match="Group"):
            gp.comm.Group(devices)
    with pytest.raises(gp.InvalidSpecError, match="timeout=0"):
        gp.comm.Group(timeout=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peers, "can_access_peer", lambda device, peer: (device, peer) != (1, 0))
        with pytest.raises(gp.DeviceMismatchError, match="Group: device 1 cannot use the memory of device 0"):
            gp.comm.Group()
    ranks = group()
    rank = ranks.ranks[1]
    with pytest.raises(gp.DeviceMismatchError, match="rank 1: all_reduce: x is on device 0, the rank's device is 1"):
        rank.all_reduce(gp.ones(3))
    x = gp.ones(3, device=1)
    with pytest.raises(gp.ShapeError, match=r"rank 1: all_to_all: x has shape \(3,\); its first axis .* 2"):
        rank.all_to_all(x)
    with pytest.raises(gp.ShapeError, match=r"rank 1: all_reduce: out has shape \(2,\)"):
        rank.all_reduce(x, out=x[:2])
    with pytest.raises(gp.DTypeError, match="rank 1: all_gather: out has type int32"):
        rank.all_gather(x, out=gp.zeros((2, 3), "int32", device=1))
    for dtype, op, match in (
        ("complex64", "max", "no order"),
        ("float32", "prod", "op='prod' is unknown"),
        ("float8_e4m3", "sum", "storage type"),
    ):
        with rank:
            other = x.astype(dtype)
        with pytest.raises(gp.DTypeError, match=match):
            rank.all_reduce(other, op)
    with pytest.raises(gp.InvalidSpecError, match="root=2 is no rank"):
        rank.broadcast(x, root=2)
    with pytest.raises(gp.InvalidSpecError, match="send: to=1 is no other rank"):
        rank.send(x, 1)
    with pytest.raises(gp.InvalidSpecError, match="recv: from_=-1 is no other rank"):
        rank.recv(x, -1)
    with pytest.raises(gp.DTypeError, match="expected a GPUArray, got a ndarray"):
        rank.all_reduce(np.ones(3))
    assert ranks._orders.calls(1) == 0  # nothing of this was a call
    with pytest.raises(gp.InvalidSpecError, match="1 graphs for 2 ranks"):
        ranks.launch([None])


@SIMULATED
def test_wrong_arguments_are_refused_before_anything_is_launched() -> None:
    on(2, __file__, "refusals")
