// gemm.cuh: tiles of a @ b for any strides: 64 x 64 through shared memory, one fixed order of additions.
#pragma once
#include "numeric.cuh"

namespace pk {

constexpr int kTile = 64;     // rows and columns of c that a block makes
constexpr int kDepth = 16;    // of k, a step
constexpr int kThreads = 16;  // a block has kThreads x kThreads threads
constexpr int kPerThread = kTile / kThreads;

template <int Operands>
struct GemmLayout {
  long long m, n, k;
  long long batches;
  long long ndim;  // batch axes
  long long shape[kMaxDims];
  long long start[Operands];   // of a, b, c and what else: elements from the pointer to the first element
  long long row[Operands];     // elements from one row to the next
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

// What the threads of a block share of one step.
template <class A>
struct GemmTiles {
  A left[kDepth][kTile + 1];
  A right[kDepth][kTile + 1];
};

template <class A>
using TileSums = A[kPerThread][kPerThread];

// Copies a kTile x kDepth piece of a matrix into tile[depth][line], zeros outside. Neighbouring threads walk whichever
// of lines and depth is dense.
template <class T, class A>
__device__ __forceinline__ void fetch(const Lines<T> &from, long long line0, long long depth0, long long depth,
                                      A (&tile)[kDepth][kTile + 1]) {
  const int thread = threadIdx.y * kThreads + threadIdx.x;
  const bool along_depth = from.depth_stride == 1;
  for (int i = thread; i < kTile * kDepth; i += kThreads * kThreads) {
    const int l = along_depth ? i / kDepth : i % kTile;
    const int d = along_depth ? i % kDepth : i / kTile;
    const bool inside = line0 + l < from.lines && depth0 + d < depth;
    tile[d][l] = inside ? convert<A>::from(from.data[(line0 + l) * from.line_stride + (depth0 + d) * from.depth_stride])
                        : A{};
  }
}

// sum += the products of one step. Element [i][j] of a thread is that of row threadIdx.y + i * kThreads and column
// threadIdx.x + j * kThreads of the tile.
template <class A>
__device__ __forceinline__ void add_step(const GemmTiles<A> &tiles, TileSums<A> &sum) {
  for (int d = 0; d < kDepth; ++d) {
    for (int i = 0; i < kPerThread; ++i) {
      for (int j = 0; j < kPerThread; ++j) {
        const A left = tiles.left[d][threadIdx.y + i * kThreads], right = tiles.right[d][threadIdx.x + j * kThreads];
        sum[i][j] = add_product(sum[i][j], left, right);
      }
    }
  }
}

// sum += the products of the kTile rows of a from row0 with the kTile columns of b from column0, over all of depth.
template <class T, class A>
__device__ __forceinline__ void add_products(const Lines<T> &a, const Lines<T> &b, long long row0, long long column0,
                                             long long depth, GemmTiles<A> &tiles, TileSums<A> &sum) {
#pragma unroll 1
  for (long long depth0 = 0; depth0 < depth; depth0 += kDepth) {
    fetch(a, row0, depth0, depth, tiles.left);
    fetch(b, column0, depth0, depth, tiles.right);
    __syncthreads();
    add_step(tiles, sum);
    __syncthreads();
  }
}

}  // namespace pk
