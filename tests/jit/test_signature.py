"""The scanner of kernel signatures: the traps of C++ text that a compiler would not fall into."""

from __future__ import annotations

import pytest

from pygpukit.jit.source.parameters import Parameter
from pygpukit.jit.source.signature import KernelSignature, scan


def only(source: str, **defines: str) -> KernelSignature:
    kernels = scan(source, defines)
    assert len(kernels) == 1, [kernel.name for kernel in kernels]
    return kernels[0]


def parameter(declaration: str, before: str = "") -> Parameter:
    (found,) = only(f"{before}\n__global__ void k({declaration}) {{}}").parameters
    return found


def names(source: str, **defines: str) -> list[str]:
    return [kernel.name for kernel in scan(source, defines)]


def test_the_documented_kernel() -> None:
    kernel = only(
        """
extern "C" __global__
void scale(float* x, float factor, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) x[idx] *= factor;
}
"""
    )
    assert (kernel.name, kernel.line, kernel.extern_c, kernel.expression) == ("scale", 2, True, None)
    assert str(kernel) == "scale(float* x, float factor, int n)"
    assert [(p.kind, p.dtype, p.nbytes) for p in kernel.parameters] == [
        ("pointer", "float32", 8),
        ("scalar", "float32", 4),
        ("scalar", "int32", 4),
    ]


@pytest.mark.parametrize(
    ("text", "dtype", "nbytes"),
    [
        ("bool a", "bool", 1),
        ("char a", "int8", 1),
        ("signed char a", "int8", 1),
        ("unsigned char a", "uint8", 1),
        ("short int a", "int16", 2),
        ("unsigned short a", "uint16", 2),
        ("int a", "int32", 4),
        ("unsigned a", "uint32", 4),
        ("int unsigned a", "uint32", 4),
        ("long long a", "int64", 8),
        ("long long int a", "int64", 8),
        ("unsigned long long int a", "uint64", 8),
        ("long unsigned long a", "uint64", 8),
        ("size_t a", "uint64", 8),
        ("std::int32_t a", "int32", 4),
        ("cuda::std::uint8_t a", "uint8", 1),
        ("uint16_t a", "uint16", 2),
        ("const int64_t a", "int64", 8),
        ("int64_t const a", "int64", 8),
        ("float a", "float32", 4),
        ("double a", "float64", 8),
        ("half a", "float16", 2),
        ("__half a", "float16", 2),
        ("__nv_bfloat16 a", "bfloat16", 2),
        ("std::complex<float> a", "complex64", 8),
    ],
)
def test_scalars(text: str, dtype: str, nbytes: int) -> None:
    found = parameter(text)
    assert (found.name, found.kind, found.dtype, found.nbytes) == ("a", "scalar", dtype, nbytes)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("cudaTextureObject_t a", "texture"),
        ("const cudaTextureObject_t a", "texture"),
        ("cudaSurfaceObject_t a", "surface"),
        ("::cudaSurfaceObject_t a", "surface"),
    ],
)
def test_textures_and_surfaces(text: str, kind: str) -> None:
    found = parameter(text)
    assert (found.name, found.kind, found.dtype, found.nbytes) == ("a", kind, "uint64", 8)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("float* p", "float32"),
        ("float *p", "float32"),
        ("const float* __restrict__ p", "float32"),
        ("float const * const __restrict__ p", "float32"),
        ("volatile int* p", "int32"),
        ("float p[]", "float32"),
        ("float p[16]", "float32"),
        ("float p[][4]", "float32"),
        ("float (*p)[16]", "float32"),
        ("unsigned long long* p", "uint64"),
        ("__half* p", "float16"),
        ("float4* p", "float32"),
        ("const int3* p", "int32"),
        ("half2* p", "float16"),
        ("void* p", ""),
        ("float2* p", ""),
        ("struct Particle* p", ""),
        ("float** p", ""),
        ("ns::Table<float, 3>* p", ""),
        ("std::complex<double>* p", "complex128"),
        ("float& p", "float32"),
    ],
)
def test_pointers(text: str, dtype: str) -> None:
    found = parameter(text)
    assert (found.name, found.kind, found.dtype, found.nbytes) == ("p", "pointer", dtype, 8)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("float4 s", 16),
        ("double2 s", 16),
        ("uchar3 s", 3),
        ("dim3 s", 12),
        ("const __grid_constant__ CUtensorMap s", 128),
        ("Particle s", 0),
        ("std::pair<int, float> s", 0),
        ("void (*s)(int, float)", 8),
        ("long double s", 0),
    ],
)
def test_structs(text: str, nbytes: int) -> None:
    found = parameter(text)
    assert (found.name, found.kind, found.nbytes) == ("s", "struct", nbytes)


def test_unnamed_parameters_are_called_by_their_position() -> None:
    kernel = only("__global__ void k(float*, unsigned int, const half, int n) {}")
    assert [p.name for p in kernel.parameters] == ["arg0", "arg1", "arg2", "n"]
    assert [p.dtype for p in kernel.parameters] == ["float32", "uint32", "float16", "int32"]


def test_no_parameters() -> None:
    assert only("__global__ void k() {}").parameters == ()
    assert only("__global__ void k(void) {}").parameters == ()


@pytest.mark.parametrize(
    "before",
    [
        "typedef float real;",
        "using real = float;",
        "#define real float",
        "typedef float inner; using real = inner;",
        "#define inner float\n#define real inner",
        "namespace types { using real = float; }\nusing namespace types;",
    ],
)
def test_aliases(before: str) -> None:
    assert parameter("real* x", before).dtype == "float32"
    assert parameter("real x", before).nbytes == 4


def test_pointer_alias_enum_and_given_macro() -> None:
    assert parameter("rows x", "using rows = const double*;").dtype == "float64"
    assert parameter("rows* x", "using rows = const double*;").dtype == ""
    assert parameter("Mode m", "enum class Mode : unsigned char { A, B };").dtype == "uint8"
    assert parameter("Mode m", "enum Mode { A, B };").dtype == "int32"
    assert only("__global__ void k(T* x) {}", T="unsigned char").parameters[0].dtype == "uint8"


def test_a_cyclic_alias_ends() -> None:
    assert parameter("a x", "#define a b\n#define b a").kind == "struct"


def test_text_that_only_looks_like_a_kernel() -> None:
    source = r"""
// __global__ void in_comment(int a) {}
/* __global__ void in_block(int a) {} */
const char* a = "__global__ void in_string(int a) {}";
const char* b = R"x(
__global__ void in_raw(int a) {} )" still raw
)x";
char c = '"'; int d = 1'000'000;
#define MAKE __global__ void in_macro(int a) {}
__global__ void declared(int a);
template __global__ void instance<float>(float*);
struct S { friend __global__ void befriended(int); };
__global__ void real(int a) {}
"""
    assert names(source) == ["real"]


def test_an_include_before_a_kernel_makes_no_template() -> None:
    kernel = only("#include <cuda_fp16.h>\n__global__ void k(half* x) {}")
    assert kernel.template is None
    assert kernel.line == 2


def test_namespaces_and_linkage() -> None:
    source = """
namespace a::b { namespace { __global__ void hidden(int x) {} } inline namespace v1 { __global__ void inner() {} } }
namespace c = a::b;
extern "C" { __global__ void plain(int x) {} }
extern "C" __global__ void direct() {}
extern "C++" { __global__ void mangled() {} }
"""
    found = {kernel.name: kernel for kernel in scan(source)}
    assert list(found) == ["a::b::hidden", "a::b::v1::inner", "plain", "direct", "mangled"]
    assert [kernel.extern_c for kernel in found.values()] == [False, False, True, True, False]
    assert found["a::b::hidden"].short_name == "hidden"


@pytest.mark.parametrize(
    "head",
    [
        "__global__ void __launch_bounds__(128, 2) k",
        "__launch_bounds__(128, 2) __global__ void k",
        'extern "C" __global__ __launch_bounds__(128, 2) void k',
        "void __global__ __launch_bounds__(128, 2) k",
        "static __global__ __attribute__((used)) void __launch_bounds__(128, 2) k",
    ],
)
def test_launch_bounds_wherever_they_stand(head: str) -> None:
    kernel = only(f"{head}(float* x) {{ }}")
    assert (kernel.name, kernel.launch_bounds) == ("k", (128, 2))


def test_launch_bounds_through_macros() -> None:
    assert only("#define T 64\n__global__ void __launch_bounds__(T) k() {}").launch_bounds == (64,)
    assert only("__global__ void __launch_bounds__(T) k() {}", T="96").launch_bounds == (96,)
    assert only("__global__ void __launch_bounds__(2 * T, 3) k() {}", T="96").launch_bounds == (0, 3)


def test_templates() -> None:
    source = "template <typename T, int N = 4> __global__ void k(const T* x, T y, int n, Box<T, N> b) {}"
    kernel = only(source)
    assert kernel.template == ("T", "N")
    made = kernel.instantiate("k<half, 16>")
    assert str(made) == "k<half, 16>(const half* x, half y, int n, Box<half, 16> b)"
    assert [p.dtype for p in made.parameters] == ["float16", "float16", "int32", ""]
    assert made.template is None
    assert made.expression == "k<half, 16>"


def test_a_specialisation_is_a_kernel_of_its_own() -> None:
    source = "template <class T> __global__ void k(T* x) {}\ntemplate <> __global__ void k<float>(float* x) {}"
    generic, special = scan(source)
    assert generic.template == ("T",)
    assert (special.name, special.template) == ("k<float>", None)


def test_default_arguments_and_commas_inside() -> None:
    kernel = only("__global__ void k(std::pair<int, float> a = {1, 2}, int b = (3 < 4), int c = f(1, 2)) {}")
    assert [p.name for p in kernel.parameters] == ["a", "b", "c"]
    assert [p.dtype for p in kernel.parameters] == ["", "int32", "int32"]


def test_conditions() -> None:
    source = """
#if 0
__global__ void never(int a) {}
#elif defined(FAST) && FAST > 1
__global__ void fast(int a) {}
#else
__global__ void slow(int a) {}
#endif
#ifndef BLOCK
#define BLOCK 32
#endif
#if BLOCK == 32
__global__ void narrow(int a) {}
#endif
"""
    assert names(source) == ["slow", "narrow"]
    assert names(source, FAST="2", BLOCK="64") == ["fast"]


def test_an_unknown_condition_keeps_both_branches() -> None:
    source = "#if __CUDA_ARCH__ >= 900\n__global__ void a() {}\n#else\n__global__ void b() {}\n#endif"
    assert names(source) == ["a", "b"]
    assert names("#include <x.h>\n#ifdef FROM_X\n__global__ void a() {}\n#endif") == ["a"]
    assert names("#ifdef NOWHERE\n__global__ void a() {}\n#endif") == []


def test_one_name_with_two_parameter_lists_is_refused() -> None:
    source = "#ifdef __SOMETHING\n__global__ void k(int a) {}\n#else\n__global__ void k(float a) {}\n#endif"
    with pytest.raises(ValueError, match=r"'k' is defined twice .* lines 2 and 4"):
        scan(source)
    assert names(source.replace("float", "int")) == ["k"]


def test_dynamic_shared_memory() -> None:
    body = "extern __shared__ __align__(16) float tile[]; tile[0] = 1;"
    assert only(f"__global__ void k() {{ {body} }}").dynamic_shared
    assert not only("__global__ void k() { __shared__ float tile[16]; }").dynamic_shared
    assert only("extern __shared__ float tile[];\n__global__ void k() {}").dynamic_shared


def test_dimensions_of_the_indices() -> None:
    assert only("__global__ void k() { int i = threadIdx.x; }").dimensions == 1
    assert only("__global__ void k() { int i = blockIdx . y; }").dimensions == 2
    assert only("__global__ void k() { int i = gridDim.z; }").dimensions == 3
    assert only("__global__ void k(float4 v) { float a = v.y; }").dimensions == 1


def test_lines_count_through_every_kind_of_text() -> None:
    source = '\n/* a\n b */\n// c \\\n still c\n#define X 1 \\\n 2\nconst char* s = R"(\n\n)";\n__global__ void k() {}'
    assert only(source).line == source[: source.index("__global__")].count("\n") + 1


def test_windows_line_ends() -> None:
    assert str(only("#define T float\r\n__global__ void k(T* x,\r\n int n)\r\n{\r\n}\r\n")) == "k(T* x, int n)"
