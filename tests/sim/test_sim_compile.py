"""The simulated device's compiler: what is refused and where, what is passed on, which program does it, and Ctrl-C."""

from __future__ import annotations

from pathlib import Path

import pytest
from interrupts import interrupt
from scheduler_help import wait_until

from pygpukit.core.errors import CompileError
from pygpukit.jit.compile import sim_source, simulator

KERNEL = "__global__ void k(int *o) { o[threadIdx.x] = threadIdx.x; }"


words_of_gnu = pytest.mark.skipif("g++" not in simulator.find_compiler()[0], reason="messages of g++ are compared")


def errors(source: str, *expressions: str, name: str = "In[5]") -> list[tuple[int, int, str]]:
    with pytest.raises(CompileError) as caught:
        simulator.compile(source, name=name, name_expressions=expressions)
    assert all(one.file == name for one in caught.value.diagnostics)
    return [(one.line, one.column, one.message) for one in caught.value.diagnostics if one.severity == "error"]


@words_of_gnu
@pytest.mark.parametrize(
    ("source", "line", "column", "words"),
    [
        ("__global__ void k(int *o) {\n  o[threadIdx.x] = missing;\n}", 2, 20, "missing"),
        ("__global__ void k(float *o) {\n  extern __shared__ float s[]; s[0] = missing;\n}", 2, 39, "missing"),
        ("__global__ void k(float *o) {\n  extern __shared__\n  float s[];\n  s[0] = missing;\n}", 4, 10, "missing"),
        ("extern __shared__ float s[];  int f() { return missing; }\n" + KERNEL, 1, 48, "missing"),
        ("struct b { int a[3]; };\n__global__ void k(b *o) {\n  *o = __shfl_sync(~0u, o[1], 0);\n}", 3, 19, "8 byte"),
        ("__device__ float f(float);\n__global__ void k(float *o) {\n  o[0] = f(1);\n}", 3, 0, "declared and not def"),
        ("__global__ void k(long *o) {\n  atomicAdd(o, 1);\n}", 2, 13, "invalid conversion"),
        ("#include <vector>\n" + KERNEL, 1, 10, "No such file"),
        (KERNEL[:-1] + "\n\n", 3, 0, "expected '}' at end of input"),
        ("// asm(1)\n__global__ void k(int *o) {\n  asm volatile(\"tcgen05.alloc;\");\n}", 3, 17, "inline PTX"),
        ("__global__ void p() {\n  k<<<1, 1>>>();\n}", 2, 4, "launch kernels"),
        ("#define S \"<<<\"\ntexture<float, 1> t;\n" + KERNEL, 2, 1, "cudaTextureObject_t"),
    ],
)  # fmt: skip
def test_errors_are_told_at_the_users_place(source: str, line: int, column: int, words: str) -> None:
    found = errors(source)
    assert found[0][:2] == (line, column) and words in found[0][2], found


@words_of_gnu
def test_errors_of_name_expressions_name_them() -> None:
    template = "\ntemplate <class T> __global__ void k(T *o) {\n  o[0] = T::value;\n}"
    assert errors(template, "k<float>") == [(3, 13, "'value' is not a member of 'float'")]
    assert errors(template, "k<nothing>") == [(2, 0, "kernel k<nothing>: 'nothing' was not declared in this scope")]


CLANG_LOG = """
In file included from <built-in>:1:
/tmp/headers/pk_sim_warp.h:20:3: error: static assertion failed: at most 8 bytes
/tmp/headers/pk_sim_warp.h:27:60: note: in instantiation of function template specialization 'f<b>' requested here
c.cu:3:8: note: in instantiation of function template specialization '__shfl_sync<b>' requested here
c.cu:4:1: error: use of undeclared identifier 'x'
/tmp/headers/pk_sim_math.h:9:1: error: a fault of ours
2 errors generated.
"""


def test_the_messages_of_clang() -> None:
    prepared = sim_source.prepare(KERNEL, "c.cu")
    assert sim_source.readable_log(CLANG_LOG, "c.cu", prepared, KERNEL).splitlines() == [
        "c.cu:3:8: error: static assertion failed: at most 8 bytes (in pk_sim_warp.h:20)",
        "c.cu:4:1: error: use of undeclared identifier 'x'",
        "c.cu:1: error: a fault of ours (in pk_sim_math.h:9)",
    ]


def test_what_looks_refused_in_comments_and_strings_is_not() -> None:
    source = '/* asm("x") <<< */ // tex2D<float>(\n' + KERNEL + '\n__device__ const char *text = "asm(<<<texture<";\n'
    assert simulator.compile(source).kernels == ("k",)


def test_a_source_can_tell_the_simulator_from_a_gpu() -> None:
    source = """
__device__ int lane() {
#ifdef PYGPUKIT_SIM
  return threadIdx.x % 32;
#else
  int lane; asm("mov.u32 %0, %laneid;" : "=r"(lane)); return lane;
#endif
}
#if defined(PYGPUKIT_SIM) && __CUDA_ARCH__ >= 900
__global__ void here(int *o) { o[threadIdx.x] = lane(); }
#else
__global__ void there(int *o) {}
#endif
"""
    assert simulator.compile(source).kernels == ("here",)


def test_kernels_of_a_source() -> None:
    source = """
#include <cuda_fp16.h>
namespace a::b { __global__ void inner(half *x) {} }
namespace { static __global__ void hidden() {} }
extern "C" { __global__ void plain(int k) {} }
extern "C" __global__ void __launch_bounds__(64) bounded() {}
template <int N, class T> __global__ void many(T *x) {}
__global__ void forward(int);
__global__ void forward(int) {}
// __global__ void not_this() {}
"""
    image = simulator.compile(source, name_expressions=["many<3, float>", "a::b::inner"])
    assert set(image.kernels) == {"a::b::inner", "hidden", "plain", "bounded", "forward", "many<3, float>"}
    assert image.image.startswith(b"\x7fELF") and image.log == ""


def test_macros_includes_and_standards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.cuh").write_text("__device__ int helper() { return FROM_OPTION + FROM_DEFINE; }\n")
    source = '#include "mine.cuh"\n#include <stdint.h>\nauto f = [](auto x) { return x; };\n' + KERNEL
    source += "\n__global__ void j(uint32_t *o) { if constexpr (requires { helper(); }) o[0] = INT_MAX; }"
    options = ["-DFROM_OPTION=1", "--std=c++20", f"-I{tmp_path}", "--use_fast_math", "--maxrregcount=32"]
    assert simulator.compile(source, options=options, defines=["FROM_DEFINE=2"]).kernels == ("k", "j")
    monkeypatch.chdir(tmp_path)  # quoted includes are looked for where the process is, as NVRTC does
    simulator.compile(source, options=["--std=c++20"], defines=["FROM_DEFINE=2", "FROM_OPTION"])
    with pytest.raises(ValueError, match="--frobnicate"):
        simulator.compile(KERNEL, options=["--frobnicate"])


def test_rewriting_keeps_lines_and_columns() -> None:
    source = "namespace n {\nextern __shared__ int a[];  int after;\n}\n"
    source += "void f() {\n  extern __shared__\n double b[][2];\n  g();\n}\n"
    lines = sim_source.prepare(source, "c.cu").text.splitlines()
    assert lines[0] == '#line 1 "c.cu"'
    assert lines[2] == "PK_SIM_STATE pk_sim_pointer<int []> a;"
    assert lines[3:5] == ['#line 2 "c.cu"', " " * 26 + "  int after;"]
    assert lines[7] == '  pk_sim_pointer<double [][2]> const b = pk_sim_dynamic<double [][2]>("b");'
    assert lines[8:11] == ['#line 6 "c.cu"', " " * 15, "  g();"]
    assert any('n::a = pk_sim_dynamic<int []>("a");' in line for line in lines)


def test_the_compiler_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_CXX", "no-such-compiler -x")
    with pytest.raises(simulator.CompilerNotFound, match="no-such-compiler -x"):
        simulator.find_compiler()
    monkeypatch.setenv("PYGPUKIT_SIM_CXX", "g++ -Wall")
    assert simulator.find_compiler() == ["g++", "-Wall"]
    monkeypatch.delenv("PYGPUKIT_SIM_CXX")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(simulator, "find_spec", lambda name: None)
    with pytest.raises(simulator.CompilerNotFound, match=r"pip install ziglang"):
        simulator.find_compiler()


def test_identity_has_no_paths() -> None:
    identity = simulator.compiler_identity()
    assert "/" not in identity and ", cpu " in identity and identity == simulator.compiler_identity()


def test_control_c_ends_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "pid"
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\nsleep 100 &\necho $! > {note}\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PYGPUKIT_SIM_CXX", str(slow))

    def started() -> bool:
        return note.exists() and note.read_text().endswith("\n")

    interrupt(lambda: simulator.compile(KERNEL), started)
    child = Path("/proc") / note.read_text().strip() / "stat"  # what the compiler had started ends with it

    def gone() -> bool:
        try:
            return child.read_text().split(") ")[1][0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    wait_until(gone)
