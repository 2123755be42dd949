// fp4_mma.cuh: products of fp4 with fp4, scaled by blocks of k, that one warp makes on the tensor cores of SM 12.0.
//
// group = lane / 4 and four = lane % 4. c[0] and c[1] are of row `group` and columns 2 four and 2 four + 1; c[2] and
// c[3] of row group + 8. A register has eight codes of k from 8 four on: a[0] of row `group`, a[1] of row group + 8,
// a[2] and a[3] of these 32 of k further; b[0] of column `group`, b[1] 32 of k further. Scales of the 64 of k are
// bytes, those of the first block lowest: a's of row group + four % 2 * 8, b's of column `group`.
#pragma once
#include "fp4.cuh"

namespace pk {

// c += a @ b^T of 16 rows, 8 columns and 64 of k, of which each Block have a scale.
template <class Scale, int Block>
__device__ __forceinline__ void mma_blocks(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                           unsigned a_scales, unsigned b_scales) {
  const unsigned short first = 0;  // the lanes of four, and the bytes, that have the scales
  if constexpr (Block == 16) {
    asm("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {%12,%12}, %11, {%12,%12};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(a_scales), "r"(b_scales), "h"(first));
  } else {
    asm("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {%12,%12}, %11, {%12,%12};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(a_scales), "r"(b_scales), "h"(first));
  }
}

}  // namespace pk
