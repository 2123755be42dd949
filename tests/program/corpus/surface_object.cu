// A kernel writes an array by a surface, and the host copies it back, a part of it first.
// output: part 11 12, whole 0 1 2 3 10 11 12 13
#include <cstdio>

__global__ void number(cudaSurfaceObject_t surface) {
  const int x = threadIdx.x, y = threadIdx.y;
  surf2Dwrite(10 * y + x, surface, x * int(sizeof(int)), y);
}

int main() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindSigned);
  cudaArray_t array;
  cudaMallocArray(&array, &format, 4, 2, cudaArraySurfaceLoadStore);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface;
  cudaCreateSurfaceObject(&surface, &resource);
  number<<<1, dim3(4, 2)>>>(surface);
  int part[2], whole[8];
  cudaMemcpy2DFromArray(part, sizeof part, array, 1 * sizeof(int), 1, sizeof part, 1, cudaMemcpyDeviceToHost);
  cudaMemcpy2DFromArray(whole, 4 * sizeof(int), array, 0, 0, 4 * sizeof(int), 2, cudaMemcpyDeviceToHost);
  std::printf("part %d %d, whole", part[0], part[1]);
  for (int value : whole) std::printf(" %d", value);
  std::printf("\n");
  cudaDestroySurfaceObject(surface);
  cudaFreeArray(array);
  return 0;
}
