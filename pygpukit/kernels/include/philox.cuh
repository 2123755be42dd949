// philox.cuh: Philox4x32-10 (Salmon et al. 2011), and functions of its words in fixed arithmetic: every operation is
// rounded on its own, none is fused, no library function is called, so that the bits are the same on every machine.
#pragma once

namespace pk {

struct Words {
  unsigned w[4];
};

// Ten rounds. counter = {index, index >> 32, call, call >> 32}; key = {seed, seed >> 32}.
__device__ __forceinline__ Words philox(unsigned long long seed, unsigned long long index, unsigned long long call) {
  unsigned c0 = static_cast<unsigned>(index), c1 = static_cast<unsigned>(index >> 32);
  unsigned c2 = static_cast<unsigned>(call), c3 = static_cast<unsigned>(call >> 32);
  unsigned k0 = static_cast<unsigned>(seed), k1 = static_cast<unsigned>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned low0 = 0xD2511F53u * c0, high0 = __umulhi(0xD2511F53u, c0);
    const unsigned low1 = 0xCD9E8D57u * c2, high1 = __umulhi(0xCD9E8D57u, c2);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

__device__ __forceinline__ unsigned long long join(unsigned low, unsigned high) {
  return static_cast<unsigned long long>(high) << 32 | low;
}

namespace fixed {

__device__ __forceinline__ float plus(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ float times(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ float over(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ double over(double a, double b) { return __ddiv_rn(a, b); }
__device__ __forceinline__ float root(float a) { return __fsqrt_rn(a); }
__device__ __forceinline__ double root(double a) { return __dsqrt_rn(a); }

// sum of coefficient[i] * z^i
template <class R, int N>
__device__ __forceinline__ R polynomial(const R (&coefficient)[N], R z) {
  R sum = coefficient[N - 1];
#pragma unroll
  for (int i = N - 2; i >= 0; --i) sum = plus(times(sum, z), coefficient[i]);
  return sum;
}

// -ln(mantissa * 2^-halvings), mantissa in [1, 2): twice the artanh of (mantissa - 1) / (mantissa + 1), as a series.
template <class R, int N>
__device__ __forceinline__ R negative_log(R mantissa, int halvings, const R (&series)[N]) {
  if (mantissa > R(1.4142135623730951)) {
    mantissa = times(mantissa, R(0.5));
    halvings -= 1;
  }
  const R s = over(plus(mantissa, R(-1)), plus(mantissa, R(1)));
  const R z = times(s, s);
  const R log = plus(plus(s, s), times(s, times(z, polynomial(series, z))));
  return plus(times(static_cast<R>(halvings), R(0.6931471805599453)), -log);
}

// -ln(word / 2^32), a word of 0 standing for half a step.
__device__ __forceinline__ float negative_log(unsigned word) {
  const float series[4] = {float(2.0 / 3), float(2.0 / 5), float(2.0 / 7), float(2.0 / 9)};
  const unsigned bits = __float_as_uint(word == 0 ? 0.5f : __uint2float_rn(word));
  const int exponent = static_cast<int>(bits >> 23) - 127;
  return negative_log(__uint_as_float((bits & 0x7fffffu) | 0x3f800000u), 32 - exponent, series);
}
// -ln(word / 2^64)
__device__ __forceinline__ double negative_log(unsigned long long word) {
  const double series[11] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                             2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  const long long bits = __double_as_longlong(word == 0 ? 0.5 : __ull2double_rn(word));
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const long long mantissa = (bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL;
  return negative_log(__longlong_as_double(mantissa), 64 - exponent, series);
}

// x = an angle within an eighth of a turn, quarters = how many quarter turns to add.
template <class R, int N, int M>
__device__ __forceinline__ void rotate(R x, unsigned quarters, const R (&sine)[N], const R (&cosine)[M], R *c, R *s) {
  const R z = times(x, x);
  const R sin = plus(x, times(x, times(z, polynomial(sine, z))));
  const R cos = plus(R(1), times(z, polynomial(cosine, z)));
  *c = quarters == 0 ? cos : quarters == 1 ? -sin : quarters == 2 ? -cos : sin;
  *s = quarters == 0 ? sin : quarters == 1 ? cos : quarters == 2 ? -sin : -cos;
}

// Cosine and sine of word / 2^32 turns.
__device__ __forceinline__ void turn(unsigned word, float *c, float *s) {
  const float sine[4] = {float(-1.0 / 6), float(1.0 / 120), float(-1.0 / 5040), float(1.0 / 362880)};
  const float cosine[5] = {-0.5f, float(1.0 / 24), float(-1.0 / 720), float(1.0 / 40320), float(-1.0 / 3628800)};
  const unsigned quarters = (word + 0x20000000u) >> 30;
  const int rest = static_cast<int>(word - (quarters << 30));
  rotate(times(__int2float_rn(rest), float(1.5707963267948966 / 1073741824.0)), quarters, sine, cosine, c, s);
}
// Cosine and sine of word / 2^64 turns.
__device__ __forceinline__ void turn(unsigned long long word, double *c, double *s) {
  const double sine[8] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
                          -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  const double cosine[8] = {-0.5,           1.0 / 24,        -1.0 / 720,          1.0 / 40320,
                            -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200.0, 1.0 / 20922789888000};
  const unsigned long long quarters = (word + 0x2000000000000000ULL) >> 62;
  const long long rest = static_cast<long long>(word - (quarters << 62));
  const double x = times(__ll2double_rn(rest), 1.5707963267948966 / 4611686018427387904.0);
  rotate(x, static_cast<unsigned>(quarters), sine, cosine, c, s);
}

// Two independent standard normal numbers (Box and Muller 1958).
template <class R, class Word>
__device__ __forceinline__ void normal_pair(Word radius, Word angle, R *first, R *second) {
  const R log = negative_log(radius);
  const R length = root(plus(log, log));
  R c, s;
  turn(angle, &c, &s);
  *first = times(length, c);
  *second = times(length, s);
}

// exp(x) for x <= 0 as an integer, in units of 2^-40: sums of these do not depend on their order.
__device__ __forceinline__ unsigned long long exp_units(float x) {
  if (!(x > -64.0f)) return 0;
  const float series[7] = {1.0f, 0.5f, float(1.0 / 6), float(1.0 / 24), float(1.0 / 120), float(1.0 / 720),
                           float(1.0 / 5040)};
  const float n = rintf(times(x, 1.4426950408889634f));
  // ln 2 in two parts, of which the first times n is exact
  const float r = plus(plus(x, times(n, -0.693359375f)), times(n, 2.12194440e-4f));
  const float value = plus(1.0f, times(r, polynomial(series, r)));  // 0.7 to 1.42
  const unsigned long long mantissa = static_cast<unsigned long long>(times(value, 16777216.0f));
  const int shift = 16 + static_cast<int>(n);
  return shift >= 0 ? mantissa << shift : shift > -32 ? mantissa >> -shift : 0;
}

}  // namespace fixed
}  // namespace pk
