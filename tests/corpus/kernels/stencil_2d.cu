// stencil_2d.cu: a 3 x 3 weighted stencil over a shared tile with a halo of one, zero outside the image.
#define TILE 8
__global__ void stencil_2d(const int *in, int *out, int width, int height) {
  __shared__ int tile[TILE + 2][TILE + 2];
  int left = blockIdx.x * TILE - 1;
  int top = blockIdx.y * TILE - 1;
  for (int k = threadIdx.y * TILE + threadIdx.x; k < (TILE + 2) * (TILE + 2); k += TILE * TILE) {
    int x = left + k % (TILE + 2);
    int y = top + k / (TILE + 2);
    bool inside = x >= 0 && y >= 0 && x < width && y < height;
    tile[k / (TILE + 2)][k % (TILE + 2)] = inside ? in[y * width + x] : 0;
  }
  __syncthreads();
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  if (x < width && y < height) {
    int sum = 0;
    for (int dy = 0; dy < 3; ++dy) {
      for (int dx = 0; dx < 3; ++dx) sum += (1 + dx + 3 * dy) * tile[threadIdx.y + dy][threadIdx.x + dx];
    }
    out[y * width + x] = sum;
  }
}
