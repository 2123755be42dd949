// pk_sim_matrix.h: what mma.sync (pk_sim_mma.h) and wmma (mma.h) share on the simulated device: the element types,
// where a lane's elements lie, the sums, and the call that a whole warp makes.
#pragma once
#pragma GCC system_header

#include "pk_sim_half.h"

#define PK_SIM_MATRIX_INLINE static inline __attribute__((__always_inline__)) PK_SIM_UNCHECKED

// ---- the call. Frame begins as pk_sim_warp_frame does.
template <class Frame>
PK_SIM_INLINE void pk_sim_matrix_call(Frame &frame, const char *file, int line) {
  pk_sim_warp(PK_SIM_MATRIX, 0xffffffffu, (pk_sim_u64)&frame, 0, 32, file, line);
}
#ifdef PK_SIM_CHECK
PK_SIM_INLINE void pk_sim_matrix_read(const void *address, size_t bytes, const char *file, int line) {
  pk_sim_check_access(address, bytes, PK_SIM_READ, file, line);
}
PK_SIM_NOINLINE void pk_sim_matrix_aligned(const void *address, unsigned alignment, const char *name, const char *file,
                                           int line) {
  if ((size_t)address % alignment) pk_sim_checker.misaligned(address, alignment, name, file, line);
}
#else
PK_SIM_INLINE void pk_sim_matrix_read(const void *, size_t, const char *, int) {}
PK_SIM_INLINE void pk_sim_matrix_aligned(const void *, unsigned, const char *, const char *, int) {}
#endif
// What a lane writes of a matrix: `Count` neighbours. The last lane to arrive writes them to memory at once; in checked
// mode to a copy, whose elements the lane itself then writes one by one, as the checker sees them.
template <class T, int Count>
struct pk_sim_piece {
#ifdef PK_SIM_CHECK
  T copy[Count];
  PK_SIM_UNCHECKED T *target(T *) { return copy; }
  PK_SIM_UNCHECKED void write(T *to, const char *file, int line) {
    for (int i = 0; i < Count; ++i) {
      pk_sim_check_access(to + i, sizeof(T), PK_SIM_WRITE, file, line);
      to[i] = copy[i];
    }
  }
#else
  __attribute__((__always_inline__)) T *target(T *to) { return to; }
  __attribute__((__always_inline__)) void write(T *, const char *, int) {}
#endif
};

// ---- element types. bits: of one in a register; value: what it is multiplied as; of(): that of its bits
struct pk_sim_mma_f16 {
  static constexpr int bits = 16;
  typedef float value;
  PK_SIM_MATRIX_INLINE float of(unsigned bits) { return pk_sim_half_value((unsigned short)bits); }
};
struct pk_sim_mma_bf16 {
  static constexpr int bits = 16;
  typedef float value;
  PK_SIM_MATRIX_INLINE float of(unsigned bits) { return __uint_as_float(bits << 16); }
};
// The hardware does not look at the last 13 bits.
struct pk_sim_mma_tf32 {
  static constexpr int bits = 32;
  typedef float value;
  PK_SIM_MATRIX_INLINE float of(unsigned bits) { return __uint_as_float(bits & 0xffffe000u); }
};
struct pk_sim_mma_f32 {
  static constexpr int bits = 32;
  typedef float value;
  PK_SIM_MATRIX_INLINE float of(float number) { return number; }
};
struct pk_sim_mma_f64 {
  static constexpr int bits = 64;
  typedef double value;
  PK_SIM_MATRIX_INLINE double of(double number) { return number; }
};
// Under half's exponent: e5m2 is the upper half of a half, e4m3 has an exponent that is 8 less.
struct pk_sim_mma_e5m2 {
  static constexpr int bits = 8;
  typedef float value;
  PK_SIM_MATRIX_INLINE float of(unsigned bits) { return pk_sim_half_value((unsigned short)(bits << 8)); }
};
struct pk_sim_mma_e4m3 {
  static constexpr int bits = 8;
  typedef float value;
  PK_SIM_MATRIX_INLINE float of(unsigned bits) {
    if ((bits & 0x7fu) == 0x7fu) return __uint_as_float(0x7fffffffu);
    return pk_sim_half_value((unsigned short)((bits & 0x80u) << 8 | (bits & 0x7fu) << 7)) * 256.0f;
  }
};
struct pk_sim_mma_s32 {
  static constexpr int bits = 32;
  typedef int value;
  PK_SIM_MATRIX_INLINE int of(int number) { return number; }
};
#define PK_SIM_MATRIX_INTEGER(name, width, ...)                        \
  struct pk_sim_mma_##name {                                           \
    static constexpr int bits = width;                                 \
    typedef int value;                                                 \
    PK_SIM_MATRIX_INLINE int of(unsigned bits) { return __VA_ARGS__; } \
  };
PK_SIM_MATRIX_INTEGER(s8, 8, (int)(bits << 24) >> 24)
PK_SIM_MATRIX_INTEGER(u8, 8, (int)bits)
PK_SIM_MATRIX_INTEGER(s4, 4, (int)(bits << 28) >> 28)
PK_SIM_MATRIX_INTEGER(u4, 4, (int)bits)
#undef PK_SIM_MATRIX_INTEGER
// 32 of them are one element here.
struct pk_sim_mma_b1 {
  static constexpr int bits = 32;
  typedef unsigned value;
  PK_SIM_MATRIX_INLINE unsigned of(unsigned bits) { return bits; }
};

template <class A, class B>
static constexpr bool pk_sim_is = false;
template <class A>
static constexpr bool pk_sim_is<A, A> = true;
template <class T, class... Types>
static constexpr bool pk_sim_one_of = (pk_sim_is<T, Types> || ...);

// ---- where elements lie
struct pk_sim_spot {
  int row, column;
};
// The element i of a lane, where a register holds `Each` neighbours of a row: four lanes hold pieces of one row, and
// further registers go down by eight rows first. b is held as its transpose is.
template <int Rows, int Each>
PK_SIM_MATRIX_INLINE pk_sim_spot pk_sim_held(int lane, int i) {
  const int piece = i / Each, high = Rows / 8;
  return {lane / 4 + 8 * (piece % high), lane % 4 * Each + i % Each + 4 * Each * (piece / high)};
}
// The i-th element of `Bits` bits in registers.
template <int Bits>
PK_SIM_MATRIX_INLINE unsigned pk_sim_register_element(const unsigned *registers, int i) {
  if constexpr (Bits == 32) return registers[i];
  return registers[i * Bits / 32] >> i * Bits % 32 & ((1u << Bits % 32) - 1u);
}
template <int>
PK_SIM_MATRIX_INLINE float pk_sim_register_element(const float *registers, int i) {
  return registers[i];
}
template <int>
PK_SIM_MATRIX_INLINE double pk_sim_register_element(const double *registers, int i) {
  return registers[i];
}
template <int>
PK_SIM_MATRIX_INLINE int pk_sim_register_element(const int *registers, int i) {
  return registers[i];
}

// ---- sums: every product is exact, and added in ascending order of k with one rounding
struct pk_sim_multiply {
  PK_SIM_MATRIX_INLINE float step(float a, float b, float sum) { return __builtin_fmaf(a, b, sum); }
  PK_SIM_MATRIX_INLINE double step(double a, double b, double sum) { return __builtin_fma(a, b, sum); }
  PK_SIM_MATRIX_INLINE long long step(int a, int b, long long sum) { return sum + a * b; }
};
struct pk_sim_differ {
  PK_SIM_MATRIX_INLINE long long step(unsigned a, unsigned b, long long sum) { return sum + __builtin_popcount(a ^ b); }
};
struct pk_sim_both {
  PK_SIM_MATRIX_INLINE long long step(unsigned a, unsigned b, long long sum) { return sum + __builtin_popcount(a & b); }
};
template <class V>
struct pk_sim_sum_type {
  typedef V type;
};
template <>
struct pk_sim_sum_type<int> {
  typedef long long type;
};
template <>
struct pk_sim_sum_type<unsigned> {
  typedef long long type;
};

template <class Step, int M, int N, int K, class V, class S>
PK_SIM_MATRIX_INLINE void pk_sim_product(S (&sum)[M][N], const V (&a)[M][K], const V (&b)[K][N]) {
  for (int m = 0; m < M; ++m)
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < N; ++n) sum[m][n] = Step::step(a[m][k], b[k][n], sum[m][n]);
}

// An integer sum as it is kept: wrapped around, or the nearest that there is.
PK_SIM_MATRIX_INLINE int pk_sim_kept(long long sum, bool saturate) {
  if (!saturate) return (int)sum;
  return sum < -0x80000000ll ? (int)0x80000000u : sum > 0x7fffffffll ? 0x7fffffff : (int)sum;
}
// The sum of two rows' neighbours: 16-bit results share a register.
PK_SIM_MATRIX_INLINE void pk_sim_put(float *registers, int i, float sum, bool) { registers[i] = sum; }
PK_SIM_MATRIX_INLINE void pk_sim_put(double *registers, int i, double sum, bool) { registers[i] = sum; }
PK_SIM_MATRIX_INLINE void pk_sim_put(int *registers, int i, long long sum, bool saturate) {
  registers[i] = pk_sim_kept(sum, saturate);
}
PK_SIM_MATRIX_INLINE void pk_sim_put(unsigned *registers, int i, float sum, bool) {
  ((unsigned short *)registers)[i] = pk_sim_half_bits(sum);
}
