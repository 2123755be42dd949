"""Devices and streams of other libraries, and arrays that come as addresses: __cuda_array_interface__."""

from __future__ import annotations

import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native

pytestmark = pytest.mark.usefixtures("backend_name")

RNG = np.random.default_rng()
from_dlpack = gp.from_dlpack


# ---- devices and streams ----


def test_to_device() -> None:
    x = gp.ones(3)
    assert x.to_device(x.device) is x
    for wrong in (99, -1, "cpu"):
        with pytest.raises(gp.DeviceMismatchError, match="no device"):
            x.to_device(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stream"):
        x.to_device(1, stream=3)


class Theirs:
    def __init__(self, handle: int, version: int = 0) -> None:
        self.handle, self.version = handle, version

    def __cuda_stream__(self) -> tuple[int, int]:
        return self.version, self.handle


def test_streams_of_other_libraries() -> None:
    assert gp.Stream.from_external(Theirs(0)) == gp.default_stream() == gp.Stream.from_external(Theirs(1))
    own = gp.Stream()
    assert gp.Stream.from_external(own) is own and own.__cuda_stream__() == (0, own.handle)
    for wrong, message in ((Theirs(5, version=1), "version 1"), (object(), "__cuda_stream__")):
        with pytest.raises(gp.InvalidSpecError, match=message):
            gp.Stream.from_external(wrong)
    if gp.backend() == "sim":
        with pytest.raises(gp.InvalidSpecError, match="simulated"):
            gp.Stream.from_external(Theirs(0x7F0))


def test_an_external_stream_is_worked_on_and_keeps_its_owner() -> None:
    theirs = gp.Stream()  # stands for one of another library: same handle, its own owner
    handle = theirs.handle
    assert native.external_stream(handle, theirs) is theirs.native  # known: not made again
    x = gp.ones(1000)
    with theirs:
        y = x + x
    native.order_streams(handle, 0)
    assert (y + 0).to_numpy().sum() == 2000


# ---- the interface that only has addresses ----


class Interface:
    def __init__(self, array: gp.GPUArray, **changed: Any) -> None:
        self.array = array
        facts = {"version": 3, "shape": array.shape, "strides": None, "typestr": "<f4", "stream": 1}
        self.__cuda_array_interface__ = facts | {"data": (array.device_ptr, False)} | changed


def test_cuda_array_interface_of_others() -> None:
    memory = gp.from_numpy(np.arange(24, dtype="float32").reshape(4, 6))
    if gp.backend() == "sim":
        with pytest.raises(BufferError, match="simulated"):
            gp.asarray(Interface(memory))
        return
    x = gp.asarray(Interface(memory, strides=(-24, 8), shape=(4, 3), data=(memory.device_ptr + 72, False)))
    np.testing.assert_array_equal(x.to_numpy(), memory.to_numpy()[::-1, ::2])
    x[0, 0] = 99
    assert memory.to_numpy()[3, 0] == 99
    stream = gp.Stream()
    assert gp.asarray(Interface(memory, stream=stream.handle)).device_ptr == memory.device_ptr
    assert gp.asarray(Interface(memory, shape=(0, 3), data=(0, False))).shape == (0, 3)
    owner = Interface(memory)
    alive = weakref.ref(owner)
    x = gp.asarray(owner)
    del owner
    assert alive() is not None
    del x
    native.synchronize()
    assert alive() is None
    for changed, error in (
        ({"data": (memory.device_ptr, True)}, BufferError),
        ({"mask": memory}, BufferError),
        ({"stream": 0}, BufferError),
        ({"typestr": ">f4"}, gp.DTypeError),
        ({"typestr": "|V4"}, gp.DTypeError),
        ({"data": (memory.device_ptr + 2, False)}, BufferError),
        ({"strides": (4,)}, gp.ShapeError),
    ):
        with pytest.raises(error):
            gp.asarray(Interface(memory, **changed))


def test_asarray_copies_only_when_told() -> None:
    x = gp.ones(3)
    assert gp.asarray(x) is x and gp.asarray(x, copy=False) is x and gp.asarray(x, device=0) is x
    assert gp.asarray(x, copy=True).device_ptr != x.device_ptr
    assert gp.asarray([1, 2**64 - 1], "uint64").to_numpy().tolist() == [1, 2**64 - 1]
    for obj, asked in (([1], {}), (np.ones(2), {}), (x, {"dtype": "int8"})):
        with pytest.raises(ValueError, match="copy"):
            gp.asarray(obj, copy=False, **asked)
    with pytest.raises(gp.DeviceMismatchError):
        gp.asarray([1.0], device=5)


def test_from_dlpack_may_be_the_first_call_of_a_process() -> None:
    code = "import numpy as np, pygpukit as gp; print(gp.from_dlpack(np.ones(3), device=0).to_numpy().sum())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip() == "3.0", done.stderr
