"""Templates that nobody instantiates: NVRTC takes whatever stands in their bodies, and so does the simulator."""

from __future__ import annotations

import random

import numpy as np
import pytest
from test_sim_names import with_nvrtc

import pygpukit as gp
from pygpukit.core.errors import CompileError
from pygpukit.jit.compile.sim_source import blank
from pygpukit.jit.source.templates import bodies

KERNEL = "\n__global__ void k(int *o) { *o = 42; }"
UNREAD = {
    "std": "template <class T> __global__ void f(T *x) { x[0] = std::min(x[0], std::max(x[1], x[2])); }",
    "types": "template <class T> __device__ T f(T x) { std::vector<T> v(3); Missing m; return v.at(x) + m.n; }",
    "no statements": "template <int N> __device__ void f() { these are no statements 12 + ; int int; }",
    "missing semicolon": "template <class T> __device__ int f(T x) { int y = 3 return x + y; }",
    "constexpr": "template <class T> constexpr __device__ int f(T x) { return absent::of(x) + there[3]; }",
    "automatic": "template <class T> __device__ auto f(T x) -> decltype(x + 1) { return absent::of(x); }",
    "in a struct": "struct S { template <class T> __device__ T f(T x) const noexcept { return std::abs(x); } int n; };",
    "of a class": "template <class T> struct S { __device__ T f(T x) { return std::abs(x); } T n; };\n"
    "__device__ int g(S<int> s) { return s.n; }",
    "constructor": "template <class T> struct S { T n; __device__ S(T x) : n{x} { std::swap(n, x); } };",
    "outside its class": "template <class T> struct S { __device__ T f(T x); };\n"
    "template <class T> __device__ T S<T>::f(T x) { return std::abs(x); }",
    "many": "".join(f"template <class T> __device__ T f{n}(T x) {{ return std::abs(a{n}::b); }}\n" for n in range(30)),
    "of a class, on the lines of its own": "namespace a { namespace {\ntemplate <typename T,\n int N = (1 > 0)>\n"
    "class S {\n public:\n  __device__ void f() {\n    std::sort(n, n + N);\n  }\n  T n[N];\n};\n}}",
    "beside a name that is declared later": "template <class T> __device__ int f(T x) { return later(1) + x; }\n"
    "template <class T> __device__ T g(T x) { return std::abs(x); }\n"
    "__device__ int later(int x) { return x; }",
    "PTX": 'template <int N> __device__ void f() { asm volatile("tcgen05.fence::%0;" :: "n"(N)); }',
    "shared": "template <class T> __global__ void f(T *x) { extern __shared__ T s[]; s[0] = std::min(x[0], x[1]); }",
}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("source", UNREAD.values(), ids=UNREAD)
def test_a_body_that_nobody_instantiates_is_not_read(source: str, check: bool) -> None:
    with_nvrtc(source + KERNEL)
    out = gp.from_numpy(np.zeros(1, "int32"))
    gp.jit(source + KERNEL, func="k", check=check)[1, 1](out)
    assert out.to_numpy()[0] == 42


@pytest.mark.parametrize(
    ("source", "places"),
    [
        # One line: the bodies' faults, and none of a body that nobody asks for.
        (
            "template <class T> __device__ T f(T x) { return std::abs(x); }\n__device__ int g() { return f(1); }",
            ["1:54"],
        ),
        (
            "template <class T> __device__ T f(T x) { return std::abs(x); }\n"
            "template <class T> __device__ T g(T x) {\n  return std::log(x);\n}\n"
            "__device__ float h() { return g(1.0f); }",
            ["3:15"],
        ),
        # What a parameter or a result is, NVRTC reads at once.
        ("template <class T> __device__ T f(T x, Missing y) { return x; }", ["1:40"]),
        # A full specialisation is a function.
        ("template <class T> int __device__ f(T x) { return 1; }\n"
         "template <> int __device__ f<int>(int x) { return missing; }", ["2:51"]),
        # So is what a plain function's lambda holds.
        ("__device__ int f() { auto g = [](auto x) { return missing; }; return 1; }", ["1:51"]),
        (
            'template <int N> __device__ void f() {\n  asm volatile("fence.sc.cta;\\n"\n'
            '    "tcgen05.fence::%0;" :: "n"(N)); }\n'
            "__device__ void g() { f<1>(); }",
            ["3:6"],
        ),
    ],
)  # fmt: skip
def test_faults_that_count_are_told_where_they_are(source: str, places: list[str]) -> None:
    with pytest.raises(CompileError) as raised:
        gp.jit(source + KERNEL, func="k", name="cell")
    errors = [line for line in str(raised.value.log).splitlines() if " error: " in line]
    assert [line.split(" error: ")[0] for line in errors] == [f"cell:{place}:" for place in places], errors
    assert "static assertion" not in str(raised.value.log)


def test_where_the_bodies_are() -> None:
    source = """
template <class T, int N = (3 > 2)> struct A : B<T> { A() : a{1}, b(2) {1} int f() const {2} struct C { void g(){3} };
  enum class E { x, y }; T n = {4}; template <int M> void h(int x[2]) {5} };
template <> struct A<int> { void f() {6} template <class U> auto g(U u) -> decltype(u) {7} };
namespace n { extern "C" { template <template <class> class T> void f(struct S s) __attribute__((noinline)) {8} } }
template <class T> constexpr T v = {9}; template <class T> using W = T; void f() {10} template void g<int>(int);
template <class T> T S<T>::operator()(int) && {11}"""
    code = blank(source)
    assert [source[body.start + 1 : body.end - 1] for body in bodies(code)] == ["1", "2", "3", "5", "7", "8", "11"]


def test_any_text_has_bodies_in_order() -> None:
    draw = random.Random(5)
    words = ("template <", "class T", ">", "{", "}", "(", ")", ";", "struct S", "void f", ",", ":", "<", "namespace n ")
    for _ in range(2000):
        code = "".join(draw.choice(words) for _ in range(draw.randrange(1, 40)))
        ends = [end for body in bodies(code) for end in (body.start, body.end)]
        assert ends == sorted(ends) and all(code[start] == "{" for start in ends[::2])


def test_a_long_text_is_read_once() -> None:
    code = "template <class T> void f(T x) { x(); }\n" * 20000
    assert len(bodies(code)) == 20000
    assert len(bodies("template <" * 5000)) == 0 and len(bodies("template <class T> void f() {" * 5000)) == 1
