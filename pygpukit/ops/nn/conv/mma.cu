// mma.cu: convolution by mma.sync, from SM 8.0 on: an implicit matrix product that gathers what it multiplies.
//
// Rows of the product are places of the result, over all images; columns are filters. The sum runs over kernel row,
// kernel column and channel, in ascending order, in float32; a stage has channels of one place of the kernel. What lies
// outside the image is copied as zeros, so that the image is read where it lies. float32 is rounded to tf32.
#include "activation.cuh"
#include "mma_loop.cuh"
#include "mma_result.cuh"
#include "swizzled.cuh"

namespace pk {

struct MmaConvolution {
  long long start;                           // of the image, in elements
  int step[4];                               // of it: batch, channel, row, column
  int out_step[4];                           // of the result, likewise
  int out_place;                             // from one of its places to the next
  int positions, in_channels, out_channels;  // batch x output rows x output columns; channels of a group
  int in_group, out_group;                   // elements from one group's channels to the next's
  int image[2], result[2], kernel[2];        // rows, columns
  int stride[2], padding[2], dilation[2];
  int has_bias, activation;
  int group, unused;  // of grouped_tile()
};

constexpr int kNowhere = -(1 << 30);  // a row that no image has

// What a place sees through the kernel's first.
struct Seen {
  int row, column;
};

// The left operand: what Rows places see, as SwizzledSide has an operand along k.
template <class T, int Rows, int Depth, int Threads>
struct SeenSide {
  using Side = SwizzledSide<T, Rows, Depth, true, Threads>;
  static constexpr int kSize = Side::kSize, kCopies = Side::kCopies, kOwn = kCopies / Side::kOfLine;
  const MmaConvolution &p;
  const Seen *places;                     // of the tile, in shared memory
  const T *seen;                          // the thread's chunk of the image's first place, in the next stage
  int from[kOwn];                         // elements from there to what its places see through the kernel's first
  int slot, own;                          // of its first copy in a stage, in bytes; its first channel
  unsigned there = 0;                     // a bit for each place: it sees the image
  int channel = 0, down = 0, across = 0;  // of the next stage

  // room: for Rows places.
  __device__ __forceinline__ SeenSide(const T *image, const MmaConvolution &call, int place0, Seen *room)
      : p(call), places(room) {
    const int line = threadIdx.x / Side::kAcross, chunk = threadIdx.x % Side::kAcross;
    slot = swizzled<Side::kChunks>(line, chunk, line % 8);
    own = chunk * Side::kPack;
    seen = image + own;
    const unsigned wide = p.result[1], area = p.result[0] * wide;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const unsigned place = place0 + line + k * Side::kDown, spot = place % area;
      const int above = static_cast<int>(spot / wide) * p.stride[0] - p.padding[0];
      const int beside = static_cast<int>(spot % wide) * p.stride[1] - p.padding[1];
      from[k] = static_cast<int>(place / area) * p.step[0] + above * p.step[2] + beside * p.step[3];
      if (chunk == 0)
        room[line + k * Side::kDown] = {place < static_cast<unsigned>(p.positions) ? above : kNowhere, beside};
    }
    __syncthreads();
    look();
  }

  // Through the next place of the kernel.
  __device__ __forceinline__ void look() {
    const int below = down * p.dilation[0], beside = across * p.dilation[1];
    there = 0;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const Seen first = places[threadIdx.x / Side::kAcross + k * Side::kDown];
      const bool inside = static_cast<unsigned>(first.row + below) < static_cast<unsigned>(p.image[0]) &&
                          static_cast<unsigned>(first.column + beside) < static_cast<unsigned>(p.image[1]);
      there |= (inside ? 1u : 0u) << k;
    }
  }

  __device__ __forceinline__ void copy(T *stage, int number) const {
    const int line = number / Side::kOfLine, further = number % Side::kOfLine * Side::kAcross;
    const bool is_there = there >> line & 1 && channel + own + further * Side::kPack < p.in_channels;
    unsigned char *const to =
        reinterpret_cast<unsigned char *>(stage) + slot + (line * Side::kDown * Side::kChunks + further) * 16;
    copy_ahead<Side::kPack>(reinterpret_cast<T *>(to), seen + (from[line] + further * Side::kPack),
                            is_there ? Side::kPack : 0);
  }
  __device__ __forceinline__ void advance() {
    seen += Depth;
    channel += Depth;
    if (channel < p.in_channels) return;
    seen += p.dilation[1] * p.step[3] - channel;
    channel = 0;
    if (++across == p.kernel[1]) {
      across = 0, ++down;
      seen += p.dilation[0] * p.step[2] - p.kernel[1] * p.dilation[1] * p.step[3];
    }
    look();
  }

  template <bool Right>
  static __device__ __forceinline__ void fragment(Pair (&to)[4], const T *stage, int extent, int k) {
    Side::template fragment<Right>(to, stage, extent, k);
  }
};

// The right operand: weights of filters, dense in the order of the sum.
template <class T, int Filters, int Depth, int Threads>
struct FilterSide : SwizzledSide<T, Filters, Depth, true, Threads> {
  using Side = SwizzledSide<T, Filters, Depth, true, Threads>;
  const int &channels;  // of the parameters

  __device__ __forceinline__ FilterSide(const T *first, long long lead, int left, const int &channels)
      : Side(first, lead, left, channels), channels(channels) {}
  __device__ __forceinline__ void advance() {
    Side::advance();
    const int own = threadIdx.x % Side::kAcross * Side::kPack, left = this->inner + own;
    if (left > 0) return;
    this->at += left;  // back to where the next place of the kernel begins
    this->inner = channels - own;
  }
};

// w: (groups, filters, kernel rows, kernel columns, channels), dense. Channels of the image are dense; those of a group
// and all steps of the image, the weights and the result are whole 16 bytes.
template <class T, int Rows, int Columns, int Depth, int Down, int Across, int Stages, int Blocks>
__global__ void __launch_bounds__(32 * Down * Across, Blocks)
    mma_convolve(const T *x, const T *w, const T *bias, T *out, const __grid_constant__ MmaConvolution p) {
  using Block = Warps<Rows, Columns, Down, Across>;
  using Left = SeenSide<T, Rows, Depth, Block::kThreads>;
  using Right = FilterSide<T, Columns, Depth, Block::kThreads>;
  constexpr int kPack = Left::Side::kPack, kPitch = Columns + 8;
  extern __shared__ __align__(128) unsigned char convolve_memory[];
  __shared__ Seen places[Rows];
  const TilePlace place =
      grouped_tile((p.positions + Rows - 1) / Rows, (p.out_channels + Columns - 1) / Columns, p.group);
  const int place0 = place.down * Rows, filter0 = place.across * Columns, group = blockIdx.y;
  const int taps = p.kernel[0] * p.kernel[1], filters_left = p.out_channels - filter0;
  const long long filter = static_cast<long long>(taps) * p.in_channels;
  Left left(x + p.start + static_cast<long long>(group) * p.in_group, p, place0, places);
  Right right(w + (static_cast<long long>(group) * p.out_channels + filter0) * filter, filter, filters_left,
              p.in_channels);
  typename Block::template Sums<float> sums = {};
  sum_stages<T, Left, Right, Block, Depth, Stages>(reinterpret_cast<T *>(convolve_memory), left, right,
                                                   taps * ((p.in_channels + Depth - 1) / Depth), sums, [](int) {});

  float *const tile = reinterpret_cast<float *>(convolve_memory);
  __syncthreads();
  Block::each_pair(sums, [&](int row, int column, float first, float second) {
    store_pack<2>(tile + row * kPitch + column, Pack<float, 2>{first, second});
  });
  __syncthreads();
  T *const result = out + static_cast<long long>(group) * p.out_group + filter0;
  const T *const shift = bias + (static_cast<long long>(group) * p.out_channels + filter0);
  with_activation(p.activation, [&](auto activation) {
#pragma unroll 1
    for (int i = threadIdx.x; i < Rows * Columns / kPack; i += Block::kThreads) {
      const int line = i / (Columns / kPack), column = i % (Columns / kPack) * kPack;
      if (place0 + line >= p.positions || column >= filters_left) continue;
      Pack<T, kPack> done;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        float sum = tile[line * kPitch + column + j];
        if (p.has_bias && column + j < filters_left) sum += widen(shift[column + j]);
        done.v[j] = convert<T>::from(activated_for<T>(sum, decltype(activation)::value));
      }
      store_pack<kPack>(result + static_cast<long long>(place0 + line) * p.out_place + column, done);
    }
  });
}

}  // namespace pk
