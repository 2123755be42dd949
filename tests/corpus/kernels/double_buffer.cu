// double_buffer.cu: moving maxima over tiles that arrive in one shared buffer while the other one is read.
#define TILE 32
__global__ void double_buffer(const int *in, int *out, int tiles) {
  __shared__ int buffers[2][TILE];
  int start = blockIdx.x * tiles * TILE;
  buffers[0][threadIdx.x] = in[start + threadIdx.x];
  __syncthreads();
  for (int tile = 0; tile < tiles; ++tile) {
    int now = tile % 2;
    if (tile + 1 < tiles) buffers[1 - now][threadIdx.x] = in[start + (tile + 1) * TILE + threadIdx.x];
    int left = (threadIdx.x + TILE - 1) % TILE;
    int right = (threadIdx.x + 1) % TILE;
    int middle = max(buffers[now][left], buffers[now][right]);
    out[start + tile * TILE + threadIdx.x] = max(middle, buffers[now][threadIdx.x]);
    __syncthreads();
  }
}
