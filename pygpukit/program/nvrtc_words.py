"""C's limits, types and constants, for which NVRTC has no headers, and a program's text includes some."""

from __future__ import annotations

C_HEADERS = frozenset(
    ["assert.h", "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "ctime"]
    + [
        "float.h",
        "inttypes.h",
        "limits.h",
        "math.h",
        "stddef.h",
        "stdint.h",
        "stdio.h",
        "stdlib.h",
        "string.h",
        "time.h",
    ]
    + ["cinttypes"]
)
_BUILT_IN = frozenset(
    ["cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "vector_types.h", "vector_functions.h"]
    + ["builtin_types.h", "driver_types.h", "host_defines.h", "device_functions.h", "cuda.h", "math_functions.h"]
    + ["sm_20_atomic_functions.h", "sm_20_intrinsics.h", "sm_30_intrinsics.h", "sm_32_intrinsics.h", "texture_types.h"]
    + ["sm_35_intrinsics.h", "sm_60_atomic_functions.h", "surface_types.h", "curand.h", "cublas_v2.h", "cufft.h"]
)
PRELUDE = """\
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-9223372036854775807ll - 1)
#define ULLONG_MAX 18446744073709551615ull
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT32_MIN (-2147483647 - 1)
#define INT64_MAX 9223372036854775807ll
#define INT64_MIN (-9223372036854775807ll - 1)
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ull
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
"""


def has_header(name: str) -> bool:
    """True for the headers of CUDA that NVRTC reads: those of the toolkit, of CCCL and of cuRAND's device side."""
    if name in C_HEADERS or name in _BUILT_IN:
        return False
    folder = name.partition("/")[0]
    return (
        folder in ("cuda", "cub", "nv", "cooperative_groups", "thrust", "cute", "cutlass")
        or name.startswith(("cooperative_groups", "cuda_", "mma", "curand_"))
        or name in ("cuComplex.h", "math_constants.h")
    ) and not name.startswith(("cuda_gl", "cuda_profiler", "cuda_egl"))
