// Two devices where there are two: memory of each, a copy between them, access to a peer.
// output: copied 21, doubled 42
#include <cstdio>

__global__ void twice(int *value) { *value *= 2; }

int main() {
  int count = 0, host = 21;
  cudaGetDeviceCount(&count);
  const int other = count > 1 ? 1 : 0;
  int *first, *second, can = 0;
  cudaSetDevice(0);
  cudaMalloc(&first, sizeof(int));
  cudaMemcpy(first, &host, sizeof(int), cudaMemcpyHostToDevice);
  cudaSetDevice(other);
  cudaMalloc(&second, sizeof(int));
  cudaMemcpyPeer(second, other, first, 0, sizeof(int));
  int copied = 0;
  cudaMemcpy(&copied, second, sizeof(int), cudaMemcpyDeviceToHost);
  if (other != 0) cudaDeviceCanAccessPeer(&can, other, 0);
  if (can) cudaDeviceEnablePeerAccess(0, 0);
  int *const where = can ? first : second;  // a kernel of this device reaches the other's memory
  twice<<<1, 1>>>(where);
  cudaMemcpy(&host, where, sizeof(int), cudaMemcpyDefault);
  std::printf("copied %d, doubled %d\n", copied, host);
  cudaFree(second);
  cudaFree(first);  // whichever device is current
  return host == 42 ? 0 : 1;
}
