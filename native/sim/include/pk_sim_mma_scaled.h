// pk_sim_mma_scaled.h: mma.sync with a scale for every block of k (block_scale) on the simulated device.
#pragma once
#pragma GCC system_header

#include "pk_sim_matrix.h"

struct pk_sim_mma_e2m1 {
  static constexpr int bits = 4;
  typedef float value;
  PK_SIM_MATRIX_INLINE float of(unsigned bits) {
    const unsigned size = bits & 7u;  // 0, 0.5, 1, 1.5, 2, 3, 4, 6
    const float number = size < 4 ? size * 0.5f : (float)((2u + (size & 1u)) << (size >> 2 & size >> 1 & 1u));
    return bits & 8u ? -number : number;
  }
};
struct pk_sim_mma_ue8m0 {
  PK_SIM_MATRIX_INLINE float of(unsigned bits) {
    if (bits == 255) return __uint_as_float(0x7fc00000u);
    return __uint_as_float(bits ? bits << 23 : 0x400000u);
  }
};
struct pk_sim_mma_ue4m3 {
  PK_SIM_MATRIX_INLINE float of(unsigned bits) { return pk_sim_mma_e4m3::of(bits & 0x7fu); }
};

// Which byte of which lanes' scales are of the first block: of a, lanes 2 * thread and the next of four have a row and
// that eight further; of b, lane `thread` of four has a column.
struct pk_sim_scales {
  unsigned words;
  unsigned byte, thread;
};
struct pk_sim_mma_scaled_frame {
  const pk_sim_warp_work *work;
  float *d;
  const unsigned *a, *b;
  const float *c;
  pk_sim_scales of_a, of_b;
};

// Products of eight of k are summed in ascending order, then scaled and added; a device sums in its own order.
template <int K, int Block, class A, class B, class S>
struct pk_sim_mma_scaled_whole {
  static PK_SIM_UNCHECKED void compute(void *const *frames) {
    typedef pk_sim_mma_scaled_frame Frame;
    float a[16][K], b[K][8], sum[16][8], a_scale[16][K / Block], b_scale[8][K / Block];
    for (int lane = 0; lane < 32; ++lane) {
      const Frame &own = *(const Frame *)frames[lane];
      for (int i = 0; i < 16 * K / 32; ++i) {
        const pk_sim_spot at = pk_sim_held<16, 32 / A::bits>(lane, i);
        a[at.row][at.column] = A::of(pk_sim_register_element<A::bits>(own.a, i));
      }
      for (int i = 0; i < 8 * K / 32; ++i) {
        const pk_sim_spot at = pk_sim_held<8, 32 / B::bits>(lane, i);
        b[at.column][at.row] = B::of(pk_sim_register_element<B::bits>(own.b, i));
      }
      for (int i = 0; i < 4; ++i) {
        const pk_sim_spot at = pk_sim_held<16, 2>(lane, i);
        sum[at.row][at.column] = own.c[i];
      }
      for (int block = 0; block < K / Block; ++block) {
        if (lane % 4 / 2 == (int)own.of_a.thread)
          a_scale[lane / 4 + lane % 2 * 8][block] = S::of(own.of_a.words >> 8 * (own.of_a.byte + block) & 255u);
        if (lane % 4 == (int)own.of_b.thread)
          b_scale[lane / 4][block] = S::of(own.of_b.words >> 8 * (own.of_b.byte + block) & 255u);
      }
    }
    for (int first = 0; first < K; first += 8)
      for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 8; ++column) {
          float eight = 0.0f;
          for (int k = first; k < first + 8; ++k) eight = __builtin_fmaf(a[row][k], b[k][column], eight);
          sum[row][column] =
              __builtin_fmaf(a_scale[row][first / Block] * b_scale[column][first / Block], eight, sum[row][column]);
        }
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        const pk_sim_spot at = pk_sim_held<16, 2>(lane, i);
        ((const Frame *)frames[lane])->d[i] = sum[at.row][at.column];
      }
  }
  static constexpr pk_sim_warp_work work = {"mma.sync", compute};
};

template <int K, int Block, class A, class B, class S>
PK_SIM_INLINE void pk_sim_mma_scaled(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const float (&c)[4],
                                     pk_sim_scales of_a, pk_sim_scales of_b, const char *file, int line) {
  if (of_a.thread > 1 || of_b.thread > 3 || of_a.byte + K / Block > 4 || of_b.byte + K / Block > 4 ||
      of_a.byte % (K / Block) || of_b.byte % (K / Block))
    pk_sim_fail(PK_SIM_FAIL_MATRIX, "mma.sync: no lane has scales at this byte and thread;", "", file, line);
  typedef pk_sim_mma_scaled_whole<K, Block, A, B, S> Work;
  pk_sim_mma_scaled_frame frame = {&Work::work, d, a, b, c, of_a, of_b};
  pk_sim_matrix_call(frame, file, line);
}
