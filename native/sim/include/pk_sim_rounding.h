// pk_sim_rounding.h: arithmetic and conversions rounded to zero, up or down, by the processor's own rounding mode.
#pragma once
#pragma GCC system_header

#if defined(__x86_64__)
enum pk_sim_mode { PK_SIM_RD = 1, PK_SIM_RU = 2, PK_SIM_RZ = 3 };
typedef unsigned pk_sim_control;
PK_SIM_INLINE void pk_sim_load_control(pk_sim_control value) { asm volatile("ldmxcsr %0" : : "m"(value)); }
PK_SIM_INLINE pk_sim_control pk_sim_change_mode(pk_sim_mode mode) {
  pk_sim_control before;
  asm volatile("stmxcsr %0" : "=m"(before));
  pk_sim_load_control((before & ~0x6000u) | (unsigned)mode << 13);
  return before;
}
#define PK_SIM_FLOAT_REGISTER "+x"
#elif defined(__aarch64__)
enum pk_sim_mode { PK_SIM_RU = 1, PK_SIM_RD = 2, PK_SIM_RZ = 3 };
typedef unsigned long pk_sim_control;
PK_SIM_INLINE void pk_sim_load_control(pk_sim_control value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
PK_SIM_INLINE pk_sim_control pk_sim_change_mode(pk_sim_mode mode) {
  pk_sim_control before;
  asm volatile("mrs %0, fpcr" : "=r"(before));
  pk_sim_load_control((before & ~0xc00000ul) | (unsigned long)mode << 22);
  return before;
}
#define PK_SIM_FLOAT_REGISTER "+w"
#endif

#ifdef PK_SIM_FLOAT_REGISTER
// Volatile statements keep their order: what passes through them is computed between the two changes of mode.
#define PK_SIM_PINNED(T, constraint)       \
  PK_SIM_INLINE T pk_sim_pinned(T value) { \
    asm volatile("" : constraint(value));  \
    return value;                          \
  }
PK_SIM_PINNED(float, PK_SIM_FLOAT_REGISTER)
PK_SIM_PINNED(double, PK_SIM_FLOAT_REGISTER)
PK_SIM_PINNED(int, "+r")
PK_SIM_PINNED(unsigned, "+r")
PK_SIM_PINNED(long long, "+r")
PK_SIM_PINNED(unsigned long long, "+r")
#undef PK_SIM_PINNED
template <class T, class Compute>
PK_SIM_INLINE T pk_sim_directed(pk_sim_mode mode, Compute compute) {
  const pk_sim_control before = pk_sim_change_mode(mode);
  const T result = pk_sim_pinned((T)compute());
  pk_sim_load_control(before);
  return result;
}
#define PK_SIM_DIRECTED(name, T, parameters, ...)                      \
  PK_SIM_INLINE T name##_rz parameters {                               \
    return pk_sim_directed<T>(PK_SIM_RZ, [=] { return __VA_ARGS__; }); \
  }                                                                    \
  PK_SIM_INLINE T name##_ru parameters {                               \
    return pk_sim_directed<T>(PK_SIM_RU, [=] { return __VA_ARGS__; }); \
  }                                                                    \
  PK_SIM_INLINE T name##_rd parameters {                               \
    return pk_sim_directed<T>(PK_SIM_RD, [=] { return __VA_ARGS__; }); \
  }
PK_SIM_DIRECTED(__fadd, float, (float a, float b), pk_sim_pinned(a) + pk_sim_pinned(b))
PK_SIM_DIRECTED(__fsub, float, (float a, float b), pk_sim_pinned(a) - pk_sim_pinned(b))
PK_SIM_DIRECTED(__fmul, float, (float a, float b), pk_sim_pinned(a) * pk_sim_pinned(b))
PK_SIM_DIRECTED(__fdiv, float, (float a, float b), pk_sim_pinned(a) / pk_sim_pinned(b))
PK_SIM_DIRECTED(__frcp, float, (float a), 1.0f / pk_sim_pinned(a))
PK_SIM_DIRECTED(__fsqrt, float, (float a), __builtin_sqrtf(pk_sim_pinned(a)))
PK_SIM_DIRECTED(__fmaf, float, (float a, float b, float c),
                __builtin_fmaf(pk_sim_pinned(a), pk_sim_pinned(b), pk_sim_pinned(c)))
PK_SIM_DIRECTED(__fmaf_ieee, float, (float a, float b, float c),
                __builtin_fmaf(pk_sim_pinned(a), pk_sim_pinned(b), pk_sim_pinned(c)))
PK_SIM_DIRECTED(__dadd, double, (double a, double b), pk_sim_pinned(a) + pk_sim_pinned(b))
PK_SIM_DIRECTED(__dsub, double, (double a, double b), pk_sim_pinned(a) - pk_sim_pinned(b))
PK_SIM_DIRECTED(__dmul, double, (double a, double b), pk_sim_pinned(a) * pk_sim_pinned(b))
PK_SIM_DIRECTED(__ddiv, double, (double a, double b), pk_sim_pinned(a) / pk_sim_pinned(b))
PK_SIM_DIRECTED(__drcp, double, (double a), 1.0 / pk_sim_pinned(a))
PK_SIM_DIRECTED(__dsqrt, double, (double a), __builtin_sqrt(pk_sim_pinned(a)))
PK_SIM_DIRECTED(__fma, double, (double a, double b, double c),
                __builtin_fma(pk_sim_pinned(a), pk_sim_pinned(b), pk_sim_pinned(c)))
PK_SIM_DIRECTED(__double2float, float, (double a), (float)pk_sim_pinned(a))
PK_SIM_DIRECTED(__int2float, float, (int a), (float)pk_sim_pinned(a))
PK_SIM_DIRECTED(__uint2float, float, (unsigned a), (float)pk_sim_pinned(a))
PK_SIM_DIRECTED(__ll2float, float, (long long a), (float)pk_sim_pinned(a))
PK_SIM_DIRECTED(__ull2float, float, (unsigned long long a), (float)pk_sim_pinned(a))
PK_SIM_DIRECTED(__ll2double, double, (long long a), (double)pk_sim_pinned(a))
PK_SIM_DIRECTED(__ull2double, double, (unsigned long long a), (double)pk_sim_pinned(a))
#undef PK_SIM_DIRECTED
#endif
