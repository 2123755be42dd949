"""Devices that reach each other's memory: asking, enabling, and copies from one to another, straight or by the host."""

from __future__ import annotations

import os

import numpy as np
import pytest
from alone import alone

import pygpukit as gp
from pygpukit._core import native

SIMULATED = pytest.mark.skipif("gp.backend() != 'sim'", reason="the devices are simulated")


@pytest.fixture(autouse=True)
def _four(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYGPUKIT_SIM", "PYGPUKIT_SIM_LINK", "PYGPUKIT_SIM_PEERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "4")


def asking() -> None:
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    assert [pair for pair in pairs if gp.cuda.can_access_peer(*pair)] == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert not any(native.peer_info(*pair)["enabled"] for pair in pairs)
    gp.cuda.enable_peer_access("cuda:1", gp.cuda.Device(2))
    gp.cuda.enable_peer_access(1, 2)  # once more changes nothing
    assert [pair for pair in pairs if native.peer_info(*pair)["enabled"]] == [(1, 2)]
    with pytest.raises(gp.DeviceMismatchError, match=r"device 0 cannot access the memory of device 3.*\.to\(\)"):
        gp.cuda.enable_peer_access(0, 3)
    for call in (gp.cuda.can_access_peer, gp.cuda.enable_peer_access):
        with pytest.raises(gp.DeviceMismatchError, match=f"{call.__name__}: device 2 is no peer of its own"):
            call(2, 2)
        with pytest.raises(gp.DeviceMismatchError, match=f"{call.__name__}: there is no device 4"):
            call(0, 4)
    assert native.current_device() == 0


@SIMULATED
def test_access_is_what_the_devices_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_PEERS", "0-1,2-1")
    alone(__file__, "asking")


def copies() -> None:
    rng = np.random.default_rng()
    direct = by_host = 0
    for dtype in ("bool", "int8", "uint16", "float32", "int64", "complex128"):
        for shape in ((), (1,), (3, 5, 7), (0, 4), (1 << 18,)):
            host = (
                rng.integers(0, 2, shape).astype(dtype)
                if dtype == "bool"
                else (rng.normal(size=shape) * 99).astype(dtype)
            )
            x = gp.from_numpy(host, device=0)
            there, back = x.to(1), x.to(2).to(0)
            assert (there.device, back.device) == (1, 0)
            assert np.array_equal(there.to_numpy(), host) and np.array_equal(back.to_numpy(), host)
            direct += host.nbytes
            by_host += host.nbytes
    assert native.peer_traffic(0, 1)[1:] == (direct, 0) and native.peer_traffic(0, 2)[1:] == (0, by_host)
    assert native.peer_traffic(2, 0)[1:] == (0, by_host) and native.peer_traffic(1, 0) == (0, 0, 0)
    strided = gp.from_numpy(host.reshape(64, -1))[::-3, 5::2]
    assert np.array_equal(strided.to(1).to_numpy(), host.reshape(64, -1)[::-3, 5::2])


@SIMULATED
def test_copies_have_the_bytes_straight_and_by_way_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_PEERS", "0-1")
    alone(__file__, "copies")


def order() -> None:
    """Copies come after what was queued on either side before, and before what is queued afterwards, on any stream."""
    n = 1 << 20
    with gp.cuda.Device(1):
        other = gp.Stream()
    for step in range(8):
        with gp.Stream():
            x = gp.full(n, step, dtype="int32")
            x += 1
            y = x.to(1)  # what is queued on x's stream first
            x += 100  # after the copy has read it
        with gp.cuda.Device(1), other:
            z = x.to(1)
            z += 1
            back = z.to(0)
        assert y.to_numpy().tolist() == [step + 1] * n
        assert set(back.to_numpy().tolist()) == {step + 102}
        del x, y, z, back  # the next round has their memory


@SIMULATED
def test_copies_are_ordered_as_operations_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_LINK", "2GB/s,20us")  # slow enough to show a copy that nothing waits for
    alone(__file__, "order")


def eviction() -> None:
    host = np.arange(1 << 20, dtype=np.float32)
    x, y = gp.from_numpy(host), gp.from_numpy(-host, device=1)
    from pygpukit import _core

    for device in (0, 1):
        for block in _core.pool_blocks(device):
            _core.pool_evict(device, block[0])
    assert np.array_equal(x.to(1).to_numpy(), host) and np.array_equal(y.to(0).to_numpy(), -host)


@SIMULATED
def test_evicted_arrays_come_back_for_a_copy() -> None:
    alone(__file__, "eviction")


def captured() -> None:
    x, stream = gp.ones(3), gp.Stream()
    with stream, pytest.raises(gp.GPUError, match="copying to another device"), stream.capture():
        x.to(1)
    assert x.to(1).to_numpy().all()


@SIMULATED
def test_a_captured_stream_takes_no_copy_to_another_device() -> None:
    alone(__file__, "captured")


def failing() -> None:
    x = gp.ones(1000)
    native.sim_fail_link(0, 1, copies=1)
    first = x.to(1)
    with pytest.raises(gp.DriverError, match="the link from device 0 to device 1 failed"):
        x.to(1)
        gp.cuda.Device(0).synchronize()
    assert native.sim_clear_fault() == 220
    assert first.to_numpy().all() and x.to(1).to_numpy().all()


@SIMULATED
def test_a_link_that_fails_is_told_by_the_device_that_copies() -> None:
    alone(__file__, "failing")


def rates() -> None:
    from time import perf_counter

    info = native.peer_info(0, 1)
    assert (info["bytes_per_s"], info["latency_s"]) == (2e8, 3e-3)
    x = gp.zeros(10_000_000, dtype="uint8")
    x.to(1).to_numpy()
    gp.synchronize()
    begin = perf_counter()
    two = [x.to(1), x.to(1)]  # one after the other over one link
    for array in two:
        array.to_numpy()
    assert perf_counter() - begin > 2 * 10e6 / 2e8


@SIMULATED
def test_links_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_LINK", "200MB/s,3ms")
    alone(__file__, "rates")


NONSENSE = {
    "LINK": ("fast", "390", "GB/s", "0GB/s", "390GB/s,", "390GB/s,7", "390GB/s,7us,1", "-1GB/s"),
    "PEERS": ("0", "0-4", "1-1", "0-1;2-3", "a-b", "0-1,", "none,0-1", "0--1"),
}


def nonsense() -> None:
    for name, values in NONSENSE.items():
        for value in values:
            os.environ[f"PYGPUKIT_SIM_{name}"] = value
            with pytest.raises(gp.BackendUnavailableError, match=f"PYGPUKIT_SIM_{name}={value}: it must be"):
                native.open_backend("sim")
        del os.environ[f"PYGPUKIT_SIM_{name}"]
    native.open_backend("sim")
    assert gp.device_count() == 4


@SIMULATED
def test_links_without_meaning_are_refused() -> None:
    alone(__file__, "nonsense")
