// fp4_mma.cuh: products of fp4 with fp4, scaled by blocks of k, that one warp makes on the tensor cores of SM 12.0.
//
// group = lane / 4 and four = lane % 4. c[0] and c[1] are of row `group` and columns 2 four and 2 four + 1; c[2] and
// c[3] of row group + 8. A register has eight codes of k from 8 four on: a[0] of row `group`, a[1] of row group + 8,
// a[2] and a[3] of these 32 of k further; b[0] of column `group`, b[1] 32 of k further. Scales of the 64 of k are
// bytes, those of the first block lowest: a's of row group + four % 2 * 8, b's of column `group`.
#pragma once
#include "fp4.cuh"

namespace pk {

#ifdef PYGPUKIT_SIM

__device__ __forceinline__ float code_of(unsigned codes, int which) {
  return widen(e2m1_t{static_cast<unsigned char>(codes >> 4 * which & 15u)});
}

// c += the sums of blocks of Block of k, in float32 and ascending order; a device sums in its own order.
template <class Scale, int Block>
__device__ inline void mma_blocks(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], unsigned a_scales,
                                  unsigned b_scales) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane / 4, four = lane % 4;
  unsigned scales[2][2];  // of the rows and of the columns that this lane sums
  for (int i = 0; i < 2; ++i) {
    scales[0][i] = __shfl_sync(0xffffffffu, a_scales, 4 * group + i);
    scales[1][i] = __shfl_sync(0xffffffffu, b_scales, 4 * (2 * four + i));
  }
  for (int eight = 0; eight < 8; ++eight) {
    unsigned codes[2][2];
    float factors[2][2];
    for (int i = 0; i < 2; ++i) {
      codes[0][i] = __shfl_sync(0xffffffffu, a[eight / 4 * 2 + i], 4 * group + eight % 4);
      codes[1][i] = __shfl_sync(0xffffffffu, b[eight / 4], 4 * (2 * four + i) + eight % 4);
      for (int side = 0; side < 2; ++side)
        factors[side][i] = widen(Scale{static_cast<unsigned char>(scales[side][i] >> eight * 8 / Block * 8)});
    }
    for (int i = 0; i < 4; ++i) {
      float sum = 0.0f;
      for (int k = 0; k < 8; ++k) sum += code_of(codes[0][i / 2], k) * code_of(codes[1][i % 2], k);
      c[i] = fmaf(factors[0][i / 2] * factors[1][i % 2], sum, c[i]);
    }
  }
}

#else

#define PK_BLOCKS(vector, scale)                                                                                    \
  asm("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::" vector ".f32.e2m1.e2m1.f32." scale \
      " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {%12,%12}, %11, "                                \
      "{%12,%12};"                                                                                                  \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                              \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(a_scales), "r"(b_scales), "h"(first))
// c += a @ b^T of 16 rows, 8 columns and 64 of k, of which each Block have a scale.
template <class Scale, int Block>
__device__ __forceinline__ void mma_blocks(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                           unsigned a_scales, unsigned b_scales) {
  const unsigned short first = 0;  // the lanes of four, and the bytes, that have the scales
  if constexpr (Block == 16) {
    PK_BLOCKS("4X", "ue4m3");
  } else {
    PK_BLOCKS("2X", "ue8m0");
  }
}
#undef PK_BLOCKS

#endif

}  // namespace pk
