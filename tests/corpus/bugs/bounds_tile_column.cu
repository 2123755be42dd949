// The right neighbour comes from a tile without a halo: the last column reads the next row of the tile.
#define TILE 16

extern "C" __global__ void mean_right(const float* in, float* out, int width)
{
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
#ifdef FIXED
    int next = min(threadIdx.x + 1, TILE - 1);
#else
    int next = threadIdx.x + 1;
#endif
    float right = tile[threadIdx.y][next];  // BUG
    out[y * width + x] = 0.5f * (tile[threadIdx.y][threadIdx.x] + right);
}
