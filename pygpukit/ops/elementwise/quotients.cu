// quotients.cu: quotients of integers: true ones, which are float64, and of dense ones floored ones and rests by one
// number.
#include "walk.cuh"

namespace pk {

// ---- true division ----

struct TrueQuotient {
  long long which_number;  // operands that are the number: 1 the first, 2 the second, 0 none
  double number;
};

template <class T>
__global__ void __launch_bounds__(256)
    divide_integers(const T *a, const T *b, double *out, const __grid_constant__ Walk<3> walk,
                    const __grid_constant__ TrueQuotient work) {
  constexpr int N = together<T, double>();
  const bool first = work.which_number != 1, second = work.which_number != 2;
  const auto quotient = [&](T x, T y) {
    return (first ? static_cast<double>(x) : work.number) / (second ? static_cast<double>(y) : work.number);
  };
  if (is_dense(walk)) {
    const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N, left = walk.size - i;
    if (left >= N && phase<N>(out) == 0 && (!first || reaches<N>(a + i, i, left)) &&
        (!second || reaches<N>(b + i, i, left))) {
      const Coming<T, N> own((first ? a : b) + i), other((second ? b : a) + i);
      const Pack<T, N> x = own.arrived(), y = other.arrived();
      Pack<double, N> z;
      for (int k = 0; k < N; ++k) z.v[k] = quotient(x.v[k], y.v[k]);
      store_pack<N>(out + i, z);
    } else {
      for (long long k = i; k < i + N && k < i + left; ++k) {
        out[k] = quotient(first ? a[k] : T(1), second ? b[k] : T(1));
      }
    }
    return;
  }
  const Share<N, 3> share(walk);
  if (share.none()) return;
  const Taken<T, N> own = share.begin(first ? a : b, first ? 0 : 1),
                    other = share.begin(second ? b : a, second ? 1 : 0);
  const Pack<T, N> x = own.arrived(), y = other.arrived();
  Pack<double, N> z;
  for (int k = 0; k < N; ++k) z.v[k] = quotient(x.v[k], y.v[k]);
  share.store(out, z);
}

// ---- division by one number of 64 bits, which is not 0: a product and shifts (Granlund and Montgomery, 1994) ----

struct Divisor {
  long long size;
  unsigned long long number, magnitude, factor;
  int first_shift, last_shift;
};

struct FlooredQuotient {
  static __device__ __forceinline__ unsigned long long of(unsigned long long floored, unsigned long long,
                                                          unsigned long long) {
    return floored;
  }
};
struct FlooredRest {
  static __device__ __forceinline__ unsigned long long of(unsigned long long floored, unsigned long long a,
                                                          unsigned long long number) {
    return a - floored * number;
  }
};

template <class Op, class T>
__device__ __forceinline__ T divided_by(T value, const Divisor &by) {
  const auto bits = static_cast<unsigned long long>(value);
  const bool below = T(-1) < T(0) && value < T(0), is_negative = T(-1) < T(0) && static_cast<long long>(by.number) < 0;
  const unsigned long long magnitude = below ? 0 - bits : bits;
  const unsigned long long high = __umul64hi(by.factor, magnitude);
  unsigned long long quotient = (high + ((magnitude - high) >> by.first_shift)) >> by.last_shift;
  if (below != is_negative) quotient = 0 - (quotient + (quotient * by.magnitude != magnitude));
  return static_cast<T>(Op::of(quotient, bits, by.number));
}

template <class T, class Op>
__global__ void __launch_bounds__(256) divide_by(const T *a, T *out, const __grid_constant__ Divisor by) {
  constexpr int N = together<T, T>();
  const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i + N <= by.size && phase<N>(out) == 0 && reaches<N>(a + i, i, by.size - i)) {
    Pack<T, N> pack = Coming<T, N>(a + i).arrived();
    for (int k = 0; k < N; ++k) pack.v[k] = divided_by<Op>(pack.v[k], by);
    store_pack<N>(out + i, pack);
  } else {
    for (long long k = i; k < i + N && k < by.size; ++k) out[k] = divided_by<Op>(a[k], by);
  }
}

}  // namespace pk
