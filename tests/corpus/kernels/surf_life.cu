// surf_life.cu: one step of Conway's game on a surface, with nothing alive outside.
extern "C" __global__ void surf_life(cudaSurfaceObject_t now, cudaSurfaceObject_t next, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int around = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) around += surf2Dread<unsigned char>(now, x + dx, y + dy, cudaBoundaryModeZero);
  const unsigned char alive = surf2Dread<unsigned char>(now, x, y);
  surf2Dwrite<unsigned char>(around == 3 || (alive && around == 4), next, x, y);
}
