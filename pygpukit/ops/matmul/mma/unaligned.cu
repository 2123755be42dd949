// unaligned.cu: products on tensor cores of matrices that begin at any element, with rows of any length.
//
// Copies bring the words of memory that elements lie in to shared memory, some steps ahead. Lines that begin in the
// middle of a word are shifted there by the warp that asked for them. The sum over k runs as in half.cu, by steps of 16
// in ascending order in float32: the same bits.
#include "ahead.cuh"
#include "mma.cuh"
#include "mma_result.cuh"

namespace pk {

// Of a and b: elements from the pointer to the first element, between lines and between matrices. Lines lie along k, or
// across it. matrices, repeat: product i has matrix i / repeat % matrices. c: dense.
struct UnalignedCall {
  long long start[2], line[2], step[2], matrices[2], repeat[2];
  long long m, n, k;
};

constexpr int kUnalignedPack = 8;  // elements of 16 bytes

// Rows of a or columns of b, as one warp of a block brings its share of them to shared memory. A piece of Extent of
// them and Depth of k has kLines lines of kInner elements.
template <class T, int Extent, int Depth, bool AlongK, int Warps>
struct UnalignedSide {
  static constexpr int kLines = AlongK ? Extent : Depth, kInner = AlongK ? Depth : Extent;
  static constexpr int kPitch = kInner + kUnalignedPack, kSize = kLines * kPitch;  // after a line is room for a word
  static constexpr int kOwn = kLines / Warps;                                      // lines of a warp
  static constexpr int kLanes = kInner / 2 < 32 ? kInner / 2 : 32;  // that take a line together, word by word
  static constexpr int kWords = kInner / 2 / kLanes, kAtOnce = 32 / kLanes;
  static constexpr int kPacks = kInner / kUnalignedPack, kPacksAtOnce = 32 / kPacks;
  static constexpr int kBatch = kOwn / 2 / kAtOnce < 8 ? kOwn / 2 / kAtOnce : 8;  // lines that are shifted at once
  static_assert(kLines % Warps == 0 && kOwn <= 32 && kOwn % (2 * kAtOnce * kBatch) == 0 && kOwn % kPacksAtOnce == 0,
                "");

  const T *first;    // the piece's first element, at k = 0
  long long line;    // elements between lines
  int lines, depth;  // that are left from there
  int own, lane;     // the warp's first line
  bool packs;        // all lines are whole packs of memory
  bool shifts;       // some lines begin in the middle of a word

  __device__ __forceinline__ UnalignedSide(const T *operand, const UnalignedCall &p, int which, int extent, int extent0,
                                           int product)
      : line(p.line[which]), lines(extent - extent0), depth(static_cast<int>(p.k)) {
    const long long matrix = product / p.repeat[which] % p.matrices[which];
    first = operand + (p.start[which] + matrix * p.step[which] + extent0 * (AlongK ? line : 1));
    own = threadIdx.x / 32 * kOwn;
    lane = threadIdx.x % 32;
    packs = phase<kUnalignedPack>(first) == 0 && line % kUnalignedPack == 0;
    shifts = phase<2>(first) != 0 || line % 2 != 0;
  }

  // `from`, or the element before it, where a word of memory begins.
  static __device__ __forceinline__ const T *word_of(const T *from) {
    return reinterpret_cast<const T *>(reinterpret_cast<unsigned long long>(from) & ~3ull);
  }
  template <int N>
  static __device__ __forceinline__ int count_of(int left) {
    return left < 0 ? 0 : left < N ? left : N;
  }

  // Asks for the warp's share of the step that begins at k0: zeros beyond the operand.
  __device__ __forceinline__ void ask(T *piece, int k0) const {
    const int lines_left = (AlongK ? lines : depth - k0) - own, inner_left = AlongK ? depth - k0 : lines;
    const T *const from = first + (own * line + k0 * (AlongK ? 1 : line));
    T *const to = piece + own * kPitch;
    if (lines_left >= kOwn && inner_left >= kInner + shifts)
      ask<true>(to, from, kOwn, kInner + 1);
    else
      ask<false>(to, from, lines_left, inner_left);
  }
  template <bool Whole>
  __device__ __forceinline__ void ask(T *to, const T *from, int lines_left, int inner_left) const {
    if (packs) {
      const int down = lane / kPacks, inner = lane % kPacks * kUnalignedPack,
                count = count_of<kUnalignedPack>(inner_left - inner);
      const T *at = from + (down * line + inner);
#pragma unroll
      for (int i = 0; i < kOwn; i += kPacksAtOnce, at += kPacksAtOnce * line)
        bring<Whole, kUnalignedPack>(to + (i + down) * kPitch + inner, at, i + down < lines_left ? count : 0);
      return;
    }
    const int down = lane / kLanes, inner = lane % kLanes * 2;
    const T *at = from + (down * line + inner);
#pragma unroll
    for (int i = 0; i < kOwn; i += kAtOnce, at += kAtOnce * line) {
      const int left = i + down < lines_left ? inner_left - inner + phase<2>(at) : 0;
#pragma unroll
      for (int j = 0; j < kWords; ++j)
        bring<Whole, 2>(to + (i + down) * kPitch + inner + 2 * kLanes * j, word_of(at) + 2 * kLanes * j,
                        count_of<2>(left - 2 * kLanes * j));
    }
    if (shifts && lane < kOwn) {  // lines that begin in the middle of a word end in the middle of one
      const T *const end = from + (lane * line + kInner);
      if (phase<2>(end))
        bring<Whole, 2>(to + lane * kPitch + kInner, word_of(end),
                        lane < lines_left ? count_of<2>(inner_left - kInner + 1) : 0);
    }
  }
  template <bool Whole, int N>
  static __device__ __forceinline__ void bring(T *to, const T *from, int count) {
    if constexpr (Whole)
      copy_ahead<N>(to, from);
    else
      copy_ahead<N>(to, from, count);
  }

  // Shifts what the warp asked for, when it has arrived.
  __device__ __forceinline__ void shift(T *piece) const {
    if (!shifts) return;
    __syncwarp();
    const int apart = line % 2 ? 2 : 1, begin = line % 2 && phase<2>(first + own * line) == 0;
    unsigned *const to =
        reinterpret_cast<unsigned *>(piece + (own + begin + lane / kLanes * apart) * kPitch) + lane % kLanes;
#pragma unroll 1
    for (int i = 0; i < kOwn / apart; i += kAtOnce * kBatch) {
      unsigned low[kBatch][kWords], high[kBatch][kWords];
#pragma unroll
      for (int b = 0; b < kBatch; ++b)
#pragma unroll
        for (int j = 0; j < kWords; ++j) {
          const unsigned *const from = to + (i + b * kAtOnce) * apart * (kPitch / 2) + j * kLanes;
          low[b][j] = from[0];
          high[b][j] = from[1];
        }
      __syncwarp();
#pragma unroll
      for (int b = 0; b < kBatch; ++b)
#pragma unroll
        for (int j = 0; j < kWords; ++j)
          to[(i + b * kAtOnce) * apart * (kPitch / 2) + j * kLanes] = __funnelshift_r(low[b][j], high[b][j], 16);
    }
  }

  // Where a lane's row of 8 lies, of the matrices that load_matrices() reads for 16 of Extent and 16 of k. Swapped: the
  // second matrix is further along k, not along Extent.
  template <bool Swapped>
  static __device__ __forceinline__ const T *row(const T *tile, int extent, int k) {
    const int lane = threadIdx.x % 32, second = lane / 8 % 2 * 8, third = lane / 16 * 8, inside = lane % 8;
    extent += Swapped ? third : second;
    k += Swapped ? second : third;
    return AlongK ? tile + (extent + inside) * kPitch + k : tile + (k + inside) * kPitch + extent;
  }
};

// A block makes Rows x Columns of a product, its warps Down x Across of them.
template <class T, int Rows, int Columns, int Depth, int Down, int Across, int Stages, int Blocks, bool AAlongK,
          bool BAlongK>
__global__ void __launch_bounds__(32 * Down * Across, Blocks)
    unaligned(const T *a, const T *b, T *c, const __grid_constant__ UnalignedCall p) {
  constexpr int kThreads = 32 * Down * Across, kOwnRows = Rows / Down, kOwnColumns = Columns / Across;
  constexpr int kTilesDown = kOwnRows / 16, kTilesAcross = kOwnColumns / 16;
  using Left = UnalignedSide<T, Rows, Depth, AAlongK, Down * Across>;
  using Right = UnalignedSide<T, Columns, Depth, BAlongK, Down * Across>;
  constexpr int kStage = Left::kSize + Right::kSize, kPitch = Columns + kUnalignedPack;
  static_assert(Stages * kStage >= Rows * kPitch, "the result fits");
  extern __shared__ __align__(16) unsigned char unaligned_memory[];
  T *const stages = reinterpret_cast<T *>(unaligned_memory);
  const int down = static_cast<int>((p.m + Rows - 1) / Rows), k = static_cast<int>(p.k);
  const int row0 = blockIdx.x % down * Rows, column0 = blockIdx.x / down * Columns, product = blockIdx.y;
  const int steps = (k + Depth - 1) / Depth, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int own_row = warp / Across * kOwnRows, own_column = warp % Across * kOwnColumns;
  const Left left(a, p, 0, static_cast<int>(p.m), row0, product);
  const Right right(b, p, 1, static_cast<int>(p.n), column0, product);
  const auto ask = [&](int step) {
    T *const to = stages + step % Stages * kStage;
    if (step < steps) {
      left.ask(to, step * Depth);
      right.ask(to + Left::kSize, step * Depth);
    }
    end_stage();
  };
  const auto shift = [&](int step) {
    T *const piece = stages + step % Stages * kStage;
    left.shift(piece);
    right.shift(piece + Left::kSize);
  };

  for (int step = 0; step < Stages - 1; ++step) ask(step);
  wait_for_stage<Stages - 2>();
  shift(0);
  float sums[kTilesDown][2 * kTilesAcross][4] = {};
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    __syncthreads();
    ask(step + Stages - 1);
    wait_for_stage<Stages - 2>();
    if (step + 1 < steps) shift(step + 1);
    const T *const tile = stages + step % Stages * kStage;
#pragma unroll
    for (int inner = 0; inner < Depth; inner += 16) {
      Pair rows[kTilesDown][4];
#pragma unroll
      for (int i = 0; i < kTilesDown; ++i)
        load_matrices<!AAlongK>(rows[i], Left::template row<false>(tile, own_row + 16 * i, inner));
#pragma unroll
      for (int j = 0; j < kTilesAcross; ++j) {
        Pair columns[4];
        load_matrices<!BAlongK>(columns, Right::template row<true>(tile + Left::kSize, own_column + 16 * j, inner));
        const Pair first[2] = {columns[0], columns[1]}, second[2] = {columns[2], columns[3]};
#pragma unroll
        for (int i = 0; i < kTilesDown; ++i) {
          mma(T{}, sums[i][2 * j], rows[i], first);
          mma(T{}, sums[i][2 * j + 1], rows[i], second);
        }
      }
    }
  }

  __syncthreads();
  T *const rounded_tile = stages;
  for (int i = 0; i < kTilesDown; ++i)
    for (int j = 0; j < 2 * kTilesAcross; ++j)
      for (int half = 0; half < 2; ++half) {
        const int row = own_row + 16 * i + 8 * half + lane / 4, column = own_column + 8 * j + lane % 4 * 2;
        const Pack<T, 2> pair{convert<T>::from(sums[i][j][2 * half]), convert<T>::from(sums[i][j][2 * half + 1])};
        store_pack<2>(rounded_tile + row * kPitch + column, pair);
      }
  __syncthreads();
  store_tile<Rows, Columns, kPitch, kThreads>(rounded_tile, c + (product * p.m + row0) * p.n + column0, p.n,
                                              static_cast<int>(p.m) - row0, static_cast<int>(p.n) - column0);
}

}  // namespace pk
