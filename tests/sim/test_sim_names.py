"""What NVRTC has without a header, and what its front end lets pass: the simulator's compiler takes it, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import CompileError
from pygpukit.jit.compile import sim_lenient, simulator
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.sim_source import blank
from pygpukit.jit.compile.sim_specifiers import ordered
from pygpukit.jit.toolchain import nvrtc_candidates

NAMES = {
    "NULL": ("int *p = NULL; *o = p == NULL;", 1),
    "sizes": ("size_t a = 1; ptrdiff_t b = 2; *o = a + b;", 3),
    "clock": ("clock_t a = clock(); *o = sizeof(a) + 0 * clock();", 8),
    "variable arguments": ("va_list list; *o = sizeof(list) > 0;", 1),
    "runtime types": (
        "cudaStream_t s = 0; cudaEvent_t e = 0; cudaExtent x = {1, 2, 3}; *o = x.depth + (s == 0) + (e == 0);",
        5,
    ),
    "status": ("cudaError_t status = cudaErrorInvalidValue; *o = status + cudaSuccess + cudaMemcpyDeviceToDevice;", 4),
    "channel": ("cudaChannelFormatDesc d = {32, 0, 0, 0, cudaChannelFormatKindFloat}; *o = d.x + d.f;", 34),
    "flags": ("*o = cudaStreamNonBlocking + cudaEventDisableTiming;", 3),
    "incomplete types": ("cudaDeviceProp *p = 0; *o = p == 0;", 1),
    "move": ("int a = 3; int &&b = std::move(a); *o = std::forward<int>(b);", 3),
    "braced list": ("int sum = 0; for (int i : {1, 2, 3}) sum += i; *o = sum;", 6),
    "list": ("std::initializer_list<int> list = {4, 5}; *o = list.size() + *list.begin();", 6),
}


def with_nvrtc(source: str) -> None:
    if any(Path(path).is_file() for path in nvrtc_candidates()):
        compile_source(source, arch="sm_90a")


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("body", "value"), NAMES.values(), ids=NAMES)
def test_names_without_a_header(body: str, value: int, check: bool) -> None:
    source = f"__global__ void k(int *o) {{ {body} }}"
    with_nvrtc(source)
    out = gp.from_numpy(np.full(1, -7, "int32"))
    gp.jit(source, check=check)[1, 1](out)
    assert out.to_numpy()[0] == value


def test_the_version_of_the_runtime_is_told() -> None:
    source = """#if CUDART_VERSION < 12000
struct double3 { double x, y, z; };
#endif
__global__ void k(double3 *o) { o->x = __CUDACC_VER_MAJOR__ * 1000 <= CUDART_VERSION; }"""
    with_nvrtc(source)
    out = gp.from_numpy(np.zeros(3, "float64"))
    gp.jit(source)[1, 1](out)
    assert out.to_numpy()[0] == 1


def test_a_source_may_have_such_names_for_its_own() -> None:
    source = """#define cudaSuccess 41
#define NULL 0
struct move { int v; };
__global__ void k(int *o) { move forward = {1}; *o = cudaSuccess + forward.v + NULL; }"""
    out = gp.from_numpy(np.zeros(1, "int32"))
    gp.jit(source)[1, 1](out)
    assert out.to_numpy()[0] == 42


LENIENT = [
    "template <class T> __device__ T f(T x) { return nothing(1) + x; } __global__ void k(int *o) { *o = 42; }",
    "struct A { int v; }; struct B { A A; }; __global__ void k(int *o) { B b; b.A.v = 42; *o = b.A.v; }",
]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("source", LENIENT)
def test_what_its_front_end_lets_pass(source: str, check: bool) -> None:
    if "g++" not in simulator.compiler_identity():
        pytest.skip("only g++ takes these when it is told to be permissive")
    with_nvrtc(source)
    out = gp.from_numpy(np.zeros(1, "int32"))
    gp.jit(source, func="k", check=check)[1, 1](out)
    assert out.to_numpy()[0] == 42


@pytest.mark.parametrize(
    ("body", "line", "word"),
    [
        ("int *p = 5; *o = p == 0;", 2, "int"),  # a permissive g++ would take it
        ("*o = nothing(1);", 2, "nothing"),
        ("typename Q::type x; *o = 1;", 2, "Q"),
    ],
)
def test_other_faults_stay_faults(body: str, line: int, word: str) -> None:
    lenient = "template <class T> __device__ T f(T x) { return absent(1) + x; }"
    with pytest.raises(CompileError) as raised:
        gp.jit(f"{lenient}\n__global__ void k(int *o) {{ {body} }}", func="k", name="cell")
    assert f"cell:{line}:" in str(raised.value.log) and word in str(raised.value.log)


def test_only_messages_of_the_known_kinds_are_lenient() -> None:
    known = "a:1:2: error: there are no arguments to 'f' that depend on a template parameter, so [-fpermissive]"
    assert sim_lenient.only_lenient(known)
    assert not sim_lenient.only_lenient("") and not sim_lenient.only_lenient("a:1: note: nothing")
    assert not sim_lenient.only_lenient(f"{known}\na:2:1: error: invalid conversion [-fpermissive]")
    assert not sim_lenient.only_lenient("\n".join([known] * 20))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("__global__ void c() {}\n__global__ void k() { c<<<1, 1>>>(); }", ("k:2:", "dynamic parallelism", "Python")),
        ("extern __device__ int f(int);\n__global__ void k(int *o) { *o = f(1); }", ("k:2:", "f(int)", "#include")),
        (
            "#include <cooperative_groups.h>\n__global__ void k() { cooperative_groups::this_multi_grid().sync(); }",
            ("k:2:", "multi_grid_group", "one kernel a device"),
        ),
    ],
)
def test_what_cannot_run_is_refused_with_its_reason_and_remedy(source: str, words: tuple[str, ...]) -> None:
    with pytest.raises(CompileError) as raised:
        gp.jit(source, func="k", name="k")
    assert all(word in str(raised.value.log) for word in words), raised.value.log


def test_a_managed_variable_is_read_and_written_from_python() -> None:
    source = """namespace counts { __managed__ int total[2] = {3, 4}; }
__global__ void k(int n) { atomicAdd(&counts::total[threadIdx.x % 2], n); }"""
    kernel = gp.jit(source)
    kernel[1, 6](10)
    variable = kernel.globals["counts::total"]
    assert variable.space == "__managed__" and variable.read().tolist() == [33, 34]
    variable.write(np.array([1, 2], "int32"))
    kernel[1, 2](5)
    assert variable.read().tolist() == [6, 7]


def test_nvrtc_tells_the_symbol_of_a_managed_variable() -> None:
    if not any(Path(path).is_file() for path in nvrtc_candidates()):
        pytest.skip("needs NVRTC")
    source = "namespace n { __managed__ int m; } __managed__ float f[3]; __global__ void k(int *o) { *o = n::m; }"
    image = compile_source(source, arch="sm_90a")
    for expression in ("&n::m", "&f"):
        assert f" {image.symbol(expression)}" in image.ptx


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("__shared__ alignas(16) float x[4];", "alignas(16) __shared__ float x[4];"),
        ("  static __shared__  alignas( sizeof(int) ) int y;", "  alignas( sizeof(int) ) static __shared__ int y;"),
        ("alignas(8) __shared__ int z;", "alignas(8) __shared__ int z;"),
        ("// __shared__ alignas(16) int c;", "// __shared__ alignas(16) int c;"),
    ],
)
def test_alignas_goes_in_front_and_nothing_moves(given: str, wanted: str) -> None:
    found = ordered(given, blank(given))
    assert " ".join(found.split()) == " ".join(wanted.split()) and len(found) == len(given)
    assert found.rstrip().endswith(given.split()[-1])


def test_aligned_shared_memory_runs() -> None:
    source = """__global__ void k(int *o) {
  __shared__ alignas(64) char a[3];
  __shared__ alignas(32) int b;
  a[0] = 1; b = 2;
  *o = (size_t)a % 64 + (size_t)&b % 32 + a[0] + b;
}"""
    with_nvrtc(source)
    out = gp.from_numpy(np.zeros(1, "int32"))
    gp.jit(source, check=True)[1, 1](out)
    assert out.to_numpy()[0] == 3
