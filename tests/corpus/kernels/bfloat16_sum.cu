// bfloat16_sum.cu: rows of bfloat16 added up in float, the sums rounded back to bfloat16.
#include <cuda_bf16.h>

__global__ void bfloat16_sum(const __nv_bfloat16 *in, __nv_bfloat16 *out, float *wide, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float sum = 0.0f;
    for (int k = 0; k < columns; ++k) sum += __bfloat162float(in[row * columns + k]);
    wide[row] = sum;
    out[row] = __float2bfloat16_rn(sum);
  }
}
