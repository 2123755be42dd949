// device_global.cu: a table in device memory that a recursive device function walks through.
__device__ int parents[200];

__device__ int depth(int node) { return parents[node] == node ? 0 : 1 + depth(parents[node]); }

__global__ void device_global(const int *in, int *out, int n) {
  for (int k = threadIdx.x; k < n; k += blockDim.x) parents[k] = in[k];
  __syncthreads();
  for (int k = threadIdx.x; k < n; k += blockDim.x) out[k] = depth(k);
}
