// half_axpy.cu: factor * x + y in half precision, rounded once by the fused operation and twice by two.
#include <cuda_fp16.h>

__global__ void half_axpy(const __half *x, const __half *y, __half *fused, __half *separate, __half factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    fused[i] = __hfma(factor, x[i], y[i]);
    separate[i] = __hadd_rn(__hmul_rn(factor, x[i]), y[i]);
  }
}
