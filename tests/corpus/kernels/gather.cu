// gather.cu: elements picked by an index array through the read-only cache.
__global__ void gather(const double *__restrict__ table, const int *__restrict__ index, double *__restrict__ out,
                       int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __ldg(&table[__ldg(&index[i])]);
}
