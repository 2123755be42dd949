// A box in the middle of a volume: cudaMalloc3D and cudaMemcpy3D with positions.
// output: 24 of 24 are where they belong
#include <cstdio>
#include <vector>

__global__ void number(cudaPitchedPtr volume, int width, int height, int depth) {
  const int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  if (x >= width || y >= height || z >= depth) return;
  char *slice = static_cast<char *>(volume.ptr) + z * volume.pitch * height;
  reinterpret_cast<int *>(slice + y * volume.pitch)[x] = 100 * z + 10 * y + x;
}

int main() {
  const int width = 6, height = 5, depth = 4;
  cudaPitchedPtr volume;
  cudaMalloc3D(&volume, make_cudaExtent(width * sizeof(int), height, depth));
  number<<<1, dim3(8, 8, 4)>>>(volume, width, height, depth);
  std::vector<int> box(4 * 3 * 2);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = volume;
  copy.srcPos = make_cudaPos(1 * sizeof(int), 2, 1);
  copy.dstPtr = make_cudaPitchedPtr(box.data(), 4 * sizeof(int), 4 * sizeof(int), 3);
  copy.extent = make_cudaExtent(4 * sizeof(int), 3, 2);
  copy.kind = cudaMemcpyDeviceToHost;
  if (cudaMemcpy3D(&copy) != cudaSuccess) return 1;
  int right = 0;
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 4; ++x) right += box[(z * 3 + y) * 4 + x] == 100 * (z + 1) + 10 * (y + 2) + x + 1;
  std::printf("%d of 24 are where they belong\n", right);
  cudaFree(volume.ptr);
  return right == 24 ? 0 : 1;
}
