// vector_load.cu: four elements a load and a store, the rest one by one.
__global__ void vector_load(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int whole = n / 4;
  const float4 *in4 = reinterpret_cast<const float4 *>(in);
  float4 *out4 = reinterpret_cast<float4 *>(out);
  if (i < whole) {
    float4 v = in4[i];
    out4[i] = make_float4(v.w * 2.0f, v.z * 2.0f, v.y * 2.0f, v.x * 2.0f);
  }
  int rest = 4 * whole + i;
  if (rest < n) out[rest] = in[rest] * 2.0f;
}
