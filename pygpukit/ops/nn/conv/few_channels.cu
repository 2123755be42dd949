// few_channels.cu: convolution on tensor cores where a group has few channels, in or out, read and written where it
// lies.
//
// A filter's elements are taken four channels of a place of the kernel at a time: a quad, filled up with zeros. The sum
// runs over kernel row, kernel column and channel in steps of four quads, in ascending order, in float32; within a step
// as the tensor cores add. What lies outside the image is a zero. So an element's bits depend on what it sees alone.
#include "activate.cuh"
#include "pack.cuh"
#include "quads.cuh"

namespace pk {

struct NarrowGroups {
  long long groups, in_channels, out_channels;  // channels of a group
  long long positions;                          // batch x output rows x output columns
  long long image[2], result[2], kernel[2];     // rows, columns
  long long stride[2], padding[2], dilation[2];
  long long start, step[4];                // of the input: batch, channel, row, column, in elements
  long long weight_start, weight_step[4];  // of the weight: filter, channel, row, column
  long long out_step[4];                   // of the result, as of the input
  long long steps, parts;                  // of a filter; of a group's filters
  long long rounds;                        // that a block takes
  long long pairs;                         // the result's channels are stored by two
  long long has_bias, act;
};

constexpr int kWarps = 8, kOwn = 4;         // of a block; places of a lane
constexpr int kPlaces = kWarps * 8 * kOwn;  // of a block in a round
constexpr int kNowhere = -(1 << 30);        // a row that no image has

// What a quad of the kernel sees: how far from what its place's first quad sees. left: channels that there are.
struct alignas(16) Seen {
  long long offset;
  short row, column, left, none;
};

// A block makes 8 * Tiles filters of a group at kPlaces places, a warp an eighth of those, `rounds` times.
template <class T, int Tiles, bool Dense>
__global__ void __launch_bounds__(32 * kWarps, sizeof(T) == 4 && Tiles == 8 ? 1 : 2)  // of two at a time sums would spill
    convolve_narrow(const T *input, const T *weight, const T *bias, T *out, const __grid_constant__ NarrowGroups p) {
  extern __shared__ double2 narrow_memory[];
  const int steps = static_cast<int>(p.steps), thread = threadIdx.x;
  Seen *const table = reinterpret_cast<Seen *>(narrow_memory);
  Quad<T> *const filters = reinterpret_cast<Quad<T> *>(table + steps * 4);
  const long long which = blockIdx.x % (p.groups * p.parts), group = which / p.parts, part = which % p.parts;
  const int channels = static_cast<int>(p.in_channels), quads = (channels + kQuad - 1) / kQuad;
  const int columns = static_cast<int>(p.kernel[1]), taps = static_cast<int>(p.kernel[0]) * columns;
  const int filter0 = static_cast<int>(part) * 8 * Tiles, left_filters = static_cast<int>(p.out_channels) - filter0;

  for (int i = thread; i < steps * 4; i += 32 * kWarps) {
    const int tap = i / quads, channel = i % quads * kQuad, row = tap / columns, column = tap % columns;
    const int left = channels - channel;
    Seen seen{0, 0, 0, 0, 0};
    if (tap < taps) {
      seen.row = static_cast<short>(row * p.dilation[0]);
      seen.column = static_cast<short>(column * p.dilation[1]);
      seen.left = static_cast<short>(left < kQuad ? left : kQuad);
      seen.offset = channel * p.step[1] + seen.row * p.step[2] + seen.column * p.step[3];
    }
    table[i] = seen;
  }
  for (int i = thread; i < steps * Tiles * 32; i += 32 * kWarps) {
    const int filter = i / 32 % Tiles * 8 + i % 32 / 4, quad = i / (32 * Tiles) * 4 + i % 4;
    const int tap = quad / quads, channel = quad % quads * kQuad;
    const T *at = weight + p.weight_start + (group * p.out_channels + filter0 + filter) * p.weight_step[0] +
                  channel * p.weight_step[1] + tap / columns * p.weight_step[2] + tap % columns * p.weight_step[3];
    const bool there = tap < taps && filter < left_filters;
    filters[i] = read_quad<false>(at, p.weight_step[1], there ? channels - channel : 0);
  }
  __syncthreads();

  const int lane = thread % 32, row = lane / 4, four = lane % 4;
  const unsigned area = static_cast<unsigned>(p.result[0] * p.result[1]), wide = static_cast<unsigned>(p.result[1]);
  const unsigned rows_seen = static_cast<unsigned>(p.image[0]), columns_seen = static_cast<unsigned>(p.image[1]);
  const T *const source = input + p.start + group * p.in_channels * p.step[1];
  T *const result = out + (group * p.out_channels + filter0) * p.out_step[1];
  const unsigned positions = static_cast<unsigned>(p.positions);
  unsigned place0 = static_cast<unsigned>(blockIdx.x / (p.groups * p.parts) * p.rounds * kPlaces) +
                    thread / 32 * (8 * kOwn) + row;
  for (int round = 0; round < p.rounds; ++round, place0 += kPlaces) {
    const T *from[kOwn];
    int row0[kOwn], column0[kOwn];
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const unsigned place = place0 + 8 * k, spot = place % area;
      const bool there = place < positions;
      row0[k] = there ? static_cast<int>(spot / wide * p.stride[0] - p.padding[0]) : kNowhere;
      column0[k] = static_cast<int>(spot % wide * p.stride[1] - p.padding[1]);
      from[k] = source + place / area * p.step[0] + row0[k] * p.step[2] + column0[k] * p.step[3];
    }
    float sum[kOwn / 2][Tiles][4] = {};
    Quad<T> next[kOwn];
    const auto fetch = [&](int step) {
      const Seen seen = table[step * 4 + four];
#pragma unroll
      for (int k = 0; k < kOwn; ++k) {
        const bool there = static_cast<unsigned>(row0[k] + seen.row) < rows_seen &&
                           static_cast<unsigned>(column0[k] + seen.column) < columns_seen && seen.left > 0;
        next[k] = {};
        if (there) next[k] = read_quad<Dense>(from[k] + seen.offset, p.step[1], seen.left);
      }
    };
    fetch(0);
    for (int step = 0; step < steps; ++step) {
      Quad<T> own[kOwn];
#pragma unroll
      for (int k = 0; k < kOwn; ++k) own[k] = next[k];
      if (step + 1 < steps) fetch(step + 1);
#pragma unroll
      for (int n = 0; n < Tiles; ++n) {
        const Quad<T> taken = filters[(step * Tiles + n) * 32 + lane];
#pragma unroll
        for (int m = 0; m < kOwn / 2; ++m) add_quads(sum[m][n], own[2 * m], own[2 * m + 1], taken);
      }
    }
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int filter = filter0 + 8 * n + 2 * four + i;
        if (!p.has_bias || filter >= p.out_channels) continue;
        const float shift = widen(bias[group * p.out_channels + filter]);
#pragma unroll
        for (int k = 0; k < kOwn; ++k) sum[k / 2][n][k % 2 * 2 + i] += shift;
      }
    }
#pragma unroll
    for (int m = 0; m < kOwn / 2; ++m) activate(sum[m], p.act);
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      unsigned place = place0 + 8 * k;
      if (place >= positions) break;
      asm volatile("" : "+r"(place));  // divided again: quotients from above, kept beside the sums, would spill
      const unsigned spot = place % area;
      T *const to = result + place / area * p.out_step[0] + spot / wide * p.out_step[2] + spot % wide * p.out_step[3];
#pragma unroll
      for (int n = 0; n < Tiles; ++n) {
        const int filter = 8 * n + 2 * four;
        const float *const sums = &sum[k / 2][n][k % 2 * 2];
        if (p.pairs && filter < left_filters) {
          store(to + filter, Pack<T, 2>{convert<T>::from(sums[0]), convert<T>::from(sums[1])});
          continue;
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if (filter + i < left_filters) to[(filter + i) * p.out_step[1]] = convert<T>::from(sums[i]);
        }
      }
    }
  }
}

}  // namespace pk
