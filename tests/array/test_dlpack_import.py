"""Arrays of other libraries by DLPack: what is taken, copied, refused and let go of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dlpack_structures import Producer

import pygpukit as gp
from pygpukit._core import native
from pygpukit.array.dlpack import CPU, CUDA, EXTENSION

pytestmark = pytest.mark.usefixtures("backend_name")

RNG = np.random.default_rng()
from_dlpack = gp.from_dlpack


def test_host_arrays_come_in_only_when_a_copy_was_asked_for() -> None:
    h = np.arange(24, dtype="int16").reshape(4, 6)[::-1, ::2]
    with pytest.raises(BufferError, match=r"gp\.from_numpy"):
        from_dlpack(h)
    with pytest.raises(BufferError, match="without a copy"):
        from_dlpack(h, device=0, copy=False)
    for asked in ({"copy": True}, {"device": 0}):
        x = from_dlpack(h, **asked)  # type: ignore[arg-type]
        assert x.dtype == "int16"
        np.testing.assert_array_equal(x.to_numpy(), h)
    with pytest.raises(gp.DeviceMismatchError, match="no device 99"):
        from_dlpack(h, device=99)
    assert from_dlpack(np.empty((0, 3)), device=0).shape == (0, 3)
    with pytest.raises(TypeError, match="__dlpack__"):
        from_dlpack([1, 2])


def test_hand_made_tensors_of_the_host() -> None:
    memory = RNG.standard_normal(40).astype("float32")
    producer = Producer(memory, (CPU, 0), shape=(3, 4), strides=(-8, 2), data=memory.ctypes.data + 64, byte_offset=16)
    np.testing.assert_array_equal(from_dlpack(producer, copy=True).to_numpy(), memory[4:28].reshape(3, 8)[::-1, ::2])
    assert producer.deleted == 1 and producer.asked == {"max_version": (1, 1), "stream": None}

    old = Producer(memory, (CPU, 0), version=None, shape=(5, 8), strides=None)  # C order, a producer before 1.0
    np.testing.assert_array_equal(from_dlpack(old, device=0).to_numpy(), memory.reshape(5, 8))
    assert old.deleted == 1 and old.asked == {"stream": None}

    half = Producer(memory.view("uint16"), (CPU, 0), type=(4, 16, 1))
    assert from_dlpack(half, copy=True).dtype == "bfloat16"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": (2, 32, 4)}, "4 lanes"),
        ({"type": (3, 64, 1)}, "code 3"),
        ({"type": (17, 4, 1)}, "packed"),
        ({"shape": (1,) * 17, "strides": (1,) * 17}, "17 dimensions"),
        ({"shape": (-1,), "strides": (1,)}, "negative"),
        ({"shape": (2**40, 2**40), "strides": (2**40, 1)}, "2\\^63"),
        ({"byte_offset": 2}, "not a multiple"),
        ({"version": (2, 0)}, "2.0 is not understood"),
    ],
)
def test_tensors_that_cannot_be_taken(fields: dict[str, Any], message: str) -> None:
    producer = Producer(np.zeros(64, "float32"), (CPU, 0), **fields)
    with pytest.raises(BufferError, match=message):
        from_dlpack(producer, copy=True)
    assert producer.deleted == 0  # it was not taken


def test_memory_of_other_devices_is_refused() -> None:
    for kind in (7, 10, CUDA if gp.backend() == "sim" else EXTENSION):
        with pytest.raises(BufferError, match=f"DLDeviceType {kind}"):
            from_dlpack(Producer(np.zeros(4, "float32"), (kind, 0)))


def foreign(**fields: Any) -> tuple[Any, gp.GPUArray]:
    """A producer over device memory; on sim it is taken as the simulated device's own."""
    memory = gp.from_numpy(RNG.standard_normal(12).astype("float32"))
    host = np.zeros(12, "float32")
    return Producer(host, memory.__dlpack_device__(), data=memory.device_ptr, **fields), memory


def take(producer: Any, **asked: Any) -> gp.GPUArray:
    from pygpukit.array import dlpack

    return dlpack._from_device(producer, producer.device, asked.get("copy"))


def test_foreign_device_memory_is_used_in_place_and_let_go_of_once() -> None:
    producer, memory = foreign(shape=(3, 4), strides=(1, 3))
    x = take(producer)
    assert x.device_ptr == memory.device_ptr and x.block == 0 and x.strides == (4, 12)
    assert producer.asked["stream"] == 1
    x += 1
    np.testing.assert_array_equal(x.to_numpy(), memory.to_numpy().reshape(4, 3).T)
    view = x.T[1]
    del x
    assert producer.deleted == 0
    del view
    native.synchronize()
    assert producer.deleted == 1


def test_foreign_memory_is_let_go_of_after_our_work() -> None:
    producer, _ = foreign()
    x = take(producer)
    busy = gp.Stream()
    a = gp.ones((384, 384), "float64")
    with busy:
        b = a
        for _ in range(4):
            b = b @ a
        y = x + 1
    running = not busy.query()
    del x
    assert producer.deleted == 0 or not running or busy.query()
    native.synchronize()
    assert producer.deleted == 1 and y.shape == (12,)


def test_read_only_memory_is_copied_or_refused() -> None:
    producer, memory = foreign(flags=1)
    x = take(producer)
    assert x.device_ptr != memory.device_ptr
    np.testing.assert_array_equal(x.to_numpy(), memory.to_numpy())
    producer, _ = foreign(flags=1)
    with pytest.raises(BufferError, match="read-only"):
        take(producer, copy=False)
    native.synchronize()
    assert producer.deleted == 1
