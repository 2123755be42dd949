// depthwise.cu: depthwise convolution in one or two dimensions, a filter a channel, read and written where it lies. A
// thread makes kStrip neighbours of a row at N channels: 16 bytes of dense channels, or one channel of any layout.
// Additions run over kernel row and kernel column, in ascending order, each a fused multiply-add; rows outside the
// image are left out, columns outside it are zeros. So an element's bits depend on what it sees alone.
#include "activate.cuh"
#include "pack.cuh"

namespace pk {

struct Depthwise {
  long long channels, strips, items;         // strips: of a row of the result; items: strips of all images' rows
  long long image[2], result[2], kernel[2];  // rows, columns
  long long stride[2], padding[2], dilation[2];
  long long start, step[4];        // of the input: batch, channel, row, column, in elements
  long long out_step[4];           // of the result, likewise
  long long own, rounds;           // N > 1: channels and items in turn of a block
  long long channels_fast, lines;  // N = 1: neighbouring threads have neighbouring channels; strips are stored whole
  long long has_bias, act;
};

constexpr int kStrip = 4;

// at: where the column lies, which may be outside the image.
template <class T, int N>
__device__ __forceinline__ Pack<T, N> seen_at(const T *at, int column, const Depthwise &p) {
  if (static_cast<unsigned>(column) >= static_cast<unsigned>(p.image[1])) return {};
  return load<N>(at);
}

// weights: of the first of the N channels; `across` elements to the next place of the kernel. Columns, Step: of the
// kernel and of its stride where it has no dilation, so that neighbours share what they read; Columns 0: any.
template <int Columns, int Step, class T, int N>
__device__ __forceinline__ void strip(const T *input, const T *weights, int across, const T *bias, T *out,
                                      unsigned item, long long channel, const Depthwise &p) {
  using A = compute_t<T>;
  const unsigned strips = static_cast<unsigned>(p.strips), rows = static_cast<unsigned>(p.result[0]);
  const unsigned place = item / strips, image = place / rows;
  const int row = static_cast<int>(place % rows), column = static_cast<int>(item % strips) * kStrip;
  const int row0 = row * static_cast<int>(p.stride[0]) - static_cast<int>(p.padding[0]);
  const int column0 = column * static_cast<int>(p.stride[1]) - static_cast<int>(p.padding[1]);
  const T *from = input + p.start + image * p.step[0] + channel * p.step[1] + column0 * p.step[3];
  A sum[kStrip][N] = {};
  for (int i = 0; i < static_cast<int>(p.kernel[0]); ++i) {
    const int at = row0 + i * static_cast<int>(p.dilation[0]);
    if (static_cast<unsigned>(at) >= static_cast<unsigned>(p.image[0])) continue;
    const T *line = from + at * p.step[2];
    if constexpr (Columns > 0) {
      constexpr int kSpan = (kStrip - 1) * Step + Columns;
      Pack<T, N> seen[kSpan], taken[Columns];
#pragma unroll
      for (int c = 0; c < kSpan; ++c) seen[c] = seen_at<T, N>(line + c * p.step[3], column0 + c, p);
#pragma unroll
      for (int j = 0; j < Columns; ++j) taken[j] = load<N>(weights + (i * Columns + j) * across);
#pragma unroll
      for (int c = 0; c < kSpan; ++c) {
#pragma unroll
        for (int k = 0; k < kStrip; ++k) {
          const int j = c - k * Step;
          if (j < 0 || j >= Columns) continue;
#pragma unroll
          for (int n = 0; n < N; ++n) sum[k][n] = fma(A(widen(seen[c].v[n])), A(widen(taken[j].v[n])), sum[k][n]);
        }
      }
    } else {
      for (int j = 0; j < static_cast<int>(p.kernel[1]); ++j) {
        const Pack<T, N> taken = load<N>(weights + (i * static_cast<int>(p.kernel[1]) + j) * across);
#pragma unroll
        for (int k = 0; k < kStrip; ++k) {
          const int further = k * static_cast<int>(p.stride[1]) + j * static_cast<int>(p.dilation[1]);
          const Pack<T, N> seen = seen_at<T, N>(line + further * p.step[3], column0 + further, p);
#pragma unroll
          for (int n = 0; n < N; ++n) sum[k][n] = fma(A(widen(seen.v[n])), A(widen(taken.v[n])), sum[k][n]);
        }
      }
    }
  }
  if (p.has_bias) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const A shift = widen(bias[channel + n]);
#pragma unroll
      for (int k = 0; k < kStrip; ++k) sum[k][n] += shift;
    }
  }
  activate(sum, p.act);
  T *to = out + image * p.out_step[0] + channel * p.out_step[1] + row * p.out_step[2] + column * p.out_step[3];
  if (N == 1 && p.lines) {
    Pack<T, kStrip> packed;
#pragma unroll
    for (int k = 0; k < kStrip; ++k) packed.v[k] = convert<T>::from(sum[k][0]);
    store(to, packed);
    return;
  }
#pragma unroll
  for (int k = 0; k < kStrip; ++k) {
    if (column + k >= p.result[1]) break;
    Pack<T, N> packed;
#pragma unroll
    for (int n = 0; n < N; ++n) packed.v[n] = convert<T>::from(sum[k][n]);
    store(to + k * p.out_step[3], packed);
  }
}

// weight: (channels, 1, kernel rows, kernel columns), dense. N > 1: channels are dense and those of a pixel begin at
// whole packs; a block keeps the weights of `own` of them in shared memory, place by place.
template <class T, int N, int Columns, int Step>
__global__ void __launch_bounds__(256)
    convolve_depthwise(const T *input, const T *weight, const T *bias, T *out, const __grid_constant__ Depthwise p) {
  const int taps = static_cast<int>(p.kernel[0] * p.kernel[1]);
  if constexpr (N > 1) {
    extern __shared__ double2 depthwise_memory[];
    T *const taken = reinterpret_cast<T *>(depthwise_memory);
    const int own = static_cast<int>(p.own), packs = own / N, across = 256 / packs;
    const long long parts = (p.channels + own - 1) / own, first = blockIdx.x % parts * own;
    const int here = static_cast<int>(p.channels - first < own ? p.channels - first : own);
    for (int i = threadIdx.x; i < here * taps; i += 256) taken[i % taps * own + i / taps] = weight[first * taps + i];
    __syncthreads();
    const int channel = static_cast<int>(threadIdx.x) % packs * N, slot = static_cast<int>(threadIdx.x) / packs;
    if (slot >= across || channel >= here) return;
    unsigned item = static_cast<unsigned>(blockIdx.x / parts * p.rounds * across + slot);
    for (long long round = 0; round < p.rounds && item < p.items; ++round, item += across)
      strip<Columns, Step, T, N>(input, taken + channel, own, bias, out, item, first + channel, p);
  } else {
    const long long index = blockIdx.x * 256ll + threadIdx.x;
    if (index >= p.items * p.channels) return;
    const long long own = p.result[0] * p.strips;  // items of an image
    const long long channel = p.channels_fast ? index % p.channels : index / own % p.channels;
    const long long item = p.channels_fast ? index / p.channels : index / own / p.channels * own + index % own;
    strip<Columns, Step, T, 1>(input, weight + channel * taps, 1, bias, out, static_cast<unsigned>(item), channel, p);
  }
}

}  // namespace pk
