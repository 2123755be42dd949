// wmma_shared.cu: matrix product by fragments from shared memory, four warps a block, sizes that are no multiples of the
// tile: what is outside counts as zero, and the result goes through shared memory, too.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_shared(const half *a, const half *b, float *c, int rows, int inner, int columns) {
  __shared__ __align__(32) half left[32][24];
  __shared__ __align__(32) half right[16][40];
  __shared__ __align__(32) float result[32][36];
  const int t = threadIdx.x, warp = t / 32, down = warp / 2 * 16, over = warp % 2 * 16;
  const int row = blockIdx.y * 32, column = blockIdx.x * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int first = 0; first < inner; first += 16) {
    for (int i = t; i < 32 * 16; i += blockDim.x) {
      const int r = row + i / 16, k = first + i % 16;
      left[i / 16][i % 16] = r < rows && k < inner ? a[r * inner + k] : __float2half(0.0f);
    }
    for (int i = t; i < 16 * 32; i += blockDim.x) {
      const int k = first + i / 32, n = column + i % 32;
      right[i / 32][i % 32] = k < inner && n < columns ? b[k * columns + n] : __float2half(0.0f);
    }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
    wmma::load_matrix_sync(x, &left[down][0], 24);
    wmma::load_matrix_sync(y, &right[0][over], 40);
    wmma::mma_sync(sum, x, y, sum);
    __syncthreads();
  }
  wmma::store_matrix_sync(&result[down][over], sum, 36, wmma::mem_row_major);
  __syncthreads();
  for (int i = t; i < 32 * 32; i += blockDim.x) {
    const int r = row + i / 32, n = column + i % 32;
    if (r < rows && n < columns) c[r * columns + n] = result[i / 32][i % 32];
  }
}
