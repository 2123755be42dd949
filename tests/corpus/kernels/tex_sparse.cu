// tex_sparse.cu: a sparse matrix, in rows, times a vector that is fetched through a texture of linear memory.
extern "C" __global__ void tex_sparse(const int *starts, const int *columns, const int *values,
                                      cudaTextureObject_t vector, int *out, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int sum = 0;
  for (int at = starts[row]; at < starts[row + 1]; ++at) sum += values[at] * tex1Dfetch<int>(vector, columns[at]);
  out[row] = sum;
}
