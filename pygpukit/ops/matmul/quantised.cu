// quantised.cu: floats divided by a scale, as fp8 or int8: rounded to nearest even, saturating.
#include "pack.cuh"
#include "storage.cuh"

namespace pk {

struct Quantised {
  long long size;
  float scale;
  int scaled;  // by *scales, too
};

// fp8 keeps NaN; infinities become the largest numbers.
template <int... P>
__device__ __forceinline__ small_float_t<P...> saturated(small_float_t<P...>, float value) {
  using F = small_float_t<P...>;
  const float most = widen(F{static_cast<unsigned char>(F::kLargest)});
  return to_small_float<F>(value > most ? most : value < -most ? -most : value);
}
// int8 has no NaN: it becomes 0.
__device__ __forceinline__ signed char saturated(signed char, float value) {
  const float rounded = rintf(value);
  return static_cast<signed char>(rounded >= 127.0f ? 127 : rounded <= -128.0f ? -128 : value == value ? rounded : 0);
}

// out[i] = in[i] / (scale * *scales), dense. A thread takes 16 bytes of `in`.
template <class S, class D>
__global__ void quantised(const S *in, const float *scales, D *out, const __grid_constant__ Quantised p) {
  constexpr int kPack = 16 / sizeof(S);
  const long long first = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * kPack;
  const float scale = p.scaled ? p.scale * *scales : p.scale;
  if (first + kPack <= p.size && aligned<kPack>(in) && aligned<kPack>(out)) {
    const Pack<S, kPack> values = load<kPack>(in + first);
    Pack<D, kPack> results;
    for (int i = 0; i < kPack; ++i) results.v[i] = saturated(D{}, static_cast<float>(widen(values.v[i])) / scale);
    store(out + first, results);
  } else {
    for (long long i = first; i < first + kPack && i < p.size; ++i)
      out[i] = saturated(D{}, static_cast<float>(widen(in[i])) / scale);
  }
}

}  // namespace pk
