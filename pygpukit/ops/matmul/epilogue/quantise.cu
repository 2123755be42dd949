// quantise.cu: floats divided by a scale, as fp8 or int8: rounded to nearest even, saturating.
#include "conversion.cuh"
#include "pack.cuh"

namespace pk {

struct Quantised {
  long long size;
  float scale;
  int scaled;  // by *scales, too
};

// out[i] = in[i] / (scale * *scales), dense. A thread takes 16 bytes of `in`.
template <class S, class D>
__global__ void quantised(const S *in, const float *scales, D *out, const __grid_constant__ Quantised p) {
  constexpr int kPack = 16 / sizeof(S);
  const long long first = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * kPack;
  const Divisor by(p.scaled ? p.scale * *scales : p.scale);
  if (first + kPack <= p.size && aligned<kPack>(in) && aligned<kPack>(out)) {
    const Pack<S, kPack> values = load<kPack>(in + first);
    float numbers[kPack];
    Pack<D, kPack> results;
    for (int i = 0; i < kPack; ++i) numbers[i] = static_cast<float>(widen(values.v[i]));
    convert_all(numbers, by, results.v);
    store(out + first, results);
  } else {
    for (long long i = first; i < first + kPack && i < p.size; ++i) {
      float number[1] = {static_cast<float>(widen(in[i]))};
      D result[1];
      convert_all(number, by, result);
      out[i] = result[0];
    }
  }
}

}  // namespace pk
