"""Several devices in one process: which one new arrays and work go to, and copies from one to another."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from alone import alone

import pygpukit as gp
from pygpukit._core import native

SIMULATED = pytest.mark.skipif("gp.backend() != 'sim'", reason="three devices are simulated")


@pytest.fixture(autouse=True)
def _three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_SIM", raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "3")


def blocks() -> None:
    assert gp.device_count() == gp.cuda.device_count() == 3
    assert (gp.zeros(2).device, gp.cuda.current_device()) == (0, gp.cuda.Device(0))
    device = gp.cuda.Device(2)
    with device, gp.cuda.Device("cuda:1"):
        assert (gp.zeros(2).device, gp.cuda.Device().id) == (1, 1)
        with device:  # entered twice
            x = gp.arange(6) * 2
        assert (x.device, gp.ones(1).device) == (2, 1)
        with pytest.raises(KeyError), gp.cuda.Device(0):
            raise KeyError
        assert gp.cuda.current_device().id == 1
    assert gp.cuda.current_device().id == 0
    assert x.to_numpy().tolist() == [0, 2, 4, 6, 8, 10]
    seen: list[int] = []
    with device:
        thread = threading.Thread(target=lambda: seen.append(gp.zeros(1).device))
        thread.start()
        thread.join()
    assert seen == [0]  # another thread's device is its own
    device.use()
    assert gp.zeros(1).device == 2
    assert {gp.cuda.Device(1), gp.cuda.Device("cuda:1")} == {gp.cuda.Device(1)} and repr(device) == "Device(2)"


@SIMULATED
def test_a_block_sends_arrays_and_work_to_its_device() -> None:
    alone(__file__, "blocks")


def factories() -> None:
    rng = np.random.default_rng()
    host = rng.standard_normal((3, 5)).astype(np.float32)
    with gp.cuda.Device(1):
        other = gp.from_numpy(host)
    made = {
        "empty": gp.empty((2, 3), "int32", device=2),
        "zeros": gp.zeros((2, 3), device=gp.cuda.Device(2)),
        "ones": gp.ones((2, 3), order="F", device="cuda:2"),
        "full": gp.full(4, 7, device=np.int64(2)),
        "arange": gp.arange(4, device=2),
        "array": gp.array([1.0, 2.0], device=2),
        "asarray": gp.asarray(other, device=2),
        "from_numpy": gp.from_numpy(host, device=2),
        "zeros_like": gp.zeros_like(other, device=2),
        "from_dlpack": gp.from_dlpack(host, device=2),
    }
    assert {name: array.device for name, array in made.items()} == dict.fromkeys(made, 2)
    assert native.current_device() == 0
    assert np.array_equal(made["asarray"].to_numpy(), host) and made["full"].to_numpy().tolist() == [7] * 4
    for like in (gp.empty_like, gp.zeros_like, gp.ones_like):
        assert (like(other).device, like(other, device=0).device) == (1, 0)
    assert gp.full_like(other, 2.5).device == 1 and gp.full_like(other, 2.5).to_numpy().tolist() == [[2.5] * 5] * 3


@SIMULATED
def test_factories_make_arrays_on_a_device() -> None:
    alone(__file__, "factories")


def copies() -> None:
    rng = np.random.default_rng()
    host = rng.integers(-999, 999, (7, 9), dtype=np.int32)
    x = gp.from_numpy(host)
    there = x[::2, 1:].to(2)
    assert (there.device, x.device, x.to(0) is x) == (2, 0, True)
    assert np.array_equal(there.to_numpy(), host[::2, 1:]) and np.array_equal(there.T.to(1).to_numpy(), host[::2, 1:].T)
    assert there[1, 2].item() == int(there[1, 2]) == host[2, 3] and there.tolist() == host[::2, 1:].tolist()
    assert repr(there) == repr(gp.from_numpy(np.ascontiguousarray(host[::2, 1:])))
    assert gp.empty((0, 3), device=1).to(2).to_numpy().shape == (0, 3)
    with gp.cuda.Device(2):
        assert int((there - there.min()).max()) == int(np.ptp(host[::2, 1:]))


@SIMULATED
def test_arrays_are_copied_between_devices_and_read_from_any() -> None:
    alone(__file__, "copies")


def refusals() -> None:
    a, b = gp.ones(3), gp.ones(3, device=1)
    with pytest.raises(gp.DeviceMismatchError, match=r"add: array 1 is on device 1.*\.to\(0\).*gp\.cuda\.Device\(1\)"):
        a + b
    for wrong in (3, -1, "cuda:3", "gpu", "cuda:", "cuda:-1"):
        with pytest.raises(gp.DeviceMismatchError, match=r"no device (3|-1); this process has 3|is no device; give"):
            gp.zeros(3, device=wrong)
    for wrong in (True, 1.0, None):
        with pytest.raises(TypeError, match="is no device"):
            a.to(wrong)
    with pytest.raises(TypeError, match="unexpected argument 'devise'"):
        gp.empty(3, devise=1)
    assert native.current_device() == 0 and (a + a).device == 0


@SIMULATED
def test_mixed_and_unknown_devices_are_refused_by_name() -> None:
    alone(__file__, "refusals")


def memory() -> None:
    free = [gp.cuda.Device(k).mem_info[0] for k in range(3)]
    x = gp.ones((4 << 20,), device=1)
    gp.cuda.Device(1).synchronize()
    after = [gp.cuda.Device(k).mem_info[0] for k in range(3)]
    assert after[0] == free[0] and after[2] == free[2] and free[1] - after[1] >= x.nbytes
    assert gp.cuda.Device(1).compute_capability == (9, 0) and "simulated" in gp.cuda.Device(1).name


@SIMULATED
def test_each_device_has_its_own_memory() -> None:
    alone(__file__, "memory")


WAIT = """
extern "C" __global__ void wait(const volatile int* flag) { while (flag[0] == 0) { } }
"""


def other_work() -> None:
    with gp.cuda.Device(1):
        stream, flag = gp.Stream(), gp.zeros(1, "int32")
        with stream:
            gp.jit(WAIT, func="wait")[1, 1](flag)
    y = gp.ones(3) + 1
    gp.synchronize()  # of device 0: the kernel on device 1 waits still
    assert y.to_numpy().tolist() == [2, 2, 2] and not stream.query()
    with gp.cuda.Device(1), gp.Stream():
        flag.fill(1)
    gp.cuda.Device(1).synchronize()
    assert stream.query()


@SIMULATED
def test_waiting_for_a_device_leaves_the_streams_of_others_alone() -> None:
    alone(__file__, "other_work")


def events() -> None:
    event = gp.Event()
    with gp.cuda.Device(1):
        stream = gp.Stream()
    with pytest.raises(gp.DriverError, match="made on another device"):
        event.record(stream)


@SIMULATED
def test_an_event_of_another_device_is_refused_as_by_the_driver() -> None:
    alone(__file__, "events")


def said(*settings: str) -> None:
    with pytest.raises(gp.BackendUnavailableError, match=settings[0]):
        gp.device_count()


@SIMULATED
@pytest.mark.parametrize("number", ["0", "65", "two", "1.5", "-1"])
def test_a_number_of_devices_without_meaning_is_refused(monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", number)
    alone(__file__, "said", f"PYGPUKIT_SIM_DEVICES={number}: it must be a whole number from 1 to 64")


@SIMULATED
def test_two_numbers_of_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM", "sms=2,devices=2")
    alone(__file__, "said", "PYGPUKIT_SIM_DEVICES=3, but PYGPUKIT_SIM says devices=2: leave one of them out")
