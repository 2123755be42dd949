// Points as float3 and float4, an array of structures, and integers of four bytes.
// output: centre 1.0 2.0 3.0, largest 8.0, bytes 1 2 3 4
#include <cstdio>

struct Particle {
  float3 position;
  float mass;
};

__global__ void centre(const Particle *particles, int n, float4 *out) {
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int i = 0; i < n; ++i) {
    const Particle particle = particles[i];
    sum.x += particle.mass * particle.position.x;
    sum.y += particle.mass * particle.position.y;
    sum.z += particle.mass * particle.position.z;
    sum.w = max(sum.w, particle.mass);
  }
  *out = sum;
}
__global__ void number(uchar4 *out) { *out = make_uchar4(1, 2, 3, 4); }

int main() {
  const Particle host[] = {{make_float3(0, 0, 0), 8.0f}, {{2.0f, 4.0f, 6.0f}, 0.5f}};
  Particle *particles;
  float4 *out, result;
  uchar4 *bytes, four;
  cudaMalloc(&particles, sizeof host);
  cudaMalloc(&out, sizeof(float4));
  cudaMalloc(&bytes, sizeof(uchar4));
  cudaMemcpy(particles, host, sizeof host, cudaMemcpyHostToDevice);
  centre<<<1, 1>>>(particles, 2, out);
  number<<<1, 1>>>(bytes);
  cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
  cudaMemcpy(&four, bytes, sizeof four, cudaMemcpyDeviceToHost);
  std::printf("centre %.1f %.1f %.1f, largest %.1f, bytes %d %d %d %d\n", result.x, result.y, result.z, result.w,
              four.x, four.y, four.z, four.w);
  cudaFree(particles);
  cudaFree(out);
  cudaFree(bytes);
  return 0;
}
