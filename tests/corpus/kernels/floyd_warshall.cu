// floyd_warshall.cu: all shortest paths of a small graph, the whole distance table in one block's shared memory.
#define NODES 13
__global__ void floyd_warshall(const int *weights, int *distances) {
  __shared__ int table[NODES][NODES];
  int at = (blockIdx.x * NODES + threadIdx.y) * NODES + threadIdx.x;
  table[threadIdx.y][threadIdx.x] = weights[at];
  __syncthreads();
  for (int via = 0; via < NODES; ++via) {
    int around = table[threadIdx.y][via] + table[via][threadIdx.x];  // neither changes in this step
    if (around < table[threadIdx.y][threadIdx.x]) table[threadIdx.y][threadIdx.x] = around;
    __syncthreads();
  }
  distances[at] = table[threadIdx.y][threadIdx.x];
}
