// cuComplex.h: complex numbers by CUDA's plain functions.
#pragma once
#pragma GCC system_header

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

// As NVIDIA's has it, whose sums and products have these bits. z has neither sign.
template <class R>
PK_SIM_INLINE R pk_sim_modulus(R x, R y) {
  const R larger = x > y ? x : y, smaller = x > y ? y : x;
  if (larger == 0 || __builtin_isinf(larger) || __builtin_isinf(smaller)) return larger + smaller;
  const R ratio = smaller / larger;
  return larger * R(__builtin_sqrt(R(1) + ratio * ratio));
}

// The quotient is scaled by the divisor's size, as NVIDIA's is: its square may be no number.
#define PK_SIM_COMPLEX(C, R, f, make)                                                                    \
  PK_SIM_INLINE C make(R real, R imaginary) { return {real, imaginary}; }                                \
  PK_SIM_INLINE R cuCreal##f(C z) { return z.x; }                                                        \
  PK_SIM_INLINE R cuCimag##f(C z) { return z.y; }                                                        \
  PK_SIM_INLINE C cuConj##f(C z) { return {z.x, -z.y}; }                                                 \
  PK_SIM_INLINE C cuCadd##f(C a, C b) { return {a.x + b.x, a.y + b.y}; }                                 \
  PK_SIM_INLINE C cuCsub##f(C a, C b) { return {a.x - b.x, a.y - b.y}; }                                 \
  PK_SIM_INLINE C cuCmul##f(C a, C b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }         \
  PK_SIM_INLINE C cuCdiv##f(C a, C b) {                                                                  \
    const R size = __builtin_fabs(b.x) + __builtin_fabs(b.y), scale = R(1) / size;                       \
    const R ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;                      \
    const R inverse = R(1) / (bx * bx + by * by);                                                        \
    return {(ax * bx + ay * by) * inverse, (ay * bx - ax * by) * inverse};                               \
  }                                                                                                      \
  PK_SIM_INLINE R cuCabs##f(C z) { return pk_sim_modulus<R>(__builtin_fabs(z.x), __builtin_fabs(z.y)); } \
  PK_SIM_INLINE C cuCfma##f(C a, C b, C c) {                                                             \
    const R real = a.x * b.x + c.x, imaginary = a.x * b.y + c.y;                                         \
    return {-(a.y * b.y) + real, a.y * b.x + imaginary};                                                 \
  }
PK_SIM_COMPLEX(cuFloatComplex, float, f, make_cuFloatComplex)
PK_SIM_COMPLEX(cuDoubleComplex, double, , make_cuDoubleComplex)
#undef PK_SIM_COMPLEX
PK_SIM_INLINE cuComplex make_cuComplex(float real, float imaginary) { return {real, imaginary}; }
PK_SIM_INLINE cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return {(double)z.x, (double)z.y}; }
PK_SIM_INLINE cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) { return {(float)z.x, (float)z.y}; }
