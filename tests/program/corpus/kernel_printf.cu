// What kernels print appears when somebody waits, after what the host printed before.
// output: host first
// output: block 0 says 0
// output: block 1 says 10
// output: host last
#include <cstdio>

__global__ void say(int block) {
  if (blockIdx.x == block && threadIdx.x == 0) printf("block %d says %d\n", int(blockIdx.x), 10 * int(blockIdx.x));
}

int main() {
  std::printf("host first\n");
  say<<<2, 32>>>(0);
  say<<<2, 32>>>(1);
  cudaDeviceSynchronize();
  std::printf("host last\n");
  return 0;
}
