"""Checked mode: views of arrays, and classes in shared memory."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import KernelCheckError


@pytest.mark.parametrize(
    ("index", "write"), [(4, True), (-1, True), (4, False), (11, True), (15, False), (-4, True), (7, True)]
)
@pytest.mark.parametrize("check", [True, "memory"])
def test_a_kernel_stays_inside_its_view(index: int, write: bool, check: bool | str) -> None:
    whole = gp.zeros((5, 4), dtype="int32")
    body = "x[at] = 1;" if write else "x[0] = x[at];"
    kernel = gp.jit(f"__global__ void k(int* x, int at) {{ {body} }}", check=check)
    kernel[1, 1](whole[1], 3)
    gp.synchronize()
    with pytest.raises(KernelCheckError, match=r"outside of the 16 bytes|past the end") as caught:
        kernel[1, 1](whole[1], index)
        gp.synchronize()
    assert caught.value.findings[0].index == index
    assert caught.value.findings[0].array == "x"


def test_two_views_leave_a_gap_and_the_whole_array_leaves_none() -> None:
    whole = gp.zeros((5, 4), dtype="int32")
    kernel = gp.jit("__global__ void k(int* x, int* y, int at) { x[at] = 1; }", check=True)
    kernel[1, 1](whole[0], whole[3], 13)  # in the other view
    kernel[1, 1](whole[1], whole, 9)
    gp.synchronize()
    for at in (5, 11, 16):
        with pytest.raises(KernelCheckError):
            kernel[1, 1](whole[0], whole[3], at)
            gp.synchronize()
    kernel[1, 1](whole[1], whole[2], 7)  # neighbours are one stretch
    kernel[1, 1](whole, whole, 19)
    gp.synchronize()


def test_an_array_that_is_passed_whole_later_is_open_again() -> None:
    whole = gp.zeros(8, dtype="int32")
    kernel = gp.jit("__global__ void k(int* x, int at) { x[at] = 1; }", check=True)
    kernel[1, 1](whole[2:4], 1)
    kernel[1, 1](whole, 7)
    assert whole.tolist() == [0, 0, 0, 1, 0, 0, 0, 1]


HALF = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
CLASSES = {
    "half": (HALF, "half", "__float2half(t)", "__half2float(s[31 - t])"),
    "bfloat16": (HALF, "__nv_bfloat16", "__float2bfloat16(t)", "__bfloat162float(s[31 - t])"),
    "half2": (HALF, "half2", "__floats2half2_rn(1, t)", "__high2float(s[31 - t])"),
    "assignment": (
        "struct Q { float v; __device__ Q& operator=(const Q& o) { v = o.v; return *this; } };",
        "Q", "(q.v = t, q)", "s[31 - t].v",
    ),
    "constructor": ("struct Q { float v; Q() = default; __device__ Q(float a) : v(a) {} };", "Q", "Q(t)", "s[31 - t].v"),  # noqa: E501
    "from a number": ("struct Q { float v; Q() = default; __device__ Q& operator=(float a) { v = a; return *this; } };", "Q", "t", "s[31 - t].v"),  # noqa: E501
    "member of a class": ("struct P { float v; __device__ P& operator=(const P& o) { v = o.v; return *this; } }; struct Q { P p; };", "Q", "(q.p.v = t, q)", "s[31 - t].p.v"),  # noqa: E501
    "vector": ("", "float4", "make_float4(0, 0, 0, t)", "s[31 - t].w"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CLASSES))
def test_assignments_of_classes_are_writes(name: str) -> None:
    before, kind, value, read = CLASSES[name]
    local = "Q q; (void)q;" if " q" in value or "q." in value else ""
    source = (
        f"{before}\n__global__ void k(float* x, int n) {{ __shared__ {kind} s[32]; int t = threadIdx.x; {local}"
        f"if (t < n) s[t] = {value}; __syncthreads(); x[t] = {read}; }}"
    )
    kernel = gp.jit(source, check=True)
    x = gp.zeros(32)
    kernel[1, 32](x, 32)
    assert np.array_equal(x.to_numpy(), np.arange(31, -1, -1))
    with pytest.raises(KernelCheckError, match="uninitialised"):
        kernel[1, 32](x, 31)  # one that nobody writes is found still
        gp.synchronize()


def test_an_exchange_writes_and_an_addition_reads() -> None:
    for function, fine in (("atomicExch(&s, 0)", True), ("atomicAdd(&s, 0)", False)):
        kernel = gp.jit(
            f"__global__ void k(int* x) {{ __shared__ int s; if (!threadIdx.x) {function}; __syncthreads(); "
            "atomicAdd(&s, 1); __syncthreads(); x[threadIdx.x] = s; }",
            check=True,
        )
        x = gp.zeros(32, dtype="int32")
        kernel[1, 32](x)
        if fine:
            assert x.tolist() == [32] * 32
        else:
            with pytest.raises(KernelCheckError, match="uninitialised"):
                gp.synchronize()
