// Times between events, and questions about them.
// output: finished, the time is a number
#include <cstdio>

__global__ void work(float *values, int rounds) {
  float x = values[threadIdx.x];
  for (int i = 0; i < rounds; ++i) x = x * 0.5f + 1.0f;
  values[threadIdx.x] = x;
}

int main() {
  float *values, milliseconds = -1.0f;
  cudaMalloc(&values, 64 * sizeof(float));
  cudaMemset(values, 0, 64 * sizeof(float));
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  cudaEventRecord(start);
  work<<<1, 64>>>(values, 1000);
  cudaEventRecord(stop);
  cudaEventSynchronize(stop);
  const bool done = cudaEventQuery(stop) == cudaSuccess;
  cudaEventElapsedTime(&milliseconds, start, stop);
  std::printf("%s, the time is %s\n", done ? "finished" : "not finished", milliseconds >= 0 ? "a number" : "none");
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  cudaFree(values);
  return done ? 0 : 1;
}
