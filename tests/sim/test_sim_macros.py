"""A user's macros do not reach the simulator's own headers, whatever their names."""

from __future__ import annotations

import itertools
import re
import string

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import CompileError
from pygpukit.jit.compile import sim_headers, simulator
from pygpukit.jit.launch.unit import Unit

_OTHERS = """
    value values result index size count length width height depth lane mask warp block thread grid tile row column rows
    columns key keys item items data input output source target first last begin end next previous left right low high
    lower upper bits bytes byte word words number numbers sum total mean scale factor offset stride step shift carry
    sign negative positive nearest rounded mode kind name type text file line place address pointer base memory shared
    local global state flag flags done found wanted given taken kept old fresh before after order rank device stream
    event kernel launch barrier fence self other both each all any none one two three four pair half real imaginary
    complex angle turn product quotient remainder divisor min max abs swap clamp lerp sqrt rsqrt exp log pow sin cos
    tan floor ceil round trunc fma hypot norm sigmoid relu tanh gelu softmax norm dot cross inverse identity zero unit
    MIN MAX ABS SWAP CLAMP PI TAU EPS EPSILON SIZE WIDTH HEIGHT DEPTH BLOCK BLOCK_SIZE TILE TILE_SIZE WARP WARP_SIZE
    THREADS BLOCKS ROWS COLS COLUMNS BATCH HEADS HEAD_DIM HIDDEN VOCAB LANES BITS BYTES COUNT LENGTH OFFSET STRIDE STEP
    REAL REAL_T FLOAT DOUBLE INT UINT BOOL VALUE RESULT INDEX IDX IDX2D DEBUG CHECK ASSERT UNROLL INLINE DEVICE HOST
    GLOBAL KERNEL RESTRICT CONST FORCE_INLINE real_t scalar_t value_t index_t T1 T2 T3 U1 V1 x0 x1 y0 y1 z0 z1 lo hi
    aligned noinline used unused section convergent packed vector deprecated unlikely likely noreturn visibility
"""
OTHERS = _OTHERS.split()
LETTERS = string.ascii_letters + "_"
NAMES = sorted(
    {*OTHERS, *string.ascii_letters, *map("".join, itertools.product(string.ascii_letters, LETTERS + string.digits))}
    - {"if", "do", "or"}
)
# What a source may include; those without an #include of their own go with the rest.
HEADERS = sorted(
    name
    for name in sim_headers._header_files()
    if not name.endswith(".cuh") and "pk_" not in name and name not in ("cuda_tile.h",)
)


def test_the_list_is_long() -> None:
    assert len(NAMES) > 3000
    assert {"N", "T", "value", "a", "lane", "mask", "min", "max", "x", "y"} < set(NAMES)


@pytest.mark.parametrize("checked", [False, True])
def test_every_header_compiles_under_any_macros(checked: bool) -> None:
    macros = "\n".join(f"#define {name} 1 %% +" for name in NAMES)
    includes = "\n".join(f"#include <{name}>" for name in HEADERS)
    kernel = 'extern "C" __global__ void __launch_bounds__(64) kernel_of_mine(float* __restrict__ array_of_mine) {}'
    made = simulator.compile(f"{macros}\n{includes}\n{kernel}", check=checked)
    assert made.kernels == ("kernel_of_mine",)


def test_so_they_do_under_macros_of_the_command_line() -> None:
    includes = "\n".join(f"#include <{name}>" for name in HEADERS)
    kernel = "__global__ void kernel_of_mine(float* array_of_mine) { array_of_mine[0] = VALUE; }"
    simulator.compile(f"{includes}\n{kernel}", defines=[f"{name}=7" for name in NAMES])


def test_the_tile_language_compiles_under_macros() -> None:
    taken = {"half", "float"}
    macros = "\n".join(f"#define {name} 1 %% +" for name in NAMES if name not in taken)
    made = simulator.compile(
        macros + "\n#include <cuda_tile.h>\n__tile_global__ void kernel_of_mine() {}", options=["-std=c++20"]
    )
    assert made.kernels == ("kernel_of_mine",)


def test_macros_mean_the_same_before_and_after_an_include() -> None:
    source = """
#define T float
#define N 5
#define min(p, q) ((p) + (q))
#include <cuda_fp16.h>
#include <math_constants.h>
__global__ void k(T* o) { o[0] = N; o[1] = min(N, 2); o[2] = __half2float(__float2half(1.5f)); o[3] = CUDART_PI_F > 3; }
"""
    x = gp.zeros(4)
    gp.jit(source)[1, 1](x)
    assert x.to_numpy().tolist() == [5, 7, 1.5, 1]


@pytest.mark.parametrize(
    ("options", "defines", "expected"),
    [
        (["-DA", "-UA"], {}, 0),
        (["-UA", "-DA=4"], {}, 4),
        (["-DA=1", "-DA=2"], {}, 2),
        (["-D", "A=3", "-U", "A"], {}, 0),
        (["--define-macro=A=3", "--undefine-macro=A", "-DA=5"], {}, 5),
        ([], {"A": 6}, 6),
        (["-UA"], {"A": 6}, 0),
        (["-DF(p)=p*2", "-DA=F(4)"], {}, 8),
        (["-U__CUDA_ARCH__"], {}, 9),
    ],
)
def test_the_order_of_definitions_counts(options: list[str], defines: dict[str, object], expected: int) -> None:
    source = """__global__ void k(int* o) {
#if !defined(__CUDA_ARCH__)
  o[0] = 9;
#elif defined(A)
  o[0] = A;
#else
  o[0] = 0;
#endif
}"""
    x = gp.full(1, -1, dtype="int32")
    gp.jit(source, options=options, defines=defines)[1, 1](x)
    assert x.tolist() == [expected]


def test_a_fault_in_a_macro_of_the_command_line_is_told_where_it_is_used() -> None:
    with pytest.raises(CompileError) as caught:
        simulator.compile("__global__ void k(int* o) {\n  o[0] = BAD;\n}", name="cell", defines=["BAD=1 +* ;"])
    assert re.search(r"cell:2:\d+: error:", caught.value.log)


def test_ndebug_on_the_command_line_and_in_the_source_takes_assertions_away() -> None:
    body = "__global__ void k(int* o) { assert(o[0] == 5); o[0] = 1; }"
    for source, options in ((body, ["-DNDEBUG"]), (f"#define NDEBUG\n#include <assert.h>\n{body}", [])):
        x = gp.zeros(1, dtype="int32")
        gp.jit(source, options=options)[1, 1](x)
        assert x.tolist() == [1]
    with pytest.raises(gp.DriverError, match=r"o\[0\] == 5"):
        gp.jit(f"#include <cassert>\n{body}")[1, 1](gp.zeros(1, dtype="int32"))
        gp.synchronize()


_KERNEL_NAMES = """
    abs labs ceil cos exp exp10f expm1 fabs floor fma fmax frexp hypot isnan isinf signbit ldexp log max min norm rnorm
    norm3d normcdf pow powf sqrt sqrtf rsqrt round sinf sincos tgamma trunc y0 y1f yn j0 jn nan erfinv cyl_bessel_i0
    printf malloc free clock clock64 memcpy memset memmove strlen strcmp time exit abort atoi qsort rand assert puts
    fopen remove system atomicAdd atomicCAS umin llmax div index read write pause signal raise kill main_ gamma
"""
KERNEL_NAMES = _KERNEL_NAMES.split()


@pytest.mark.parametrize("linkage", ["", 'extern "C" '])
def test_kernels_may_be_called_as_functions_are(linkage: str) -> None:
    body = "float a = x[0]; x[1] = expf(a) + fmaxf(a, 2.f) + sqrt(a); x[2] = (float)pow((double)a, 1.5); x[0] = n;"
    unit = Unit("".join(f"{linkage}__global__ void {name}(float* x, int n) {{ {body} }}\n" for name in KERNEL_NAMES))
    for name in KERNEL_NAMES:
        x = gp.from_numpy(np.array([4, 0, 0], np.float32))
        unit.kernel(name)[1, 1](x, 3)
        assert np.allclose(x.to_numpy(), [3, np.exp(4) + 4 + 2, 8]), name


def test_names_of_the_c_library_are_the_user_s_where_nothing_is_called() -> None:
    source = """
struct Point { float x0, y0, x1, y1; __device__ Point(float a, float b) : x0(a), y0(b), x1(a + 1), y1(b + 1) {} };
struct Log { int n; __device__ void assert(bool b) { n += b; } __device__ int printf(int v) { return v + n; } };
__global__ void k(float* o) {
  float yn(2.0f); int jn(4); Point p(1, 2); Log log{1};
  auto free = [&](float a) { o[1] += a; };
  free(3);
  log.assert(true);
  int malloc = 5;
  o[0] = yn + jn; o[2] = p.y0 + p.y1; o[3] = log.printf(malloc); o[4] = y0f(1.0f); o[5] = (float)::j1(1.0);
  assert(o[0] == 6);
}"""
    o = gp.zeros(6)
    gp.jit(source)[1, 1](o)
    assert np.allclose(o.to_numpy(), [6, 3, 5, 7, 0.08825696, 0.44005059])
