// pk_sim_half.h: the bits of small floats from floats and back. For headers that need no more than the bits.
#pragma once
#pragma GCC system_header

// Rounds to nearest even.
PK_SIM_INLINE unsigned short pk_sim_half_bits(float value) {
#if defined(__F16C__) && defined(__FLT16_MANT_DIG__)
  const _Float16 half = (_Float16)value;
  unsigned short bits;
  __builtin_memcpy(&bits, &half, sizeof bits);
  return bits;
#else
  unsigned bits = __float_as_uint(value);
  const unsigned sign = bits >> 16 & 0x8000u;
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return (unsigned short)(sign | 0x7e00u | (bits >> 13 & 0x3ffu));
  if (bits >= 0x47800000u) return (unsigned short)(sign | 0x7c00u);
  if (bits < 0x38800000u) {
    // Below the smallest normal half: adding this constant leaves the rounded fraction in the last bits.
    return (unsigned short)(sign | (__float_as_uint(__uint_as_float(bits) + 0.5f) - 0x3f000000u));
  }
  return (unsigned short)(sign | ((bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13));
#endif
}
PK_SIM_INLINE float pk_sim_half_value(unsigned short bits) {
#if defined(__F16C__) && defined(__FLT16_MANT_DIG__)
  _Float16 half;
  __builtin_memcpy(&half, &bits, sizeof bits);
  return (float)half;
#else
  const unsigned sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  // The exponent is corrected by a multiplication, which also makes subnormal halves normal floats.
  return __uint_as_float(sign | __float_as_uint(__uint_as_float(rest << 13) * 0x1p112f));
#endif
}
