// A graph made node by node: fill, copy, kernel, function of the host; another kernel argument later.
// output: nodes 4, roots 1
// output: host sees 50
// output: host sees 500
#include <cstdio>

__global__ void multiply(int *value, int factor) { *value *= factor; }

static int result;
static void tell(void *data) { std::printf("host sees %d\n", *static_cast<int *>(data)); }

int main() {
  int *value, five = 5, factor = 10;
  cudaMalloc(&value, sizeof(int));
  cudaGraph_t graph;
  cudaGraphCreate(&graph, 0);
  cudaGraphNode_t copy_in, kernel, copy_out, host;
  cudaGraphAddMemcpyNode1D(&copy_in, graph, nullptr, 0, value, &five, sizeof five, cudaMemcpyHostToDevice);
  void *arguments[] = {&value, &factor};
  cudaKernelNodeParams launch = {};
  launch.func = reinterpret_cast<void *>(multiply);
  launch.gridDim = launch.blockDim = dim3(1);
  launch.kernelParams = arguments;
  cudaGraphAddKernelNode(&kernel, graph, &copy_in, 1, &launch);
  cudaGraphAddMemcpyNode1D(&copy_out, graph, &kernel, 1, &result, value, sizeof result, cudaMemcpyDeviceToHost);
  cudaHostNodeParams call = {tell, &result};
  cudaGraphAddHostNode(&host, graph, &copy_out, 1, &call);
  size_t nodes = 0, roots = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  cudaGraphGetRootNodes(graph, nullptr, &roots);
  std::printf("nodes %zu, roots %zu\n", nodes, roots);

  cudaGraphExec_t executable;
  cudaGraphInstantiate(&executable, graph, nullptr, nullptr, 0);
  cudaGraphLaunch(executable, 0);
  cudaDeviceSynchronize();
  factor = 100;
  cudaGraphExecKernelNodeSetParams(executable, kernel, &launch);
  cudaGraphLaunch(executable, 0);
  cudaDeviceSynchronize();
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaFree(value);
  return result == 500 ? 0 : 1;
}
