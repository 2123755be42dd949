// pipeline_thread.cu: a thread's own copies into shared memory, two under way.
#include <cuda_pipeline.h>

__global__ void pipeline_thread(const float4 *in, float4 *out, int tiles) {
  __shared__ float4 buffer[2][32];
  int i = threadIdx.x;
  const float4 *mine = in + blockIdx.x * tiles * 32;
  __pipeline_memcpy_async(&buffer[0][i], &mine[i], sizeof(float4));
  __pipeline_commit();
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) __pipeline_memcpy_async(&buffer[(tile + 1) % 2][i], &mine[(tile + 1) * 32 + i], sizeof(float4));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    float4 value = buffer[tile % 2][i];
    sum.x += value.x, sum.y += value.y, sum.z += value.z, sum.w += value.w;
  }
  out[blockIdx.x * 32 + i] = sum;
}
