// spin_lock.cu: blocks take a lock in turn to change two numbers together.
__global__ void spin_lock(int *lock, long long *state, const int *amounts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      state[0] += amounts[i];
      state[1] += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
