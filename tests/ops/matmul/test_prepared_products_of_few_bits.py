"""Products of few bits, and by the kernels for SM 9.0, are prepared: the second call of a layout is looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.ops import host


@pytest.fixture(autouse=True)
def kernels_and_prepared_calls() -> Iterator[None]:
    native.forget_prepared()
    native.prepare_calls(True)
    with host.built_in_kernels():
        yield
    native.prepare_calls(None)
    native.forget_prepared()


def numbers(dtype: str, *shape: int) -> gp.GPUArray:
    return gp.from_numpy(np.random.default_rng().uniform(-3, 3, shape).astype(np.float32)).astype(dtype)


def scales(*shape: int) -> gp.GPUArray:
    return gp.from_numpy(np.random.default_rng().uniform(0.5, 2, shape).astype(np.float32))


def fp8(scale_a: gp.GPUArray | float | None) -> Callable[[], gp.GPUArray]:
    a, b = numbers("float8_e4m3", 5, 130), numbers("float8_e5m2", 7, 130)
    return lambda: gp.matmul_fp8(a, b.T, scale_a, 0.5, out_dtype="bfloat16")


def nvfp4(made: Callable[..., object], dtype: str = "bfloat16") -> Callable[[], gp.GPUArray]:
    a, w = numbers(dtype, 3, 64), made(gp.ops.quantize_nvfp4(numbers("float32", 20, 64)))
    return lambda: gp.matmul_fp4(a, w)


def mxfp4_into() -> Callable[[], gp.GPUArray]:
    a, w = numbers("bfloat16", 2, 40), gp.ops.quantize_mxfp4(numbers("float32", 9, 40))
    out = gp.full((2, 9), float("nan"), "float32")
    return lambda: gp.matmul_fp4(a, w, out=out)


def hopper(dtype: str) -> Callable[[], gp.GPUArray]:
    a, b = numbers(dtype, 3, 64), numbers(dtype, 24, 64)
    if dtype.startswith("float8"):
        return lambda: gp.matmul_fp8(a, b.T, 0.5, backend="hopper")
    return lambda: gp.matmul(a, b.T, tf32=True if dtype == "float32" else None, backend="hopper")


CALLS: dict[str, Callable[[], Callable[[], gp.GPUArray]]] = {
    "fp8": lambda: fp8(None),
    "fp8 by a number": lambda: fp8(1.5),
    "fp8 by rows": lambda: fp8(scales(5)),
    "fp8 by blocks": lambda: fp8(scales(5, 2)),
    "nvfp4": lambda: nvfp4(lambda w: w),
    "nvfp4 as a tuple": lambda: nvfp4(tuple),
    "nvfp4 by a number": lambda: nvfp4(lambda w: (w.codes, w.scales, 0.25), "float16"),
    "nvfp4 without a scale of all": lambda: nvfp4(lambda w: (w.codes, w.scales)),
    "mxfp4 into an array": mxfp4_into,
    "bfloat16 for SM 9.0": lambda: hopper("bfloat16"),
    "tf32 for SM 9.0": lambda: hopper("float32"),
    "fp8 for SM 9.0": lambda: hopper("float8_e4m3"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_second_call_of_a_layout_is_looked_up(name: str) -> None:
    CALLS[name]()()
    for _ in range(2):
        call = CALLS[name]()
        native.prepare_calls(False)
        expected = call().to_numpy().tobytes()
        native.prepare_calls(True)
        before = native.prepared_calls()["used"]
        found = call()
        assert native.prepared_calls()["used"] == before + 1
        assert found.to_numpy().tobytes() == expected


def test_numbers_that_scale_are_in_the_signature() -> None:
    a, w = numbers("bfloat16", 3, 64), gp.ops.quantize_nvfp4(numbers("float32", 20, 64))
    one, two = (gp.matmul_fp4(a, (w.codes, w.scales, factor), out_dtype="float32").to_numpy() for factor in (1.0, 2.0))
    np.testing.assert_array_equal(two, 2 * one)
    x = numbers("float8_e4m3", 4, 40)
    one, two = (gp.matmul_fp8(x, x.T, factor).to_numpy() for factor in (1.0, 2.0))
    np.testing.assert_array_equal(two, 2 * one)


def test_what_is_refused_is_refused_each_time() -> None:
    a, w = numbers("bfloat16", 3, 64), gp.ops.quantize_nvfp4(numbers("float32", 20, 64))
    for _ in range(2):
        with pytest.raises(ValueError, match="scale=nan"):
            gp.matmul_fp4(a, (w.codes, w.scales, float("nan")))
        with pytest.raises(ValueError, match="scale_a=inf"):
            gp.matmul_fp8(a.astype("float8_e4m3"), a.T, float("inf"))
