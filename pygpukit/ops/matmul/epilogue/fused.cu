// fused.cu: products of floats with an epilogue: in the kernel that sums, or over the rounded sums of another.
#include "epilogue.cuh"
#include "gemm.cuh"

namespace pk {

// c = after(a @ b), rounded once. The layout's operands: a, b, c, residual; its n is that of c, of kSwiglu b has 2 n.
template <class T, int Down = kPerThread, int Across = kPerThread>
__global__ void __launch_bounds__(kThreads *kThreads)
    gemm_after(const T *a, const T *b, const T *bias, const T *residual, T *c, const __grid_constant__ GemmLayout<4> p,
               const __grid_constant__ Epilogue after) {
  using A = accumulator_t<T>;
  constexpr int kRows = kThreads * Down, kColumns = kThreads * Across;
  __shared__ GemmTiles<A, Down, Across> tiles;
  const long long tiles_n = (p.n + kColumns - 1) / kColumns;
  const long long row0 = blockIdx.x / tiles_n * kRows;
  const long long column0 = blockIdx.x % tiles_n * kColumns;
#pragma unroll 1
  for (long long batch = blockIdx.y; batch < p.batches; batch += gridDim.y) {
    long long at[4];
    batch_offsets(p, batch, at);
    const Lines<T> left = {a + at[0], p.m, p.row[0], p.column[0]};
    Lines<T> right = {b + at[1], p.n, p.column[1], p.row[1]};
    TileSums<A, Down, Across> sum = {}, up = {};
    add_products(left, right, row0, column0, p.k, tiles, sum);
    if (after.activation == kSwiglu) {
      right.data += p.n * p.column[1];
      add_products(left, right, row0, column0, p.k, tiles, up);
    }
    for (int i = 0; i < Down; ++i) {
      for (int j = 0; j < Across; ++j) {
        const long long row = row0 + tile_row<Down>(i);
        const long long column = column0 + tile_column(j);
        if (row >= p.m || column >= p.n) continue;
        const T *other = residual + (at[3] + row * p.row[3] + column * p.column[3]);
        c[at[2] + row * p.row[2] + column * p.column[2]] =
            convert<T>::from(finished(after, sum[i][j], up[i][j], bias, column, other));
      }
    }
  }
}

// out = after(product). product: dense rows. The layout's operands: out, residual.
template <class T>
__global__ void __launch_bounds__(256)
    finish(const T *product, const T *bias, const T *residual, T *out, const __grid_constant__ Layout<2> p,
           const __grid_constant__ Epilogue after) {
  const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= p.size) return;
  long long at[2];
  locate(p, index, at);
  const long long row = index / after.columns, column = index - row * after.columns;
  const bool gated = after.activation == kSwiglu;
  const T *sum = product + row * (gated ? 2 * after.columns : after.columns) + column;
  const compute_t<T> up = gated ? widen(sum[after.columns]) : compute_t<T>(0);
  out[at[0]] = convert<T>::from(finished(after, widen(*sum), up, bias, column, residual + at[1]));
}

// The same where out and residual are dense as the product is, and rows are whole pieces of 16 bytes; not with kSwiglu.
template <class T>
__global__ void __launch_bounds__(256) finish_pieces(const T *product, const T *bias, const T *residual, T *out,
                                                     long long pieces, const __grid_constant__ Epilogue after) {
  constexpr int kNumbers = Piece<T>::kNumbers;
  const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= pieces) return;
  const long long across = after.columns / kNumbers, column = index % across * kNumbers, at = index * kNumbers;
  const float alpha = static_cast<float>(after.alpha), beta = after.has_residual ? static_cast<float>(after.beta) : 1;
  Piece<T> piece = piece_at(product + at);
  const Piece<T> of_columns = piece_at(bias + column, after.has_bias),
                 added = piece_at(residual + at, after.has_residual);
  with_activation(after.activation, [&](auto activation) {
    finish_piece<decltype(activation)::value>(piece, of_columns, added, alpha, beta);
  });
  *reinterpret_cast<Piece<T> *>(out + at) = piece;
}

}  // namespace pk
