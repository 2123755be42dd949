"""Parameters of kernels on the simulated device: __grid_constant__ ones have one address each, side by side as a launch
has them; names keep their columns."""

from __future__ import annotations

import random

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import CompileError, KernelArgumentError
from pygpukit.jit.compile.sim_parameters import grid_constants
from pygpukit.jit.compile.sim_source import blank

KERNEL = """
struct Tail { unsigned char bytes[120]; };
struct alignas(64) Whole { const int *array; Tail tail; };
template <int N>
__device__ int looked(const int *const &array, const Tail &) {
  const Whole &whole = reinterpret_cast<const Whole &>(array);
  return whole.array[N] * 1000 + whole.tail.bytes[N];
}
struct alignas(64) Call { int first, second; };
extern "C" __global__ void k(const __grid_constant__ Call call, const int *const __grid_constant__ a, const
                             __grid_constant__ Tail left, const int *
    __grid_constant__ const /* the second */ b, const __grid_constant__ Tail right, int *out) {
  __syncthreads();
  if (threadIdx.x) return;
  out[0] = looked<1>(a, left);
  out[1] = looked<2>(b, right);
  out[2] = (char *)&right - (char *)&call;
  out[3] = call.second;
  const Tail *held = &left;
  __syncwarp(1u);
  out[4] = held->bytes[119];
}
"""


@pytest.mark.parametrize("check", [False, True])
def test_they_lie_side_by_side(check: bool) -> None:
    rng = np.random.default_rng()
    a, b = (rng.integers(0, 99, 4, dtype=np.int32) for _ in range(2))
    tails = [rng.integers(0, 256, 120, dtype=np.uint8) for _ in range(2)]
    kernel = gp.jit(KERNEL, name="k", check=check)
    out = gp.full((5,), -1, "int32")
    call = rng.integers(-99, 99, 16, dtype=np.int32)
    kernel[1, 64](call.tobytes(), gp.from_numpy(a), tails[0].tobytes(), gp.from_numpy(b), tails[1].tobytes(), out)
    wanted = [a[1] * 1000 + tails[0][1], b[2] * 1000 + tails[1][2], 64 + 128 + 8, call[1], tails[0][119]]
    assert out.to_numpy().tolist() == wanted


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("(const __grid_constant__ A p, int n)", "(const A      &&__restrict p, int n)"),
        ("(const A<1, (2)> __grid_constant__ p)", "(const A<1, (2)>      &&__restrict p)"),
        ("(const int *const __grid_constant__ p)", "(const int *const      &&__restrict p)"),
        ("(const __grid_constant__ h::A, int n)", "(const h::A &&__restrict , int n)"),
        ("(const __grid_constant__ A)", "(const A &&__restrict )"),
        ("(const A __grid_constant__)", "(const A __grid_constant__)"),
    ],
)  # fmt: skip
def test_the_text(text: str, made: str) -> None:
    found = grid_constants(text, blank(text))
    assert " ".join(found.split()) == " ".join(made.split())
    if " p" in text:
        assert len(found) == len(text) and found.index("p") == text.index("p", text.index("__grid") + 17)


REFERENCES = {
    "const float &p": "p",
    "float &p": "p",
    "const float (&p)[4]": "p[0]",
    "const float (*p)[4]": "(*p)[0]",
    "Number p": "p",
    "const Pair &p": "p.first",
}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("parameter", REFERENCES)
def test_a_reference_is_an_address_of_the_device(parameter: str, check: bool) -> None:
    """As NVRTC has it: a launch gives an array, and no value."""
    source = f"""typedef const float &Number;
struct Pair {{ float first, second; }};
extern "C" __global__ void k({parameter}, float *out, const __grid_constant__ int n) {{
  out[0] = {REFERENCES[parameter]} + n;
}}"""
    kernel, out = gp.jit(source, func="k", check=check), gp.zeros(1, "float32")
    values = np.random.default_rng().standard_normal(4).astype("float32")
    kernel[1, 1](gp.from_numpy(values), out, 3)
    assert out.to_numpy()[0] == values[0] + np.float32(3)
    with pytest.raises(KernelArgumentError, match="expected a GPUArray"):
        kernel[1, 1](2.5, out, 3)


def test_a_fault_after_one_is_told_at_its_column() -> None:
    source = "struct A { int x; };\n__global__ void k(const __grid_constant__ A p, nothing *q) {}\n"
    with pytest.raises(CompileError, match=rf":2:{source.splitlines()[1].index('nothing') + 1}: "):
        gp.jit(source, name="k")


def test_no_text_breaks_it() -> None:
    pieces = [
        "__grid_constant__",
        "const ",
        "A",
        " p",
        ",",
        "(",
        ")",
        "<",
        ">",
        "*",
        "&",
        "\n",
        "// x\n",
        "/* ,( */",
        "::",
    ]
    rng = random.Random()
    for _ in range(500):
        text = "".join(rng.choices(pieces, k=12))
        grid_constants(text, blank(text))
