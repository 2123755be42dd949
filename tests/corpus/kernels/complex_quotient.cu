// complex_quotient.cu: cuComplex's quotient, modulus and fused product.
#include <cuComplex.h>

__global__ void complex_quotient(const cuFloatComplex *a, const cuFloatComplex *b, cuFloatComplex *out, float *size,
                                 int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  cuFloatComplex quotient = cuCdivf(a[i], b[i]);
  out[i] = cuCfmaf(quotient, cuConjf(b[i]), make_cuComplex(1.0f, -2.0f));
  size[i] = cuCabsf(cuCsubf(a[i], cuCaddf(b[i], b[i])));
}
