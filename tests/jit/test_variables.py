"""The scanner of __device__ and __constant__ variables: what counts as one, its type and its extents."""

from __future__ import annotations

import pytest

from pygpukit.jit.source.signature import scan, scan_variables
from pygpukit.jit.source.variables import Variable


def only(declaration: str, **defines: str) -> Variable:
    found = scan_variables(declaration, defines)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("declaration", "dtype", "extents", "lanes"),
    [
        ("__device__ int x;", "int32", (), 0),
        ("__device__ unsigned long long int x;", "uint64", (), 0),
        ("static __constant__ float x[3] = {1, 2, 3};", "float32", (3,), 0),
        ("__constant__ static const double x[2][3] = {{1}, {2}};", "float64", (2, 3), 0),
        ("__device__ __align__(16) int4 x[5];", "int32", (5,), 4),
        ("__device__ alignas(16) short x[1 << 2];", "int16", (-1,), 0),
        ("__device__ float x[];", "float32", (-1,), 0),
        ("__device__ char x{5};", "int8", (), 0),
        ("__device__ float* x[4];", "uint64", (4,), 0),
        ("__device__ Node *x = nullptr;", "uint64", (), 0),
        ("__device__ Node x;", "", (), 0),
        ("__device__ Matrix<float, 4> x[2];", "", (2,), 0),
        ("__device__ volatile int x;", "int32", (), 0),
        ("using real = double; __device__ real x;", "float64", (), 0),
        ("enum Kind { A, B }; __device__ Kind x;", "int32", (), 0),
        ("#define N 4\n#define M (N / 2)\n__constant__ half x[N * M - 1];", "float16", (7,), 0),
        ("constexpr unsigned N = 4, M = 2; __constant__ int x[N];", "int32", (-1,), 0),
        ("static constexpr int N = 4; const int M = N % 3; __constant__ int x[N][M];", "int32", (4, 1), 0),
        ("__constant__ float x[sizeof(int)];", "float32", (-1,), 0),
        ("__device__ half2 x;", "float16", (), 2),
        ("__device__ cuComplex x[2];", "complex64", (2,), 0),
        ("__managed__ int x;", "int32", (), 0),
    ],
)
def test_types_and_extents(declaration: str, dtype: str, extents: tuple[int, ...], lanes: int) -> None:
    one = only(declaration)
    assert (one.name, one.dtype, one.extents, one.lanes) == ("x", dtype, extents, lanes)


@pytest.mark.parametrize(
    "text",
    [
        "__device__ float f(float x) { return x; }",
        "__device__ float f(float x);",
        "__host__ __device__ inline float f();",
        "struct S { __device__ S& operator=(const S& o) { return *this; } __device__ int f(); };",
        "__device__ bool operator==(const S& a, const S& b) { return true; }",
        "extern __constant__ float x[4];",
        "constexpr __device__ float pi = 3.14f;",
        "template <class T> __device__ T pi = T(3);",
        "__device__ __forceinline__ float4 operator+(float4 a, float4 b) { return a; }",
        "__global__ void k() { static __device__ int x; __shared__ int y[3]; }",
        "__device__ auto f = [](int x) { return x; };",
        "__device__ struct S { int a; } s;",
        "template <class T> __device__ int S<T>::member = 3;",
        "class C { static __device__ int member; };",
        "#ifdef __CUDA_ARCH__\n__device__ int x;\n#else\n__device__ float x;\n#endif",
        "#if 0\n__device__ int x;\n#endif",
        "// __device__ int x;",
        '__global__ void k() { printf("__device__ int x;"); }',
        "#define NAME x\n__device__ int NAME;",
        "#define VARIABLE(x) int x\n__device__ VARIABLE(y);",
        "__device__",
        "__device__ int",
        "__device__ int x[",
    ],
)
def test_what_is_no_variable(text: str) -> None:
    assert scan_variables(text) == ()


def test_what_follows_a_variable_is_still_read() -> None:
    source = """
    #ifndef GUARD
    #define GUARD
    namespace a { inline namespace v1 { __device__ int x, *y, z[2] = {1, 2}; } namespace { __constant__ char c; } }
    #endif
    #if SIZE > 3
    extern "C" { __device__ long long l; }
    #else
    __device__ short l;
    #endif
    __device__ int f() { int x; { return x; } }
    __global__ void k(float* p) {}
    """
    found = scan_variables(source, {"SIZE": "4"})
    assert [(one.name, one.dtype, one.extents) for one in found] == [
        ("a::v1::x", "int32", ()),
        ("a::v1::y", "uint64", ()),
        ("a::v1::z", "int32", (2,)),
        ("a::c", "int8", ()),
        ("l", "int64", ()),
    ]
    assert [kernel.name for kernel in scan(source)] == ["k"]
    assert (found[0].line, found[0].short_name, found[0].expression) == (4, "x", "&a::v1::x")


def test_const_is_of_the_variable_not_of_what_it_points_to() -> None:
    flags = {"const float x": True, "const float* x": False, "float* const x": True, "float const x[2]": True}
    assert {text: only(f"__device__ {text};").constant for text in flags} == flags


@pytest.mark.parametrize(
    ("declaration", "nbytes", "layout"),
    [
        ("float x[2][3]", 24, ("float32", (2, 3))),
        ("float x[][3]", 36, ("float32", (3, 3))),
        ("float x[UNKNOWN][3]", 24, ("float32", (2, 3))),
        ("float x[UNKNOWN][OTHER]", 24, ("float32", (6,))),
        ("float x[2]", 24, ("float32", (6,))),  # the image is right, the reading of the text was not
        ("float x", 7, ("uint8", (7,))),
        ("float3 x[2]", 24, ("float32", (2, 3))),
        ("Node x[2]", 24, ("uint8", (24,))),
        ("Node x", 0, ("uint8", (0,))),
        ("float x[0]", 0, ("float32", (0,))),
    ],
)
def test_the_layout_follows_the_size_in_the_image(
    declaration: str, nbytes: int, layout: tuple[str, tuple[int, ...]]
) -> None:
    assert only(f"__device__ {declaration};").layout(nbytes) == layout
