// wmma_attention.cu: attention of sixteen queries to sixteen keys: scores by fragments, softmax of the rows in shared
// memory, and the mean of the values by fragments.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_attention(const half *queries, const half *keys, const half *values, float *out, int size,
                               float scale) {
  __shared__ __align__(32) float scores[16][20];
  __shared__ __align__(32) half weights[16][24];
  const int t = threadIdx.x, head = blockIdx.x * 16 * size;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < size; k += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::load_matrix_sync(left, queries + head + k, size);
    wmma::load_matrix_sync(right, keys + head + k, size);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= scale;
  wmma::store_matrix_sync(&scores[0][0], sum, 20, wmma::mem_row_major);
  __syncwarp();
  if (t < 16) {
    float most = scores[t][0], total = 0.0f;
    for (int j = 1; j < 16; ++j) most = fmaxf(most, scores[t][j]);
    for (int j = 0; j < 16; ++j) total += expf(scores[t][j] - most);
    for (int j = 0; j < 16; ++j) weights[t][j] = __float2half(expf(scores[t][j] - most) / total);
  }
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> mean;
  wmma::load_matrix_sync(mean, &weights[0][0], 24);
  for (int n = 0; n < size; n += 16) {
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> part;
    wmma::load_matrix_sync(part, values + head + n, size);
    wmma::fill_fragment(sum, 0.0f);
    wmma::mma_sync(sum, mean, part, sum);
    wmma::store_matrix_sync(out + head + n, sum, size, wmma::mem_row_major);
  }
}
