// Layers of an array, filled by cudaMemcpy3D, each read by its number.
// output: 8 of 8 texels are right
#include <cstdio>

__global__ void read(cudaTextureObject_t texture, float *out) {
  const int x = threadIdx.x, layer = threadIdx.y;
  out[layer * 4 + x] = tex2DLayered<float>(texture, (x % 2) + 0.5f, (x / 2) + 0.5f, layer);
}

int main() {
  float host[8], back[8];
  for (int i = 0; i < 8; ++i) host[i] = 1.5f * i;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMalloc3DArray(&array, &format, make_cudaExtent(2, 2, 2), cudaArrayLayered);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(host, 2 * sizeof(float), 2, 2);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(2, 2, 2);
  copy.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&copy);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description = {};
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture;
  cudaCreateTextureObject(&texture, &resource, &description, nullptr);
  float *device;
  cudaMalloc(&device, sizeof host);
  read<<<1, dim3(4, 2)>>>(texture, device);
  cudaMemcpy(back, device, sizeof back, cudaMemcpyDeviceToHost);
  int right = 0;
  for (int i = 0; i < 8; ++i) right += back[i] == host[i];
  std::printf("%d of 8 texels are right\n", right);
  cudaDestroyTextureObject(texture);
  cudaFreeArray(array);
  cudaFree(device);
  return right == 8 ? 0 : 1;
}
