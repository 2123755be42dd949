// histogram_global.cu: counts of bytes by atomic additions to global memory.
__global__ void histogram_global(const unsigned char *data, unsigned *bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[data[i]], 1u);
}
