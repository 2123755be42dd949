"""What a launch takes: values bit for bit, argument lists, extents; and objects that cannot be copied."""

from __future__ import annotations

import copy
import pickle
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import KernelArgumentError
from pygpukit.jit.compile.compiler import compile_source

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
