// wmma_double_buffer.cu: a product whose next tiles are copied to shared memory while this step's are multiplied.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_double_buffer(const half *a, const half *b, float *c, int inner, int columns) {
  __shared__ __align__(32) half left[2][16][24];
  __shared__ __align__(32) half right[2][16][40];
  const int t = threadIdx.x, row = blockIdx.y * 16, column = blockIdx.x * 32, steps = inner / 16;
  auto copy = [&](int step) {
    for (int i = t; i < 256; i += 64) left[step % 2][i / 16][i % 16] = a[(row + i / 16) * inner + step * 16 + i % 16];
    for (int i = t; i < 512; i += 64) right[step % 2][i / 32][i % 32] = b[(step * 16 + i / 32) * columns + column + i % 32];
  };
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  copy(0);
  for (int step = 0; step < steps; ++step) {
    __syncthreads();
    if (step + 1 < steps) copy(step + 1);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
    wmma::load_matrix_sync(x, left[step % 2][0], 24);
    wmma::load_matrix_sync(y, &right[step % 2][0][t / 32 * 16], 40);
    wmma::mma_sync(sum, x, y, sum);
  }
  wmma::store_matrix_sync(c + row * columns + column + t / 32 * 16, sum, columns, wmma::mem_row_major);
}
