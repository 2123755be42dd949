"""The transfer engine between devices: bytes, order on both sides, priorities, progress, failures."""

from __future__ import annotations

import numpy as np
import pytest
from alone import alone

import pygpukit as gp
from pygpukit._core import native

pytestmark = pytest.mark.skipif("gp.backend() != 'sim'", reason="the devices are simulated")


@pytest.fixture(autouse=True)
def _three(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYGPUKIT_SIM", "PYGPUKIT_SIM_LINK", "PYGPUKIT_SIM_PEERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "3")


def bytes_arrive() -> None:
    rng = np.random.default_rng()
    with gp.cuda.Device(1):
        engine = gp.memory.TransferEngine()
    for peer, direct in ((0, True), (2, False)):
        moved = 0
        for dtype in ("uint8", "float32", "complex128"):
            for shape in ((), (3, 5), (0, 2), (700_001,)):
                host = (rng.normal(size=shape) * 99).astype(dtype)
                x, y = gp.from_numpy(host, device=1), gp.full(shape, 7, dtype, device=peer)
                transfer = engine.copy(y, x)
                assert transfer.wait() is y and transfer.direction == "P2P" and transfer.info.landed == host.nbytes
                assert np.array_equal(y.to_numpy(), host)
                moved += host.nbytes
        link = gp.cuda.links()[1, peer]
        assert (link.direct_bytes, link.host_bytes) == ((moved, 0) if direct else (0, moved))
    assert engine.stats()["P2P"]["bytes"] == 2 * moved and native.current_device() == 0
    engine.close()


def test_bytes_arrive_straight_and_by_way_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_PEERS", "0-1")
    alone(__file__, "bytes_arrive")


def order() -> None:
    """Work that was queued on either device's streams comes first, work queued afterwards later, without a wait."""
    n = 1 << 20
    engine = gp.memory.TransferEngine()
    for step in range(6):
        with gp.cuda.Device(1), gp.Stream():
            y = gp.full(n, -1, dtype="int32")
            y *= 2  # must not come after the copy
        with gp.Stream():
            x = gp.full(n, step, dtype="int32")
            x += 1
        transfer = engine.copy(y, x)
        x += 100  # after the copy has read it
        with gp.cuda.Device(1):
            y += 1000
            assert set(y.to_numpy().tolist()) == {step + 1001}
        assert set(x.to_numpy().tolist()) == {step + 101}
        assert transfer.wait() is y
    engine.close()


def test_the_streams_of_both_devices_are_ordered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_LINK", "2GB/s,50us")
    alone(__file__, "order")


def urgent() -> None:
    large, small = gp.zeros(100 << 20, "uint8"), gp.ones(1000, "uint8")
    there = [gp.empty_like(large, device=1), gp.empty_like(small, device=1)]
    engine = gp.memory.TransferEngine()
    slow = engine.copy(there[0], large)  # its last piece is issued half a second later
    fast = engine.copy(there[1], small, priority=5)
    slow.wait()
    assert fast.wait().to_numpy().all() and fast.info.ended_ns < slow.info.ended_ns
    engine.close()


def test_an_urgent_copy_passes_a_large_one_on_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_LINK", "100MB/s")
    alone(__file__, "urgent")


def failing() -> None:
    x, y = gp.ones(100), gp.zeros(100, device=2)
    engine = gp.memory.TransferEngine()
    native.sim_fail_link(0, 2)
    transfer = engine.copy(y, x)
    with pytest.raises(gp.DriverError, match=r"to another device failed.*the link from device 0 to device 2 failed"):
        transfer.wait()
    assert native.sim_clear_fault() == 220 and engine.copy(y, x).wait().to_numpy().all()
    engine.close()


def test_a_failing_link_is_told_by_the_transfer() -> None:
    alone(__file__, "failing")


def refused() -> None:
    x, y = gp.ones(4), gp.ones(4, device=1)
    engine = gp.memory.TransferEngine()
    with pytest.raises(gp.DeviceMismatchError, match="source is on device 1, the engine on device 0"):
        engine.copy(x, y)
    with pytest.raises(gp.ShapeError):
        engine.copy(gp.ones(5, device=1), x)
    with pytest.raises(TypeError, match="target must be a GPUArray"):
        engine.copy(np.ones(4), x)
    engine.close()


def test_what_does_not_fit_is_refused() -> None:
    alone(__file__, "refused")
