// conversion.cuh: what a result becomes in the end: another float, or divided by a scale fp8 or int8, rounded to
// nearest even, saturating.
#pragma once
#include "storage.cuh"

namespace pk {

enum Converted { kToFloat, kToHalf, kToBfloat16, kToE4m3, kToE5m2, kToInt8 };

// What numbers are divided by: gives x / scale in float32 where that is neither so large that it saturates nor so small
// that it becomes 0, and there something as large or small. After the first product it takes the steps of a division.
struct Divisor {
  float scale, inverse;  // 0: of no use
  __device__ __forceinline__ explicit Divisor(float by)
      : scale(by), inverse(fabsf(by) > 1e-15f && fabsf(by) < 1e15f ? 1.0f / by : 0.0f) {}
  template <int Count>
  __device__ __forceinline__ void divide(float (&numbers)[Count]) const {
    if (inverse == 0.0f) {
      for (float &number : numbers) number /= scale;
      return;
    }
    for (float &number : numbers) {
      const float first = number * inverse;
      float quotient = fmaf(fmaf(-first, scale, number), inverse, first);
      quotient = fmaf(fmaf(-quotient, scale, number), inverse, quotient);
      number = fabsf(first) < 1e6f && fabsf(first) > 1e-9f ? quotient : first;
    }
  }
};

// fp8 keeps NaN; infinities become the largest numbers.
template <class F, int Count>
__device__ __forceinline__ void saturate(const float (&numbers)[Count], F (&converted)[Count]) {
#if __CUDA_ARCH__ >= 890
  if constexpr (Count % 2 == 0) {
    for (int i = 0; i < Count; i += 2) {
      unsigned short two;
      if constexpr (F::kMantissa == 3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(numbers[i + 1]), "f"(numbers[i]));
      else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(two) : "f"(numbers[i + 1]), "f"(numbers[i]));
      for (int j = 0; j < 2; ++j) {
        const float number = numbers[i + j];
        converted[i + j].bits = static_cast<unsigned char>(number == number ? two >> 8 * j : F::kNan);
      }
    }
    return;
  }
#endif
  const float largest = widen(F{static_cast<unsigned char>(F::kLargest)});
  for (int i = 0; i < Count; ++i)
    converted[i] = to_small_float<F>(numbers[i] > largest ? largest : numbers[i] < -largest ? -largest : numbers[i]);
}
// int8 has no NaN: it becomes 0. A sum with 1.5 * 2^23 has what was added in its last bits, rounded.
template <int Count>
__device__ __forceinline__ void saturate(const float (&numbers)[Count], signed char (&converted)[Count]) {
  for (int i = 0; i < Count; ++i) {
    const float inside = numbers[i] == numbers[i] ? fminf(fmaxf(numbers[i], -128.0f), 127.0f) : 0.0f;
    converted[i] = static_cast<signed char>(__float_as_uint(inside + 12582912.0f));
  }
}

// Floats have no scale.
template <class D, int Count>
__device__ __forceinline__ void convert_all(float (&numbers)[Count], const Divisor &by, D (&converted)[Count]) {
  if constexpr (sizeof(D) == 1) {
    by.divide(numbers);
    saturate(numbers, converted);
  } else {
    for (int i = 0; i < Count; ++i) converted[i] = convert<D>::from(numbers[i]);
  }
}

// Calls what takes a number of the type.
template <class Function>
__device__ __forceinline__ void with_type(int type, const Function &call) {
  switch (type) {
    case kToFloat:
      return call(float{});
    case kToHalf:
      return call(half_t{});
    case kToBfloat16:
      return call(bfloat16_t{});
    case kToE4m3:
      return call(e4m3_t{});
    case kToE5m2:
      return call(e5m2_t{});
    default:
      return call(static_cast<signed char>(0));
  }
}

}  // namespace pk
