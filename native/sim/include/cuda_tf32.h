// cuda_tf32.h: __nv_tf32, a float whose last 13 bits are rounded away, on the simulated device.
#pragma once
#pragma GCC system_header

struct __align__(4) __nv_tf32 {
  unsigned pk_sim_value;
  __nv_tf32() = default;
  // Rounds to nearest even.
  explicit __nv_tf32(float value) {
    const unsigned bits = __float_as_uint(value);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    pk_sim_value = nan ? 0x7fffe000u : (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
  }
  explicit operator float() const { return __uint_as_float(pk_sim_value); }
};
