// What two streams do is captured as a graph, which is launched three times.
// output: after 3 launches 3 6, captured only: 0 0
#include <cstdio>

__global__ void add(int *value, int what) { *value += what; }

int main() {
  int *values, host[2] = {9, 9}, before[2];
  cudaMalloc(&values, 2 * sizeof(int));
  cudaMemset(values, 0, 2 * sizeof(int));
  cudaStream_t first, second;
  cudaStreamCreate(&first);
  cudaStreamCreate(&second);
  cudaEvent_t fork, join;
  cudaEventCreate(&fork);
  cudaEventCreate(&join);

  cudaGraph_t graph;
  cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal);
  cudaEventRecord(fork, first);
  cudaStreamWaitEvent(second, fork);
  add<<<1, 1, 0, first>>>(values, 1);
  add<<<1, 1, 0, second>>>(values + 1, 2);
  cudaEventRecord(join, second);
  cudaStreamWaitEvent(first, join);
  cudaMemcpyAsync(host, values, sizeof host, cudaMemcpyDeviceToHost, first);
  cudaStreamEndCapture(first, &graph);

  cudaMemcpy(before, values, sizeof before, cudaMemcpyDeviceToHost);
  cudaGraphExec_t executable;
  cudaGraphInstantiate(&executable, graph, 0);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(executable, first);
  cudaStreamSynchronize(first);
  std::printf("after 3 launches %d %d, captured only: %d %d\n", host[0], host[1], before[0], before[1]);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaEventDestroy(fork);
  cudaEventDestroy(join);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  cudaFree(values);
  return host[0] == 3 && host[1] == 6 ? 0 : 1;
}
