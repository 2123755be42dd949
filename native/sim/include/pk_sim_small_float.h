// pk_sim_small_float.h: what cuda_fp16.h and cuda_bf16.h share: operators and functions of a 2-byte float and of its
// pair. Everything is computed in float and rounded once, to nearest even, as the hardware does.
#pragma once
#pragma GCC system_header

// T: the scalar, P: the pair of two, t: what conversions call it.
#define PK_SIM_SMALL_FLOAT(T, P, t)                                                                            \
  PK_SIM_SMALL_OPERATOR(T, +)                                                                                  \
  PK_SIM_SMALL_OPERATOR(T, -)                                                                                  \
  PK_SIM_SMALL_OPERATOR(T, *)                                                                                  \
  PK_SIM_SMALL_OPERATOR(T, /)                                                                                  \
  PK_SIM_SMALL_COMPARE(T, ==)                                                                                  \
  PK_SIM_SMALL_COMPARE(T, !=)                                                                                  \
  PK_SIM_SMALL_COMPARE(T, <)                                                                                   \
  PK_SIM_SMALL_COMPARE(T, <=)                                                                                  \
  PK_SIM_SMALL_COMPARE(T, >)                                                                                   \
  PK_SIM_SMALL_COMPARE(T, >=)                                                                                  \
  PK_SIM_SMALL_INTEGERS(T, t)                                                                                  \
  PK_SIM_INLINE T operator+(T a) { return a; }                                                                 \
  PK_SIM_INLINE T operator-(T a) { return pk_sim_from_bits<T>(a.pk_sim_value ^ 0x8000u); }                     \
  PK_SIM_INLINE T &operator++(T &a) { return a = T((float)a + 1.0f); }                                         \
  PK_SIM_INLINE T &operator--(T &a) { return a = T((float)a - 1.0f); }                                         \
  PK_SIM_INLINE T operator++(T &a, int) {                                                                      \
    const T old = a;                                                                                           \
    ++a;                                                                                                       \
    return old;                                                                                                \
  }                                                                                                            \
  PK_SIM_INLINE T operator--(T &a, int) {                                                                      \
    const T old = a;                                                                                           \
    --a;                                                                                                       \
    return old;                                                                                                \
  }                                                                                                            \
  PK_SIM_SMALL_BINARY(T, __hadd, T((float)a + (float)b))                                                       \
  PK_SIM_SMALL_BINARY(T, __hsub, T((float)a - (float)b))                                                       \
  PK_SIM_SMALL_BINARY(T, __hmul, T((float)a *(float)b))                                                        \
  PK_SIM_SMALL_BINARY(T, __hdiv, T((float)a / (float)b))                                                       \
  PK_SIM_SMALL_BINARY(T, __hadd_rn, T((float)a + (float)b))                                                    \
  PK_SIM_SMALL_BINARY(T, __hsub_rn, T((float)a - (float)b))                                                    \
  PK_SIM_SMALL_BINARY(T, __hmul_rn, T((float)a *(float)b))                                                     \
  PK_SIM_SMALL_BINARY(T, __hadd_sat, T(__saturatef((float)a + (float)b)))                                      \
  PK_SIM_SMALL_BINARY(T, __hsub_sat, T(__saturatef((float)a - (float)b)))                                      \
  PK_SIM_SMALL_BINARY(T, __hmul_sat, T(__saturatef((float)a *(float)b)))                                       \
  PK_SIM_SMALL_BINARY(T, __hmax, T(__builtin_fmaxf((float)a, (float)b)))                                       \
  PK_SIM_SMALL_BINARY(T, __hmin, T(__builtin_fminf((float)a, (float)b)))                                       \
  PK_SIM_INLINE T __hfma(T a, T b, T c) {                                                                      \
    return T::pk_sim_from_double((double)(float)a * (double)(float)b + (double)(float)c);                      \
  }                                                                                                            \
  PK_SIM_INLINE T __fma_rn(T a, T b, T c) { return __hfma(a, b, c); }                                          \
  PK_SIM_INLINE T __hfma_sat(T a, T b, T c) { return T(__saturatef((float)__hfma(a, b, c))); }                 \
  PK_SIM_SMALL_BINARY(T, __hmax_nan,                                                                           \
                      __builtin_isunordered((float)a, (float)b) ? pk_sim_from_bits<T>(0x7fffu) : __hmax(a, b)) \
  PK_SIM_SMALL_BINARY(T, __hmin_nan,                                                                           \
                      __builtin_isunordered((float)a, (float)b) ? pk_sim_from_bits<T>(0x7fffu) : __hmin(a, b)) \
  PK_SIM_INLINE T __hfma_relu(T a, T b, T c) { return __hmax_nan(__hfma(a, b, c), T(0.0f)); }                  \
  PK_SIM_INLINE T __hneg(T a) { return pk_sim_from_bits<T>(a.pk_sim_value ^ 0x8000u); }                        \
  PK_SIM_INLINE T __habs(T a) { return pk_sim_from_bits<T>(a.pk_sim_value & 0x7fffu); }                        \
  PK_SIM_SMALL_TEST(T, __heq, ==)                                                                              \
  PK_SIM_SMALL_TEST(T, __hne, !=)                                                                              \
  PK_SIM_SMALL_TEST(T, __hlt, <)                                                                               \
  PK_SIM_SMALL_TEST(T, __hle, <=)                                                                              \
  PK_SIM_SMALL_TEST(T, __hgt, >)                                                                               \
  PK_SIM_SMALL_TEST(T, __hge, >=)                                                                              \
  PK_SIM_INLINE bool __hisnan(T a) { return __builtin_isnan((float)a); }                                       \
  PK_SIM_INLINE int __hisinf(T a) { return __builtin_isinf_sign((float)a); }                                   \
  PK_SIM_SMALL_UNARY(T, P, exp, __builtin_expf(x))                                                             \
  PK_SIM_SMALL_UNARY(T, P, exp2, __builtin_exp2f(x))                                                           \
  PK_SIM_SMALL_UNARY(T, P, exp10, exp10f(x))                                                                   \
  PK_SIM_SMALL_UNARY(T, P, log, __builtin_logf(x))                                                             \
  PK_SIM_SMALL_UNARY(T, P, log2, __builtin_log2f(x))                                                           \
  PK_SIM_SMALL_UNARY(T, P, log10, __builtin_log10f(x))                                                         \
  PK_SIM_SMALL_UNARY(T, P, sin, __builtin_sinf(x))                                                             \
  PK_SIM_SMALL_UNARY(T, P, cos, __builtin_cosf(x))                                                             \
  PK_SIM_SMALL_UNARY(T, P, tanh, __builtin_tanhf(x))                                                           \
  PK_SIM_SMALL_UNARY(T, P, tanh_approx, __builtin_tanhf(x))                                                    \
  PK_SIM_SMALL_UNARY(T, P, sqrt, __builtin_sqrtf(x))                                                           \
  PK_SIM_SMALL_UNARY(T, P, rsqrt, rsqrtf(x))                                                                   \
  PK_SIM_SMALL_UNARY(T, P, rcp, 1.0f / x)                                                                      \
  PK_SIM_SMALL_UNARY(T, P, floor, __builtin_floorf(x))                                                         \
  PK_SIM_SMALL_UNARY(T, P, ceil, __builtin_ceilf(x))                                                           \
  PK_SIM_SMALL_UNARY(T, P, trunc, __builtin_truncf(x))                                                         \
  PK_SIM_SMALL_UNARY(T, P, rint, __builtin_rintf(x))                                                           \
  PK_SIM_SMALL_PAIR_OPERATOR(T, P, +)                                                                          \
  PK_SIM_SMALL_PAIR_OPERATOR(T, P, -)                                                                          \
  PK_SIM_SMALL_PAIR_OPERATOR(T, P, *)                                                                          \
  PK_SIM_SMALL_PAIR_OPERATOR(T, P, /)                                                                          \
  PK_SIM_INLINE P operator-(P a) { return P(__hneg(a.x), __hneg(a.y)); }                                       \
  PK_SIM_INLINE P operator+(P a) { return a; }                                                                 \
  PK_SIM_INLINE P &operator++(P &a) { return a = P(a.x + T(1.0f), a.y + T(1.0f)); }                            \
  PK_SIM_INLINE P &operator--(P &a) { return a = P(a.x - T(1.0f), a.y - T(1.0f)); }                            \
  PK_SIM_SMALL_PAIR_COMPARE(P, ==)                                                                             \
  PK_SIM_SMALL_PAIR_COMPARE(P, !=)                                                                             \
  PK_SIM_SMALL_PAIR_COMPARE(P, <)                                                                              \
  PK_SIM_SMALL_PAIR_COMPARE(P, <=)                                                                             \
  PK_SIM_SMALL_PAIR_COMPARE(P, >)                                                                              \
  PK_SIM_SMALL_PAIR_COMPARE(P, >=)                                                                             \
  PK_SIM_SMALL_PAIR(P, __hadd2, __hadd)                                                                        \
  PK_SIM_SMALL_PAIR(P, __hsub2, __hsub)                                                                        \
  PK_SIM_SMALL_PAIR(P, __hmul2, __hmul)                                                                        \
  PK_SIM_SMALL_PAIR(P, __h2div, __hdiv)                                                                        \
  PK_SIM_SMALL_PAIR(P, __hmax2, __hmax)                                                                        \
  PK_SIM_SMALL_PAIR(P, __hmin2, __hmin)                                                                        \
  PK_SIM_SMALL_PAIR(P, __hadd2_rn, __hadd_rn)                                                                  \
  PK_SIM_SMALL_PAIR(P, __hsub2_rn, __hsub_rn)                                                                  \
  PK_SIM_SMALL_PAIR(P, __hmul2_rn, __hmul_rn)                                                                  \
  PK_SIM_SMALL_PAIR(P, __hadd2_sat, __hadd_sat)                                                                \
  PK_SIM_SMALL_PAIR(P, __hsub2_sat, __hsub_sat)                                                                \
  PK_SIM_SMALL_PAIR(P, __hmul2_sat, __hmul_sat)                                                                \
  PK_SIM_SMALL_PAIR(P, __hmax2_nan, __hmax_nan)                                                                \
  PK_SIM_SMALL_PAIR(P, __hmin2_nan, __hmin_nan)                                                                \
  PK_SIM_SMALL_TRIPLE(P, __hfma2_sat, __hfma_sat)                                                              \
  PK_SIM_SMALL_TRIPLE(P, __hfma2_relu, __hfma_relu)                                                            \
  PK_SIM_SMALL_TRIPLE(P, __hfma2, __hfma)                                                                      \
  PK_SIM_INLINE P __hcmadd(P a, P b, P c) {                                                                    \
    return P(__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)));        \
  }                                                                                                            \
  PK_SIM_INLINE P __hisnan2(P a) { return P(T(__hisnan(a.x) ? 1.0f : 0.0f), T(__hisnan(a.y) ? 1.0f : 0.0f)); } \
  PK_SIM_INLINE P __hneg2(P a) { return P(__hneg(a.x), __hneg(a.y)); }                                         \
  PK_SIM_INLINE P __habs2(P a) { return P(__habs(a.x), __habs(a.y)); }                                         \
  PK_SIM_SMALL_PAIR_TEST(T, P, eq, ==)                                                                         \
  PK_SIM_SMALL_PAIR_TEST(T, P, ne, !=)                                                                         \
  PK_SIM_SMALL_PAIR_TEST(T, P, lt, <)                                                                          \
  PK_SIM_SMALL_PAIR_TEST(T, P, le, <=)                                                                         \
  PK_SIM_SMALL_PAIR_TEST(T, P, gt, >)                                                                          \
  PK_SIM_SMALL_PAIR_TEST(T, P, ge, >=)                                                                         \
  PK_SIM_INLINE float __low2float(P a) { return (float)a.x; }                                                  \
  PK_SIM_INLINE float __high2float(P a) { return (float)a.y; }                                                 \
  PK_SIM_INLINE P __lowhigh2highlow(P a) { return P(a.y, a.x); }                                               \
  namespace pk_sim_library {                                                                                   \
  PK_SIM_INLINE T atomicAdd(T *address, T value, PK_SIM_HERE) {                                                \
    return pk_sim_update(                                                                                      \
        address, [value](T old) -> T { return old + value; }, pk_sim_file, pk_sim_line);                       \
  }                                                                                                            \
  PK_SIM_INLINE P atomicAdd(P *address, P value, PK_SIM_HERE) {                                                \
    return pk_sim_update(                                                                                      \
        address, [value](P old) -> P { return old + value; }, pk_sim_file, pk_sim_line);                       \
  }                                                                                                            \
  }

template <class T>
PK_SIM_INLINE T pk_sim_from_bits(unsigned bits) {
  T value;
  value.pk_sim_value = (unsigned short)bits;
  return value;
}

// A double that no float equals becomes the odd one of its two neighbours: rounding that again, to fewer bits, gives
// what rounding the double once would have given.
PK_SIM_INLINE float pk_sim_round_to_odd(double value) {
  const float nearest = (float)value;
  unsigned bits = __float_as_uint(nearest);
  if ((double)nearest == value || value != value || __builtin_isinf(nearest)) return nearest;
  if (__builtin_fabs((double)nearest) > __builtin_fabs(value)) --bits;
  return __uint_as_float(bits | 1u);
}

#define PK_SIM_SMALL_OPERATOR(T, op)                                        \
  PK_SIM_INLINE T operator op(T a, T b) { return T((float)a op(float) b); } \
  PK_SIM_INLINE T &operator op##=(T &a, T b) { return a = a op b; }
#define PK_SIM_SMALL_COMPARE(T, op) \
  PK_SIM_INLINE bool operator op(T a, T b) { return (float)a op(float) b; }
#define PK_SIM_SMALL_BINARY(T, name, ...) \
  PK_SIM_INLINE T name(T a, T b) { return __VA_ARGS__; }
// The u form also holds when a value is no number.
#define PK_SIM_SMALL_TEST(T, name, op)                                                                             \
  PK_SIM_INLINE bool name(T a, T b) { return (float)a op(float) b && !__builtin_isunordered((float)a, (float)b); } \
  PK_SIM_INLINE bool name##u(T a, T b) { return (float)a op(float) b || __builtin_isunordered((float)a, (float)b); }
#define PK_SIM_SMALL_UNARY(T, P, name, ...) \
  PK_SIM_INLINE T h##name(T a) {            \
    const float x = (float)a;               \
    return T(__VA_ARGS__);                  \
  }                                         \
  PK_SIM_INLINE P h2##name(P a) { return P(h##name(a.x), h##name(a.y)); }
#define PK_SIM_SMALL_PAIR_OPERATOR(T, P, op)                                                                    \
  PK_SIM_INLINE P operator op(P a, P b) { return P(T((float)a.x op(float) b.x), T((float)a.y op(float) b.y)); } \
  PK_SIM_INLINE P &operator op##=(P &a, P b) { return a = a op b; }
#define PK_SIM_SMALL_PAIR_COMPARE(P, op) \
  PK_SIM_INLINE bool operator op(P a, P b) { return (float)a.x op(float) b.x && (float)a.y op(float) b.y; }
#define PK_SIM_SMALL_TRIPLE(P, name, one) \
  PK_SIM_INLINE P name(P a, P b, P c) { return P(one(a.x, b.x, c.x), one(a.y, b.y, c.y)); }
#define PK_SIM_SMALL_PAIR(P, name, one) \
  PK_SIM_INLINE P name(P a, P b) { return P(one(a.x, b.x), one(a.y, b.y)); }
// Of a pair: ones and zeros, masks, and whether it holds for both.
#define PK_SIM_SMALL_PAIR_TEST(T, P, name, op)     \
  PK_SIM_SMALL_PAIR_RESULTS(T, P, name, __h##name) \
  PK_SIM_SMALL_PAIR_RESULTS(T, P, name##u, __h##name##u)
#define PK_SIM_SMALL_PAIR_RESULTS(T, P, name, test)                               \
  PK_SIM_INLINE P __h##name##2(P a, P b) {                                        \
    return P(T(test(a.x, b.x) ? 1.0f : 0.0f), T(test(a.y, b.y) ? 1.0f : 0.0f));   \
  }                                                                               \
  PK_SIM_INLINE unsigned __h##name##2_mask(P a, P b) {                            \
    return (test(a.x, b.x) ? 0xffffu : 0u) | (test(a.y, b.y) ? 0xffff0000u : 0u); \
  }                                                                               \
  PK_SIM_INLINE bool __hb##name##2(P a, P b) { return test(a.x, b.x) && test(a.y, b.y); }

// ---- conversions from and to integers, in the four rounding modes
// An integer as a double; one that needs more digits becomes the odd one of its neighbours: see pk_sim_round_to_odd().
template <class I>
PK_SIM_INLINE double pk_sim_odd_double(I value) {
  const bool negative = value < 0;
  const unsigned long long size = negative ? 0ull - (unsigned long long)value : (unsigned long long)value;
  const int shift = size >> 53 ? 11 - __builtin_clzll(size) : 0;
  const unsigned long long kept = size >> shift | ((size & ((1ull << shift) - 1)) != 0);
  const double result = (double)kept * (double)(1ull << shift);
  return negative ? -result : result;
}
enum pk_sim_rounding { PK_SIM_NEAREST, PK_SIM_TO_ZERO, PK_SIM_UP, PK_SIM_DOWN };
template <class T>
PK_SIM_INLINE T pk_sim_rounded(double value, pk_sim_rounding mode) {
  const T nearest = T::pk_sim_from_double(value);
  const double got = (double)(float)nearest;
  const bool negative = nearest.pk_sim_value & 0x8000u;
  int step = 0;  // of the magnitude
  if (mode == PK_SIM_TO_ZERO && __builtin_fabs(got) > __builtin_fabs(value)) step = -1;
  if (mode == PK_SIM_UP && got < value) step = negative ? -1 : 1;
  if (mode == PK_SIM_DOWN && got > value) step = negative ? 1 : -1;
  return pk_sim_from_bits<T>((unsigned)(nearest.pk_sim_value + step));
}
#define PK_SIM_SMALL_INTEGERS(T, t)                                                                  \
  PK_SIM_SMALL_INTEGER(T, t, int, int)                                                               \
  PK_SIM_SMALL_INTEGER(T, t, uint, unsigned)                                                         \
  PK_SIM_SMALL_INTEGER(T, t, short, short)                                                           \
  PK_SIM_SMALL_INTEGER(T, t, ushort, unsigned short)                                                 \
  PK_SIM_SMALL_INTEGER(T, t, ll, long long)                                                          \
  PK_SIM_SMALL_INTEGER(T, t, ull, unsigned long long)                                                \
  PK_SIM_INLINE signed char __##t##2char_rz(T a) { return (signed char)a; }                          \
  PK_SIM_INLINE unsigned char __##t##2uchar_rz(T a) { return (unsigned char)a; }                     \
  PK_SIM_INLINE T __float2##t##_rn(float a) { return T(a); }                                         \
  PK_SIM_INLINE T __float2##t##_rz(float a) { return pk_sim_rounded<T>((double)a, PK_SIM_TO_ZERO); } \
  PK_SIM_INLINE T __float2##t##_ru(float a) { return pk_sim_rounded<T>((double)a, PK_SIM_UP); }      \
  PK_SIM_INLINE T __float2##t##_rd(float a) { return pk_sim_rounded<T>((double)a, PK_SIM_DOWN); }    \
  PK_SIM_INLINE T __float2##t(float a) { return T(a); }                                              \
  PK_SIM_INLINE T __double2##t(double a) { return T(a); }                                            \
  PK_SIM_INLINE float __##t##2float(T a) { return (float)a; }
#define PK_SIM_SMALL_INTEGER(T, t, i, I)                                                                    \
  PK_SIM_INLINE T __##i##2##t##_rn(I a) { return T(a); }                                                    \
  PK_SIM_INLINE T __##i##2##t##_rz(I a) { return pk_sim_rounded<T>(pk_sim_odd_double(a), PK_SIM_TO_ZERO); } \
  PK_SIM_INLINE T __##i##2##t##_ru(I a) { return pk_sim_rounded<T>(pk_sim_odd_double(a), PK_SIM_UP); }      \
  PK_SIM_INLINE T __##i##2##t##_rd(I a) { return pk_sim_rounded<T>(pk_sim_odd_double(a), PK_SIM_DOWN); }    \
  PK_SIM_INLINE I __##t##2##i##_rn(T a) { return pk_sim_saturated<I>(__builtin_rintf((float)a), false); }   \
  PK_SIM_INLINE I __##t##2##i##_rz(T a) { return pk_sim_saturated<I>(__builtin_truncf((float)a), false); }  \
  PK_SIM_INLINE I __##t##2##i##_ru(T a) { return pk_sim_saturated<I>(__builtin_ceilf((float)a), false); }   \
  PK_SIM_INLINE I __##t##2##i##_rd(T a) { return pk_sim_saturated<I>(__builtin_floorf((float)a), false); }

// The members that both scalars have: constructors and conversions. Raw is the type that only stores.
#define PK_SIM_SMALL_MEMBERS(T, Raw)                                       \
  unsigned short pk_sim_value;                                             \
  T() = default;                                                           \
  T(const Raw &raw) : pk_sim_value(raw.x) {}                               \
  T(double value) : T(pk_sim_round_to_odd(value)) {}                       \
  T(int value) : T((double)value) {}                                       \
  T(unsigned value) : T((double)value) {}                                  \
  T(short value) : T((float)value) {}                                      \
  T(unsigned short value) : T((float)value) {}                             \
  T(long value) : T(pk_sim_odd_double(value)) {}                           \
  T(unsigned long value) : T(pk_sim_odd_double(value)) {}                  \
  T(long long value) : T(pk_sim_odd_double(value)) {}                      \
  T(unsigned long long value) : T(pk_sim_odd_double(value)) {}             \
  operator Raw() const { return {pk_sim_value}; }                          \
  explicit operator bool() const { return (pk_sim_value & 0x7fffu) != 0; } \
  PK_SIM_SMALL_MEMBER(char)                                                \
  PK_SIM_SMALL_MEMBER(signed char)                                         \
  PK_SIM_SMALL_MEMBER(unsigned char)                                       \
  PK_SIM_SMALL_MEMBER(short)                                               \
  PK_SIM_SMALL_MEMBER(unsigned short)                                      \
  PK_SIM_SMALL_MEMBER(int)                                                 \
  PK_SIM_SMALL_MEMBER(unsigned)                                            \
  PK_SIM_SMALL_MEMBER(long)                                                \
  PK_SIM_SMALL_MEMBER(unsigned long)                                       \
  PK_SIM_SMALL_MEMBER(long long)                                           \
  PK_SIM_SMALL_MEMBER(unsigned long long)                                  \
  static T pk_sim_from_double(double value) { return T(value); }
#define PK_SIM_SMALL_MEMBER(I) \
  explicit operator I() const { return pk_sim_saturated<I>(__builtin_truncf((float)*this), false); }
