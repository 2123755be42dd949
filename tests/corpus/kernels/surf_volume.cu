// surf_volume.cu: differences of a volume along its depth, the last slice beside itself.
extern "C" __global__ void surf_volume(cudaSurfaceObject_t volume, short *out, int width, int height, int depth) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
  if (x >= width) return;
  const short here = surf3Dread<short>(volume, 2 * x, y, z);
  const short behind = surf3Dread<short>(volume, 2 * x, y, z + 1, cudaBoundaryModeClamp);
  out[(z * height + y) * width + x] = behind - here;
}
