// Letters of a text counted by atomic additions, in shared memory first.
// output: a 5 e 3 s 7
#include <cstdio>
#include <cstring>

__global__ void count(const char *text, int n, unsigned *letters) {
  __shared__ unsigned own[26];
  for (int i = threadIdx.x; i < 26; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    if (text[i] >= 'a' && text[i] <= 'z') atomicAdd(&own[text[i] - 'a'], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 26; i += blockDim.x) atomicAdd(&letters[i], own[i]);
}

int main() {
  const char text[] = "glass bees sang as all passed";
  const int n = int(std::strlen(text));
  char *device_text;
  unsigned *device_letters, letters[26];
  cudaMalloc(&device_text, n);
  cudaMalloc(&device_letters, sizeof letters);
  cudaMemcpy(device_text, text, n, cudaMemcpyHostToDevice);
  cudaMemset(device_letters, 0, sizeof letters);
  count<<<2, 64>>>(device_text, n, device_letters);
  cudaMemcpy(letters, device_letters, sizeof letters, cudaMemcpyDeviceToHost);
  std::printf("a %u e %u s %u\n", letters[0], letters['e' - 'a'], letters['s' - 'a']);
  cudaFree(device_text);
  cudaFree(device_letters);
  return 0;
}
