// Tiled matmul without the second barrier: fast threads load the next tile while others still read this one.
#define TILE 8

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n)
{
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    float sum = 0.0f;
    for (int tile = 0; tile < n; tile += TILE) {
        left[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];  // AND
        right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < TILE; ++i) {
            float factor = left[threadIdx.y][i];  // BUG
            sum += factor * right[i][threadIdx.x];
        }
#ifdef FIXED
        __syncthreads();
#endif
    }
    c[row * n + column] = sum;
}
