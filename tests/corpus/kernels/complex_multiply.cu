// complex_multiply.cu: products of complex numbers held as float2.
__global__ void complex_multiply(const float2 *a, const float2 *b, float2 *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float2 p = a[i];
    float2 q = b[i];
    out[i] = make_float2(p.x * q.x - p.y * q.y, p.x * q.y + p.y * q.x);
  }
}
