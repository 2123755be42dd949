// mma.cuh: products that one warp makes of registers, on tensor cores.
//
// group = lane / 4 and four = lane % 4 say what a lane holds. The sums of a product: c[0] and c[1] are of row `group`
// and columns 2 four and 2 four + 1; c[2] and c[3] of row group + 8.
#pragma once
#include "storage.cuh"

namespace pk {

// Two elements of 16 bits, the first in the low half; or one of 32.
using Pair = unsigned;

// x y of both, rounded. The sum with -0 is the product, zeros' signs too; before SM 9.0 there is no product of
// bfloat16.
__device__ __forceinline__ Pair multiply(bfloat16_t, Pair x, Pair y) {
  Pair result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(0x80008000u));
  return result;
}
__device__ __forceinline__ Pair multiply(half_t, Pair x, Pair y) {
  Pair result;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(0x80008000u));
  return result;
}

// c += a @ b^T of 16 rows, 8 columns and 16 of k. a: of k 2 four and 2 four + 1 those of rows `group` and group + 8,
// then those 8 of k further; b: of column `group` the same.
__device__ __forceinline__ void mma(bfloat16_t, float (&c)[4], const Pair (&a)[4], const Pair (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma(half_t, float (&c)[4], const Pair (&a)[4], const Pair (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four matrices of 8 x 8 elements of 16 bits from shared memory. Lane i gives where row i % 8 of matrix i / 8 lies, 16
// bytes from a multiple of 16 on. It gets of each matrix elements 2 four and 2 four + 1 of row `group`; Transposed: of
// column `group`.
template <bool Transposed>
__device__ __forceinline__ void load_matrices(Pair (&to)[4], const void *row) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// A float rounded to tf32, middles away from zero.
__device__ __forceinline__ unsigned to_tf32(float value) {
  unsigned result;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
}

// c += a @ b^T of 16 rows, 8 columns and 8 of k, in tf32. a: of k `four` those of rows `group` and group + 8, then
// those 4 of k further; b: of column `group` the same.
__device__ __forceinline__ void mma(float, float (&c)[4], const Pair (&a)[4], const Pair (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// c += a @ b^T of 16 rows, 8 columns and 32 of k, exactly; sums wrap. A register has four elements, the first in the
// low byte. a: of k 4 four to 4 four + 3 those of rows `group` and group + 8, then those 16 of k further; b: of column
// `group` the same.
__device__ __forceinline__ void mma(signed char, int (&c)[4], const Pair (&a)[4], const Pair (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace pk
