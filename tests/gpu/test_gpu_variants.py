"""Assembling a sliced variant holds up nobody's launches, and gives the bits of the whole kernel."""

from __future__ import annotations

import secrets
import threading
import time

import pygpukit as gp
from pygpukit._core import native
from pygpukit.jit.launch import slicing
from pygpukit.jit.launch.kernel import JITKernel

STEPS = 1000
GRID, BLOCK = 53, 128
HOST_S = 0.005  # a busy host holds a launch up, too


def large_kernel() -> JITKernel:
    """One whose PTX no cache has seen: thousands of steps with numbers of this run."""
    steps = "".join(
        f"  x = fmaf(x, 0.{500 + secrets.randbelow(400)}f, x > {secrets.randbelow(1000)}.5f ? y : {step}.25f);\n"
        "  y = fmaf(x, 0.1f, 1.0f);\n"
        for step in range(STEPS)
    )
    return gp.jit(
        'extern "C" __global__ void large(float *out) {\n'
        "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"  float x = i, y = gridDim.x;\n{steps}  out[i] = x + y + i;\n}}",
        name="large.cu",
    )


def test_launches_go_on_while_a_variant_is_assembled() -> None:
    kernel = large_kernel()
    ptx = slicing.sliced_ptx(kernel.unit, kernel.signature, slicing.newest_ptx()).encode() + b"\0"
    brief = gp.jit('extern "C" __global__ void brief(float *out) { out[threadIdx.x] = 1.0f; }')[1, 32]
    little = gp.zeros(32)
    brief(little)
    gp.synchronize()
    took_s: list[float] = []

    def assemble() -> None:
        start = time.perf_counter()
        native.assemble_ptx(ptx)
        took_s.append(time.perf_counter() - start)

    thread = threading.Thread(target=assemble)
    launches_s: list[float] = []
    thread.start()
    while thread.is_alive():
        start = time.perf_counter()
        brief(little)
        launches_s.append(time.perf_counter() - start)
        native.current_stream().synchronize()  # launches without a pause would keep the driver's locks to themselves
    thread.join()
    assert took_s, "assembling failed"
    assert took_s[0] > 4 * HOST_S, "a kernel that takes so little tells nothing; give it more steps"
    assert max(launches_s) < took_s[0] / 2 + HOST_S, f"while assembling took {took_s[0]} s"


def test_an_assembled_variant_has_the_bits_of_the_whole() -> None:
    kernel = large_kernel()
    whole, parts, kept = (gp.zeros(GRID * BLOCK) for _ in range(3))
    kernel.launcher(GRID, BLOCK)(whole)
    kernel.sliced(7).launcher(GRID, BLOCK)(parts)
    kernel.unit.sliced.clear()  # the next one loads what the cache kept
    kernel.sliced(5).launcher(GRID, BLOCK)(kept)
    expected = whole.to_numpy().tobytes()
    assert any(expected) and parts.to_numpy().tobytes() == expected == kept.to_numpy().tobytes()
