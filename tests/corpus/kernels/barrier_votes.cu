// barrier_votes.cu: how many, whether all, and whether any of a block's elements exceed a limit, by counting barriers.
__global__ void barrier_votes(const int *in, int *count, int *all, int *any, int limit, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int above = i < n ? in[i] > limit : 0;
  int how_many = __syncthreads_count(above);
  int every = __syncthreads_and(above);
  int some = __syncthreads_or(above);
  if (threadIdx.x == 0) {
    count[blockIdx.x] = how_many;
    all[blockIdx.x] = every;
    any[blockIdx.x] = some;
  }
}
