// lu.cu: LU factors of small matrices without pivoting, one block a matrix, one thread an element.
#define SIZE 9
__global__ void lu(double *matrices) {
  __shared__ double a[SIZE][SIZE];
  int at = (blockIdx.x * SIZE + threadIdx.y) * SIZE + threadIdx.x;
  a[threadIdx.y][threadIdx.x] = matrices[at];
  __syncthreads();
  for (int k = 0; k < SIZE - 1; ++k) {
    if (threadIdx.x == k && threadIdx.y > k) a[threadIdx.y][k] /= a[k][k];
    __syncthreads();
    if (threadIdx.x > k && threadIdx.y > k) a[threadIdx.y][threadIdx.x] -= a[threadIdx.y][k] * a[k][threadIdx.x];
    __syncthreads();
  }
  matrices[at] = a[threadIdx.y][threadIdx.x];
}
