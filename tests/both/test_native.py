"""The hand-written layer under the package: argument conversion, views, extents, references, threads, frames."""

from __future__ import annotations

import ast
import copy
import gc
import inspect
import pickle
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import DTypeError, KernelArgumentError, OutOfMemoryError, ShapeError
from pygpukit.jit.compiler import compile_source

pytestmark = pytest.mark.usefixtures("backend_name")

ONE = (1, 1, 1)
INT32, FLOAT32 = 3, 11
SOURCE = """
struct Pair { double first, second; };
extern "C" __global__ void store1(unsigned char *out, int at, unsigned char value) { out[at] = value; }
extern "C" __global__ void store2(unsigned short *out, int at, unsigned short value) { out[at] = value; }
extern "C" __global__ void store4(unsigned int *out, int at, unsigned int value) { out[at] = value; }
extern "C" __global__ void store8(unsigned long long *out, int at, unsigned long long value) { out[at] = value; }
extern "C" __global__ void store16(Pair *out, int at, Pair value) { out[at] = value; }
struct __align__(16) Aligned { float x; double y; int z; };
extern "C" __global__ void aligned(char before, Aligned value, char after, double *out) {
  out[0] = before; out[1] = value.x; out[2] = value.y; out[3] = value.z; out[4] = after;
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void is_null(int *out, const void *pointer) { out[0] = pointer == nullptr; }
extern "C" __global__ void scale(float *x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
"""
SCALE = (("x", "pointer", FLOAT32, 8), ("factor", "scalar", FLOAT32, 4), ("n", "scalar", INT32, 4))


@pytest.fixture(scope="module")
def module() -> native.Module:
    return native.Module(compile_source(SOURCE, name="native_test").image)


@pytest.fixture
def scale(module: native.Module) -> native.BoundKernel:
    return native.Kernel(module.function("scale"), "scale", SCALE).bind(ONE, (32, 1, 1))


@pytest.fixture
def stored(module: native.Module) -> Callable[[str, list[Any]], list[int]]:
    """The bits that kernels get for Python values passed as a parameter of a type."""

    def run(dtype: str, values: list[Any]) -> list[int]:
        sample = gp.empty(0, dtype)
        code, width = sample.dtype_code, sample.itemsize
        out = gp.zeros(width * len(values), "uint8")
        params = [("out", "pointer", -1, 8), ("at", "scalar", INT32, 4), ("value", "scalar", code, width)]
        store = native.Kernel(module.function(f"store{width}"), "store", params).bind(ONE, ONE)
        for at, value in enumerate(values):
            store(out, at, value)
        data = out.to_numpy().tobytes()
        return [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]

    return run


# ---- values ----

EXACT = [
    ("bool", [True, False, 1, 0, np.bool_(True), 1.0], [1, 0, 1, 0, 1, 1]),
    ("int8", [-128, 127, np.int64(-1), True, np.bool_(True), -0.0], [0x80, 0x7F, 0xFF, 1, 1, 0]),
    ("uint8", [255, np.uint8(7)], [255, 7]),
    ("int16", [-(2**15)], [0x8000]),
    ("int32", [-1, 3.0, np.float64(4)], [0xFFFFFFFF, 3, 4]),
    ("int64", [-(2**63), 2**63 - 1], [2**63, 2**63 - 1]),
    ("uint64", [2**63, 2**64 - 1, np.uint64(2**63 + 1)], [2**63, 2**64 - 1, 2**63 + 1]),
    ("float64", [-0.0, 1, np.float32(0.5), 2**53 + 2], [2**63, 0x3FF << 52, 0x3FE << 52, 0x4340000000000001]),
    ("float32", [-0.0, float("inf"), 1e300, True], [0x80000000, 0x7F800000, 0x7F800000, 0x3F800000]),
    ("complex64", [1j, 2, np.complex64(3)], [0x3F800000 << 32, 0x40000000, 0x40400000]),
    ("complex128", [1j, np.float32(2)], [0x3FF << 116, 0x400 << 52]),
]


@pytest.mark.parametrize(("dtype", "values", "bits"), EXACT, ids=[case[0] for case in EXACT])
def test_values_arrive_bit_for_bit(
    stored: Callable[[str, list[Any]], list[int]], dtype: str, values: list[Any], bits: list[int]
) -> None:
    assert stored(dtype, values) == bits


def test_halves_are_rounded_once_to_nearest_even(stored: Callable[[str, list[Any]], list[int]]) -> None:
    random = np.random.default_rng(0)
    values = list(np.ldexp(random.uniform(-2, 2, 300), random.integers(-28, 17, 300)))
    values += [65519.99, 65520.0, 2.0**-24, 2.0**-25, 2.0**-25 * 1.0001, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, -0.0]
    with np.errstate(over="ignore"):
        expected = [int(np.float16(value).view(np.uint16)) for value in values]
    assert stored("float16", values) == expected


def test_bfloat16_is_rounded_once_to_nearest_even(stored: Callable[[str, list[Any]], list[int]]) -> None:
    cases = {
        1.0: 0x3F80,
        1 + 2.0**-8: 0x3F80,  # a tie
        1 + 2.0**-8 + 2.0**-40: 0x3F81,  # above the tie by less than float32 can tell
        1 + 3 * 2.0**-8: 0x3F82,
        3.3895313892515355e38: 0x7F7F,
        3.4e38: 0x7F80,
        1e300: 0x7F80,
        float("-inf"): 0xFF80,
        2.0**-133: 1,
        2.0**-134: 0,
        2.0**-134 * 1.0001: 1,
        -(2.0**-126): 0x8080,
    }
    assert stored("bfloat16", list(cases)) == list(cases.values())
    nan, minus_zero = stored("bfloat16", [float("nan"), -0.0])
    assert (nan & 0x7FFF) > 0x7F80 and minus_zero == 0x8000


class Interrupted:
    def __index__(self) -> int:
        raise KeyboardInterrupt

    __float__ = __complex__ = __index__


REFUSED = [
    ("int32", 2**31, "does not fit int32"),
    ("int32", 10**400, "does not fit int32"),
    ("int32", 1.5, "not integral"),
    ("int32", float("nan"), "not integral"),
    ("int32", float("inf"), "not integral"),
    ("int32", "1", "type str"),
    ("int32", None, "type NoneType"),
    ("int32", 1j, "type complex"),
    ("bool", 2, "does not fit bool"),
    ("uint64", -1, "does not fit uint64"),
    ("uint64", 2**64, "does not fit uint64"),
    ("float32", 10**400, "does not fit float32"),
    ("float32", 1j, "type complex"),
    ("float64", np.complex64(1), "numpy.complex64"),
    ("float32", "1", "type str"),
    ("complex64", "1", "type str"),
    ("complex64", None, "type NoneType"),
]


@pytest.mark.parametrize(("dtype", "value", "message"), REFUSED, ids=range(len(REFUSED)))
def test_values_that_do_not_fit_are_refused_by_name(
    stored: Callable[[str, list[Any]], list[int]], dtype: str, value: Any, message: str
) -> None:
    with pytest.raises(KernelArgumentError, match=message) as info:
        stored(dtype, [value])
    assert info.value.parameter == "value"


@pytest.mark.parametrize("dtype", ["int32", "float32", "float16", "complex64"])
def test_an_interrupt_in_a_conversion_stays_one(stored: Callable[[str, list[Any]], list[int]], dtype: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        stored(dtype, [Interrupted()])


def test_structs_keep_their_alignment(module: native.Module) -> None:
    value = struct.pack("<f4xdi12x", 1.5, 2.5, 3)
    out = gp.zeros(5, "float64")
    params = [("before", "scalar", 1, 1), ("v", "struct", -1, 32), ("after", "scalar", 1, 1), ("out", "pointer", 12, 8)]
    aligned = native.Kernel(module.function("aligned"), "aligned", params).bind(ONE, ONE)
    for form in (value, bytearray(value), np.frombuffer(value, np.uint8), memoryview(value)):
        aligned(-7, form, 9, out)
        assert out.to_numpy().tolist() == [-7, 1.5, 2.5, 3, 9]
    for wrong in (value[:-1], "text", 3, None, out):
        with pytest.raises(KernelArgumentError, match="32 bytes"):
            aligned(-7, wrong, 9, out)


def test_pointers_take_none_arrays_and_nothing_else(module: native.Module, scale: native.BoundKernel) -> None:
    params = [("out", "pointer", INT32, 8), ("pointer", "pointer", -1, 8)]
    is_null = native.Kernel(module.function("is_null"), "is_null", params).bind(ONE, ONE)
    out = gp.zeros(1, "int32")
    for value, expected in ((None, 1), (out, 0), (gp.zeros(0, "int8"), 0)):
        is_null(out, value)
        assert out.to_numpy()[0] == expected
    strided = gp.ones((4, 4)).T
    for wrong, message in (
        (np.ones(3, np.float32), "from_numpy"),
        (0, "expected a GPUArray of float32, got a value of type int"),
        (gp.ones(3, "float64"), r"\.astype\(\"float32\"\)"),
        (strided, r"\.contiguous\(\)"),
    ):
        with pytest.raises(KernelArgumentError, match=message):
            scale(wrong, 1.0, 1)


# ---- argument lists ----


def test_positional_and_keyword_arguments_meet_their_parameters(scale: native.BoundKernel) -> None:
    x = gp.ones(4)
    scale(x, 2.0, 4)
    scale(x, n=4, factor=2.0)
    scale(**{"".join(["fac", "tor"]): 2.0, "n": 4, "x": x})  # a key that is not the interned one
    assert x.to_numpy().tolist() == [8.0] * 4


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "'x': missing"),
        ((None, 1.0), {}, "'n': missing"),
        ((None, 1.0, 0, 0), {}, "takes 3 arguments, got 4"),
        ((None, 1.0, 0, 0), {"n": 1}, "takes 3 arguments, got 5"),
        ((None, 1.0, 0), {"n": 1}, "'n': given twice"),
        ((None, 1.0), {"m": 1}, "'m': no such parameter"),
    ],
)
def test_wrong_argument_lists_launch_nothing(
    scale: native.BoundKernel, args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    before = _core.counters()["launches"]
    with pytest.raises(KernelArgumentError, match=message):
        scale(*args, **kwargs)
    assert _core.counters()["launches"] == before


def test_a_kernel_without_parameters(module: native.Module) -> None:
    nothing = native.Kernel(module.function("nothing"), "nothing", []).bind(ONE, ONE)
    before = _core.counters()["launches"]
    nothing()
    assert _core.counters()["launches"] == before + 1
    with pytest.raises(KernelArgumentError, match="takes 0 arguments, got 1"):
        nothing(1)
    with pytest.raises(KernelArgumentError, match="'x': no such parameter"):
        nothing(x=1)


def test_as_many_parameters_as_a_device_takes() -> None:
    """4096 bytes: 512 pointers."""
    count = 512
    source = 'extern "C" __global__ void many({}) {{ *p0 += 1; *p511 += 2; }}'
    image = compile_source(source.format(", ".join(f"int *p{i}" for i in range(count))), name="many")
    function = native.Module(image.image).function("many")
    params = [(f"p{i}", "pointer", INT32, 8) for i in range(count)]
    many = native.Kernel(function, "many", params).bind(ONE, ONE)
    first, last = gp.zeros(1, "int32"), gp.zeros(1, "int32")
    many(first, *[first] * (count - 2), last)
    many(**{f"p{i}": first if i < count - 1 else last for i in range(count)})
    assert (first.to_numpy()[0], last.to_numpy()[0]) == (2, 4)
    with pytest.raises(ValueError, match="at most 512 parameters"):
        native.Kernel(function, "many", [*params, ("q", "pointer", INT32, 8)])


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (("x", "pointer", 19, 8), ValueError),
        (("x", "scalar", -1, 4), ValueError),
        (("x", "scalar", 15, 1), ValueError),
        (("x", "array", 1, 4), ValueError),
        (("x", "struct", -1, 4097), ValueError),
        (("x", "struct", -1, 2**32 - 1), ValueError),
        (("x", "struct", -1, 2**32 + 4), OverflowError),
        (("x", "struct", -1, -1), OverflowError),
        (["x", "struct", -1, 4], TypeError),
        (("x", "struct"), TypeError),
    ],
)
def test_parameter_plans_are_checked(module: native.Module, spec: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        native.Kernel(module.function("scale"), "scale", [SCALE[0], spec])


@pytest.mark.parametrize(
    ("grid", "block", "error"),
    [
        ((0, 1, 1), ONE, KernelArgumentError),
        (ONE, (1, 1, 0), KernelArgumentError),
        (ONE, (1025, 1, 1), KernelArgumentError),
        (ONE, (2**16, 2**16, 2**16), KernelArgumentError),
        ((2**32 + 1, 1, 1), ONE, OverflowError),
        ((-1, 1, 1), ONE, OverflowError),
        ((1, 1), ONE, TypeError),
        ((1.0, 1, 1), ONE, TypeError),
    ],
)
def test_extents_are_never_cut_off(module: native.Module, grid: Any, block: Any, error: type[Exception]) -> None:
    kernel = native.Kernel(module.function("scale"), "scale", SCALE)
    with pytest.raises(error):
        kernel.bind(grid, block)


def test_bind_takes_streams_only(module: native.Module) -> None:
    kernel = native.Kernel(module.function("scale"), "scale", SCALE)
    with pytest.raises(KernelArgumentError, match="expected a Stream, got int"):
        kernel.bind(ONE, ONE, stream=3)  # type: ignore[arg-type]
    for call in (native.set_current_stream, native.Event().record):
        with pytest.raises(TypeError, match="expected a Stream, got int"):
            call(3)  # type: ignore[arg-type]


# ---- arrays ----


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "dtype"),
    [
        ((9,), (4,), 0, None),
        ((8,), (4,), 4, None),
        ((2,), (-4,), 0, None),
        ((1,), (4,), -4, None),
        ((1,), (4,), 2**63 - 4, None),
        ((1,), (4,), -(2**63), None),
        ((2,), (2**62,), 0, None),
        ((3,), (2**62,), 0, None),
        ((3,), (-(2**62),), 0, None),
        ((2**32, 2**32), (0, 0), 0, None),
        ((2**62,), (0,), 0, None),
        ((1,), (4,), 2, None),
        ((2,), (6,), 0, None),
        ((1,), (8,), 4, "float64"),
        ((2, 2), (4,), 0, None),
        ((-1,), (4,), 0, None),
        ((1,) * 17, (4,) * 17, 0, None),
    ],
)
def test_views_never_leave_their_storage(shape: Any, strides: Any, offset: int, dtype: Any) -> None:
    array = gp.ones(8)
    with pytest.raises(ShapeError):
        native.view(array, shape, strides, offset, dtype)


def test_views_that_fit() -> None:
    array = gp.from_numpy(np.arange(8, dtype=np.float32))
    assert native.view(array, (8,), (-4,), 28).to_numpy().tolist() == list(range(7, -1, -1))
    assert native.view(array, (3, 2), (0, 4), 8).to_numpy().tolist() == [[2, 3]] * 3
    assert native.view(array, (1, 2), (2**60, 8), 0).is_contiguous() is False
    assert native.view(array, (1, 2), (2**60, 4), 0).is_contiguous() is True
    assert native.view(array, (5, 0), (4, 4), 2**40).size == 0
    inner = native.view(native.view(array, (2,), (4,), 24), (8,), (4,), 0)  # bounds are the storage's, not the view's
    assert inner.size == 8


def test_a_list_that_changes_while_it_is_read() -> None:
    class Shrinks:
        def __index__(self) -> int:
            shape.clear()
            return 2

    shape: list[Any] = [Shrinks(), 3, 4]
    assert gp.empty(shape).shape == (2, 3, 4)


@pytest.mark.parametrize("shape", [(-1,), (2**31, 2**31, 2**31), (2**63 - 1,), (2**40, 2**40, 0), (1,) * 17])
def test_shapes_that_are_none(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError):
        native.empty(shape)


def test_empty_refuses_wrong_calls() -> None:
    for call, error in (
        (lambda: native.empty((2**50,)), OutOfMemoryError),
        (lambda: native.empty((2,), "float31"), DTypeError),
        (lambda: native.empty((2,), []), DTypeError),
        (lambda: native.empty((2**70,)), OverflowError),
        (lambda: native.empty("ab"), TypeError),  # type: ignore[arg-type]
        (lambda: native.empty(), TypeError),  # type: ignore[call-arg]
        (lambda: native.empty((2,), shape=(2,)), TypeError),  # type: ignore[misc]
        (lambda: native.empty((2,), "int8", "int8"), TypeError),  # type: ignore[call-arg]
        (lambda: native.wrap(-1, 8, 1, "int8"), OverflowError),
        (lambda: native.wrap(2**64, 8, 1, "int8"), OverflowError),
        (lambda: native.wrap(256, 7, 2, "int32"), ValueError),
    ):
        with pytest.raises(error):
            call()


def test_objects_of_the_layer_are_not_copied_or_pickled(module: native.Module, scale: native.BoundKernel) -> None:
    array = gp.ones(3)
    assert copy.copy(array) is not array
    objects = [module.function("scale"), scale, native.Stream(), native.Event(), module]
    for one in objects:
        for call in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError):
                call(one)
    with pytest.raises(TypeError, match="to_numpy"):
        pickle.dumps(array)
    classes: tuple[type[Any], ...] = (native.ArrayBase, gp.GPUArray, native.BoundKernel, native.Function)
    for cls in classes:
        with pytest.raises(TypeError):
            cls()
        with pytest.raises(TypeError):
            object.__new__(cls)


def test_subclasses_and_weak_references() -> None:
    class Named(gp.GPUArray):
        note = "kept"

    array = gp.ones(3)
    array.__class__ = type("Slim", (gp.GPUArray,), {"__slots__": ()})
    assert (array + array).to_numpy().tolist() == [2, 2, 2]
    with pytest.raises(TypeError):
        array.__class__ = Named  # has a __dict__: another layout
    gone: list[object] = []
    reference = weakref.ref(array, gone.append)
    assert reference() is array
    del array
    assert reference() is None and gone == [reference]


def test_a_wrapped_array_keeps_its_owner_as_long_as_any_view() -> None:
    class Owner:
        pass

    memory = gp.ones(8)
    owner = Owner()
    alive = weakref.ref(owner)
    array = native.wrap(memory.device_ptr, memory.nbytes, (8,), "float32", owner)
    part = array[2:4]
    del owner, array
    assert alive() is not None and part.to_numpy().tolist() == [1, 1]
    del part
    assert alive() is None


def test_pins_are_paired() -> None:
    array = gp.ones(4)
    native.pin(array)
    with pytest.raises(RuntimeError):
        _core.pool_evict(0, array.block)
    native.unpin(array)
    with pytest.raises(ValueError, match="not pinned"):
        native.unpin(array)
    _core.pool_evict(0, array.block)
    assert not array.resident and array.to_numpy().tolist() == [1] * 4


def test_pool_reads_stay_inside_the_block() -> None:
    pool = _core.MemoryPool(1 << 20)
    block = pool.allocate(256)
    for size, offset in ((257, 0), (1 << 62, 0), (1, 256), (None, 257), (1, 2**64 - 1)):
        with pytest.raises(ValueError, match="not inside block"):
            pool.read(block, size, offset)
    assert pool.read(block, None, 256) == b""


# ---- references ----

LEAKS = """
import gc, resource, sys, threading
import numpy as np
import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.jit.compiler import compile_source

PARAMS = [("x", "pointer", 11, 8), ("factor", "scalar", 11, 4), ("n", "scalar", 3, 4)]
image = compile_source('extern "C" __global__ void k(float *x, float f, int n) {}', name="k").image
function = native.Module(image).function("k")
kernel = native.Kernel(function, "k", PARAMS)
bound = kernel.bind((1, 1, 1), (1, 1, 1))
x = gp.ones(32)
host = np.zeros(32, np.float32)
event = native.Event()

def refused(call):
    def run():
        try:
            call()
        except Exception:
            return
        raise SystemExit("was not refused")
    return run

def in_a_thread():
    thread = threading.Thread(target=lambda: native.set_current_stream(native.Stream()))
    thread.start()
    thread.join()

CASES = [
    (100_000, lambda: native.empty((3, 4))),
    (100_000, lambda: native.view(x, (4,), (4,), 0)),
    (100_000, lambda: bound(x, 1.0, 32)),
    (20_000, lambda: bound(x, n=32, factor=1)),
    (20_000, refused(lambda: bound(x, "a", 1))),
    (20_000, refused(lambda: bound(x, 1, 10**30))),
    (20_000, refused(lambda: bound(x, 1, zz=3))),
    (20_000, refused(lambda: native.view(x, (99,), (4,), 0))),
    (20_000, refused(lambda: native.empty((3,), "none"))),
    (20_000, refused(lambda: native.Kernel(function, "k", [*PARAMS, ("x", "pointer", 99, 0)]))),
    (20_000, refused(lambda: kernel.bind((1, 1, 1), (1, 1, 1), stream=3))),
    (20_000, lambda: native.Kernel(function, "k", PARAMS)),
    (20_000, lambda: kernel.bind((1, 1, 1), (1, 1, 1))),
    (5_000, lambda: native.copy_from_host(x, host)),
    (5_000, lambda: native.copy_to_host(host, x)),
    (5_000, refused(lambda: native.copy_to_host(host[1:], x))),
    (5_000, lambda: native.fill(x, bytes(4))),
    (1_000, lambda: native.set_current_stream(native.Stream())),
    (5_000, lambda: native.Event().record()),
    (300, in_a_thread),
    (20_000, lambda: native.wrap(x.device_ptr, 128, (32,), "float32", x)),
    (300, refused(lambda: native.empty((1 << 50,)))),
    (50, lambda: native.Module(image).function("k")),
    (20_000, lambda: (x.shape, x.strides, x.dtype, x.device_ptr, x.last_use_ns, x.name)),
]
WATCHED = [x, kernel, bound, function, event, native.ArrayBase, gp.GPUArray, PARAMS, host]

def state():
    native.synchronize()
    gc.collect()
    stats = _core.pool_stats()
    counts = [sys.getrefcount(one) for one in WATCHED]
    return counts, stats.used, stats.active_blocks, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

for _ in range(70_000):
    _core.ring_push(99)  # touches every page of the ring
state()
for place, (count, call) in enumerate(CASES):
    for _ in range(count // 10):
        call()
    before = state()
    for _ in range(count):
        call()
    after = state()
    assert after[:3] == before[:3], (place, before, after)
    grown = after[3] - before[3]
    assert grown < 1500, f"case {place} grew by {grown} KiB"
print("done")
"""


def test_nothing_is_leaked() -> None:
    done = subprocess.run([sys.executable, "-c", LEAKS], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "done", done.stdout + done.stderr


def test_a_kernel_outlives_its_module_and_function_objects() -> None:
    source = 'extern "C" __global__ void slow(int *x) { for (int i = 0; i < 200000; ++i) *(volatile int *)x += 1; }'
    x = gp.zeros(1, "int32")
    module = native.Module(compile_source(source, name="slow").image)
    bound = native.Kernel(module.function("slow"), "slow", [("x", "pointer", INT32, 8)]).bind(ONE, ONE)
    del module
    gc.collect()
    bound(x)
    bound(x)
    del bound  # the module goes while its kernel runs
    gc.collect()
    assert x.to_numpy()[0] == 400_000


# ---- threads ----


def test_a_threads_current_stream_goes_with_the_thread() -> None:
    alive: list[weakref.ref[Any]] = []

    def work() -> None:
        stream = native.Stream()
        alive.append(weakref.ref(stream))
        native.set_current_stream(stream)
        gp.ones(100)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    assert alive[0]() is None


def test_the_current_stream_is_kept_while_it_is_current() -> None:
    native.set_current_stream(native.Stream())
    try:
        gc.collect()
        current = native.current_stream()
        native.set_current_stream(current)  # the same one again
        assert native.current_stream() is current and current.id != 0
        assert gp.ones(3).stream_id == current.id
    finally:
        native.set_current_stream(None)
    assert native.current_stream() is native.default_stream()


DAEMONS = """
import threading, time
import pygpukit as gp
from pygpukit._core import native

def work():
    native.set_current_stream(native.Stream())
    while True:
        gp.ones(1 << 16)
        native.synchronize()

gp.ones(1)
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
native.set_current_stream(native.Stream())
kept = gp.ones(5), gp.Stream(), native.Event()
time.sleep(0.3)
print("end")
"""


def test_the_interpreter_ends_while_daemon_threads_wait() -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", DAEMONS], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, "end"), done.stderr


# ---- telemetry frames ----

HEADER = struct.Struct("<IHHHHIQQQQQQ")


def parsed(frame: bytes) -> tuple[tuple[int, ...], list[tuple[int, int]], dict[int, str]]:
    """Header fields, (sequence, kind) of the records, and names."""
    header = HEADER.unpack_from(frame)
    magic, version, header_bytes, record_bytes, gauges, count = header[:6]
    assert (magic, version, header_bytes, record_bytes, gauges) == (0x314B4750, 1, 64, 64, 16)
    at = header_bytes + 8 * gauges
    records = []
    for _ in range(count):
        records.append(
            (int.from_bytes(frame[at : at + 8], "little"), int.from_bytes(frame[at + 16 : at + 18], "little"))
        )
        at += record_bytes
    (names,) = struct.unpack_from("<I", frame, at)
    at += 4
    table = {}
    for _ in range(names):
        number, length = struct.unpack_from("<II", frame, at)
        table[number] = frame[at + 8 : at + 8 + length].decode()
        at += 8 + (length + 3) // 4 * 4
    assert at == len(frame)
    return header[6:], records, table


def test_frames_join_without_gap() -> None:
    _, since, since_name = _core.telemetry_frame(0, _core.ring_head(), 1)
    pushed = [_core.ring_push(99) for _ in range(5)]
    number = _core.intern("frames join: \u00fc")
    frame, following, next_name = _core.telemetry_frame(0, since, since_name)
    (session, first, after, lost, _, gauge), records, names = parsed(frame)
    assert (first, after, lost) == (since, following, 0) and session
    assert records == [*[(seq, 99) for seq in pushed], (gauge, 80)] and after == gauge + 1
    assert names == {number: "frames join: \u00fc"} and next_name == number + 1
    frame, last, same_name = _core.telemetry_frame(0, following, next_name)
    _, records, names = parsed(frame)
    assert records == [(following, 80)] and names == {} and same_name == next_name and last == following + 1


def test_a_frame_that_is_too_small_counts_what_it_leaves_out() -> None:
    since = _core.ring_head()
    for _ in range(10):
        _core.ring_push(99)
    frame, following, _ = _core.telemetry_frame(0, since, 1, max_records=4)
    (_, first, after, lost, _, gauge), records, _ = parsed(frame)
    assert [seq for seq, _ in records] == [gauge - 3, gauge - 2, gauge - 1, gauge]
    assert (first, after, following, lost) == (gauge - 3, gauge + 1, gauge + 1, 7)
    frame, _, _ = _core.telemetry_frame(0, following, 1, max_records=0)
    assert [kind for _, kind in parsed(frame)[1]] == [80]


def test_what_the_ring_overwrote_is_lost() -> None:
    since = _core.ring_head()
    for _ in range(70_000):
        _core.ring_push(99)
    (_, first, after, lost, _, _), records, _ = parsed(_core.telemetry_frame(0, since, 1, 10**6)[0])
    assert lost + len(records) == after - since and len(records) == 65536 and first == since
    data, following, missed = _core.ring_read(since)
    assert missed + len(data) // 64 == following - since


def test_a_reader_of_another_process_gets_the_newest() -> None:
    frame, following, next_name = _core.telemetry_frame(0, 2**63, 2**31)
    (_, first, after, lost, _, gauge), records, names = parsed(frame)
    assert records == [(gauge, 80)] and (first, after, following, lost) == (gauge, gauge + 1, gauge + 1, 0)
    assert names == {} and next_name == 2**31


# ---- stubs ----


def public(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Statements of a stub by the public name that they declare."""
    names = {}
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", node)
        name = getattr(target, "name", None) or getattr(target, "id", None)
        if name is not None and not name.startswith("_"):
            names[name] = node
    return names


def parameters(node: ast.FunctionDef) -> list[str]:
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name != "self"]


@pytest.mark.parametrize(("stub", "real"), [("_core.pyi", _core), ("_core_native.pyi", native)])
def test_stubs_say_what_there_is(stub: str, real: ModuleType) -> None:
    names = public(ast.parse((Path(gp.__file__).parent / stub).read_text()).body)
    assert set(names) == {name for name in dir(real) if not name.startswith("_")}
    for name, node in names.items():
        value = getattr(real, name)
        members = {name: node}
        if isinstance(node, ast.ClassDef):
            assert inspect.isclass(value), name
            members = public(node.body)
            assert set(members) == {key for key in dir(value) if not key.startswith("_")}, name
        for key, member in members.items():
            call = getattr(value, key) if isinstance(node, ast.ClassDef) else value
            if isinstance(member, ast.FunctionDef) and getattr(call, "__text_signature__", None):
                got = [p for p in inspect.signature(call).parameters if p not in ("self", "$self")]
                assert got == parameters(member), f"{name}.{key}"
