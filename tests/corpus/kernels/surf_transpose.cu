// surf_transpose.cu: one surface written as another one's transpose.
extern "C" __global__ void surf_transpose(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  surf2Dwrite(surf2Dread<int>(from, 4 * x, y), to, 4 * y, x);
}
