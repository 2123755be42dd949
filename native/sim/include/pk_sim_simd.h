// pk_sim_simd.h: intrinsics on the halves and bytes of a 32-bit word, and the three-operand minima and maxima.
#pragma once
#pragma GCC system_header

// Calls change(a, b, c) with each lane's values as integers, and puts the results together.
template <class Lane, class Change>
PK_SIM_INLINE unsigned pk_sim_simd(unsigned a, unsigned b, unsigned c, Change change) {
  constexpr int bits = 8 * sizeof(Lane);
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += bits)
    result |= ((unsigned)change((int)(Lane)(a >> shift), (int)(Lane)(b >> shift), (int)(Lane)(c >> shift)) &
               (~0u >> (32 - bits)))
              << shift;
  return result;
}
template <class Lane>
PK_SIM_INLINE int pk_sim_clamped(int x) {
  constexpr int half = 1 << (8 * sizeof(Lane) - 1), least = (Lane)-1 < (Lane)0 ? -half : 0;
  constexpr int most = least ? half - 1 : 2 * half - 1;
  return x < least ? least : x > most ? most : x;
}

#define PK_SIM_SIMD(name, Lane, ...)                                                                    \
  PK_SIM_INLINE unsigned name(unsigned x, unsigned y) {                                                 \
    return pk_sim_simd<Lane>(x, y, 0, [](int a, int b, int) -> int { return (void)b, (__VA_ARGS__); }); \
  }
#define PK_SIM_SIMD_SIGNED(name, ...)           \
  PK_SIM_SIMD(__v##name##2, short, __VA_ARGS__) \
  PK_SIM_SIMD(__v##name##4, signed char, __VA_ARGS__)
#define PK_SIM_SIMD_UNSIGNED(name, ...)                  \
  PK_SIM_SIMD(__v##name##2, unsigned short, __VA_ARGS__) \
  PK_SIM_SIMD(__v##name##4, unsigned char, __VA_ARGS__)
#define PK_SIM_SIMD_COMPARE(name, op)                 \
  PK_SIM_SIMD_SIGNED(cmp##name##s, a op b ? -1 : 0)   \
  PK_SIM_SIMD_UNSIGNED(cmp##name##u, a op b ? -1 : 0) \
  PK_SIM_SIMD_SIGNED(set##name##s, a op b)            \
  PK_SIM_SIMD_UNSIGNED(set##name##u, a op b)
PK_SIM_SIMD_SIGNED(add, a + b)
PK_SIM_SIMD(__vaddss2, short, pk_sim_clamped<short>(a + b))
PK_SIM_SIMD(__vaddss4, signed char, pk_sim_clamped<signed char>(a + b))
PK_SIM_SIMD(__vaddus2, unsigned short, pk_sim_clamped<unsigned short>(a + b))
PK_SIM_SIMD(__vaddus4, unsigned char, pk_sim_clamped<unsigned char>(a + b))
PK_SIM_SIMD_SIGNED(sub, a - b)
PK_SIM_SIMD(__vsubss2, short, pk_sim_clamped<short>(a - b))
PK_SIM_SIMD(__vsubss4, signed char, pk_sim_clamped<signed char>(a - b))
PK_SIM_SIMD(__vsubus2, unsigned short, pk_sim_clamped<unsigned short>(a - b))
PK_SIM_SIMD(__vsubus4, unsigned char, pk_sim_clamped<unsigned char>(a - b))
PK_SIM_SIMD_SIGNED(avgs, (a + b + (a + b >= 0)) >> 1)
PK_SIM_SIMD_UNSIGNED(avgu, (a + b + 1) >> 1)
PK_SIM_SIMD_UNSIGNED(haddu, (a + b) >> 1)
PK_SIM_SIMD_SIGNED(absdiffs, a > b ? a - b : b - a)
PK_SIM_SIMD_UNSIGNED(absdiffu, a > b ? a - b : b - a)
PK_SIM_SIMD_SIGNED(maxs, a > b ? a : b)
PK_SIM_SIMD_UNSIGNED(maxu, a > b ? a : b)
PK_SIM_SIMD_SIGNED(mins, a < b ? a : b)
PK_SIM_SIMD_UNSIGNED(minu, a < b ? a : b)
PK_SIM_SIMD_SIGNED(cmpeq, a == b ? -1 : 0)
PK_SIM_SIMD_SIGNED(cmpne, a != b ? -1 : 0)
PK_SIM_SIMD_SIGNED(seteq, a == b)
PK_SIM_SIMD_SIGNED(setne, a != b)
PK_SIM_SIMD_COMPARE(ge, >=)
PK_SIM_SIMD_COMPARE(gt, >)
PK_SIM_SIMD_COMPARE(le, <=)
PK_SIM_SIMD_COMPARE(lt, <)
#undef PK_SIM_SIMD_COMPARE
#undef PK_SIM_SIMD_UNSIGNED
#undef PK_SIM_SIMD_SIGNED
#undef PK_SIM_SIMD

#define PK_SIM_SIMD_UNARY(name, Lane, ...)                                                 \
  PK_SIM_INLINE unsigned name(unsigned x) {                                                \
    return pk_sim_simd<Lane>(x, 0, 0, [](int a, int, int) -> int { return __VA_ARGS__; }); \
  }
PK_SIM_SIMD_UNARY(__vabs2, short, a < 0 ? -a : a)
PK_SIM_SIMD_UNARY(__vabs4, signed char, a < 0 ? -a : a)
PK_SIM_SIMD_UNARY(__vabsss2, short, pk_sim_clamped<short>(a < 0 ? -a : a))
PK_SIM_SIMD_UNARY(__vabsss4, signed char, pk_sim_clamped<signed char>(a < 0 ? -a : a))
PK_SIM_SIMD_UNARY(__vneg2, short, -a)
PK_SIM_SIMD_UNARY(__vneg4, signed char, -a)
PK_SIM_SIMD_UNARY(__vnegss2, short, pk_sim_clamped<short>(-a))
PK_SIM_SIMD_UNARY(__vnegss4, signed char, pk_sim_clamped<signed char>(-a))
#undef PK_SIM_SIMD_UNARY

#define PK_SIM_SIMD_SUM(name, Lane)                                   \
  PK_SIM_INLINE unsigned name(unsigned x, unsigned y) {               \
    unsigned sum = 0;                                                 \
    for (unsigned shift = 0; shift < 32; shift += 8 * sizeof(Lane)) { \
      const int a = (Lane)(x >> shift), b = (Lane)(y >> shift);       \
      sum += (unsigned)(a > b ? a - b : b - a);                       \
    }                                                                 \
    return sum;                                                       \
  }
PK_SIM_SIMD_SUM(__vsads2, short)
PK_SIM_SIMD_SUM(__vsads4, signed char)
PK_SIM_SIMD_SUM(__vsadu2, unsigned short)
PK_SIM_SIMD_SUM(__vsadu4, unsigned char)
#undef PK_SIM_SIMD_SUM

// ---- minima and maxima of three, of a sum, with a limit at zero, and with word of which one it was
#define PK_SIM_DPX3(name, Word, Lane, pair, ...)                                               \
  PK_SIM_INLINE Word name(Word a, Word b, Word c) { return (Word)(__VA_ARGS__); }              \
  PK_SIM_INLINE unsigned pair(unsigned x, unsigned y, unsigned z) {                            \
    return pk_sim_simd<Lane>(x, y, z, [](int a, int b, int c) -> int { return __VA_ARGS__; }); \
  }
#define PK_SIM_DPX2(name, Word, Lane, pair, ...)                                             \
  PK_SIM_INLINE Word name(Word a, Word b) { return (Word)(__VA_ARGS__); }                    \
  PK_SIM_INLINE unsigned pair(unsigned x, unsigned y) {                                      \
    return pk_sim_simd<Lane>(x, y, 0, [](int a, int b, int) -> int { return __VA_ARGS__; }); \
  }
PK_SIM_DPX3(__vimax3_s32, int, short, __vimax3_s16x2, max(max(a, b), c))
PK_SIM_DPX3(__vimin3_s32, int, short, __vimin3_s16x2, min(min(a, b), c))
PK_SIM_DPX3(__vimax3_u32, unsigned, unsigned short, __vimax3_u16x2, max(max(a, b), c))
PK_SIM_DPX3(__vimin3_u32, unsigned, unsigned short, __vimin3_u16x2, min(min(a, b), c))
PK_SIM_DPX3(__vimax3_s32_relu, int, short, __vimax3_s16x2_relu, max(max(max(a, b), c), 0))
PK_SIM_DPX3(__vimin3_s32_relu, int, short, __vimin3_s16x2_relu, max(min(min(a, b), c), 0))
PK_SIM_DPX2(__vimax_s32_relu, int, short, __vimax_s16x2_relu, max(max(a, b), 0))
PK_SIM_DPX2(__vimin_s32_relu, int, short, __vimin_s16x2_relu, max(min(a, b), 0))
#undef PK_SIM_DPX2
// The sum wraps in the lane, as in a word.
#define PK_SIM_DPX_SUM(name, Word, Lane, pair, ...)                    \
  PK_SIM_INLINE Word name(Word a, Word b, Word c) {                    \
    const Word sum = a + b;                                            \
    return __VA_ARGS__;                                                \
  }                                                                    \
  PK_SIM_INLINE unsigned pair(unsigned x, unsigned y, unsigned z) {    \
    return pk_sim_simd<Lane>(x, y, z, [](int a, int b, int c) -> int { \
      const int sum = (Lane)(a + b);                                   \
      return __VA_ARGS__;                                              \
    });                                                                \
  }
PK_SIM_DPX_SUM(__viaddmax_s32, int, short, __viaddmax_s16x2, max(sum, c))
PK_SIM_DPX_SUM(__viaddmin_s32, int, short, __viaddmin_s16x2, min(sum, c))
PK_SIM_DPX_SUM(__viaddmax_u32, unsigned, unsigned short, __viaddmax_u16x2, max(sum, c))
PK_SIM_DPX_SUM(__viaddmin_u32, unsigned, unsigned short, __viaddmin_u16x2, min(sum, c))
PK_SIM_DPX_SUM(__viaddmax_s32_relu, int, short, __viaddmax_s16x2_relu, max(max(sum, c), 0))
PK_SIM_DPX_SUM(__viaddmin_s32_relu, int, short, __viaddmin_s16x2_relu, max(min(sum, c), 0))
#undef PK_SIM_DPX_SUM
#undef PK_SIM_DPX3
#define PK_SIM_DPX_WHICH(name, Word, Lane, pair, better, op)                                  \
  PK_SIM_INLINE Word name(Word a, Word b, bool *first) {                                      \
    *first = a op b;                                                                          \
    return better(a, b);                                                                      \
  }                                                                                           \
  PK_SIM_INLINE unsigned pair(unsigned a, unsigned b, bool *first_high, bool *first_low) {    \
    *first_high = (Lane)(a >> 16) op(Lane)(b >> 16);                                          \
    *first_low = (Lane)a op(Lane) b;                                                          \
    return pk_sim_simd<Lane>(a, b, 0, [](int x, int y, int) -> int { return better(x, y); }); \
  }
PK_SIM_DPX_WHICH(__vibmax_s32, int, short, __vibmax_s16x2, max, >=)
PK_SIM_DPX_WHICH(__vibmin_s32, int, short, __vibmin_s16x2, min, <=)
PK_SIM_DPX_WHICH(__vibmax_u32, unsigned, unsigned short, __vibmax_u16x2, max, >=)
PK_SIM_DPX_WHICH(__vibmin_u32, unsigned, unsigned short, __vibmin_u16x2, min, <=)
#undef PK_SIM_DPX_WHICH
