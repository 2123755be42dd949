// Half and bfloat16 on both sides.
// output: half 2.250 3.002, bfloat16 1.500
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdio>

__global__ void square(__half *values) { values[threadIdx.x] = __hmul(values[threadIdx.x], values[threadIdx.x]); }
__global__ void halve(__nv_bfloat16 *value) { *value = __float2bfloat16(__bfloat162float(*value) * 0.5f); }

int main() {
  __half host[2] = {__float2half(1.5f), __float2half(1.7320508f)}, *device;
  __nv_bfloat16 other = __float2bfloat16(3.0f), *device_other;
  cudaMalloc(&device, sizeof host);
  cudaMalloc(&device_other, sizeof other);
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpy(device_other, &other, sizeof other, cudaMemcpyHostToDevice);
  square<<<1, 2>>>(device);
  halve<<<1, 1>>>(device_other);
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  cudaMemcpy(&other, device_other, sizeof other, cudaMemcpyDeviceToHost);
  std::printf("half %.3f %.3f, bfloat16 %.3f\n", __half2float(host[0]), __half2float(host[1]),
              __bfloat162float(other));
  cudaFree(device);
  cudaFree(device_other);
  return 0;
}
