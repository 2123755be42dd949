// Points of an array by a texture: interpolated, clamped at the border, and whole numbers as they are.
// output: 0.0 0.5 1.0 3.0 3.0
// output: 40 30 20 10
#include <cstdio>

__global__ void sample(cudaTextureObject_t texture, float *out) {
  const float at[] = {0.5f, 1.0f, 1.5f, 3.5f, 9.0f};
  out[threadIdx.x] = tex2D<float>(texture, at[threadIdx.x], 0.5f);
}
__global__ void reverse(cudaTextureObject_t texture, int *out) { out[threadIdx.x] = tex1Dfetch<int>(texture, 3 - threadIdx.x); }

int main() {
  const float row[] = {0, 1, 2, 3};
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &format, 4, 1);
  cudaMemcpy2DToArray(array, 0, 0, row, sizeof row, sizeof row, 1, cudaMemcpyHostToDevice);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description = {};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
  description.filterMode = cudaFilterModeLinear;
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture;
  cudaCreateTextureObject(&texture, &resource, &description, nullptr);
  float *device, host[5];
  cudaMalloc(&device, sizeof host);
  sample<<<1, 5>>>(texture, device);
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("%.1f %.1f %.1f %.1f %.1f\n", host[0], host[1], host[2], host[3], host[4]);
  cudaDestroyTextureObject(texture);
  cudaFreeArray(array);

  const int numbers[] = {10, 20, 30, 40};
  int *linear, reversed[4], *out;
  cudaMalloc(&linear, sizeof numbers);
  cudaMalloc(&out, sizeof numbers);
  cudaMemcpy(linear, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = linear;
  resource.res.linear.desc = cudaCreateChannelDesc<int>();
  resource.res.linear.sizeInBytes = sizeof numbers;
  description = {};
  description.readMode = cudaReadModeElementType;
  cudaCreateTextureObject(&texture, &resource, &description, nullptr);
  reverse<<<1, 4>>>(texture, out);
  cudaMemcpy(reversed, out, sizeof reversed, cudaMemcpyDeviceToHost);
  std::printf("%d %d %d %d\n", reversed[0], reversed[1], reversed[2], reversed[3]);
  cudaDestroyTextureObject(texture);
  cudaFree(linear);
  cudaFree(out);
  cudaFree(device);
  return 0;
}
