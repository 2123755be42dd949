// pk_program_calls.h: the runtime's functions, each of which goes through the table with the place of its call; and
// those that are templates.
#pragma once
#include "pk_program_table.h"

namespace pk_program {
// Set before the program is loaded, so that its static constructors find it.
inline const Table &table() {
  static const Table *const found =
      reinterpret_cast<const Table *>(std::strtoull(std::getenv("PYGPUKIT_PROGRAM_CALLS"), nullptr, 16));
  return *found;
}
}  // namespace pk_program

#define PK_BEFORE(...) __VA_ARGS__ __VA_OPT__(, )
#define PK_CALL(result, name, parameters, arguments)                  \
  inline result name(PK_BEFORE parameters pk_place at = pk_place()) { \
    return pk_program::table().name(&at PK_AFTER arguments);          \
  }
PK_PROGRAM_CALLS(PK_CALL)
#undef PK_CALL

// ---- a kernel's stub: tells which of its parameters are pointers
namespace pk_program {
template <class T>
struct IsPointer {
  static constexpr char value = '.';
};
template <class T>
struct IsPointer<T *> {
  static constexpr char value = 'p';
};
// A function's address is no memory: a kernel may be given that of a device function.
template <class R, class... P>
struct IsPointer<R (*)(P...)> {
  static constexpr char value = '.';
};
template <class T>
struct IsPointer<T *const> : IsPointer<T *> {};
template <class T>
struct IsPointer<T *__restrict__> : IsPointer<T *> {};
template <class T>
inline void *address(T &value) {
  return (void *)__builtin_addressof(value);  // whatever its qualifiers
}
}  // namespace pk_program
template <class... Parameters>
inline void pk_launch_stub(const void *stub, Parameters &...parameters) {
  void *arguments[] = {pk_program::address(parameters)..., nullptr};
  static constexpr char pointers[] = {pk_program::IsPointer<Parameters>::value..., '\0'};
  pk_launch_pointers(stub, arguments, pointers);
}
inline void pk_launch_configured(const void *stub, void **arguments) { pk_launch_pointers(stub, arguments, nullptr); }

// ---- memory of any type, of constants, too: hence C's casts
template <class T>
inline cudaError_t cudaMalloc(T **pointer, size_t bytes, pk_place at = pk_place()) {
  return cudaMalloc((void **)pointer, bytes, at);
}
template <class T>
inline cudaError_t cudaMallocManaged(T **pointer, size_t bytes, unsigned flags = cudaMemAttachGlobal,
                                     pk_place at = pk_place()) {
  return cudaMallocManaged((void **)pointer, bytes, flags, at);
}
template <class T>
inline cudaError_t cudaMallocHost(T **pointer, size_t bytes, unsigned flags = cudaHostAllocDefault,
                                  pk_place at = pk_place()) {
  return cudaHostAlloc((void **)pointer, bytes, flags, at);
}
template <class T>
inline cudaError_t cudaHostAlloc(T **pointer, size_t bytes, unsigned flags, pk_place at = pk_place()) {
  return cudaHostAlloc((void **)pointer, bytes, flags, at);
}
template <class T>
inline cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned flags, pk_place at = pk_place()) {
  return cudaHostGetDevicePointer((void **)device, host, flags, at);
}
template <class T>
inline cudaError_t cudaMallocPitch(T **pointer, size_t *pitch, size_t width_bytes, size_t height,
                                   pk_place at = pk_place()) {
  return cudaMallocPitch((void **)pointer, pitch, width_bytes, height, at);
}
template <class T>
inline cudaError_t cudaMallocAsync(T **pointer, size_t bytes, cudaStream_t stream, pk_place at = pk_place()) {
  return cudaMallocAsync((void **)pointer, bytes, stream, at);
}
template <class T>
inline cudaError_t cudaMallocFromPoolAsync(T **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                                           pk_place at = pk_place()) {
  return cudaMallocFromPoolAsync((void **)pointer, bytes, pool, stream, at);
}
inline cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, cudaMemLocation where, unsigned,
                                        cudaStream_t stream = 0, pk_place at = pk_place()) {
  return cudaMemPrefetchAsync(pointer, bytes, where.type == cudaMemLocationTypeDevice ? where.id : cudaCpuDeviceId,
                              stream, at);
}
inline cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation where,
                                 pk_place at = pk_place()) {
  return cudaMemAdvise(pointer, bytes, advice, where.type == cudaMemLocationTypeDevice ? where.id : cudaCpuDeviceId,
                       at);
}

// ---- symbols
template <class T>
inline cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice, pk_place at = pk_place()) {
  return pk_to_symbol(__builtin_addressof(symbol), from, bytes, offset, kind, at);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                           cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t stream = 0,
                                           pk_place at = pk_place()) {
  return pk_to_symbol_async(__builtin_addressof(symbol), from, bytes, offset, kind, stream, at);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost, pk_place at = pk_place()) {
  return pk_from_symbol(to, __builtin_addressof(symbol), bytes, offset, kind, at);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void *to, const T &symbol, size_t bytes, size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t stream = 0,
                                             pk_place at = pk_place()) {
  return pk_from_symbol_async(to, __builtin_addressof(symbol), bytes, offset, kind, stream, at);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void **address, const T &symbol, pk_place at = pk_place()) {
  return pk_symbol_address(address, __builtin_addressof(symbol), at);
}
template <class T>
inline cudaError_t cudaGetSymbolSize(size_t *bytes, const T &symbol, pk_place at = pk_place()) {
  return pk_symbol_size(bytes, __builtin_addressof(symbol), at);
}

// ---- kernels
template <class T>
inline cudaError_t cudaLaunchKernel(T *kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes = 0,
                                    cudaStream_t stream = 0, pk_place at = pk_place()) {
  return pk_launch_kernel(reinterpret_cast<const void *>(kernel), grid, block, arguments, shared_bytes, stream, at);
}
template <class T>
inline cudaError_t cudaLaunchCooperativeKernel(T *kernel, dim3 grid, dim3 block, void **arguments,
                                               size_t shared_bytes = 0, cudaStream_t stream = 0,
                                               pk_place at = pk_place()) {
  return pk_launch_cooperative(reinterpret_cast<const void *>(kernel), grid, block, arguments, shared_bytes, stream,
                               at);
}
inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments,
                                       pk_place at = pk_place()) {
  return pk_launch_configured(config, kernel, arguments, at);
}
template <class... Parameters, class... Arguments>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                                      Arguments &&...given) {
  return [&](Parameters... converted) {
    void *arguments[] = {pk_program::address(converted)..., nullptr};
    return pk_launch_configured(config, reinterpret_cast<const void *>(kernel), arguments);
  }(static_cast<Arguments &&>(given)...);
}
template <class T>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, T *kernel, pk_place at = pk_place()) {
  return pk_function_attributes(attributes, reinterpret_cast<const void *>(kernel), at);
}
template <class T>
inline cudaError_t cudaFuncSetAttribute(T *kernel, cudaFuncAttribute attribute, int value, pk_place at = pk_place()) {
  return pk_function_set(reinterpret_cast<const void *>(kernel), attribute, value, at);
}
template <class T>
inline cudaError_t cudaFuncSetCacheConfig(T *kernel, cudaFuncCache, pk_place at = pk_place()) {
  cudaFuncAttributes attributes;
  return pk_function_attributes(&attributes, reinterpret_cast<const void *>(kernel), at);
}
template <class T>
inline cudaError_t cudaFuncSetSharedMemConfig(T *kernel, cudaSharedMemConfig, pk_place at = pk_place()) {
  cudaFuncAttributes attributes;
  return pk_function_attributes(&attributes, reinterpret_cast<const void *>(kernel), at);
}
template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T *kernel, int block_threads,
                                                                 size_t shared_bytes, pk_place at = pk_place()) {
  return pk_occupancy_blocks(blocks, reinterpret_cast<const void *>(kernel), block_threads, shared_bytes, at);
}
template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, T *kernel, int block_threads,
                                                                          size_t shared_bytes, unsigned,
                                                                          pk_place at = pk_place()) {
  return pk_occupancy_blocks(blocks, reinterpret_cast<const void *>(kernel), block_threads, shared_bytes, at);
}
// The largest block with the most threads on a multiprocessor, as CUDA looks for it: from the largest one down by
// warps.
template <class Shared, class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid, int *block, T *kernel, Shared shared_bytes,
                                                                  int limit = 0, pk_place at = pk_place()) {
  int device = 0, multiprocessors = 0;
  cudaFuncAttributes attributes;
  cudaError_t status = cudaGetDevice(&device, at);
  if (status == cudaSuccess)
    status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device, at);
  if (status == cudaSuccess) status = cudaFuncGetAttributes(&attributes, kernel, at);
  if (status != cudaSuccess) return status;
  const int most = limit > 0 && limit < attributes.maxThreadsPerBlock ? limit : attributes.maxThreadsPerBlock;
  int best = 0;
  *grid = *block = 0;
  for (int aligned = (most + 31) / 32 * 32; aligned > 0; aligned -= 32) {
    const int threads = aligned < most ? aligned : most;
    int blocks = 0;
    status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads,
                                                           static_cast<size_t>(shared_bytes(threads)), at);
    if (status != cudaSuccess) return status;
    if (blocks * threads > best) {
      best = blocks * threads;
      *block = threads;
      *grid = blocks * multiprocessors;
    }
  }
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, T *kernel, size_t shared_bytes = 0,
                                                      int limit = 0, pk_place at = pk_place()) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
      grid, block, kernel, [shared_bytes](int) { return shared_bytes; }, limit, at);
}

// ---- graphs: with a log as before CUDA 12, or flags
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long = 0,
                                        pk_place at = pk_place()) {
  return pk_graph_instantiate(executable, graph, at);
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, cudaGraphNode_t *, char *,
                                        size_t, pk_place at = pk_place()) {
  return pk_graph_instantiate(executable, graph, at);
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long = 0,
                                                 pk_place at = pk_place()) {
  return pk_graph_instantiate(executable, graph, at);
}

inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphNode_t *,
                                       cudaGraphExecUpdateResult *result, pk_place at = pk_place()) {
  cudaGraphExecUpdateResultInfo info = {};
  const cudaError_t status = cudaGraphExecUpdate(executable, graph, &info, at);
  *result = info.result;
  return status;
}

// ---- textures
inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
namespace pk_program {
template <class T>
struct Channels;
#define PK_CHANNELS(T, bits, kind, x, y, z, w)                                                            \
  template <>                                                                                             \
  struct Channels<T> {                                                                                    \
    static cudaChannelFormatDesc description() { return {x * bits, y * bits, z * bits, w * bits, kind}; } \
  };
#define PK_VECTOR_CHANNELS(T, V, bits, kind) \
  PK_CHANNELS(T, bits, kind, 1, 0, 0, 0)     \
  PK_CHANNELS(V##1, bits, kind, 1, 0, 0, 0)  \
  PK_CHANNELS(V##2, bits, kind, 1, 1, 0, 0)  \
  PK_CHANNELS(V##4, bits, kind, 1, 1, 1, 1)
PK_CHANNELS(char, 8, cudaChannelFormatKindSigned, 1, 0, 0, 0)
PK_VECTOR_CHANNELS(signed char, char, 8, cudaChannelFormatKindSigned)
PK_VECTOR_CHANNELS(unsigned char, uchar, 8, cudaChannelFormatKindUnsigned)
PK_VECTOR_CHANNELS(short, short, 16, cudaChannelFormatKindSigned)
PK_VECTOR_CHANNELS(unsigned short, ushort, 16, cudaChannelFormatKindUnsigned)
PK_VECTOR_CHANNELS(int, int, 32, cudaChannelFormatKindSigned)
PK_VECTOR_CHANNELS(unsigned, uint, 32, cudaChannelFormatKindUnsigned)
PK_VECTOR_CHANNELS(float, float, 32, cudaChannelFormatKindFloat)
#undef PK_VECTOR_CHANNELS
#undef PK_CHANNELS
}  // namespace pk_program
template <class T>
inline cudaChannelFormatDesc cudaCreateChannelDesc() {
  return pk_program::Channels<T>::description();
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf() { return {16, 0, 0, 0, cudaChannelFormatKindFloat}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void *pointer, size_t pitch, size_t width, size_t height) {
  return {pointer, pitch, width, height};
}
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) { return {width, height, depth}; }

// ---- older names
inline cudaError_t cudaThreadSynchronize(pk_place at = pk_place()) { return cudaDeviceSynchronize(at); }
inline cudaError_t cudaThreadExit(pk_place at = pk_place()) { return cudaDeviceReset(at); }
