// small_groups.cu: convolution in many small groups on tensor cores, channels last.
//
// A block makes some groups' channels of the result, tile of places by tile. It copies what the tile sees of those
// groups to shared memory, 16 bytes at a time, zeros outside the image; its warps take 32 places each, group by group,
// and write them 16 bytes at a time. The sum is that of few_channels.cu: the same quads in the same steps, so that the
// bits are the same.
#include "activate.cuh"
#include "ahead.cuh"
#include "quads.cuh"

namespace pk {

struct Grouped {
  long long start;                         // of the input, in elements
  long long weight_start, weight_step[4];  // of the weight: filter, channel, row, column
  int step[4], out_step[4];                // of the input, of the result: batch, channel, row, column
  int groups, in_channels, out_channels;   // channels of a group
  int image[2], result[2], kernel[2];      // rows, columns
  int stride[2], padding[2], dilation[2];
  int own, per, shares;      // groups of a block, of a warp; warps that share those of a place
  int parts, steps;          // of a group's filters; of a filter
  int tile[2], tiles[2];     // rows, columns of the result; how many there are of an image
  int seen[2], fold;         // of the image by a tile; of its columns, those of one remainder by the stride
  int pitch, out_pitch;      // bytes from a place of the image, of a warp's results to the next
  int turns, rounds;         // tiles of all images, of a block
  int whole, has_bias, act;  // whole: quads of the weight lie as one in memory
};

constexpr int kWarps = 4, kThreads = 32 * kWarps, kOwn = 4, kPlaces = 8 * kOwn;  // places: of a warp at a time
constexpr int kPiece = 16;                                                       // bytes that a copy takes

// Divides numbers below 2^16, with one multiplication.
struct Divisor {
  unsigned factor;
  __device__ __forceinline__ explicit Divisor(int by) : factor(by == 1 ? 0 : ~0u / static_cast<unsigned>(by) + 1) {}
  __device__ __forceinline__ int operator()(int number) const {
    return factor ? static_cast<int>(__umulhi(static_cast<unsigned>(number), factor)) : number;
  }
};

// w: any strides. Channels of image and result are dense; all their other steps, and those from `own` and `per` groups
// to the next, are whole 16 bytes. Channels of a group are whole quads, in and out. Places of a tile: below 2^16.
template <class T, int Tiles>
__global__ void __launch_bounds__(kThreads, 4)
    convolve_groups(const T *input, const T *weight, const T *bias, T *out, const __grid_constant__ Grouped p) {
  constexpr int kPack = kPiece / sizeof(T);
  extern __shared__ uint4 grouped_memory[];
  unsigned char *const memory = reinterpret_cast<unsigned char *>(grouped_memory);  // 16 bytes of zeros first
  int *const table = reinterpret_cast<int *>(memory + kPiece);  // where a quad lies behind what a place sees first
  Quad<T> *const filters = reinterpret_cast<Quad<T> *>(table + 4 * p.steps);
  unsigned char *const out_rows = reinterpret_cast<unsigned char *>(filters + p.own * p.parts * p.steps * Tiles * 32);
  unsigned char *const image = out_rows + kWarps * kPlaces * p.out_pitch;
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, row = lane / 4, four = lane % 4;
  const int chunks = (p.groups + p.own - 1) / p.own, first = static_cast<int>(blockIdx.x) % chunks * p.own;
  const int groups = min(p.own, p.groups - first), slots = p.fold * p.stride[1];
  const int quads = p.in_channels / kQuad, taps = p.kernel[0] * p.kernel[1];
  // Columns of the same remainder by the stride are neighbours: so are those that neighbouring places see.
  const Divisor by_stride(p.stride[1]);
  const auto slot = [&](int column) {
    const int at = by_stride(column);
    return (column - at * p.stride[1]) * p.fold + at;
  };

  // Pieces of the image that the thread copies: one of each of its places.
  const int pieces = groups * p.in_channels / kPack, across = kThreads / pieces, piece = thread % pieces;
  const int down = across / p.seen[1], right = across % p.seen[1], column_first = thread / pieces % p.seen[1];
  const int row_first = thread < across * pieces ? thread / pieces / p.seen[1] : p.seen[0];
  const auto each_piece = [&](const auto &take) {
    int r = row_first, c = column_first;
    while (r < p.seen[0]) {
      take(r, c, reinterpret_cast<T *>(image + (r * slots + slot(c)) * p.pitch + piece * kPiece));
      r += down;
      c += right;
      if (c >= p.seen[1]) c -= p.seen[1], ++r;
    }
  };

  if (thread < 4) reinterpret_cast<unsigned *>(memory)[thread] = 0;
  for (int i = thread; i < 4 * p.steps; i += kThreads) {
    const int tap = i / quads, below = tap / p.kernel[1] * p.dilation[0], beside = tap % p.kernel[1] * p.dilation[1];
    const int channel = i % quads * kQuad * static_cast<int>(sizeof(T));
    table[i] = tap < taps ? (below * slots + slot(beside)) * p.pitch + channel : -1;
  }
  for (int i = warp; i < groups * p.parts * Tiles; i += kWarps) {  // eight filters a warp, a quad of each step a lane
    const int unit = i / Tiles, n = i % Tiles, filter = (unit % p.parts * Tiles + n) * 8 + row;
    const long long of = static_cast<long long>(first + unit / p.parts) * p.out_channels + filter;
    const T *const at = weight + p.weight_start + of * p.weight_step[0];
    Quad<T> *to = filters + (unit * p.steps * Tiles + n) * 32 + lane;
    int quad = four, r = 0, c = 0;
    for (int step = 0; step < p.steps; ++step, quad += 4, to += 32 * Tiles) {
      while (quad >= quads) {
        quad -= quads;
        if (++c == p.kernel[1]) c = 0, ++r;
      }
      const int there = r < p.kernel[0] && filter < p.out_channels ? kQuad : 0;
      const T *const from = at + quad * kQuad * p.weight_step[1] + r * p.weight_step[2] + c * p.weight_step[3];
      if (p.whole)
        copy_ahead<kQuad>(reinterpret_cast<T *>(to), from, there);
      else
        *to = read_quad<false>(from, p.weight_step[1], there);
    }
  }

  // A warp's groups, and the pieces of its results that the lane stores: one of each of its lines.
  const int group0 = warp % p.shares * p.per, here = min(p.per, groups - group0);
  const int out_pieces = max(here * p.out_channels / kPack, 1), lines = 32 / out_pieces, own_piece = lane % out_pieces;
  const int own_line = lane < lines * out_pieces ? lane / out_pieces : kPlaces;
  unsigned char *const own_rows = out_rows + warp * kPlaces * p.out_pitch;

  const int begin = static_cast<int>(blockIdx.x) / chunks * p.rounds, end = min(begin + p.rounds, p.turns);
  for (int turn = begin; turn < end; ++turn) {
    const int which = turn / (p.tiles[0] * p.tiles[1]), spot = turn % (p.tiles[0] * p.tiles[1]);
    const int row0 = spot / p.tiles[1] * p.tile[0], column0 = spot % p.tiles[1] * p.tile[1];
    const int above = row0 * p.stride[0] - p.padding[0], before = column0 * p.stride[1] - p.padding[1];
    const T *const source =
        input + p.start + static_cast<long long>(which) * p.step[0] + first * p.in_channels + piece * kPack;
    each_piece([&](int r, int c, T *to) {
      const bool inside = static_cast<unsigned>(above + r) < static_cast<unsigned>(p.image[0]) &&
                          static_cast<unsigned>(before + c) < static_cast<unsigned>(p.image[1]);
      copy_ahead<kPack>(to, source + (above + r) * p.step[2] + (before + c) * p.step[3], inside ? kPack : 0);
    });
    end_stage();
    wait_for_stage<0>();
    if constexpr (sizeof(T) == 4) {  // rounded once, each what it has copied
      each_piece([&](int, int, T *to) { *reinterpret_cast<Quad<T> *>(to) = read_quad<true>(to, 1, kQuad); });
      if (turn == begin && p.whole) {
        for (int i = warp; i < groups * p.parts * Tiles; i += kWarps) {
          Quad<T> *at = filters + (i / Tiles * p.steps * Tiles + i % Tiles) * 32 + lane;
          for (int step = 0; step < p.steps; ++step, at += 32 * Tiles)
            *at = read_quad<true>(reinterpret_cast<const T *>(at), 1, kQuad);
        }
      }
    }
    __syncthreads();

    const int wide = min(p.tile[1], p.result[1] - column0), places = wide * min(p.tile[0], p.result[0] - row0);
    const Divisor by_wide(wide);
    T *const to =
        out + static_cast<long long>(which) * p.out_step[0] + (first + group0) * p.out_channels + own_piece * kPack;
    for (int place0 = warp / p.shares * kPlaces; place0 < places && here > 0; place0 += kWarps / p.shares * kPlaces) {
      const unsigned char *from[kOwn];
#pragma unroll
      for (int k = 0; k < kOwn; ++k) {
        const int place = min(place0 + 8 * k + row, places - 1), r = by_wide(place), c = place - r * wide;
        from[k] =
            image + (r * p.stride[0] * slots + c) * p.pitch + group0 * p.in_channels * static_cast<int>(sizeof(T));
      }
      for (int group = group0; group < group0 + here; ++group) {
        for (int part = 0; part < p.parts; ++part) {
          const int filter0 = part * 8 * Tiles + 2 * four;
          float shift[Tiles][2], sum[kOwn / 2][Tiles][4] = {};
#pragma unroll
          for (int i = 0; i < 2 * Tiles; ++i) {
            const int filter = filter0 + i / 2 * 8 + i % 2;
            shift[i / 2][i % 2] =
                p.has_bias && filter < p.out_channels ? widen(bias[(first + group) * p.out_channels + filter]) : 0.0f;
          }
          const Quad<T> *taken = filters + (group * p.parts + part) * p.steps * Tiles * 32 + lane;
#pragma unroll 3
          for (int step = 0; step < p.steps; ++step) {
            const int behind = table[4 * step + four];
            Quad<T> seen[kOwn];
#pragma unroll
            for (int k = 0; k < kOwn; ++k)
              seen[k] = *reinterpret_cast<const Quad<T> *>(behind < 0 ? memory : from[k] + behind);
#pragma unroll
            for (int n = 0; n < Tiles; ++n, taken += 32) {
              const Quad<T> filter = *taken;
#pragma unroll
              for (int m = 0; m < kOwn / 2; ++m) add_quads(sum[m][n], seen[2 * m], seen[2 * m + 1], filter);
            }
          }
          if (p.has_bias) {
#pragma unroll
            for (int i = 0; i < kOwn * Tiles * 2; ++i)
              sum[i / (4 * Tiles)][i / 4 % Tiles][i % 4] += shift[i / 4 % Tiles][i % 2];
          }
#pragma unroll
          for (int m = 0; m < kOwn / 2; ++m) activate(sum[m], p.act);
          T *const at = reinterpret_cast<T *>(own_rows) + (group - group0) * p.out_channels + filter0;
#pragma unroll
          for (int k = 0; k < kOwn; ++k) {
#pragma unroll
            for (int n = 0; n < Tiles; ++n) {
              const float *const sums = &sum[k / 2][n][k % 2 * 2];
              if (filter0 + 8 * n < p.out_channels)
                store(at + (8 * k + row) * (p.out_pitch / static_cast<int>(sizeof(T))) + 8 * n,
                      Pack<T, 2>{convert<T>::from(sums[0]), convert<T>::from(sums[1])});
            }
          }
        }
#pragma unroll
        for (int k = 0; k < kOwn; ++k) from[k] += p.in_channels * sizeof(T);
      }
      __syncwarp();
      for (int line = own_line; line < kPlaces && place0 + line < places; line += lines) {
        const int r = by_wide(place0 + line), c = place0 + line - r * wide;
        *reinterpret_cast<uint4 *>(to + (row0 + r) * p.out_step[2] + (column0 + c) * p.out_step[3]) =
            *reinterpret_cast<const uint4 *>(own_rows + line * p.out_pitch + own_piece * kPiece);
      }
      __syncwarp();
    }
    __syncthreads();
  }
}

}  // namespace pk
