// conv.cu: convolution (cross-correlation) in one or two dimensions. Where a group makes few channels, a thread makes
// kChannels of them at one position; else a block makes a tile of channels and positions from tiles of the weights and
// of what they see. Additions run over input channel, kernel row, kernel column, in this order.
#include "activation.cuh"

namespace pk {

struct Convolution {
  long long groups, in_channels, out_channels;  // channels of a group
  long long positions;                          // batch x output rows x output columns
  long long image[2], result[2], kernel[2];     // rows, columns
  long long stride[2], padding[2], dilation[2];
  long long start, step[4];  // of the input: batch, channel, row, column, in elements
  long long out_step[4];     // of the result, likewise
  long long has_bias, act;
};

constexpr int kChannels = 8;

// weight: (groups * out_channels, in_channels, kernel rows, kernel columns), dense.
template <class T>
__global__ void __launch_bounds__(256)
    convolve(const T *input, const T *weight, const T *bias, T *out, const __grid_constant__ Convolution p) {
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
  const long long row0 = place / p.result[1] * p.stride[0] - p.padding[0];
  const long long column0 = place % p.result[1] * p.stride[1] - p.padding[1];

  const long long taps = p.kernel[0] * p.kernel[1];
  const long long filter = p.in_channels * taps;
  const T *first = input + p.start + image * p.step[0] + group * p.in_channels * p.step[1];
  const T *weights = weight + (group * p.out_channels + channel0) * filter;
  A sum[kChannels] = {};
  for (long long channel = 0; channel < p.in_channels; ++channel) {
    for (long long i = 0; i < p.kernel[0]; ++i) {
      const long long row = row0 + i * p.dilation[0];
      if (row < 0 || row >= p.image[0]) continue;
      for (long long j = 0; j < p.kernel[1]; ++j) {
        const long long column = column0 + j * p.dilation[1];
        if (column < 0 || column >= p.image[1]) continue;
        const A value = widen(first[channel * p.step[1] + row * p.step[2] + column * p.step[3]]);
        const T *tap = weights + channel * taps + i * p.kernel[1] + j;
#pragma unroll
        for (int k = 0; k < kChannels; ++k) {
          if (k < channels) sum[k] += value * widen(tap[k * filter]);
        }
      }
    }
  }
  const long long out_channel = group * p.out_channels + channel0;
  T *result = out + image * p.out_step[0] + place / p.result[1] * p.out_step[2] + place % p.result[1] * p.out_step[3];
  for (int k = 0; k < channels; ++k) {
    const A shifted = p.has_bias ? sum[k] + widen(bias[out_channel + k]) : sum[k];
    result[(out_channel + k) * p.out_step[1]] = convert<T>::from(activated(shifted, p.act));
  }
}

constexpr int kTileChannels = 64, kTilePositions = 128, kTaps = 16;  // of a block; of a step over the filter
constexpr int kOwnChannels = 8, kOwnPositions = 4;                   // of a thread

// As convolve(), for a block of 256 threads: a warp has kOwnChannels channels at all positions of the tile.
template <class T>
__global__ void __launch_bounds__(256)
    convolve_tiles(const T *input, const T *weight, const T *bias, T *out, const __grid_constant__ Convolution p) {
  using A = compute_t<T>;
  __shared__ A taken[kTaps][kTileChannels + 4];
  __shared__ A seen[kTaps][kTilePositions];
  __shared__ long long offsets[kTaps];
  __shared__ int rows[kTaps], columns[kTaps];
  const int thread = threadIdx.x;
  const long long tiles = (p.positions + kTilePositions - 1) / kTilePositions;
  const long long parts = (p.out_channels + kTileChannels - 1) / kTileChannels;
  const long long group = blockIdx.x / tiles / parts;
  const long long channel0 = blockIdx.x / tiles % parts * kTileChannels;
  const long long position0 = blockIdx.x % tiles * kTilePositions;
  const long long area = p.result[0] * p.result[1];
  const long long taps = p.kernel[0] * p.kernel[1], filter = p.in_channels * taps;

  // What this thread reads: every second tap, at one position.
  const int column_read = thread % kTilePositions, first_tap = thread / kTilePositions;
  const long long position = position0 + column_read;
  const bool inside = position < p.positions;
  const long long image = inside ? position / area : 0, place = inside ? position % area : 0;
  const long long row0 = place / p.result[1] * p.stride[0] - p.padding[0];
  const long long column0 = place % p.result[1] * p.stride[1] - p.padding[1];
  const T *first =
      input + p.start + image * p.step[0] + group * p.in_channels * p.step[1] + row0 * p.step[2] + column0 * p.step[3];
  const T *weights = weight + (group * p.out_channels + channel0) * filter;

  const int lane = thread % 32, warp = thread / 32;
  A sum[kOwnChannels][kOwnPositions] = {};
  for (long long start = 0; start < filter; start += kTaps) {
    if (thread < kTaps) {
      const long long tap = start + thread, channel = tap / taps, at = tap % taps;
      const long long row = at / p.kernel[1] * p.dilation[0], column = at % p.kernel[1] * p.dilation[1];
      offsets[thread] = channel * p.step[1] + row * p.step[2] + column * p.step[3];
      rows[thread] = static_cast<int>(row);
      columns[thread] = static_cast<int>(column);
    }
    for (int i = thread; i < kTaps * kTileChannels; i += 256) {
      const int tap = i % kTaps, channel = i / kTaps;
      const bool there = start + tap < filter && channel0 + channel < p.out_channels;
      taken[tap][channel] = there ? widen(weights[channel * filter + start + tap]) : A(0);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTaps / 2; ++i) {
      const int tap = first_tap + 2 * i;
      const long long row = row0 + rows[tap], column = column0 + columns[tap];
      const bool there =
          inside && start + tap < filter && row >= 0 && row < p.image[0] && column >= 0 && column < p.image[1];
      seen[tap][column_read] = there ? widen(first[offsets[tap]]) : A(0);
    }
    __syncthreads();
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      A own[kOwnChannels], values[kOwnPositions];
#pragma unroll
      for (int i = 0; i < kOwnChannels; ++i) own[i] = taken[tap][warp * kOwnChannels + i];
#pragma unroll
      for (int j = 0; j < kOwnPositions; ++j) values[j] = seen[tap][lane + 32 * j];
#pragma unroll
      for (int i = 0; i < kOwnChannels; ++i) {
#pragma unroll
        for (int j = 0; j < kOwnPositions; ++j) sum[i][j] += own[i] * values[j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < kOwnPositions; ++j) {
    const long long at = position0 + lane + 32 * j;
    if (at >= p.positions) continue;
    const long long spot = at % area;
    T *result =
        out + at / area * p.out_step[0] + spot / p.result[1] * p.out_step[2] + spot % p.result[1] * p.out_step[3];
#pragma unroll
    for (int i = 0; i < kOwnChannels; ++i) {
      const long long own = channel0 + warp * kOwnChannels + i;
      if (own >= p.out_channels) continue;
      const long long channel = group * p.out_channels + own;
      const A shifted = p.has_bias ? sum[i][j] + widen(bias[channel]) : sum[i][j];
      result[channel * p.out_step[1]] = convert<T>::from(activated(shifted, p.act));
    }
  }
}

}  // namespace pk
