// mma_fp8.cuh: products of 8-bit floats that one warp makes of registers, on tensor cores, from SM 8.9 on.
#pragma once
#include "mma.cuh"

namespace pk {

// c += a @ b^T of 16 rows, 8 columns and 32 of k, summed with fewer bits than float32 has. Registers as of int8. From
// SM 9.0 to below 12.0 mma.sync has no fp8 of its own: there they are two products of float16, which has all of fp8.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
#define PK_MMA_8_BITS(Type, name)                                                                             \
  __device__ __forceinline__ void unpack(Type, Pair packed, Pair &low, Pair &high) {                          \
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.rn.f16x2." name "x2 %0, l; cvt.rn.f16x2." name "x2 %1, h;}" \
        : "=r"(low), "=r"(high)                                                                               \
        : "r"(packed));                                                                                       \
  }                                                                                                           \
  __device__ __forceinline__ void mma(Type type, float(&c)[4], const Pair(&a)[4], const Pair(&b)[2]) {        \
    Pair left[2][4], right[2][2];                                                                             \
    for (int i = 0; i < 4; ++i) unpack(type, a[i], left[0][i], left[1][i]);                                   \
    for (int i = 0; i < 2; ++i) unpack(type, b[i], right[0][i], right[1][i]);                                 \
    for (int i = 0; i < 2; ++i) mma(half_t{}, c, left[i], right[i]);                                          \
  }
#else
#define PK_MMA_8_BITS(Type, name)                                                                 \
  __device__ __forceinline__ void mma(Type, float(&c)[4], const Pair(&a)[4], const Pair(&b)[2]) { \
    asm("mma.sync.aligned.m16n8k32.row.col.f32." name "." name                                    \
        ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                              \
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                          \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                      \
  }
#endif
PK_MMA_8_BITS(e4m3_t, "e4m3")
PK_MMA_8_BITS(e5m2_t, "e5m2")
#undef PK_MMA_8_BITS

}  // namespace pk
