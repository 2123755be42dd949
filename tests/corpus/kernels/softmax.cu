// softmax.cu: softmax and maximum of every row, one block a row, by two tree reductions; a template over the type.
#define BLOCK 64
template <typename T>
__global__ void softmax(const T *in, T *out, T *tops, int columns) {
  __shared__ T scratch[BLOCK];
  int start = blockIdx.x * columns;
  T top = -1e30f;
  for (int k = threadIdx.x; k < columns; k += BLOCK) top = max(top, in[start + k]);
  scratch[threadIdx.x] = top;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] = max(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    __syncthreads();
  }
  top = scratch[0];
  __syncthreads();
  if (threadIdx.x == 0) tops[blockIdx.x] = top;
  T sum = 0;
  for (int k = threadIdx.x; k < columns; k += BLOCK) sum += exp(in[start + k] - top);
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  for (int k = threadIdx.x; k < columns; k += BLOCK) out[start + k] = exp(in[start + k] - top) / scratch[0];
}
