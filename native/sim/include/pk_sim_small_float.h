// pk_sim_small_float.h: what cuda_fp16.h and cuda_bf16.h share: operators and functions of a 2-byte float and of its
// pair. Everything is computed in float and rounded once, to nearest even, as the hardware does.
#pragma once
#pragma GCC system_header

// T: the scalar, P: the pair of two.
#define PK_SIM_SMALL_FLOAT(T, P)                                                                     \
  PK_SIM_SMALL_OPERATOR(T, +)                                                                        \
  PK_SIM_SMALL_OPERATOR(T, -)                                                                        \
  PK_SIM_SMALL_OPERATOR(T, *)                                                                        \
  PK_SIM_SMALL_OPERATOR(T, /)                                                                        \
  PK_SIM_SMALL_COMPARE(T, ==)                                                                        \
  PK_SIM_SMALL_COMPARE(T, !=)                                                                        \
  PK_SIM_SMALL_COMPARE(T, <)                                                                         \
  PK_SIM_SMALL_COMPARE(T, <=)                                                                        \
  PK_SIM_SMALL_COMPARE(T, >)                                                                         \
  PK_SIM_SMALL_COMPARE(T, >=)                                                                        \
  PK_SIM_INLINE T operator+(T a) { return a; }                                                       \
  PK_SIM_INLINE T operator-(T a) { return pk_sim_from_bits<T>(a.pk_sim_value ^ 0x8000u); }           \
  PK_SIM_INLINE T &operator++(T &a) { return a = T((float)a + 1.0f); }                               \
  PK_SIM_INLINE T &operator--(T &a) { return a = T((float)a - 1.0f); }                               \
  PK_SIM_INLINE T operator++(T &a, int) {                                                            \
    const T old = a;                                                                                 \
    ++a;                                                                                             \
    return old;                                                                                      \
  }                                                                                                  \
  PK_SIM_INLINE T operator--(T &a, int) {                                                            \
    const T old = a;                                                                                 \
    --a;                                                                                             \
    return old;                                                                                      \
  }                                                                                                  \
  PK_SIM_SMALL_BINARY(T, __hadd, a + b)                                                              \
  PK_SIM_SMALL_BINARY(T, __hsub, a - b)                                                              \
  PK_SIM_SMALL_BINARY(T, __hmul, a *b)                                                               \
  PK_SIM_SMALL_BINARY(T, __hdiv, a / b)                                                              \
  PK_SIM_SMALL_BINARY(T, __hadd_rn, a + b)                                                           \
  PK_SIM_SMALL_BINARY(T, __hsub_rn, a - b)                                                           \
  PK_SIM_SMALL_BINARY(T, __hmul_rn, a *b)                                                            \
  PK_SIM_SMALL_BINARY(T, __hadd_sat, T(__saturatef((float)a + (float)b)))                            \
  PK_SIM_SMALL_BINARY(T, __hsub_sat, T(__saturatef((float)a - (float)b)))                            \
  PK_SIM_SMALL_BINARY(T, __hmul_sat, T(__saturatef((float)a *(float)b)))                             \
  PK_SIM_SMALL_BINARY(T, __hmax, T(__builtin_fmaxf((float)a, (float)b)))                             \
  PK_SIM_SMALL_BINARY(T, __hmin, T(__builtin_fminf((float)a, (float)b)))                             \
  PK_SIM_INLINE T __hfma(T a, T b, T c) {                                                            \
    return T::pk_sim_from_double((double)(float)a * (double)(float)b + (double)(float)c);            \
  }                                                                                                  \
  PK_SIM_INLINE T __hfma_relu(T a, T b, T c) { return __hmax(__hfma(a, b, c), T(0.0f)); }            \
  PK_SIM_INLINE T __hneg(T a) { return -a; }                                                         \
  PK_SIM_INLINE T __habs(T a) { return pk_sim_from_bits<T>(a.pk_sim_value & 0x7fffu); }              \
  PK_SIM_SMALL_TEST(T, __heq, ==)                                                                    \
  PK_SIM_SMALL_TEST(T, __hne, !=)                                                                    \
  PK_SIM_SMALL_TEST(T, __hlt, <)                                                                     \
  PK_SIM_SMALL_TEST(T, __hle, <=)                                                                    \
  PK_SIM_SMALL_TEST(T, __hgt, >)                                                                     \
  PK_SIM_SMALL_TEST(T, __hge, >=)                                                                    \
  PK_SIM_INLINE bool __hisnan(T a) { return __builtin_isnan((float)a); }                             \
  PK_SIM_INLINE int __hisinf(T a) { return __builtin_isinf_sign((float)a); }                         \
  PK_SIM_SMALL_UNARY(T, P, exp, __builtin_expf(x))                                                   \
  PK_SIM_SMALL_UNARY(T, P, exp2, __builtin_exp2f(x))                                                 \
  PK_SIM_SMALL_UNARY(T, P, exp10, exp10f(x))                                                         \
  PK_SIM_SMALL_UNARY(T, P, log, __builtin_logf(x))                                                   \
  PK_SIM_SMALL_UNARY(T, P, log2, __builtin_log2f(x))                                                 \
  PK_SIM_SMALL_UNARY(T, P, log10, __builtin_log10f(x))                                               \
  PK_SIM_SMALL_UNARY(T, P, sin, __builtin_sinf(x))                                                   \
  PK_SIM_SMALL_UNARY(T, P, cos, __builtin_cosf(x))                                                   \
  PK_SIM_SMALL_UNARY(T, P, tanh, __builtin_tanhf(x))                                                 \
  PK_SIM_SMALL_UNARY(T, P, sqrt, __builtin_sqrtf(x))                                                 \
  PK_SIM_SMALL_UNARY(T, P, rsqrt, rsqrtf(x))                                                         \
  PK_SIM_SMALL_UNARY(T, P, rcp, 1.0f / x)                                                            \
  PK_SIM_SMALL_UNARY(T, P, floor, __builtin_floorf(x))                                               \
  PK_SIM_SMALL_UNARY(T, P, ceil, __builtin_ceilf(x))                                                 \
  PK_SIM_SMALL_UNARY(T, P, trunc, __builtin_truncf(x))                                               \
  PK_SIM_SMALL_UNARY(T, P, rint, __builtin_rintf(x))                                                 \
  PK_SIM_SMALL_PAIR_OPERATOR(T, P, +)                                                                \
  PK_SIM_SMALL_PAIR_OPERATOR(T, P, -)                                                                \
  PK_SIM_SMALL_PAIR_OPERATOR(T, P, *)                                                                \
  PK_SIM_SMALL_PAIR_OPERATOR(T, P, /)                                                                \
  PK_SIM_INLINE P operator-(P a) { return P(-a.x, -a.y); }                                           \
  PK_SIM_INLINE bool operator==(P a, P b) { return a.x == b.x && a.y == b.y; }                       \
  PK_SIM_INLINE bool operator!=(P a, P b) { return !(a == b); }                                      \
  PK_SIM_SMALL_PAIR(P, __hadd2, __hadd)                                                              \
  PK_SIM_SMALL_PAIR(P, __hsub2, __hsub)                                                              \
  PK_SIM_SMALL_PAIR(P, __hmul2, __hmul)                                                              \
  PK_SIM_SMALL_PAIR(P, __h2div, __hdiv)                                                              \
  PK_SIM_SMALL_PAIR(P, __hmax2, __hmax)                                                              \
  PK_SIM_SMALL_PAIR(P, __hmin2, __hmin)                                                              \
  PK_SIM_INLINE P __hfma2(P a, P b, P c) { return P(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); } \
  PK_SIM_INLINE P __hneg2(P a) { return -a; }                                                        \
  PK_SIM_INLINE P __habs2(P a) { return P(__habs(a.x), __habs(a.y)); }                               \
  PK_SIM_SMALL_PAIR_TEST(T, P, eq, ==)                                                               \
  PK_SIM_SMALL_PAIR_TEST(T, P, ne, !=)                                                               \
  PK_SIM_SMALL_PAIR_TEST(T, P, lt, <)                                                                \
  PK_SIM_SMALL_PAIR_TEST(T, P, le, <=)                                                               \
  PK_SIM_SMALL_PAIR_TEST(T, P, gt, >)                                                                \
  PK_SIM_SMALL_PAIR_TEST(T, P, ge, >=)                                                               \
  PK_SIM_INLINE float __low2float(P a) { return (float)a.x; }                                        \
  PK_SIM_INLINE float __high2float(P a) { return (float)a.y; }                                       \
  PK_SIM_INLINE P __lowhigh2highlow(P a) { return P(a.y, a.x); }                                     \
  PK_SIM_INLINE T atomicAdd(T *address, T value, PK_SIM_HERE) {                                      \
    return pk_sim_update(                                                                            \
        address, [value](T old) -> T { return old + value; }, pk_sim_file, pk_sim_line);             \
  }                                                                                                  \
  PK_SIM_INLINE P atomicAdd(P *address, P value, PK_SIM_HERE) {                                      \
    return pk_sim_update(                                                                            \
        address, [value](P old) -> P { return old + value; }, pk_sim_file, pk_sim_line);             \
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
#define PK_SIM_SMALL_TEST(T, name, op)                 \
  PK_SIM_INLINE bool name(T a, T b) { return a op b; } \
  PK_SIM_INLINE bool name##u(T a, T b) { return a op b || __builtin_isnan((float)a) || __builtin_isnan((float)b); }
#define PK_SIM_SMALL_UNARY(T, P, name, ...) \
  PK_SIM_INLINE T h##name(T a) {            \
    const float x = (float)a;               \
    return T(__VA_ARGS__);                  \
  }                                         \
  PK_SIM_INLINE P h2##name(P a) { return P(h##name(a.x), h##name(a.y)); }
#define PK_SIM_SMALL_PAIR_OPERATOR(T, P, op)                                        \
  PK_SIM_INLINE P operator op(P a, P b) { return P(T(a.x op b.x), T(a.y op b.y)); } \
  PK_SIM_INLINE P &operator op##=(P &a, P b) { return a = a op b; }
#define PK_SIM_SMALL_PAIR(P, name, one) \
  PK_SIM_INLINE P name(P a, P b) { return P(one(a.x, b.x), one(a.y, b.y)); }
#define PK_SIM_SMALL_PAIR_TEST(T, P, name, op)                                                                   \
  PK_SIM_INLINE P __h##name##2(P a, P b) { return P(T(a.x op b.x ? 1.0f : 0.0f), T(a.y op b.y ? 1.0f : 0.0f)); } \
  PK_SIM_INLINE bool __hb##name##2(P a, P b) { return a.x op b.x && a.y op b.y; }
