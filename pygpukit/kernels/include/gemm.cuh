// gemm.cuh: tiles of a @ b for any strides, through shared memory, with one fixed order of additions.
#pragma once
#include "numeric.cuh"

namespace pk {

constexpr int kDepth = 16;     // of k, a step
constexpr int kThreads = 16;   // a block has kThreads x kThreads threads
constexpr int kPerThread = 4;  // rows and columns of c that a thread makes where nothing else is said
constexpr int kTile = kThreads * kPerThread;
constexpr int kTilePad = 4;  // elements after a line of shared memory

template <int Operands>
struct GemmLayout {
  long long m, n, k;
  long long batches;
  long long ndim;  // batch axes
  long long shape[kMaxDims];
  long long start[Operands];  // of a, b, c and what else: elements from the pointer to the first element
  long long row[Operands];    // elements from one row to the next
  long long column[Operands];
  long long stride[Operands][kMaxDims];  // of the batch axes
};

// Sums are kept wider than the elements: float for 16-bit floats; integers wrap at the width of the result, which
// unsigned arithmetic of at least that width gives exactly.
template <class T>
struct accumulator {
  using type = compute_t<T>;
};
template <>
struct accumulator<bool> {
  using type = unsigned;
};
template <>
struct accumulator<signed char> {
  using type = unsigned;
};
template <>
struct accumulator<unsigned char> {
  using type = unsigned;
};
template <>
struct accumulator<short> {
  using type = unsigned;
};
template <>
struct accumulator<unsigned short> {
  using type = unsigned;
};
template <>
struct accumulator<int> {
  using type = unsigned;
};
template <>
struct accumulator<long long> {
  using type = unsigned long long;
};
template <class T>
using accumulator_t = typename accumulator<T>::type;

// sum + x y. Floats are rounded once, and it is said here: what a compiler contracts differs between kernels, and all
// that sum in the order of add_products() give the same bits.
template <class A>
__device__ __forceinline__ A add_product(A sum, A x, A y) {
  return add(sum, multiply(x, y));
}
__device__ __forceinline__ float add_product(float sum, float x, float y) { return fma(x, y, sum); }
__device__ __forceinline__ double add_product(double sum, double x, double y) { return fma(x, y, sum); }

template <int Operands>
__device__ __forceinline__ void batch_offsets(const GemmLayout<Operands> &p, long long batch,
                                              long long (&at)[Operands]) {
  for (int k = 0; k < Operands; ++k) at[k] = p.start[k];
  for (long long axis = p.ndim - 1; axis >= 0; --axis) {
    const long long above = batch / p.shape[axis];
    const long long here = batch - above * p.shape[axis];
    for (int k = 0; k < Operands; ++k) at[k] += here * p.stride[k][axis];
    batch = above;
  }
}

// One matrix as a tile's sums read it: element (line, depth) of `data`. lines: rows of a, columns of b.
template <class T>
struct Lines {
  const T *data;
  long long lines, line_stride, depth_stride;
};

// What the threads of a block share of one step: kThreads x Down rows of a, kThreads x Across columns of b.
template <class A, int Down = kPerThread, int Across = kPerThread>
struct alignas(16) GemmTiles {
  A left[kDepth][kThreads * Down + kTilePad];
  A right[kDepth][kThreads * Across + kTilePad];
};

// Element [i][j] of a thread is that of row tile_row<Down>(i) and column tile_column(j) of the tile: a thread's rows
// lie side by side, so that few loads bring them; threads' columns do, so that they are stored together.
template <class A, int Down = kPerThread, int Across = kPerThread>
using TileSums = A[Down][Across];
template <int Down = kPerThread>
__device__ __forceinline__ int tile_row(int i) {
  return static_cast<int>(threadIdx.y) * Down + i;
}
__device__ __forceinline__ int tile_column(int j) { return static_cast<int>(threadIdx.x) + j * kThreads; }

// What a thread brings of a kThreads * Count x kDepth piece of a matrix to tile[depth][line], zeros outside.
// Neighbouring threads walk whichever of lines and depth is dense.
template <class T, class A, int Count>
struct Brought {
  static constexpr int kLines = kThreads * Count, kApart = kThreads * kThreads / kLines;
  const T *at;  // the first element, and what is between its own and from step to step
  long long apart, step, left_lines, left_depth;
  int line, depth;
  bool along_depth;
  A values[Count];

  __device__ __forceinline__ Brought(const Lines<T> &from, long long line0, long long end) {
    const int thread = threadIdx.y * kThreads + threadIdx.x;
    along_depth = from.depth_stride == 1;
    line = along_depth ? thread / kDepth : thread % kLines;
    depth = along_depth ? thread % kDepth : thread / kLines;
    at = from.data + (line0 + line) * from.line_stride + depth * from.depth_stride;
    apart = along_depth ? kThreads * from.line_stride : kApart * from.depth_stride;
    step = kDepth * from.depth_stride;
    left_lines = from.lines - line0 - line;
    left_depth = end - depth;
  }
  // Asks for the next step.
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const bool inside =
          along_depth ? i * kThreads < left_lines && left_depth > 0 : left_lines > 0 && i * kApart < left_depth;
      values[i] = inside ? convert<A>::from(at[i * apart]) : A{};
    }
    at += step;
    left_depth -= kDepth;
  }
  __device__ __forceinline__ void store(A (&tile)[kDepth][kLines + kTilePad]) const {
#pragma unroll
    for (int i = 0; i < Count; ++i)
      tile[along_depth ? depth : depth + i * kApart][along_depth ? line + i * kThreads : line] = values[i];
  }
};

// sum += the products of one step.
template <class A, int Down, int Across>
__device__ __forceinline__ void add_step(const GemmTiles<A, Down, Across> &tiles, TileSums<A, Down, Across> &sum) {
#pragma unroll
  for (int d = 0; d < kDepth; ++d) {
    A left[Down], right[Across];
#pragma unroll
    for (int i = 0; i < Down; ++i) left[i] = tiles.left[d][tile_row<Down>(i)];
#pragma unroll
    for (int j = 0; j < Across; ++j) right[j] = tiles.right[d][tile_column(j)];
#pragma unroll
    for (int i = 0; i < Down; ++i)
#pragma unroll
      for (int j = 0; j < Across; ++j) sum[i][j] = add_product(sum[i][j], left[i], right[j]);
  }
}

// sum += the products of the tile's rows of a from row0 with its columns of b from column0, over all of depth. A step
// is on its way while the one before it is summed.
template <class T, class A, int Down, int Across>
__device__ __forceinline__ void add_products(const Lines<T> &a, const Lines<T> &b, long long row0, long long column0,
                                             long long depth, GemmTiles<A, Down, Across> &tiles,
                                             TileSums<A, Down, Across> &sum) {
  Brought<T, A, Down> left(a, row0, depth);
  Brought<T, A, Across> right(b, column0, depth);
  left.load();
  right.load();
#pragma unroll 1
  for (long long depth0 = 0; depth0 < depth; depth0 += kDepth) {
    left.store(tiles.left);
    right.store(tiles.right);
    __syncthreads();
    left.load();  // beyond the last step nothing is read
    right.load();
    add_step(tiles, sum);
    __syncthreads();
  }
}

}  // namespace pk
