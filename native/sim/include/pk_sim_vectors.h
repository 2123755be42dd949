// pk_sim_vectors.h: the built-in vector types with CUDA's names, alignments and make_ functions, and dim3.
#pragma once
#pragma GCC system_header

#define PK_SIM_VECTOR(T, N, A2, A4)                                   \
  struct N##1 {                                                       \
    T x;                                                              \
  };                                                                  \
  struct __align__(A2) N##2 {                                         \
    T x, y;                                                           \
  };                                                                  \
  struct N##3 {                                                       \
    T x, y, z;                                                        \
  };                                                                  \
  struct __align__(A4) N##4 {                                         \
    T x, y, z, w;                                                     \
  };                                                                  \
  PK_SIM_INLINE N##1 make_##N##1(T x) { return {x}; }                 \
  PK_SIM_INLINE N##2 make_##N##2(T x, T y) { return {x, y}; }         \
  PK_SIM_INLINE N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; } \
  PK_SIM_INLINE N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }

PK_SIM_VECTOR(signed char, char, 2, 4)
PK_SIM_VECTOR(unsigned char, uchar, 2, 4)
PK_SIM_VECTOR(short, short, 4, 8)
PK_SIM_VECTOR(unsigned short, ushort, 4, 8)
PK_SIM_VECTOR(int, int, 8, 16)
PK_SIM_VECTOR(unsigned, uint, 8, 16)
PK_SIM_VECTOR(long, long, 16, 16)
PK_SIM_VECTOR(unsigned long, ulong, 16, 16)
PK_SIM_VECTOR(long long, longlong, 16, 16)
PK_SIM_VECTOR(unsigned long long, ulonglong, 16, 16)
PK_SIM_VECTOR(float, float, 8, 16)
PK_SIM_VECTOR(double, double, 16, 16)
typedef double4 double4_16a;
typedef long4 long4_16a;
typedef ulong4 ulong4_16a;
typedef longlong4 longlong4_16a;
typedef ulonglong4 ulonglong4_16a;
#undef PK_SIM_VECTOR

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
