// gemm.cu: c = a @ b for any strides and batches; 64 x 64 tiles in shared memory, one fixed order of additions.
#include "numeric.cuh"

namespace pk {

constexpr int kTile = 64;     // rows and columns of c that a block makes
constexpr int kDepth = 16;    // of k, a step
constexpr int kThreads = 16;  // a block has kThreads x kThreads threads
constexpr int kPerThread = kTile / kThreads;

struct GemmLayout {
  long long m, n, k;
  long long batches;
  long long ndim;  // batch axes
  long long shape[kMaxDims];
  long long start[3];  // of a, b, c: elements from the pointer to the first element
  long long row[3];    // elements from one row to the next
  long long column[3];
  long long stride[3][kMaxDims];  // of the batch axes
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

__device__ __forceinline__ void batch_offsets(const GemmLayout &p, long long batch, long long (&at)[3]) {
  for (int k = 0; k < 3; ++k) at[k] = p.start[k];
  for (long long axis = p.ndim - 1; axis >= 0; --axis) {
    const long long above = batch / p.shape[axis];
    const long long here = batch - above * p.shape[axis];
    for (int k = 0; k < 3; ++k) at[k] += here * p.stride[k][axis];
    batch = above;
  }
}

// Copies a kTile x kDepth piece of a matrix into tile[depth][line], zeros outside. `lines` counts along the tile (rows
// of a, columns of b), `depth` along k. Neighbouring threads walk whichever of the two is dense.
template <class T, class A>
__device__ __forceinline__ void fetch(const T *matrix, long long line0, long long lines, long long line_stride,
                                      long long depth0, long long depth, long long depth_stride,
                                      A (&tile)[kDepth][kTile + 1]) {
  const int thread = threadIdx.y * kThreads + threadIdx.x;
  const bool along_depth = depth_stride == 1;
  for (int i = thread; i < kTile * kDepth; i += kThreads * kThreads) {
    const int l = along_depth ? i / kDepth : i % kTile;
    const int d = along_depth ? i % kDepth : i / kTile;
    const bool inside = line0 + l < lines && depth0 + d < depth;
    tile[d][l] = inside ? convert<A>::from(matrix[(line0 + l) * line_stride + (depth0 + d) * depth_stride]) : A{};
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads *kThreads)
    gemm(const T *a, const T *b, T *c, const __grid_constant__ GemmLayout p) {
  using A = accumulator_t<T>;
  __shared__ A left[kDepth][kTile + 1];
  __shared__ A right[kDepth][kTile + 1];
  const long long tiles_n = (p.n + kTile - 1) / kTile;
  const long long row0 = blockIdx.x / tiles_n * kTile;
  const long long column0 = blockIdx.x % tiles_n * kTile;
#pragma unroll 1
  for (long long batch = blockIdx.y; batch < p.batches; batch += gridDim.y) {
    long long at[3];
    batch_offsets(p, batch, at);
    A sum[kPerThread][kPerThread] = {};
#pragma unroll 1
    for (long long depth0 = 0; depth0 < p.k; depth0 += kDepth) {
      fetch(a + at[0], row0, p.m, p.row[0], depth0, p.k, p.column[0], left);
      fetch(b + at[1], column0, p.n, p.column[1], depth0, p.k, p.row[1], right);
      __syncthreads();
      for (int d = 0; d < kDepth; ++d) {
        for (int i = 0; i < kPerThread; ++i) {
          for (int j = 0; j < kPerThread; ++j) {
            const A product = multiply(left[d][threadIdx.y + i * kThreads], right[d][threadIdx.x + j * kThreads]);
            sum[i][j] = add(sum[i][j], product);
          }
        }
      }
      __syncthreads();
    }
    for (int i = 0; i < kPerThread; ++i) {
      for (int j = 0; j < kPerThread; ++j) {
        const long long row = row0 + threadIdx.y + i * kThreads;
        const long long column = column0 + threadIdx.x + j * kThreads;
        if (row >= p.m || column >= p.n) continue;
        c[at[2] + row * p.row[2] + column * p.column[2]] = convert<T>::from(sum[i][j]);
      }
    }
  }
}

}  // namespace pk
