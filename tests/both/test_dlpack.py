"""DLPack both ways: capsules read with ctypes, round trips, streams, lifetime, and what is refused."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from typing import Any, ClassVar

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.dlpack import CPU, CUDA, EXTENSION
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY, DataType

pytestmark = pytest.mark.usefixtures("backend_name")

RNG = np.random.default_rng()
from_dlpack = gp.from_dlpack


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


class Legacy(ctypes.Structure):
    _fields_ = (
        ("tensor", DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def read(capsule: Any, name: bytes = b"dltensor_versioned") -> Any:
    managed: Any = (Versioned if name == b"dltensor_versioned" else Legacy).from_address(_pointer(capsule, name))
    managed.capsule = capsule  # what it reads is gone with the capsule
    return managed


def export(array: gp.GPUArray, **asked: Any) -> Any:
    """The capsule that a library of the array's own device gets."""
    return array.__dlpack__(**({"max_version": (1, 1), "dl_device": array.__dlpack_device__()} | asked))


class Producer:
    """Another library's array: a hand-made tensor over memory that it owns."""

    all: ClassVar[list[Producer]] = []  # the consumer may call deleters late: none goes away before

    def __init__(
        self, memory: Any, device: tuple[int, int], *, version: tuple[int, int] | None = (1, 1), **fields: Any
    ):
        self.memory, self.device, self.version, self.deleted = memory, device, version, 0
        self.asked: dict[str, Any] = {}
        self.managed: Any = Legacy() if version is None else Versioned()
        shape = fields.pop("shape", memory.shape)
        strides = fields.pop("strides", tuple(step // memory.itemsize for step in memory.strides))
        self.extents = (ctypes.c_int64 * len(shape))(*shape), (ctypes.c_int64 * len(shape))(*(strides or ()))
        tensor = self.managed.tensor
        tensor.data = fields.pop("data", None) or memory.ctypes.data
        tensor.device_type, tensor.device_id = device
        tensor.ndim = len(shape)
        tensor.shape = self.extents[0]
        if strides is not None:
            tensor.strides = self.extents[1]
        tensor.code, tensor.bits, tensor.lanes = fields.pop("type", (2, 32, 1))
        tensor.byte_offset = fields.pop("byte_offset", 0)
        if version is not None:
            self.managed.major, self.managed.minor = version
            self.managed.flags = fields.pop("flags", 0)
        self.managed.deleter = type(self.managed.deleter)(self.delete)
        Producer.all.append(self)
        assert not fields

    def delete(self, _: Any) -> None:
        self.deleted += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **asked: Any) -> Any:
        self.asked = asked
        if self.version is None and "max_version" in asked:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        name = b"dltensor" if self.version is None else b"dltensor_versioned"
        return _new(ctypes.addressof(self.managed), name, None)


# ---- out ----


def test_a_capsule_describes_the_array() -> None:
    base = gp.from_numpy(np.arange(60, dtype="float32").reshape(3, 4, 5))
    view = base.transpose(2, 0, 1)[::-2, 1:]
    capsule = export(view)
    managed = read(capsule)
    tensor = managed.tensor
    assert (managed.major, managed.minor, managed.flags) == (1, 1, 0)
    assert (tensor.device_type, tensor.device_id) == view.__dlpack_device__()
    assert tensor.device_type == (CUDA if gp.backend() == "cuda" else EXTENSION)
    assert tensor.data == view.device_ptr and tensor.byte_offset == 0
    assert (tensor.code, tensor.bits, tensor.lanes) == (2, 32, 1)
    assert tuple(tensor.shape[: tensor.ndim]) == view.shape == (3, 2, 4)
    assert tuple(tensor.strides[: tensor.ndim]) == tuple(step // 4 for step in view.strides)


def test_the_older_capsule_is_given_when_asked_for() -> None:
    x = gp.ones((2, 3))
    for version in (None, (0, 8)):
        legacy = read(export(x, max_version=version), b"dltensor")
        assert legacy.tensor.data == x.device_ptr and legacy.tensor.ndim == 2
    assert read(export(x, max_version=(2, 0))).major == 1


CODES = {
    "bool": (6, 8),
    "int4": (0, 4),
    "bfloat16": (4, 16),
    "complex64": (5, 64),
    "complex128": (5, 128),
    "float8_e4m3": (10, 8),
    "float8_e5m2": (12, 8),
    "float4_e2m1": (17, 4),
} | {
    f"{kind}{bits}": (code, bits)
    for kind, code, all_bits in (("int", 0, (8, 16, 32, 64)), ("uint", 1, (8, 16, 32, 64)), ("float", 2, (16, 32, 64)))
    for bits in all_bits
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_goes_out_and_comes_back(dtype: DataType) -> None:
    bits = RNG.integers(0, 256, (3, 5 * dtype.itemsize)).astype("uint8")
    bits = bits & 1 if dtype == "bool" else bits
    x = native.view(gp.from_numpy(bits), (3, 5), (5 * dtype.itemsize, dtype.itemsize), 0, dtype)
    managed = read(capsule := export(x))
    assert (managed.tensor.code, managed.tensor.bits) == CODES[dtype.name] and managed.tensor.lanes == 1
    assert managed.flags == (4 if managed.tensor.bits < 8 else 0)  # one value a byte: padded
    del capsule
    y = from_dlpack(x)
    assert (y.dtype, y.shape, y.strides, y.device_ptr) == (x.dtype, x.shape, x.strides, x.device_ptr)
    assert y.to_numpy().tobytes() == bits.tobytes()
    if dtype in STORAGE_ONLY:
        with pytest.raises(BufferError, match="uint8"):
            export(x, max_version=None)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1), (2,) * 16])
def test_odd_shapes_go_out_and_come_back(shape: tuple[int, ...]) -> None:
    x = gp.from_numpy(RNG.standard_normal(shape))
    y = from_dlpack(x)
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    np.testing.assert_array_equal(y.to_numpy(), x.to_numpy())
    capsule = export(x)
    assert bool(read(capsule).tensor.data) == bool(x.size)


def test_views_share_memory_with_what_they_came_from() -> None:
    x = gp.from_numpy(np.arange(24, dtype="int32").reshape(4, 6))
    y = from_dlpack(x[::-1, 1::2])
    y[0, 0] = -1
    assert x.to_numpy()[3, 1] == -1
    np.testing.assert_array_equal(y.to_numpy(), x.to_numpy()[::-1, 1::2])
    z = from_dlpack(x, copy=True)
    z[...] = 0
    assert x.to_numpy()[0, 1] == 1 and z.block != 0


def test_an_exported_block_stays_until_the_consumer_lets_go() -> None:
    x = gp.ones(1000)
    block, alive = x.block, weakref.ref(x)
    capsule = export(x)
    with pytest.raises(RuntimeError):
        _core.pool_evict(0, block)
    managed = read(capsule)
    del x
    gc.collect()
    assert alive() is not None
    del capsule, managed
    gc.collect()
    assert alive() is None

    x = gp.ones(8)
    alive = weakref.ref(x)
    y = from_dlpack(x)
    del x
    assert alive() is not None and (y + 1).to_numpy().tolist() == [2] * 8
    part = y[2:]
    native.synchronize()
    del y
    assert alive() is not None
    del part
    assert alive() is None


def test_a_capsule_is_taken_once() -> None:
    capsule = export(gp.ones(3))
    keeper = native.dlpack_import(capsule)
    with pytest.raises(BufferError, match="once"):
        native.dlpack_import(capsule)
    with pytest.raises(BufferError, match="no capsule"):
        native.dlpack_import(None)
    assert keeper[4] == (3,)


def test_stream_numbers() -> None:
    x = gp.ones(16)
    stream = gp.Stream()
    for number in (None, 1, -1, stream.handle):
        assert read(export(x, stream=number)).tensor.data == x.device_ptr
    for wrong in (0, -2, "1", 1.5):
        with pytest.raises(BufferError, match="stream"):
            export(x, stream=wrong)


def test_consumers_streams_wait_for_the_arrays_work() -> None:
    slow, fast = gp.Stream(), gp.Stream()
    a = gp.from_numpy(RNG.standard_normal((256, 256)))
    expected = a.to_numpy()
    with slow:
        x = a @ a
        for _ in range(3):
            x = x @ a
    with fast:
        total = from_dlpack(x) + 0.0
    fast.synchronize()
    np.testing.assert_allclose(total.to_numpy(), np.linalg.matrix_power(expected, 5), rtol=1e-9, atol=1e-6)


def test_a_copy_on_the_host_has_to_be_asked_for() -> None:
    x = gp.from_numpy(RNG.standard_normal((4, 6)))[:, ::2]
    host = np.from_dlpack(x, device="cpu")
    np.testing.assert_array_equal(host, x.to_numpy())
    x[...] = 0
    assert host.any()  # a copy
    managed = read(x.__dlpack__(max_version=(1, 0), dl_device=(CPU, 0)))
    assert managed.flags & 2 and managed.tensor.device_type == CPU and tuple(managed.tensor.strides[:2]) == (3, 1)
    with pytest.raises(BufferError, match="without a copy"):
        x.__dlpack__(dl_device=(CPU, 0), copy=False)
    with pytest.raises(BufferError, match="no streams"):
        x.__dlpack__(dl_device=(CPU, 0), stream=1)
    with pytest.raises(BufferError, match="to_device"):
        x.__dlpack__(dl_device=(CUDA, 7))
    if gp.backend() == "sim":
        for asked in ({}, {"copy": True}):
            with pytest.raises(BufferError, match=r"\.to_numpy\(\)"):
                np.from_dlpack(x, **asked)


def test_copies_are_marked() -> None:
    x = gp.ones(5)
    capsule = export(x, copy=True)
    assert read(capsule).flags & 2 and read(capsule).tensor.data != x.device_ptr
    assert not read(export(x, copy=False)).flags & 2


# ---- in ----


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
    from pygpukit.core import dlpack

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
