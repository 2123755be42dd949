// transposed.cu: transposed convolution in one dimension, gathered: a thread makes kChannels channels at one position.
// Additions run over input channel, then kernel position, in this order.
#include "numeric.cuh"

namespace pk {

struct TransposedConvolution {
  long long groups, in_channels, out_channels;  // channels of a group
  long long positions;                          // batch x output length
  long long length, result, kernel;
  long long stride, padding, dilation;
  long long has_bias;
};

constexpr int kChannels = 8;

// input: (batch, groups * in_channels, length), weight: (groups * in_channels, out_channels, kernel),
// out: (batch, groups * out_channels, result); all dense.
template <class T>
__global__ void __launch_bounds__(256) convolve_transposed(const T *input, const T *weight, const T *bias, T *out,
                                                           const __grid_constant__ TransposedConvolution p) {
  using A = compute_t<T>;
  const long long tiles = (p.positions + blockDim.x - 1) / blockDim.x;
  const long long position = blockIdx.x % tiles * blockDim.x + threadIdx.x;
  if (position >= p.positions) return;
  const long long parts = (p.out_channels + kChannels - 1) / kChannels;
  const long long group = blockIdx.x / tiles / parts;
  const long long channel0 = blockIdx.x / tiles % parts * kChannels;
  const long long left = p.out_channels - channel0;
  const int channels = left < kChannels ? static_cast<int>(left) : kChannels;
  const long long image = position / p.result, place = position % p.result;

  const T *first = input + (image * p.groups + group) * p.in_channels * p.length;
  const T *weights = weight + group * p.in_channels * p.out_channels * p.kernel + channel0 * p.kernel;
  A sum[kChannels] = {};
  for (long long channel = 0; channel < p.in_channels; ++channel) {
    const T *row = first + channel * p.length;
    const T *taps = weights + channel * p.out_channels * p.kernel;
    for (long long k = 0; k < p.kernel; ++k) {
      const long long from = place + p.padding - k * p.dilation;
      if (from < 0 || from % p.stride != 0 || from / p.stride >= p.length) continue;
      const A value = widen(row[from / p.stride]);
#pragma unroll
      for (int j = 0; j < kChannels; ++j) {
        if (j < channels) sum[j] += value * widen(taps[j * p.kernel + k]);
      }
    }
  }
  const long long out_channel = group * p.out_channels + channel0;
  for (int j = 0; j < channels; ++j) {
    const A shifted = p.has_bias ? sum[j] + widen(bias[out_channel + j]) : sum[j];
    out[(image * p.groups * p.out_channels + out_channel + j) * p.result + place] = convert<T>::from(shifted);
  }
}

}  // namespace pk
