"""Kernels and parameter types that only a preprocessor or a compiler sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.jit.compile.nvrtc import get_nvrtc_version
from pygpukit.jit.compile.types import resolved
from pygpukit.jit.launch.unit import Unit
from pygpukit.jit.source.mangled import function_types

HEADER = """
typedef double real;
namespace deep { using word = unsigned short; enum Kind : unsigned char { A, B }; struct Own { float x, y; }; }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "types.cuh").write_text(HEADER)
    (tmp_path / "kernels.cuh").write_text(
        "#pragma once\n#define RUN __global__ void\nnamespace far { RUN away(int* o, int n) { o[0] = n; } }\n"
        "template <class T> __global__ void of(T* o) { o[0] = T(sizeof(T)); }\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("#define K __global__ void\nK one(int* o) { o[0] = 7; }\n__global__ void two(int* o) { o[0] = 7; }", ["one", "two"]),  # noqa: E501
        ("#define M(n) extern \"C\" __global__ void n##_k(int* o) { o[0] = 7; }\nM(a)\nM(b)", ["a_k", "b_k"]),
        ("#define ARGS int *o\n__global__ void k(ARGS) { o[0] = 7; }", ["k"]),
        ("#define PTR(t) t* __restrict__\n__global__ void k(PTR(int) o) { o[0] = 7; }", ["k"]),
        ("#define NAME real_name\n__global__ void NAME(int* o) { o[0] = 7; }", ["real_name"]),
        ("#define B __launch_bounds__(64)\n__global__ void B k(int* o) { o[0] = 7; }", ["k"]),
        ("#define OPEN namespace q {\n#define K __global__\nOPEN K void k(int* o) { o[0] = 7; } }", ["q::k"]),
    ],
)  # fmt: skip
def test_kernels_that_macros_make(source: str, names: list[str]) -> None:
    unit = Unit(source)
    assert list(unit.signatures) == names
    for name in names:
        o = gp.zeros(1, dtype="int32")
        unit.kernel(name)[1, 1](o)
        assert o.tolist() == [7]
        with pytest.raises(gp.KernelArgumentError):
            unit.kernel(name)[1, 1](gp.zeros(1))


@pytest.mark.parametrize("check", [False, True])
def test_a_condition_that_an_included_file_decides(folder: Path, check: bool) -> None:
    source = """#include <cuda_fp16.h>
#include "types.cuh"
#if defined REAL && REAL > 3
__global__ void first(int *o) { o[0] = 7; }
#else
__global__ void other(int *o) { o[0] = 8; }
#endif
#ifdef NOBODY_DEFINES_IT
__global__ void absent(int *o) { o[0] = 9; }
template <class T> __global__ void absent_too(T *o) { o[0] = 9; }
#if 1
namespace n { __global__ void absent(int *o) { o[0] = 9; } }
#endif
#elif defined(REAL)
__global__ void second(int *o) { o[0] = 7; }
#endif
__global__ void plain(int *o) { o[0] = 7; }"""
    (folder / "types.cuh").write_text("#define REAL 4")
    unit = Unit(source, include=[folder], check=check)
    assert sorted(unit.signatures) == ["first", "plain", "second"]
    for name in unit.signatures:
        o = gp.zeros(1, dtype="int32")
        unit.kernel(name)[1, 1](o)
        assert o.tolist() == [7]


def test_a_macro_of_the_command_line_may_hold_the_word() -> None:
    o = gp.zeros(1, dtype="int32")
    gp.jit("KERNEL k(int* o) { o[0] = 7; }", defines={"KERNEL": "__global__ void"})[1, 1](o)
    assert o.tolist() == [7]


def test_kernels_of_included_files(folder: Path) -> None:
    o = gp.zeros(1, dtype="int32")
    kernel = gp.jit('#include "kernels.cuh"\n', "away", include=[folder])
    assert [str(one) for one in kernel.signature.parameters] == ["int* o", "int n"]
    kernel[1, 1](o, n=9)
    assert o.tolist() == [9]
    gp.jit('#include "kernels.cuh"\n', "of<short>", include=[folder])[1, 1](x := gp.zeros(1, dtype="int16"))
    assert x.tolist() == [2]
    with pytest.raises(gp.KernelArgumentError):
        gp.jit('#include "kernels.cuh"\n', "of<short>", include=[folder])[1, 1](o)
    with pytest.raises(ValueError, match="not found"):
        gp.jit('#include "kernels.cuh"\n', "nowhere", include=[folder])


@pytest.mark.parametrize(
    ("before", "parameter", "right", "wrong"),
    [
        ('#include "types.cuh"', "real* x", "float64", "float32"),
        ('#include "types.cuh"', "const deep::word* x", "uint16", "int32"),
        ('#include "types.cuh"', "deep::Kind* x", "uint8", "int32"),
        ("namespace a { using T = float; } namespace b { using T = double; }", "a::T* x", "float32", "float64"),
        ("namespace a { using T = float; } namespace b { using T = double; }", "b::T* x", "float64", "float32"),
        ("template <class T> struct Of { typedef T type; };", "Of<long long>::type* x", "int64", "int32"),
        ("struct S { using T = unsigned; };", "S::T* x", "uint32", "float32"),
        ("constexpr int f() { return 0; }", "decltype(f())* x", "int32", "float32"),
        ("using V = float4;", "V* x", "float32", "int32"),
        ("template <class T> using P = T*;", "P<double> x", "float64", "float32"),
    ],
)  # fmt: skip
def test_the_compiler_tells_the_element_type(folder: Path, before: str, parameter: str, right: str, wrong: str) -> None:
    kernel = gp.jit(f"{before}\n__global__ void k({parameter}) {{}}", include=[folder])
    kernel[1, 1](gp.zeros(8, dtype=right))
    with pytest.raises(gp.KernelArgumentError, match=right):
        kernel[1, 1](gp.zeros(8, dtype=wrong))
    gp.synchronize()


def test_numbers_of_types_from_elsewhere_are_converted(folder: Path) -> None:
    source = (
        '#include "types.cuh"\n__global__ void k(double* o, real a, deep::word b, deep::Kind c) { o[0] = a + b + c; }'
    )
    o = gp.zeros(1, dtype="float64")
    gp.jit(source, include=[folder])[1, 1](o, 2.5, 3, 1)
    assert o.tolist() == [6.5]


def test_a_template_s_default_argument_counts() -> None:
    kernel = gp.jit("template <class T = float, int N = 3> __global__ void k(T* x, T y) { x[0] = y * N; }", "k<>")
    kernel[1, 1](x := gp.zeros(2), 1.5)
    assert x.tolist() == [4.5, 0]
    with pytest.raises(gp.KernelArgumentError):
        kernel[1, 1](gp.zeros(2, dtype="int32"), 1.5)


def test_structures_take_what_they_took(folder: Path) -> None:
    kernel = gp.jit(
        '#include "types.cuh"\n__global__ void k(deep::Own* o, deep::Own s) { o[0] = s; }', include=[folder]
    )
    o = gp.zeros(2)
    kernel[1, 1](o, np.array([3, 4], np.float32).tobytes())
    assert o.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("symbol", "types"),
    [
        ("_Z10__pk_typesIPFvPdPKdEEvv", ("*float64", "*float64")),
        ("_Z10__pk_typesIPFvPf6float4iEEvv", ("*float32", "float32x4", "int32")),
        ("_Z10__pk_typesIPFvP6__halfS1_S1_EEvv", ("*float16", "*float16", "*float16")),
        ("_Z10__pk_typesIPFvPN4deep3OwnES1_EEvv", ("*", "")),
        ("_Z10__pk_typesIPFvRA4_KfPvPPfEEvv", ("*float32", "*", "*")),
        ("_Z10__pk_typesIPFvvEEvv", ()),
        ("_Z10__pk_typesIPFvP4PairIiLi3EEjEEvv", ("*", "uint32")),
        ("k", None),
        ("_Z10__pk_typesIPFv", None),
    ],
)
def test_types_in_symbols(symbol: str, types: tuple[str, ...] | None) -> None:
    assert function_types(symbol) == types


@pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (pygpukit[cuda13])")
def test_nvrtc_tells_types_too(folder: Path) -> None:
    source = (
        '#include "types.cuh"\n'
        'extern "C" __global__ void k(real* x, const deep::word* w, deep::Own* o, real a, float* y) {}\n'
        "template <class T = float> __global__ void t(T* x) {}\n"
    )
    unit = Unit(source, include=[folder], arch="sm_90a", name_expressions=["t<>"])
    found = resolved(unit, unit.signatures["k"]).parameters
    assert [(one.kind, one.dtype) for one in found] == [
        ("pointer", "float64"), ("pointer", "uint16"), ("pointer", ""), ("scalar", "float64"), ("pointer", "float32"),
    ]  # fmt: skip
    assert resolved(unit, unit.signatures["t<>"]).parameters[0].dtype == "float32"
