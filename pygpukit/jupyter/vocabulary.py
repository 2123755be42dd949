"""The words of CUDA C++ that a %%cuda cell completes: the built-in ones, and those that cells of the shell defined."""

from __future__ import annotations

import re

from pygpukit.jit.source.lexer import lex

_BUILT_IN = """
__global__ __device__ __host__ __shared__ __constant__ __managed__ __restrict__ __launch_bounds__ __forceinline__
__noinline__ threadIdx blockIdx blockDim gridDim warpSize dim3
__syncthreads __syncthreads_count __syncthreads_and __syncthreads_or __syncwarp __activemask
__threadfence __threadfence_block __threadfence_system
__shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync __ballot_sync __all_sync __any_sync
__match_any_sync __match_all_sync __reduce_add_sync __reduce_min_sync __reduce_max_sync __reduce_and_sync
__reduce_or_sync __reduce_xor_sync
atomicAdd atomicSub atomicExch atomicMin atomicMax atomicInc atomicDec atomicCAS atomicAnd atomicOr atomicXor
__ldg __ldcs __ldca __stcs __popc __popcll __clz __clzll __ffs __ffsll __brev __mul24 __fmaf_rn __frcp_rn
__fdividef __expf __logf __log2f __sinf __cosf __powf __saturatef __float2int_rn __int2float_rn __float_as_int
__int_as_float __float2half __half2float __float2bfloat16 __bfloat162float __nanosleep clock clock64 printf assert
sqrtf rsqrtf cbrtf expf exp2f expm1f logf log2f log10f log1pf powf sinf cosf tanf sincosf asinf acosf atanf atan2f
sinhf coshf tanhf erff erfcf tgammaf lgammaf fmaf fmaxf fminf fabsf floorf ceilf roundf truncf rintf fmodf hypotf
copysignf isnan isinf sqrt rsqrt exp log pow sin cos tan tanh fma fmax fmin fabs floor ceil round min max abs
int2 int3 int4 uint2 uint3 uint4 float2 float3 float4 double2 double3 double4 uchar4 char4 short2 short4 longlong2
make_int2 make_int3 make_int4 make_uint2 make_uint4 make_float2 make_float3 make_float4 make_double2 make_uchar4
half half2 __half __half2 __nv_bfloat16 __nv_bfloat162 size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t
uint64_t
alignas auto bool break case char class const constexpr continue default do double else enum extern false float for if
inline int long namespace nullptr operator return short signed sizeof static static_assert static_cast struct switch
template this true typedef typename union unsigned using void volatile while
"""
BUILT_IN = frozenset(_BUILT_IN.split())
_WORD = re.compile(r"[^\W\d]\w*")


class Vocabulary:
    """Names that cells of one shell defined at file scope: kernels, functions, types, variables, macros."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def learn(self, cell: str) -> None:
        """Take up the names that a cell defines."""
        self.names |= defined(cell)


def defined(source: str) -> set[str]:
    """Names that `source` defines outside functions and types, and its macros. Read from the tokens, so roughly."""
    unit = lex(source)
    names = set(unit.macros)
    words = [token.text for token in unit.tokens]
    depth = 0  # of braces that are not a namespace's, and of parentheses
    for at, word in enumerate(words):
        if word in "{([":
            depth += not (word == "{" and _opens_namespace(words, at))
        elif word in "})]":
            depth = max(depth - 1, 0)
        elif depth == 0 and _WORD.fullmatch(word) and word not in BUILT_IN:
            following = words[at + 1] if at + 1 < len(words) else ""
            if following in ("(", "[", "=", ";", "{", ":") or (at and words[at - 1] in ("struct", "class", "enum")):
                names.add(word)
    return names


def words_in(source: str) -> set[str]:
    """Every identifier of a source."""
    return {token.text for token in lex(source).tokens if _WORD.fullmatch(token.text)}


def _opens_namespace(words: list[str], at: int) -> bool:
    return "namespace" in words[max(at - 2, 0) : at] or words[max(at - 2, 0) : at] == ["extern", '"C"']
