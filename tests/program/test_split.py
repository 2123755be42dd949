"""The two sides of a program's text: what each keeps, that lines stay, and what becomes of launches and lambdas."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pygpukit.program.declarations import declarations
from pygpukit.program.device import device_text
from pygpukit.program.flat import flat
from pygpukit.program.host import host_text
from pygpukit.program.unit import Unit


def host(text: str) -> str:
    return host_text(Unit(text, "p.cu"), lambda name: name == "mma.h")


def device(text: str) -> str:
    return device_text(Unit(text, "p.cu"), lambda name: name == "cooperative_groups.h")


@pytest.mark.parametrize(
    ("launch", "written"),
    [
        ("k<<<1, 2>>>(x);", "pk_configure(1, 2), k(x);"),
        ("ns::k<float, 4> <<< g, b, 0, s >>> (x);", "pk_configure(g, b, 0, s), ns::k<float, 4>  (x);"),
        (
            "if (a) k<<<(n + 1) / 2, dim3(1, 2)>>>(x, y < 3);",
            "if (a) pk_configure((n + 1) / 2, dim3(1, 2)), k(x, y < 3);",
        ),
        ("::k<<<1, 1>>>();", "pk_configure(1, 1), ::k();"),
        ("table[i].kernel<<<1, 1>>>(x);", "pk_configure(1, 1), table[i].kernel(x);"),
        ("(*chosen)<<<1, 1>>>(x);", "pk_configure(1, 1), (*chosen)(x);"),
        ("k<(N > 2)><<<1, 1>>>(x);", "pk_configure(1, 1), k<(N > 2)>(x);"),
    ],
)
def test_a_launch_becomes_a_call(launch: str, written: str) -> None:
    assert host(f"void f() {{ {launch} }}") == f"void f() {{ {written} }}"


def test_a_launch_over_lines_keeps_them() -> None:
    text = "void f() {\n  k<<<g,  // blocks\n      b>>>(x,\n           y);\n  end();\n}"
    lines = host(text).split("\n")
    assert lines[1] == "  pk_configure(g,          b), k"
    assert (lines[2], lines[3], lines[4], len(lines)) == ("(x,", "           y);", "  end();", 6)


def test_a_launch_in_a_macro_and_none_in_strings_or_comments() -> None:
    text = '#define RUN(k, ...) k<<<1, \\\n  2>>>(__VA_ARGS__)\nvoid f() { p("a<<<1, 1>>>()"); } // k<<<1, 1>>>()\n'
    out = host(text)
    assert out.startswith("#define RUN(k, ...) pk_configure(1,    2), k\\\n(__VA_ARGS__)\n")
    assert 'p("a<<<1, 1>>>()"); } // k<<<1, 1>>>()' in out


def test_a_shift_is_no_launch() -> None:
    text = "int f(int a) { return a << 2 >> 1; }"
    assert host(text) == text


@pytest.mark.parametrize(
    ("kernel", "stub"),
    [
        ("__global__ void k(float *a, int n)", "(const void *)(void (*)(float *, int))&k, a, n"),
        ("template <class T, int N> __global__ void k(T (*f)(T), const T x[N])",
         "(const void *)(void (*)(T (*)(T), const T [N]))&k<T, N>, f, x"),
        ("template <typename... Ts> __global__ void k(Ts... all)", "(const void *)(void (*)(Ts...))&k<Ts...>, all..."),
        ("template <> __global__ void k<int>(int *a)", "(const void *)(void (*)(int *))&k<int>, a"),
        ('extern "C" __global__ void __launch_bounds__(256, 2) k(void)', "(const void *)(void (*)())&k"),
        ("__global__ __launch_bounds__(N) void k(const std::pair<int, int> p = {})",
         "(const void *)(void (*)(const std::pair<int, int>))&k, p"),
    ],
)  # fmt: skip
def test_a_kernel_becomes_a_stub(kernel: str, stub: str) -> None:
    assert host(f"{kernel} {{ work(); }}\n").endswith(f"{{ pk_launch_stub({stub}); }}\n")


def test_parameters_without_names_get_some() -> None:
    out = host("__global__ void k(int, float *, unsigned long) { }")
    assert "k(int pk_parameter_0, float * pk_parameter_1, unsigned long pk_parameter_2)" in out


def test_the_host_keeps_what_is_for_both_and_loses_what_is_the_devices() -> None:
    out = host(
        "__device__ float only(float x) { return __expf(x); }\n"
        "__host__ __device__ int both(int x) { return x + 1; }\n"
        "struct P { float x; __device__ float up() { return __ldg(&x); } float host() { return x; } };\n"
        "#define FN __device__ __forceinline__\nFN int named(int x) { return __clz(x); }\nint (*p)(int) = named;\n"
        "#include <mma.h>\nusing namespace nvcuda;\n"
    )
    assert "namespace nvcuda {" in out
    assert "only" not in out and "__ldg" not in out and "__clz" not in out and "mma.h" not in out
    assert "return x + 1;" in out and "float host() { return x; }" in out
    assert "int named(int x) { __builtin_trap(); }" in out
    assert out.count("\n") == 8


def test_the_device_sees_no_namespace_of_the_hosts_library() -> None:
    out = device(
        "using namespace std;\nusing namespace std::chrono;\nusing namespace cuda::std;\n__global__ void k() {}\n"
    )
    assert out.split("\n")[:3] == ["                    ", " " * 28, "using namespace cuda::std;"]


def test_managed_variables_are_known_to_be_reached_by_others() -> None:
    out = host("static __managed__ int a[4], b;\n")
    assert out.startswith("static __managed__ int a[4], b; static const void *const pk_address_of_a __attribute__")
    assert "= &a;" in out and "= &b;" in out and out.count("\n") == 1


def test_the_device_keeps_what_its_kernels_reach() -> None:
    text = (
        "#include <vector>\n#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
        "constexpr int N = 4;\nconst int unused = 5;\nenum Mode { FAST, SLOW };\nusing Real = float;\n"
        "struct Point { Real x; std::string text() { return std::to_string(x); } };\n"
        "struct Log { std::vector<int> all; };\n#define SIZE (N * 2)\nint global_of_host = 3;\n"
        "static __constant__ float table[SIZE];\nvoid helper();\n"
        "__global__ void k(Point *p, Mode m) { if (m == FAST) p[0].x = table[0]; }\n"
        "int main() {\n  Log log;\n  return 0;\n}\n"
    )
    out = device(text)
    assert out.count("\n") == text.count("\n") and len(out) == len(text)
    for kept in (
        "constexpr int N = 4;",
        "enum Mode",
        "using Real",
        "struct Point { Real x;",
        "static __constant__",
        "cg =",
    ):
        assert kept in out
    for gone in ("<vector>", "unused", "std::", "Log", "global_of_host", "helper", "main"):
        assert gone not in out


def test_macros_stay_where_code_around_them_goes() -> None:
    out = device("int main() {\n#define N 3\n  return 0;\n}\n__global__ void k(int *x) { x[0] = N; }\n")
    assert out.split("\n")[1] == "#define N 3" and "return" not in out


def test_a_lambda_becomes_a_class_of_both_sides() -> None:
    text = (
        "template <class T> void fill(T *p, T v, int n) {\n"
        "  int other = 2;\n"
        "  run(n, [=] __device__ (int i) { int twice = 2; p[i] = v * twice; });\n"
        "}\n"
    )
    name = f"pk_lambda_p_cu_{text.index('[=]')}"
    types = "std::decay_t<decltype(p)>, std::decay_t<decltype(v)>"
    out = host(text)
    assert out.startswith(f"template <class T, class PkType0, class PkType1> struct {name} {{ PkType0 p; PkType1 v; ")
    assert f"run(n, {name}<T, {types}>{{p, v}});" in out
    there = device(text)
    assert f"struct {name} {{ PkType0 p; PkType1 v; __host__ __device__ auto operator()(int i) const " in there
    assert "fill" not in there and '#line 3 "p.cu"\n' in there


def test_named_captures_and_what_cannot_be_captured() -> None:
    out = host("void f() { run([a, b = g(1)] __host__ __device__ () mutable -> int { return a + b; }); }")
    assert "PkType0 a; PkType1 b; __host__ __device__ auto operator()() -> int { return a + b; }" in out
    assert "<std::decay_t<decltype(a)>, std::decay_t<decltype(g(1))>>{a, g(1)}" in out
    text = "void f() { run([&] __device__ () { x = 1; }); }"
    assert host(text) == text


def test_declarations_and_where_they_are() -> None:
    code = (
        "namespace a { namespace b { struct S { S(int x) : v{x}, w(1) { } int v, w; }; } }\n"
        "S::S() { } float x{3}, *y = f(1); int g(); int h(3); bool operator<(S a, S b) { return 1; }\n"
        "enum class E : int { A = 1, B } e; template <int N = (3 > 2)> struct T { }; using U = T<1>;"
    )
    found = [(one.kind, one.qualified, one.names) for one in declarations(code, {})]
    assert found == [
        ("class", "a::b::S", ("S",)),
        ("function", "S::S", ("S",)),
        ("variable", "x", ("x", "y")),
        ("function", "g", ("g",)),
        ("variable", "h", ("h",)),
        ("function", "operator<", ("operator<",)),
        ("class", "E", ("E", "e", "A", "B")),
        ("class", "T", ("T",)),
        ("alias", "", ("U",)),
    ]
    assert [one.name for one in declarations(code, {})[0].members] == ["S", "w"]


def test_headers_of_the_user_are_put_in_once(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "a.h").write_text('#pragma once\n#include "b.h"\nint a;\n')
    (tmp_path / "inc" / "b.h").write_text("#ifndef B_H\n#define B_H\nint b;\n#endif\n")
    text = '#include "a.h"\n#include <b.h>\n// #include "a.h"\n#include <vector>\nint c;\n'
    out = flat(text, "p.cu", tmp_path, [tmp_path / "inc"])
    assert out.count("int a;") == 1 and out.count("int b;") == 1
    lines = out.split("\n")
    unit = Unit(out, "p.cu")
    assert unit.place(out.index("int c")) == ("p.cu", 5)
    assert unit.place(out.index("int b")) == (str(tmp_path / "inc" / "b.h"), 3)
    assert "#include <vector>" in lines and '// #include "a.h"' in lines


def test_kernels_that_share_a_name_have_their_own_on_the_device() -> None:
    text = (
        "__global__ void k(int *a) { *a = 1; }\n__global__ void k(float *a);\n"
        "template <class T, int N = 2> __global__ void k(T *a, int n);\n"
        "template <class T, int N> __global__ void k(T *a, int n) { *a = n; }\n"
        "template <> __global__ void k<int>(int *a, int n) { *a = 2; }\n__global__ void k(float *a) { *a = 1; }\n"
    )
    there = device(text)
    assert re.findall(r"\bk\w*(?:<int>)?\(", there) == [
        "k_overload_1(", "k_overload_2(", "k_overload_3(", "k_overload_3(", "k_overload_3<int>(", "k_overload_2(",
    ]  # fmt: skip
    out = host(text)
    assert out.count('abi_tag("overload_1")') == 1 and out.count('abi_tag("overload_2")') == 2
    assert out.count("class pk_overload = std::integral_constant<signed char, 3>>") == 1
    assert out.count(", class pk_overload>") == 1
    assert device("__global__ void one(int *a) { }\n").count("overload") == 0


def test_a_kernel_in_a_macro_becomes_a_stub_with_its_lines() -> None:
    text = (
        "#define MAKE(name, T) \\\n  __global__ void name ## _k(T *a) { \\\n    *a = 1; \\\n  } \\\n"
        "  void name() { name##_k<<<1, 2>>>(0); }\nMAKE(x, int)\nint main() { x(); }\n"
    )
    out = host(text)
    assert 'abi_tag("kernel")' in out and "&name##_k, a" in out and "*a = 1" not in out
    assert "pk_configure(1, 2), name##_k(0);" in out and out.count("\n") == text.count("\n")
    assert all(line.endswith("\\") for line in out.split("\n")[:4])
    there = device(text)
    assert "*a = 1;" in there and "<<<" not in there and "main" not in there and "MAKE(x, int)" in there


def test_declared_classes_and_names_of_namespaces_reach_the_device() -> None:
    there = device(
        "namespace n { template <class T> struct Late; struct Early { int x; }; }\nusing n::Early;\nusing std::min;\n"
        "__device__ int f(Early e) { return e.x + n::Late<int>::value + min(1, 2); }\n"
        "namespace n { template <class T> struct Late { static const int value = 1; }; }\n"
    )
    assert "struct Late;" in there and "using n::Early;" in there and "using std" not in there
