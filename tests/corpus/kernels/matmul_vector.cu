// matmul_vector.cu: matrix product with the fused multiply-add spelt out, four columns a thread by float4 loads.
__global__ void matmul_vector(const float *a, const float4 *b, float4 *c, int rows, int inner, int quads) {
  int quad = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || quad >= quads) return;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int k = 0; k < inner; ++k) {
    float factor = a[row * inner + k];
    float4 right = b[k * quads + quad];
    sum.x = fmaf(factor, right.x, sum.x);
    sum.y = fmaf(factor, right.y, sum.y);
    sum.z = fmaf(factor, right.z, sum.z);
    sum.w = fmaf(factor, right.w, sum.w);
  }
  c[row * quads + quad] = sum;
}
