// The driver's calls beside the runtime's: device, context, memory, and a launch of a CUfunction.
// output: device has a name: yes, sum 60
#include <cuda.h>
#include <cstdio>

__global__ void add(const int *values, int n, int *sum) {
  if (int(threadIdx.x) < n) atomicAdd(sum, values[threadIdx.x]);
}

int main() {
  CUdevice device;
  CUcontext context;
  char name[64] = "";
  cuInit(0);
  cuDeviceGet(&device, 0);
  cuDeviceGetName(name, sizeof name, device);
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxSetCurrent(context);
  CUdeviceptr values, sum;
  const int host[] = {10, 20, 30};
  int n = 3, result = 0;
  cuMemAlloc(&values, sizeof host);
  cuMemAlloc(&sum, sizeof(int));
  cuMemcpyHtoD(values, host, sizeof host);
  cuMemsetD8(sum, 0, sizeof(int));
  CUfunction function;
  cudaGetFuncBySymbol(&function, add);
  void *arguments[] = {&values, &n, &sum};
  cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
  cuMemcpyDtoH(&result, sum, sizeof result);
  std::printf("device has a name: %s, sum %d\n", name[0] != 0 ? "yes" : "no", result);
  cuMemFree(values);
  cuMemFree(sum);
  cuDevicePrimaryCtxRelease(device);
  return result == 60 ? 0 : 1;
}
