// random.cu: arrays of random numbers. A thread turns one Philox block of four words into as many elements as it gives.
#include "numeric.cuh"
#include "philox.cuh"

namespace pk {

struct RandomCall {
  unsigned long long seed, call;
  long long size;
  double shift, scale;                // of uniform and normal numbers
  unsigned long long low, range;      // of integers; a range of 0 stands for 2^64
};

// ---- what one block of words becomes ----

// A number of [0, 1) with as many bits as T has.
template <class T>
struct fraction {  // float
  static constexpr int count = 4;
  static __device__ __forceinline__ float at(const Words &words, int i) {
    return __fmul_rn(__uint2float_rn(words.w[i] >> 8), 5.9604644775390625e-8f);
  }
};
template <>
struct fraction<half_t> {
  static constexpr int count = 4;
  static __device__ __forceinline__ float at(const Words &words, int i) {
    return __fmul_rn(__uint2float_rn(words.w[i] >> 21), 4.8828125e-4f);
  }
};
template <>
struct fraction<bfloat16_t> {
  static constexpr int count = 4;
  static __device__ __forceinline__ float at(const Words &words, int i) {
    return __fmul_rn(__uint2float_rn(words.w[i] >> 24), 3.90625e-3f);
  }
};
template <>
struct fraction<double> {
  static constexpr int count = 2;
  static __device__ __forceinline__ double at(const Words &words, int i) {
    return __dmul_rn(__ull2double_rn(join(words.w[2 * i], words.w[2 * i + 1]) >> 11), 1.1102230246251565e-16);
  }
};

template <class T>
struct Uniform {
  static constexpr int count = fraction<T>::count;
  static __device__ __forceinline__ void make(const Words &words, const RandomCall &call, T (&out)[count]) {
    using R = compute_t<T>;
    for (int i = 0; i < count; ++i) {
      const R scaled = fixed::times(fraction<T>::at(words, i), static_cast<R>(call.scale));
      out[i] = convert<T>::from(fixed::plus(scaled, static_cast<R>(call.shift)));
    }
  }
};

template <class T>
struct Normal {
  static constexpr int count = fraction<T>::count;
  static __device__ __forceinline__ void make(const Words &words, const RandomCall &call, T (&out)[count]) {
    using R = compute_t<T>;
    R z[count];
    if constexpr (count == 4) {
      fixed::normal_pair(words.w[0], words.w[1], &z[0], &z[1]);
      fixed::normal_pair(words.w[2], words.w[3], &z[2], &z[3]);
    } else {
      fixed::normal_pair(join(words.w[0], words.w[1]), join(words.w[2], words.w[3]), &z[0], &z[1]);
    }
    for (int i = 0; i < count; ++i) {
      const R scaled = fixed::times(z[i], static_cast<R>(call.scale));
      out[i] = convert<T>::from(fixed::plus(scaled, static_cast<R>(call.shift)));
    }
  }
};

// low + floor(bits * range / 2^64), for ranges up to 2^32.
template <class T>
struct Integers {
  static constexpr int count = 2;
  static __device__ __forceinline__ void make(const Words &words, const RandomCall &call, T (&out)[count]) {
    for (int i = 0; i < count; ++i) {
      const unsigned long long bits = join(words.w[2 * i], words.w[2 * i + 1]);
      out[i] = static_cast<T>(call.low + __umul64hi(bits, call.range));
    }
  }
};

// low + floor(bits * range / 2^128), for wider ranges.
template <class T>
struct WideIntegers {
  static constexpr int count = 1;
  static __device__ __forceinline__ void make(const Words &words, const RandomCall &call, T (&out)[count]) {
    const unsigned long long low = join(words.w[0], words.w[1]), high = join(words.w[2], words.w[3]);
    if (call.range == 0) {
      out[0] = static_cast<T>(call.low + high);
      return;
    }
    const unsigned long long below = __umul64hi(low, call.range);
    const unsigned long long carry = high * call.range + below < below ? 1 : 0;
    out[0] = static_cast<T>(call.low + __umul64hi(high, call.range) + carry);
  }
};

template <class T, int N>
struct alignas(sizeof(T) * N) Elements {
  T v[N];
};

// out: dense, aligned to 16 bytes.
template <class T, class Source>
__global__ void __launch_bounds__(256) random_fill(T *out, const __grid_constant__ RandomCall call) {
  constexpr int N = Source::count;
  const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long first = index * N;
  if (first >= call.size) return;
  Elements<T, N> drawn;
  Source::make(philox(call.seed, index, call.call), call, drawn.v);
  if (first + N <= call.size) {
    *reinterpret_cast<Elements<T, N> *>(out + first) = drawn;
  } else {
    for (int i = 0; first + i < call.size; ++i) out[first + i] = drawn.v[i];
  }
}

}  // namespace pk
