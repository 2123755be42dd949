// semaphore_slots.cu: two slots that the warps of a block take in turn, and a latch that all count down.
#include <cuda/latch>
#include <cuda/semaphore>

__global__ void semaphore_slots(const int *in, int *out) {
  typedef cuda::binary_semaphore<cuda::thread_scope_block> Semaphore;
  typedef cuda::latch<cuda::thread_scope_block> Latch;
  __shared__ alignas(16) char room[2][64];
  __shared__ int total;
  Semaphore &one = *reinterpret_cast<Semaphore *>(room[0]);
  Latch &done = *reinterpret_cast<Latch *>(room[1]);
  if (threadIdx.x == 0) {
    new (&one) Semaphore(1);
    new (&done) Latch(blockDim.x / 32);
    total = 0;
  }
  __syncthreads();
  int sum = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int offset = 16; offset; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) {
    one.acquire();
    total = total + sum;
    one.release();
    done.count_down();
  }
  done.wait();
  if (threadIdx.x < 2) out[2 * blockIdx.x + threadIdx.x] = total * (threadIdx.x + 1);
}
