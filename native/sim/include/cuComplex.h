// cuComplex.h: complex numbers by CUDA's plain functions.
#pragma once
#pragma GCC system_header

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

// The quotient is scaled by the divisor's size, as NVIDIA's is: its square may be no number.
#define PK_SIM_COMPLEX(C, R, f, hypot_of, make)                                                  \
  PK_SIM_INLINE C make(R real, R imaginary) { return {real, imaginary}; }                        \
  PK_SIM_INLINE R cuCreal##f(C z) { return z.x; }                                                \
  PK_SIM_INLINE R cuCimag##f(C z) { return z.y; }                                                \
  PK_SIM_INLINE C cuConj##f(C z) { return {z.x, -z.y}; }                                         \
  PK_SIM_INLINE C cuCadd##f(C a, C b) { return {a.x + b.x, a.y + b.y}; }                         \
  PK_SIM_INLINE C cuCsub##f(C a, C b) { return {a.x - b.x, a.y - b.y}; }                         \
  PK_SIM_INLINE C cuCmul##f(C a, C b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } \
  PK_SIM_INLINE C cuCdiv##f(C a, C b) {                                                          \
    const R size = __builtin_fabs(b.x) + __builtin_fabs(b.y), scale = R(1) / size;               \
    const R ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;              \
    const R inverse = R(1) / (bx * bx + by * by);                                                \
    return {(ax * bx + ay * by) * inverse, (ay * bx - ax * by) * inverse};                       \
  }                                                                                              \
  PK_SIM_INLINE R cuCabs##f(C z) { return hypot_of(z.x, z.y); }                                  \
  PK_SIM_INLINE C cuCfma##f(C a, C b, C c) {                                                     \
    const C product = cuCmul##f(a, b);                                                           \
    return {product.x + c.x, product.y + c.y};                                                   \
  }
PK_SIM_COMPLEX(cuFloatComplex, float, f, __builtin_hypotf, make_cuFloatComplex)
PK_SIM_COMPLEX(cuDoubleComplex, double, , __builtin_hypot, make_cuDoubleComplex)
#undef PK_SIM_COMPLEX
PK_SIM_INLINE cuComplex make_cuComplex(float real, float imaginary) { return {real, imaginary}; }
PK_SIM_INLINE cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return {(double)z.x, (double)z.y}; }
PK_SIM_INLINE cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) { return {(float)z.x, (float)z.y}; }
