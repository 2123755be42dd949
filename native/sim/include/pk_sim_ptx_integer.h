// pk_sim_ptx_integer.h: integer instructions of inline PTX that are more than an operator of C++.
#pragma once
#pragma GCC system_header

// The carry that .cc leaves for the next addition or subtraction of the thread.
PK_SIM_STATE unsigned pk_sim_ptx_carry;
PK_SIM_UNCHECKED static unsigned pk_ptx_carry() { return pk_sim_ptx_carry; }
PK_SIM_UNCHECKED static void pk_ptx_set_carry(unsigned carry) { pk_sim_ptx_carry = carry; }

template <class T>
PK_SIM_INLINE T pk_ptx_add(T a, T b, unsigned carry, bool keep) {
  T first, sum;
  const bool over = __builtin_add_overflow(a, b, &first), more = __builtin_add_overflow(first, (T)carry, &sum);
  if (keep) pk_ptx_set_carry(over || more);
  return sum;
}
template <class T>
PK_SIM_INLINE T pk_ptx_subtract(T a, T b, unsigned borrow, bool keep) {
  T first, difference;
  const bool under = __builtin_sub_overflow(a, b, &first);
  const bool more = __builtin_sub_overflow(first, (T)borrow, &difference);
  if (keep) pk_ptx_set_carry(under || more);
  return difference;
}

// The upper half of a product.
PK_SIM_INLINE short pk_ptx_high(short a, short b) { return (short)((int)a * b >> 16); }
PK_SIM_INLINE unsigned short pk_ptx_high(unsigned short a, unsigned short b) {
  return (unsigned short)((unsigned)a * b >> 16);
}
PK_SIM_INLINE int pk_ptx_high(int a, int b) { return __mulhi(a, b); }
PK_SIM_INLINE unsigned pk_ptx_high(unsigned a, unsigned b) { return __umulhi(a, b); }
PK_SIM_INLINE long long pk_ptx_high(long long a, long long b) { return __mul64hi(a, b); }
PK_SIM_INLINE unsigned long long pk_ptx_high(unsigned long long a, unsigned long long b) { return __umul64hi(a, b); }

// Bits 16 to 47 of a product of 24-bit numbers.
PK_SIM_INLINE int pk_ptx_high24(int a, int b) { return (int)((long long)(a << 8 >> 8) * (b << 8 >> 8) >> 16); }
PK_SIM_INLINE unsigned pk_ptx_high24(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)(a & 0xffffffu) * (b & 0xffffffu) >> 16);
}

// As a 32-bit number that cannot go beyond its range.
PK_SIM_INLINE int pk_ptx_clamped(long long x) {
  return x < -0x80000000ll ? (int)0x80000000u : x > 0x7fffffffll ? 0x7fffffff : (int)x;
}

// A device's quotient by zero has all bits set, and its remainder is the dividend.
template <class T>
PK_SIM_INLINE T pk_ptx_quotient(T a, T b) {
  if (b == 0) return (T) ~(T)0;
  return (T)-1 < (T)0 && b == (T)-1 ? (T)(0 - a) : (T)(a / b);
}
template <class T>
PK_SIM_INLINE T pk_ptx_remainder(T a, T b) {
  if (b == 0) return a;
  return (T)-1 < (T)0 && b == (T)-1 ? (T)0 : (T)(a % b);
}

// Shifts by more than the width leave nothing, or the sign.
template <class T>
PK_SIM_INLINE T pk_ptx_left(T a, unsigned by) {
  return by >= 8 * sizeof(T) ? (T)0 : (T)(a << by);
}
template <class T>
PK_SIM_INLINE T pk_ptx_right(T a, unsigned by) {
  constexpr unsigned most = 8 * sizeof(T) - 1;
  return by > most ? ((T)-1 < (T)0 ? (T)(a >> most) : (T)0) : (T)(a >> by);
}

// `length` bits from bit `at` on. What is beyond the last bit is zero, or for signed numbers the sign: the field's
// highest bit, or the last bit there is.
template <class T>
PK_SIM_INLINE T pk_ptx_field(T a, unsigned at, unsigned length) {
  constexpr unsigned bits = 8 * sizeof(T);
  constexpr bool is_signed = (T)-1 < (T)0;
  at &= 0xffu, length &= 0xffu;
  if (length == 0) return 0;
  const unsigned last = at + length - 1 < bits - 1 ? at + length - 1 : bits - 1;
  const bool sign = is_signed && (a >> last & 1);
  T result = sign ? (T)-1 : (T)0;
  for (unsigned i = 0; i < bits && i < length && at + i < bits; ++i) {
    const T one = (T)((T)1 << i);
    result = (a >> (at + i) & 1) ? (T)(result | one) : (T)(result & ~one);
  }
  return result;
}
template <class T>
PK_SIM_INLINE T pk_ptx_insert(T field, T into, unsigned at, unsigned length) {
  constexpr unsigned bits = 8 * sizeof(T);
  at &= 0xffu, length &= 0xffu;
  const T ones = length >= bits ? (T) ~(T)0 : (T)(((T)1 << length) - 1);
  const T mask = at >= bits ? (T)0 : (T)(ones << at);
  return (T)((into & ~mask) | (pk_ptx_left(field, at) & mask));
}
// The highest bit that differs from the sign; all ones where none does.
template <class T>
PK_SIM_INLINE unsigned pk_ptx_find(T a, bool shift_amount) {
  const unsigned long long b = (unsigned long long)(a < 0 ? (T)~a : a);
  if (b == 0) return ~0u;
  const unsigned at = 63u - (unsigned)__builtin_clzll(b);
  return shift_amount ? 8 * sizeof(T) - 1 - at : at;
}
// The lower `bits` bits as a number. wrap: of the count only the lower five bits count.
PK_SIM_INLINE unsigned pk_ptx_extended(unsigned a, unsigned bits, bool is_signed, bool wrap) {
  bits = wrap ? bits & 31u : bits;
  if (bits >= 32) return a;
  if (bits == 0) return 0;
  return is_signed ? (unsigned)((int)(a << (32 - bits)) >> (32 - bits)) : a & ((1u << bits) - 1);
}
PK_SIM_INLINE unsigned pk_ptx_mask(unsigned at, unsigned bits, bool wrap) {
  if (wrap) {
    at &= 31u, bits &= 31u;
  } else if (at >= 32) {
    return 0;
  }
  return (bits >= 32 ? ~0u : (1u << bits) - 1) << at;
}

// Bit by bit: what the table says of the three bits.
template <class T>
PK_SIM_INLINE T pk_ptx_logic(T a, T b, T c, unsigned table) {
  T result = 0;
  if (table & 0x01u) result |= ~a & ~b & ~c;
  if (table & 0x02u) result |= ~a & ~b & c;
  if (table & 0x04u) result |= ~a & b & ~c;
  if (table & 0x08u) result |= ~a & b & c;
  if (table & 0x10u) result |= a & ~b & ~c;
  if (table & 0x20u) result |= a & ~b & c;
  if (table & 0x40u) result |= a & b & ~c;
  if (table & 0x80u) result |= a & b & c;
  return result;
}

// Four bytes of eight. Four bits of the selector name one; the highest has its sign in the place of the byte.
PK_SIM_INLINE unsigned pk_ptx_permuted(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned which = selector >> 4 * i & 0xfu;
    unsigned byte = (unsigned)(bytes >> 8 * (which & 7u)) & 0xffu;
    if (which & 8u) byte = byte & 0x80u ? 0xffu : 0u;
    result |= byte << 8 * i;
  }
  return result;
}
// The modes of prmt: the selector of each for what the third operand says.
PK_SIM_INLINE unsigned pk_ptx_permutation(int mode, unsigned c) {
  constexpr unsigned f4e[] = {0x3210u, 0x4321u, 0x5432u, 0x6543u}, b4e[] = {0x5670u, 0x6701u, 0x7012u, 0x0123u};
  constexpr unsigned ecl[] = {0x3210u, 0x3211u, 0x3222u, 0x3333u}, ecr[] = {0x0000u, 0x1110u, 0x2210u, 0x3210u};
  c &= 3u;
  return mode == 0   ? f4e[c]
         : mode == 1 ? b4e[c]
         : mode == 2 ? 0x1111u * c
         : mode == 3 ? ecl[c]
         : mode == 4 ? ecr[c]
                     : (c & 1u ? 0x3232u : 0x1010u);
}

// Sums of products of bytes, or of half words and bytes. AS, BS: whose numbers have signs.
template <bool AS, bool BS>
PK_SIM_INLINE unsigned pk_ptx_dot4(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8)
    c += (unsigned)((AS ? (int)(signed char)(a >> i) : (int)(a >> i & 0xffu)) *
                    (BS ? (int)(signed char)(b >> i) : (int)(b >> i & 0xffu)));
  return c;
}
template <bool AS, bool BS>
PK_SIM_INLINE unsigned pk_ptx_dot2(unsigned a, unsigned b, unsigned c, bool high) {
  for (int i = 0; i < 2; ++i) {
    const unsigned byte = b >> 8 * (i + 2 * high) & 0xffu, half = a >> 16 * i & 0xffffu;
    c += (unsigned)((AS ? (int)(short)half : (int)half) * (BS ? (int)(signed char)byte : (int)byte));
  }
  return c;
}

template <class T>
PK_SIM_INLINE T pk_ptx_distance_of(T a, T b) {
  return (T)(a < b ? b - a : a - b);
}

// Two numbers of 16 bits in a word.
template <class Lane, class Change>
PK_SIM_INLINE unsigned pk_ptx_lanes(unsigned a, unsigned b, Change change) {
  const Lane low = change((Lane)a, (Lane)b), high = change((Lane)(a >> 16), (Lane)(b >> 16));
  return (unsigned)(unsigned short)low | (unsigned)(unsigned short)high << 16;
}
