// wmma_convolution.cu: a 3 x 3 convolution of several channels as a product: windows of the image are laid out as rows
// in shared memory, sixteen taps a step.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_convolution(const half *image, const half *filters, float *out, int height, int width,
                                 int channels, int kinds) {
  __shared__ __align__(32) half windows[16][24];
  __shared__ __align__(32) half taps[16][24];
  __shared__ __align__(32) float result[16][20];
  const int t = threadIdx.x, pixel = blockIdx.x * 16, inner = channels * 9, pixels = (height - 2) * (width - 2);
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int first = 0; first < inner; first += 16) {
    for (int i = t; i < 256; i += 32) {
      const int p = pixel + i / 16, k = first + i % 16, y = p / (width - 2), x = p % (width - 2), at = k % 9;
      const bool inside = p < pixels && k < inner;
      windows[i / 16][i % 16] =
          inside ? image[(k / 9 * height + y + at / 3) * width + x + at % 3] : __float2half(0.0f);
      taps[i / 16][i % 16] = i / 16 < kinds && k < inner ? filters[i / 16 * inner + k] : __float2half(0.0f);
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::load_matrix_sync(left, &windows[0][0], 24);
    wmma::load_matrix_sync(right, &taps[0][0], 24);
    wmma::mma_sync(sum, left, right, sum);
    __syncwarp();
  }
  wmma::store_matrix_sync(&result[0][0], sum, 20, wmma::mem_row_major);
  __syncwarp();
  for (int i = t; i < 256; i += 32)
    if (pixel + i / 16 < pixels && i % 16 < kinds) out[i % 16 * pixels + pixel + i / 16] = result[i / 16][i % 16];
}
