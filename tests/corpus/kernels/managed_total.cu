// managed_total.cu: a managed counter that blocks add to and the last one reads and sets back.
__managed__ int total = 5;

__global__ void managed_total(const int *in, int *out, unsigned *arrived, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&total, in[i]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(arrived, 1u) == gridDim.x - 1) {
    __threadfence();
    out[0] = atomicExch(&total, 5);
  }
}
