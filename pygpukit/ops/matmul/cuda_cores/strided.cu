// strided.cu: c = a @ b for any strides and batches.
#include "gemm.cuh"

namespace pk {

// A block makes kThreads * Down rows of kThreads * Across columns.
template <class T, class Out = T, int Down = kPerThread, int Across = kPerThread>
__global__ void __launch_bounds__(kThreads *kThreads)
    gemm(const T *a, const T *b, Out *c, const __grid_constant__ GemmLayout<3> p) {
  using A = accumulator_t<T>;
  constexpr int kRows = kThreads * Down, kColumns = kThreads * Across;
  __shared__ GemmTiles<A, Down, Across> tiles;
  const long long tiles_n = (p.n + kColumns - 1) / kColumns;
  const long long row0 = blockIdx.x / tiles_n * kRows;
  const long long column0 = blockIdx.x % tiles_n * kColumns;
#pragma unroll 1
  for (long long batch = blockIdx.y; batch < p.batches; batch += gridDim.y) {
    long long at[3];
    batch_offsets(p, batch, at);
    TileSums<A, Down, Across> sum = {};
    add_products<T>({a + at[0], p.m, p.row[0], p.column[0]}, {b + at[1], p.n, p.column[1], p.row[1]}, row0, column0,
                    p.k, tiles, sum);
    for (int i = 0; i < Down; ++i) {
      for (int j = 0; j < Across; ++j) {
        const long long row = row0 + tile_row<Down>(i);
        const long long column = column0 + tile_column(j);
        if (row >= p.m || column >= p.n) continue;
        c[at[2] + row * p.row[2] + column * p.column[2]] = convert<Out>::from(sum[i][j]);
      }
    }
  }
}

}  // namespace pk
