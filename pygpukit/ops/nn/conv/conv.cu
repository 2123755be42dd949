// conv.cu: convolution (cross-correlation) in one or two dimensions. Where a group makes few channels, a thread makes
// kChannels of them at one position; else a block makes a tile of channels and positions from tiles of the weights and
// of what they see.
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

// weight: (groups * out_channels, in_channels, kernel rows, kernel columns), dense. Additions run over input channel,
// kernel row, kernel column, in this order.
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

constexpr int kTileChannels = 64, kTilePositions = 128, kStep = 16;  // of a block; input channels of a step
constexpr int kOwnChannels = 8, kOwnPositions = 4;                   // of a thread
constexpr int kRead = kStep * kTilePositions / 256, kTaken = kStep * kTileChannels / 256;  // elements of a step

// As convolve(), for a block of 256 threads: a warp has kOwnChannels channels at all positions of the tile. Additions
// run over kernel row, kernel column, input channel. While a step is computed the next one's elements are on their way.
template <class T>
__global__ void __launch_bounds__(256)
    convolve_tiles(const T *input, const T *weight, const T *bias, T *out, const __grid_constant__ Convolution p) {
  using A = compute_t<T>;
  alignas(16) __shared__ A taken[kStep][kTileChannels + 16 / sizeof(A)];
  alignas(16) __shared__ A seen[kStep][kTilePositions];
  const int thread = threadIdx.x;
  const long long tiles = (p.positions + kTilePositions - 1) / kTilePositions;
  const long long parts = (p.out_channels + kTileChannels - 1) / kTileChannels;
  const long long group = blockIdx.x / tiles / parts;
  const long long channel0 = blockIdx.x / tiles % parts * kTileChannels;
  const long long position0 = blockIdx.x % tiles * kTilePositions;
  const long long area = p.result[0] * p.result[1];
  const long long taps = p.kernel[0] * p.kernel[1], filter = p.in_channels * taps;

  // What this thread reads: every second channel of a step at one position, and a channel's weights for some filters.
  const int place_read = thread % kTilePositions, channel_read = thread / kTilePositions;
  const long long position = position0 + place_read;
  const bool inside = position < p.positions;
  const long long image = inside ? position / area : 0, place = inside ? position % area : 0;
  const long long row0 = place / p.result[1] * p.stride[0] - p.padding[0];
  const long long column0 = place % p.result[1] * p.stride[1] - p.padding[1];
  const T *source = input + p.start + image * p.step[0] + group * p.in_channels * p.step[1];
  const int channel_taken = thread % kStep, filter_taken = thread / kStep;
  const T *weights = weight + (group * p.out_channels + channel0) * filter;

  A next_seen[kRead], next_taken[kTaken];
  long long tap = 0, start = 0;  // of the step that is read next
  const auto read = [&]() {
    const long long row = row0 + tap / p.kernel[1] * p.dilation[0],
                    column = column0 + tap % p.kernel[1] * p.dilation[1];
    const bool there = inside && row >= 0 && row < p.image[0] && column >= 0 && column < p.image[1];
    const T *at = source + row * p.step[2] + column * p.step[3] + (start + channel_read) * p.step[1];
#pragma unroll
    for (int i = 0; i < kRead; ++i) {
      next_seen[i] = there && start + channel_read + 2 * i < p.in_channels ? widen(at[2 * i * p.step[1]]) : A(0);
    }
    const T *own = weights + filter_taken * filter + (start + channel_taken) * taps + tap;
    const bool any = start + channel_taken < p.in_channels;
#pragma unroll
    for (int i = 0; i < kTaken; ++i) {
      const int apart = 256 / kStep * i;
      next_taken[i] = any && channel0 + filter_taken + apart < p.out_channels ? widen(own[apart * filter]) : A(0);
    }
    start += kStep;
    if (start >= p.in_channels) {
      start = 0;
      ++tap;
    }
  };

  const int lane = thread % 32, warp = thread / 32;
  A sum[kOwnChannels][kOwnPositions] = {};
  const long long steps = taps * ((p.in_channels + kStep - 1) / kStep);
  if (steps > 0) read();
  for (long long step = 0; step < steps; ++step) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kRead; ++i) seen[channel_read + 2 * i][place_read] = next_seen[i];
#pragma unroll
    for (int i = 0; i < kTaken; ++i) taken[channel_taken][filter_taken + 256 / kStep * i] = next_taken[i];
    __syncthreads();
    if (step + 1 < steps) read();
#pragma unroll
    for (int channel = 0; channel < kStep; ++channel) {
      A own[kOwnChannels], values[kOwnPositions];
#pragma unroll
      for (int i = 0; i < kOwnChannels; ++i) own[i] = taken[channel][warp * kOwnChannels + i];
#pragma unroll
      for (int j = 0; j < kOwnPositions; ++j) values[j] = seen[channel][lane + 32 * j];
#pragma unroll
      for (int i = 0; i < kOwnChannels; ++i) {
#pragma unroll
        for (int j = 0; j < kOwnPositions; ++j) sum[i][j] += own[i] * values[j];
      }
    }
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
