// tex_pitched.cu: a transpose through shared memory, read from rows that lie apart.
extern "C" __global__ void tex_pitched(cudaTextureObject_t matrix, float *out, int width, int height) {
  __shared__ float tile[8][9];
  int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = tex2D<float>(matrix, x + 0.5f, y + 0.5f);
  __syncthreads();
  x = blockIdx.y * 8 + threadIdx.x;
  y = blockIdx.x * 8 + threadIdx.y;
  if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
