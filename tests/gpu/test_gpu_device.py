"""The device as pygpukit sees it, launches, copies, streams and events."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native

AXPY = """
extern "C" __global__ void axpy(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void where_am_i(int* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) out[y * width + x] = y * 100000 + x;
}
extern "C" __global__ void spin(long long cycles) {
    long long begin = clock64();
    while (clock64() - begin < cycles) { }
}
"""


def test_device_info_is_the_cards() -> None:
    info = gp.get_device_info()
    assert info.compute_capability is not None and info.compute_capability >= (8, 0)
    assert info.multiprocessor_count > 0 and info.warp_size == 32
    assert info.total_memory > 1 << 30
    assert gp.device_count() >= 1


@pytest.mark.parametrize("count", [1, 31, 255, 256, 257, 1_000_003])
def test_inferred_grid_covers_every_element_once(count: int) -> None:
    rng = np.random.default_rng(count)
    x, y = rng.standard_normal(count, np.float32), rng.standard_normal(count, np.float32)
    on_x, on_y = gp.from_numpy(x), gp.from_numpy(y)
    gp.jit(AXPY, func="axpy")(on_x, on_y, a=2.0, n=count)
    np.testing.assert_allclose(on_y.to_numpy(), y + np.float32(2) * x, rtol=1e-6, atol=1e-6)


def test_two_dimensional_launch() -> None:
    width, height = 1023, 517
    out = gp.zeros((height, width), dtype="int32")
    gp.jit(AXPY, func="where_am_i")[(32, 33), (32, 16)](out, width, height)
    expected = np.arange(height)[:, None] * 100000 + np.arange(width)[None, :]
    np.testing.assert_array_equal(out.to_numpy(), expected)


def test_bound_launch_many_times_in_order() -> None:
    x, y = gp.ones(300), gp.zeros(300)
    bound = gp.jit(AXPY, func="axpy")[2, 256]
    for _ in range(5000):
        bound(x, y, 1.0, 300)
    np.testing.assert_array_equal(y.to_numpy(), np.full(300, 5000, np.float32))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "int8", "uint8"])
def test_copies_round_trip(dtype: str) -> None:
    host = np.random.default_rng(1).integers(-100 if dtype[0] != "u" else 0, 100, 1_000_003).astype(dtype)
    device = gp.from_numpy(host)
    np.testing.assert_array_equal(device.to_numpy(), host)
    twin = gp.empty(host.shape, dtype=dtype)
    native.copy(twin, device)
    np.testing.assert_array_equal(twin.to_numpy(), host)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_elementwise_against_numpy(name: str) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((513, 771), np.float32), rng.standard_normal((513, 771), np.float32)
    expected = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name](a, b)
    np.testing.assert_array_max_ulp(getattr(gp, name)(gp.from_numpy(a), gp.from_numpy(b)).to_numpy(), expected, 1)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (17, 33, 65), (256, 128, 512), (1000, 777, 333)])
def test_matmul_is_real_float32(m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(m)
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    result = gp.matmul(gp.from_numpy(a), gp.from_numpy(b)).to_numpy()
    assert np.linalg.norm(result - expected) / np.linalg.norm(expected) < 1e-6
    again = gp.matmul(gp.from_numpy(a), gp.from_numpy(b)).to_numpy()
    np.testing.assert_array_equal(result, again)


def test_streams_wait_for_events() -> None:
    kernel = gp.jit(AXPY, func="spin")
    first, second = gp.Stream(), gp.Stream()
    done = gp.Event()
    x, y = gp.ones(1 << 20), gp.zeros(1 << 20)
    axpy = gp.jit(AXPY, func="axpy")
    gp.synchronize()
    with first:
        kernel[1, 1](20_000_000)  # about 10 ms
        axpy(x, y, a=1.0, n=x.size)
        done.record()
    assert not done.query()
    second.wait_event(done)
    with second:
        axpy(y, x, a=1.0, n=x.size)
    gp.synchronize()
    assert done.query()
    np.testing.assert_array_equal(x.to_numpy(), np.full(1 << 20, 2, np.float32))


def test_events_measure_device_time() -> None:
    kernel = gp.jit(AXPY, func="spin")
    kernel[1, 1](1000)
    start, end = gp.Event(), gp.Event()
    start.record()
    kernel[1, 1](50_000_000)
    end.record()
    gp.synchronize()
    assert 10 < start.elapsed_ms(end) < 200


def test_wrong_arguments_never_reach_the_device() -> None:
    from pygpukit._core import counters

    kernel = gp.jit(AXPY, func="axpy")
    x, y = gp.ones(8), gp.zeros(8)
    before = counters()["launches"]
    for arguments in [(x, y, 1.0), (x, gp.zeros(8, dtype="float64"), 1.0, 8), (x, 3, 1.0, 8), (x, y, 1.0, 2**40)]:
        with pytest.raises((TypeError, ValueError, OverflowError)):
            kernel[1, 256](*arguments)
    assert counters()["launches"] == before
