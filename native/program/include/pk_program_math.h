// pk_program_math.h: what CUDA C++ has without an #include beside the runtime, for host text and for functions that are
// __host__ and __device__.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstring>

#define PK_EXTREMA(T)                                        \
  constexpr inline T max(T a, T b) { return a < b ? b : a; } \
  constexpr inline T min(T a, T b) { return b < a ? b : a; }
PK_EXTREMA(int)
PK_EXTREMA(unsigned)
PK_EXTREMA(long)
PK_EXTREMA(unsigned long)
PK_EXTREMA(long long)
PK_EXTREMA(unsigned long long)
#undef PK_EXTREMA
// Of one signed and one unsigned, the unsigned type's; of a float and a double, the double's.
#define PK_MIXED_EXTREMA(A, B, T)                              \
  constexpr inline T max(A a, B b) { return max((T)a, (T)b); } \
  constexpr inline T max(B a, A b) { return max((T)a, (T)b); } \
  constexpr inline T min(A a, B b) { return min((T)a, (T)b); } \
  constexpr inline T min(B a, A b) { return min((T)a, (T)b); }
inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
inline float min(float a, float b) { return __builtin_fminf(a, b); }
inline double max(double a, double b) { return __builtin_fmax(a, b); }
inline double min(double a, double b) { return __builtin_fmin(a, b); }
PK_MIXED_EXTREMA(int, unsigned, unsigned)
PK_MIXED_EXTREMA(long, unsigned long, unsigned long)
PK_MIXED_EXTREMA(long long, unsigned long long, unsigned long long)
#undef PK_MIXED_EXTREMA
inline double max(float a, double b) { return __builtin_fmax(a, b); }
inline double max(double a, float b) { return __builtin_fmax(a, b); }
inline double min(float a, double b) { return __builtin_fmin(a, b); }
inline double min(double a, float b) { return __builtin_fmin(a, b); }

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / std::cbrt(x); }
inline double rcbrt(double x) { return 1.0 / std::cbrt(x); }
inline float sinpif(float x) { return (float)std::sin((double)x * 3.14159265358979323846); }
inline float cospif(float x) { return (float)std::cos((double)x * 3.14159265358979323846); }
inline double sinpi(double x) { return std::sin(x * 3.14159265358979323846); }
inline double cospi(double x) { return std::cos(x * 3.14159265358979323846); }

namespace pk_program {
template <class To, class From>
inline To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}
}  // namespace pk_program
inline int __float_as_int(float x) { return pk_program::bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return pk_program::bits_as<unsigned>(x); }
inline float __int_as_float(int x) { return pk_program::bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return pk_program::bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return pk_program::bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return pk_program::bits_as<double>(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// ---- what the headers of small floats and complex numbers, which are the simulator's, ask for
#define PK_SIM_ELEMENT(T, text)
#define PK_SIM_UNCHECKED
// Of NaN: the smallest number of 64 bits, 0 of fewer, unless it comes from a double.
template <class To>
inline To pk_sim_saturated(double x, bool wide) {
  constexpr bool is_signed = static_cast<To>(-1) < static_cast<To>(0);
  constexpr unsigned long long top = 1ull << (8 * sizeof(To) - 1);
  constexpr To least = is_signed ? static_cast<To>(top) : static_cast<To>(0);
  constexpr To most = is_signed ? static_cast<To>(top - 1) : static_cast<To>(-1);
  if (x != x) return wide || sizeof(To) == 8 ? static_cast<To>(top) : static_cast<To>(0);
  if (x <= static_cast<double>(least)) return least;
  return x >= static_cast<double>(most) ? most : static_cast<To>(x);
}
#define PK_SIM_HERE const char *pk_sim_file = __builtin_FILE(), int pk_sim_line = __builtin_LINE()
// Behind atomicAdd(), which only kernels have: no host text calls it.
template <class T, class Change>
T pk_sim_update(T *, Change, const char *, int, bool = false) {
  __builtin_trap();
}
