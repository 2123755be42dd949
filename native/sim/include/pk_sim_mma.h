// pk_sim_mma.h: mma.sync of every dense shape and type on the simulated device, as functions of registers.
#pragma once
#pragma GCC system_header

#include "pk_sim_ldmatrix.h"
#include "pk_sim_matrix.h"

enum pk_sim_mma_order { PK_SIM_MMA_ROW, PK_SIM_MMA_COL };
enum pk_sim_mma_op { PK_SIM_MMA_PLAIN, PK_SIM_MMA_SATFINITE, PK_SIM_MMA_XOR, PK_SIM_MMA_AND };

// Whether the instruction exists.
template <int M, int N, int K, class D, class A, class B, class C>
constexpr bool pk_sim_mma_known() {
  typedef pk_sim_mma_f16 f16;
  typedef pk_sim_mma_f32 f32;
  constexpr bool floats = pk_sim_one_of<D, f16, f32> && pk_sim_one_of<C, f16, f32>;
  constexpr bool singles = pk_sim_is<D, f32> && pk_sim_is<C, f32>;
  constexpr bool integers = pk_sim_is<D, pk_sim_mma_s32> && pk_sim_is<C, pk_sim_mma_s32>;
  constexpr bool small = M == 8 && N == 8, large = M == 16 && N == 8;
  if (pk_sim_is<A, pk_sim_mma_f64>)
    return pk_sim_is<A, B> && pk_sim_is<A, C> && pk_sim_is<A, D> &&
           ((small && K == 4) || (large && (K == 4 || K == 8 || K == 16)));
  if (pk_sim_is<A, f16>) return pk_sim_is<A, B> && floats && ((small && K == 4) || (large && (K == 8 || K == 16)));
  if (pk_sim_is<A, pk_sim_mma_bf16>) return pk_sim_is<A, B> && singles && large && (K == 8 || K == 16);
  if (pk_sim_is<A, pk_sim_mma_tf32>) return pk_sim_is<A, B> && singles && large && (K == 4 || K == 8);
  if (pk_sim_one_of<A, pk_sim_mma_e4m3, pk_sim_mma_e5m2>)
    return pk_sim_one_of<B, pk_sim_mma_e4m3, pk_sim_mma_e5m2> && floats && large && (K == 16 || K == 32);
  if (pk_sim_one_of<A, pk_sim_mma_s8, pk_sim_mma_u8>)
    return pk_sim_one_of<B, pk_sim_mma_s8, pk_sim_mma_u8> && integers &&
           ((small && K == 16) || (large && (K == 16 || K == 32)));
  if (pk_sim_one_of<A, pk_sim_mma_s4, pk_sim_mma_u4>)
    return pk_sim_one_of<B, pk_sim_mma_s4, pk_sim_mma_u4> && integers &&
           ((small && K == 32) || (large && (K == 32 || K == 64)));
  return pk_sim_is<A, pk_sim_mma_b1> && pk_sim_is<B, pk_sim_mma_b1> && integers &&
         ((small && K == 128) || (large && (K == 128 || K == 256)));
}

template <class RD, class RA, class RC>
struct pk_sim_mma_frame {
  const pk_sim_warp_work *work;
  RD *d;
  const RA *a, *b;
  const RC *c;
};

template <int Op>
struct pk_sim_mma_step {
  typedef pk_sim_multiply type;
};
template <>
struct pk_sim_mma_step<PK_SIM_MMA_XOR> {
  typedef pk_sim_differ type;
};
template <>
struct pk_sim_mma_step<PK_SIM_MMA_AND> {
  typedef pk_sim_both type;
};

// All shapes but one: see pk_sim_held().
template <int M, int N, int K, class A, class B, class C, int Op, class Frame>
struct pk_sim_mma_whole {
  static PK_SIM_UNCHECKED void compute(void *const *frames) {
    constexpr int columns = pk_sim_is<A, pk_sim_mma_b1> ? K / 32 : K, each = A::bits < 32 ? 32 / A::bits : 1;
    typename A::value a[M][columns], b[columns][N];
    typename pk_sim_sum_type<typename A::value>::type sum[M][N];
    for (int lane = 0; lane < 32; ++lane) {
      const Frame &own = *(const Frame *)frames[lane];
      for (int i = 0; i < M * columns / 32; ++i) {
        const pk_sim_spot at = pk_sim_held<M, each>(lane, i);
        a[at.row][at.column] = A::of(pk_sim_register_element<A::bits>(own.a, i));
      }
      for (int i = 0; i < N * columns / 32; ++i) {
        const pk_sim_spot at = pk_sim_held<N, each>(lane, i);
        b[at.column][at.row] = B::of(pk_sim_register_element<B::bits>(own.b, i));
      }
      for (int i = 0; i < M * N / 32; ++i) {
        const pk_sim_spot at = pk_sim_held<M, 2>(lane, i);
        sum[at.row][at.column] = C::of(pk_sim_register_element<C::bits>(own.c, i));
      }
    }
    pk_sim_product<typename pk_sim_mma_step<Op>::type>(sum, a, b);
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < M * N / 32; ++i) {
        const pk_sim_spot at = pk_sim_held<M, 2>(lane, i);
        pk_sim_put(((const Frame *)frames[lane])->d, i, sum[at.row][at.column], Op == PK_SIM_MMA_SATFINITE);
      }
    }
  }
  static constexpr pk_sim_warp_work work = {"mma.sync", compute};
};

// m8n8k4 of halves: four products, each of four lanes of the lower half warp and the same four of the upper one.
template <class C, bool WideD, int ALayout, int BLayout, class Frame>
struct pk_sim_mma_quarters {
  // Of a and b, whose four elements are along k (a) or n (b) when the lines that memory has are rows of a.
  PK_SIM_MATRIX_INLINE pk_sim_spot operand(bool along, int lane, int i) {
    const int line = lane % 4, high = lane / 16 * 4;
    return along ? pk_sim_spot{line + high, i} : pk_sim_spot{i + high, line};
  }
  PK_SIM_MATRIX_INLINE pk_sim_spot result(bool wide, int lane, int i) {
    const int high = lane / 16 * 4;
    if (!wide) return {lane % 4 + high, i};
    return {(lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)};
  }
  static PK_SIM_UNCHECKED void compute(void *const *frames) {
    constexpr bool wide = C::bits == 32;
    for (int part = 0; part < 4; ++part) {
      float a[8][4], b[4][8], sum[8][8];
      const auto each = [&](auto visit) PK_SIM_UNCHECKED {
        for (int i = 0; i < 8; ++i) visit(i / 4 * 16 + part * 4 + i % 4);
      };
      each([&](int lane) PK_SIM_UNCHECKED {
        const Frame &own = *(const Frame *)frames[lane];
        for (int i = 0; i < 4; ++i) {
          const pk_sim_spot left = operand(ALayout == PK_SIM_MMA_ROW, lane, i);
          const pk_sim_spot right = operand(BLayout == PK_SIM_MMA_COL, lane, i);
          a[left.row][left.column] = pk_sim_mma_f16::of(pk_sim_register_element<16>(own.a, i));
          b[right.column][right.row] = pk_sim_mma_f16::of(pk_sim_register_element<16>(own.b, i));
        }
        for (int i = 0; i < 8; ++i) {
          const pk_sim_spot at = result(wide, lane, i);
          sum[at.row][at.column] = C::of(pk_sim_register_element<C::bits>(own.c, i));
        }
      });
      pk_sim_product<pk_sim_multiply>(sum, a, b);
      each([&](int lane) PK_SIM_UNCHECKED {
        for (int i = 0; i < 8; ++i) {
          const pk_sim_spot at = result(WideD, lane, i);
          pk_sim_put(((const Frame *)frames[lane])->d, i, sum[at.row][at.column], false);
        }
      });
    }
  }
  static constexpr pk_sim_warp_work work = {"mma.sync", compute};
};

// d = a b + c. The arrays are the instruction's vector operands; d may be c.
template <int M, int N, int K, class D, class A, class B, class C, int ALayout, int BLayout, int Op, class RD, int ND,
          class RA, int NA, int NB, class RC, int NC>
PK_SIM_INLINE void pk_sim_mma(RD (&d)[ND], const RA (&a)[NA], const RA (&b)[NB], const RC (&c)[NC], const char *file,
                              int line) {
  static_assert(pk_sim_mma_known<M, N, K, D, A, B, C>(), "there is no mma.sync of this shape and these types");
  constexpr bool quarters = M * N * K == 256 && pk_sim_is<A, pk_sim_mma_f16>, bits = pk_sim_is<A, pk_sim_mma_b1>;
  constexpr int width = bits ? 1 : A::bits, copies = quarters ? 4 : 1, own = A::bits == 64 ? 64 : 32;
  static_assert(NA * own == copies * M * K * width / 32 && NB * own == copies * N * K * width / 32,
                "a register too many or too few in a or b");
  static_assert(NC * (int)sizeof(RC) * 8 == copies * M * N * C::bits / 32 &&
                    ND * (int)sizeof(RD) * 8 == copies * M * N * D::bits / 32,
                "a register too many or too few in c or d");
  static_assert(quarters || (ALayout == PK_SIM_MMA_ROW && BLayout == PK_SIM_MMA_COL), "a is by rows, b by columns");
  static_assert(bits == (Op == PK_SIM_MMA_XOR || Op == PK_SIM_MMA_AND), "xor and and are of single bits");
  typedef pk_sim_mma_frame<RD, RA, RC> Frame;
  if constexpr (quarters) {
    typedef pk_sim_mma_quarters<C, D::bits == 32, ALayout, BLayout, Frame> Work;
    Frame frame = {&Work::work, d, a, b, c};
    pk_sim_matrix_call(frame, file, line);
  } else {
    typedef pk_sim_mma_whole<M, N, K, A, B, C, Op, Frame> Work;
    Frame frame = {&Work::work, d, a, b, c};
    pk_sim_matrix_call(frame, file, line);
  }
}
