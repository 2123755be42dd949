// cuda.h: the part of the driver's interface that programs use beside the runtime: devices, contexts, memory, streams,
// events and launches. Modules are not there: a program's kernels are its own text's, and cudaGetFuncBySymbol() gives
// their CUfunction.
#pragma once
#include "pk_program.h"

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
typedef cudaFunction_t CUfunction;
typedef cudaDeviceAttr CUdevice_attribute;

// The numbers of the runtime's errors, which has names of its own for the first ones.
enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_UNKNOWN = 999
};

#define CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK cudaDevAttrMaxThreadsPerBlock
#define CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X cudaDevAttrMaxBlockDimX
#define CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X cudaDevAttrMaxGridDimX
#define CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK cudaDevAttrMaxSharedMemoryPerBlock
#define CU_DEVICE_ATTRIBUTE_WARP_SIZE cudaDevAttrWarpSize
#define CU_DEVICE_ATTRIBUTE_CLOCK_RATE cudaDevAttrClockRate
#define CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT cudaDevAttrMultiProcessorCount
#define CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR cudaDevAttrComputeCapabilityMajor
#define CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR cudaDevAttrComputeCapabilityMinor
#define CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING cudaDevAttrUnifiedAddressing
#define CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR cudaDevAttrMaxThreadsPerMultiProcessor
#define CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE cudaDevAttrL2CacheSize
#define CU_STREAM_DEFAULT cudaStreamDefault
#define CU_STREAM_NON_BLOCKING cudaStreamNonBlocking
#define CU_EVENT_DEFAULT cudaEventDefault
#define CU_EVENT_DISABLE_TIMING cudaEventDisableTiming
#define CU_MEM_ATTACH_GLOBAL cudaMemAttachGlobal

#define PK_DRIVER(name, parameters, ...) \
  inline CUresult name(PK_BEFORE parameters pk_place at = pk_place()) { return static_cast<CUresult>(__VA_ARGS__); }
#define PK_MEMORY(address) reinterpret_cast<void *>(address)

// ---- devices and contexts: each device has one, the runtime's
PK_DRIVER(cuInit, (unsigned), (static_cast<void>(at), cudaSuccess))
PK_DRIVER(cuDriverGetVersion, (int *version), cudaDriverGetVersion(version, at))
PK_DRIVER(cuDeviceGetCount, (int *count), cudaGetDeviceCount(count, at))
PK_DRIVER(cuDeviceGetAttribute, (int *value, CUdevice_attribute which, CUdevice device),
          cudaDeviceGetAttribute(value, which, device, at))
inline CUresult cuDeviceGet(CUdevice *device, int ordinal, pk_place at = pk_place()) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count, at);
  *device = ordinal;
  if (status != cudaSuccess) return static_cast<CUresult>(status);
  return ordinal >= 0 && ordinal < count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
inline CUresult cuDeviceGetName(char *name, int bytes, CUdevice device, pk_place at = pk_place()) {
  cudaDeviceProp properties;
  const cudaError_t status = cudaGetDeviceProperties(&properties, device, at);
  if (status == cudaSuccess) std::snprintf(name, static_cast<size_t>(bytes), "%s", properties.name);
  return static_cast<CUresult>(status);
}
inline CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device, pk_place at = pk_place()) {
  cudaDeviceProp properties;
  const cudaError_t status = cudaGetDeviceProperties(&properties, device, at);
  if (status == cudaSuccess) *bytes = properties.totalGlobalMem;
  return static_cast<CUresult>(status);
}
inline CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device, pk_place at = pk_place()) {
  const CUresult status = cuDeviceGetAttribute(major, cudaDevAttrComputeCapabilityMajor, device, at);
  return status == CUDA_SUCCESS ? cuDeviceGetAttribute(minor, cudaDevAttrComputeCapabilityMinor, device, at) : status;
}
// A context is its device's number plus one.
inline CUresult cuCtxSetCurrent(CUcontext context, pk_place at = pk_place()) {
  return static_cast<CUresult>(cudaSetDevice(static_cast<int>(reinterpret_cast<size_t>(context)) - 1, at));
}
inline CUresult cuCtxGetCurrent(CUcontext *context, pk_place at = pk_place()) {
  int device = 0;
  const cudaError_t status = cudaGetDevice(&device, at);
  *context = reinterpret_cast<CUcontext>(static_cast<size_t>(device) + 1);
  return static_cast<CUresult>(status);
}
inline CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device, pk_place = pk_place()) {
  *context = reinterpret_cast<CUcontext>(static_cast<size_t>(device) + 1);
  return CUDA_SUCCESS;
}
inline CUresult cuCtxCreate(CUcontext *context, unsigned, CUdevice device, pk_place at = pk_place()) {
  cuDevicePrimaryCtxRetain(context, device, at);
  return cuCtxSetCurrent(*context, at);
}
inline CUresult cuCtxCreate(CUcontext *context, void *, unsigned flags, CUdevice device, pk_place at = pk_place()) {
  return cuCtxCreate(context, flags, device, at);
}
PK_DRIVER(cuDevicePrimaryCtxRelease, (CUdevice), (static_cast<void>(at), cudaSuccess))
PK_DRIVER(cuCtxDestroy, (CUcontext), cudaDeviceSynchronize(at))
PK_DRIVER(cuCtxGetDevice, (CUdevice * device), cudaGetDevice(device, at))
PK_DRIVER(cuCtxSynchronize, (), cudaDeviceSynchronize(at))

// ---- memory
PK_DRIVER(cuMemAlloc, (CUdeviceptr * pointer, size_t bytes), cudaMalloc(reinterpret_cast<void **>(pointer), bytes, at))
PK_DRIVER(cuMemFree, (CUdeviceptr pointer), cudaFree(PK_MEMORY(pointer), at))
PK_DRIVER(cuMemAllocManaged, (CUdeviceptr * pointer, size_t bytes, unsigned flags),
          cudaMallocManaged(reinterpret_cast<void **>(pointer), bytes, flags, at))
PK_DRIVER(cuMemAllocHost, (void **pointer, size_t bytes), cudaMallocHost(pointer, bytes, at))
PK_DRIVER(cuMemFreeHost, (void *pointer), cudaFreeHost(pointer, at))
PK_DRIVER(cuMemGetInfo, (size_t * left, size_t *total), cudaMemGetInfo(left, total, at))
PK_DRIVER(cuMemcpyHtoD, (CUdeviceptr to, const void *from, size_t bytes),
          cudaMemcpy(PK_MEMORY(to), from, bytes, cudaMemcpyHostToDevice, at))
PK_DRIVER(cuMemcpyDtoH, (void *to, CUdeviceptr from, size_t bytes),
          cudaMemcpy(to, PK_MEMORY(from), bytes, cudaMemcpyDeviceToHost, at))
PK_DRIVER(cuMemcpyDtoD, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
          cudaMemcpy(PK_MEMORY(to), PK_MEMORY(from), bytes, cudaMemcpyDeviceToDevice, at))
PK_DRIVER(cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
          cudaMemcpyAsync(PK_MEMORY(to), from, bytes, cudaMemcpyHostToDevice, stream, at))
PK_DRIVER(cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
          cudaMemcpyAsync(to, PK_MEMORY(from), bytes, cudaMemcpyDeviceToHost, stream, at))
PK_DRIVER(cuMemsetD8, (CUdeviceptr to, unsigned char value, size_t count), cudaMemset(PK_MEMORY(to), value, count, at))

// ---- streams and events
PK_DRIVER(cuStreamCreate, (CUstream * stream, unsigned flags), cudaStreamCreateWithFlags(stream, flags, at))
PK_DRIVER(cuStreamDestroy, (CUstream stream), cudaStreamDestroy(stream, at))
PK_DRIVER(cuStreamSynchronize, (CUstream stream), cudaStreamSynchronize(stream, at))
PK_DRIVER(cuEventCreate, (CUevent * event, unsigned flags), cudaEventCreateWithFlags(event, flags, at))
PK_DRIVER(cuEventDestroy, (CUevent event), cudaEventDestroy(event, at))
PK_DRIVER(cuEventRecord, (CUevent event, CUstream stream), cudaEventRecord(event, stream, at))
PK_DRIVER(cuEventSynchronize, (CUevent event), cudaEventSynchronize(event, at))
PK_DRIVER(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end),
          cudaEventElapsedTime(milliseconds, start, end, at))

// ---- launches
template <class T>
inline cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, T *kernel, pk_place at = pk_place()) {
  cudaFuncAttributes attributes;
  *function = reinterpret_cast<cudaFunction_t>(kernel);
  return cudaFuncGetAttributes(&attributes, kernel, at);
}
PK_DRIVER(cuLaunchKernel,
          (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
           unsigned block_z, unsigned shared_bytes, CUstream stream, void **arguments, void **),
          pk_launch_kernel(function, dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z), arguments,
                           shared_bytes, stream, at))
#undef PK_DRIVER
#undef PK_MEMORY

inline CUresult cuGetErrorString(CUresult error, const char **text, pk_place at = pk_place()) {
  *text = cudaGetErrorString(static_cast<cudaError_t>(error), at);
  return CUDA_SUCCESS;
}
inline CUresult cuGetErrorName(CUresult error, const char **text, pk_place at = pk_place()) {
  *text = cudaGetErrorName(static_cast<cudaError_t>(error), at);
  return CUDA_SUCCESS;
}
