// Tiled matmul whose inner extent is no multiple of the tile.
#define TILE 16

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k)
{
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    float sum = 0.0f;
    for (int tile = 0; tile < k; tile += TILE) {
        int across = tile + threadIdx.x, down = tile + threadIdx.y;
#ifdef FIXED
        left[threadIdx.y][threadIdx.x] = row < m && across < k ? a[row * k + across] : 0.0f;
        right[threadIdx.y][threadIdx.x] = column < n && down < k ? b[down * n + column] : 0.0f;
#else
        left[threadIdx.y][threadIdx.x] = row < m ? a[row * k + across] : 0.0f;
        right[threadIdx.y][threadIdx.x] = column < n ? b[down * n + column] : 0.0f;  // BUG
#endif
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
