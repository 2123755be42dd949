// transposed.cu: transposed convolution in one or two dimensions, gathered: a thread makes kChannels channels at one
// position. Additions run over input channel, kernel row, kernel column, in this order.
#include "activation.cuh"

namespace pk {

struct TransposedConvolution {
  long long groups, in_channels, out_channels;  // channels of a group
  long long positions;                          // batch x output rows x output columns
  long long image[2], result[2], kernel[2];     // rows, columns
  long long stride[2], padding[2], dilation[2];
  long long start, step[4];  // of the input: batch, channel, row, column, in elements
  long long out_step[4];     // of the result, likewise
  long long has_bias, act;
};

constexpr int kChannels = 8;

// weight: (groups * in_channels, out_channels, kernel rows, kernel columns), dense.
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
  const long long area = p.result[0] * p.result[1];
  const long long image = position / area, place = position % area;
  const long long row = place / p.result[1], column = place % p.result[1];

  const long long taps = p.kernel[0] * p.kernel[1], filter = p.out_channels * taps;
  const T *first = input + p.start + image * p.step[0] + group * p.in_channels * p.step[1];
  const T *weights = weight + group * p.in_channels * filter + channel0 * taps;
  A sum[kChannels] = {};
  for (long long channel = 0; channel < p.in_channels; ++channel) {
    for (long long i = 0; i < p.kernel[0]; ++i) {
      const long long from_row = row + p.padding[0] - i * p.dilation[0];
      if (from_row < 0 || from_row % p.stride[0] != 0 || from_row / p.stride[0] >= p.image[0]) continue;
      for (long long j = 0; j < p.kernel[1]; ++j) {
        const long long from = column + p.padding[1] - j * p.dilation[1];
        if (from < 0 || from % p.stride[1] != 0 || from / p.stride[1] >= p.image[1]) continue;
        const long long offset = from_row / p.stride[0] * p.step[2] + from / p.stride[1] * p.step[3];
        const A value = widen(first[channel * p.step[1] + offset]);
        const T *tap = weights + channel * filter + i * p.kernel[1] + j;
#pragma unroll
        for (int k = 0; k < kChannels; ++k) {
          if (k < channels) sum[k] += value * widen(tap[k * taps]);
        }
      }
    }
  }
  const long long out_channel = group * p.out_channels + channel0;
  T *result = out + image * p.out_step[0] + row * p.out_step[2] + column * p.out_step[3];
  for (int k = 0; k < channels; ++k) {
    const A shifted = p.has_bias ? sum[k] + widen(bias[out_channel + k]) : sum[k];
    result[(out_channel + k) * p.out_step[1]] = convert<T>::from(activated(shifted, p.act));
  }
}

}  // namespace pk
