// gemm.cu: c = a @ b for any strides and batches.
#include "gemm.cuh"

namespace pk {

template <class T, class Out = T>
__global__ void __launch_bounds__(kThreads *kThreads)
    gemm(const T *a, const T *b, Out *c, const __grid_constant__ GemmLayout<3> p) {
  using A = accumulator_t<T>;
  __shared__ GemmTiles<A> tiles;
  const long long tiles_n = (p.n + kTile - 1) / kTile;
  const long long row0 = blockIdx.x / tiles_n * kTile;
  const long long column0 = blockIdx.x % tiles_n * kTile;
#pragma unroll 1
  for (long long batch = blockIdx.y; batch < p.batches; batch += gridDim.y) {
    long long at[3];
    batch_offsets(p, batch, at);
    TileSums<A> sum = {};
    add_products<T>({a + at[0], p.m, p.row[0], p.column[0]}, {b + at[1], p.n, p.column[1], p.row[1]}, row0, column0,
                    p.k, tiles, sum);
    for (int i = 0; i < kPerThread; ++i) {
      for (int j = 0; j < kPerThread; ++j) {
        const long long row = row0 + threadIdx.y + i * kThreads;
        const long long column = column0 + threadIdx.x + j * kThreads;
        if (row >= p.m || column >= p.n) continue;
        c[at[2] + row * p.row[2] + column * p.column[2]] = convert<Out>::from(sum[i][j]);
      }
    }
  }
}

}  // namespace pk
