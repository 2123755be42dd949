// pk_program_table.h: every call of the runtime that a program can make, once: result, name, parameters, arguments.
// The program's functions (pk_program_calls.h), the table that they go through, and what fills it (program/table.cpp)
// are made of this list.
#pragma once
#include "driver_types.h"

// clang-format off
#define PK_PROGRAM_CALLS(X)                                                                                            \
  X(void, pk_configure, (dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = 0),                     \
    (grid, block, shared_bytes, stream))                                                                               \
  X(void, pk_launch_pointers, (const void *stub, void **arguments, const char *pointers),                              \
    (stub, arguments, pointers))                                                                                       \
  X(int, pk_library,                                                                                                   \
    (const char *function, void *const *memory, const long long *integers, const double *numbers),                     \
    (function, memory, integers, numbers))                                                                             \
  /* errors */                                                                                                         \
  X(cudaError_t, cudaGetLastError, (), ())                                                                             \
  X(cudaError_t, cudaPeekAtLastError, (), ())                                                                          \
  X(const char *, cudaGetErrorName, (cudaError_t error), (error))                                                      \
  X(const char *, cudaGetErrorString, (cudaError_t error), (error))                                                    \
  /* devices */                                                                                                        \
  X(cudaError_t, cudaGetDeviceCount, (int *count), (count))                                                            \
  X(cudaError_t, cudaSetDevice, (int device), (device))                                                                \
  X(cudaError_t, cudaGetDevice, (int *device), (device))                                                               \
  X(cudaError_t, cudaGetDeviceProperties, (cudaDeviceProp * properties, int device), (properties, device))             \
  X(cudaError_t, cudaDeviceGetAttribute, (int *value, cudaDeviceAttr attribute, int device),                           \
    (value, attribute, device))                                                                                        \
  X(cudaError_t, cudaChooseDevice, (int *device, const cudaDeviceProp *wanted), (device, wanted))                      \
  X(cudaError_t, cudaDeviceSynchronize, (), ())                                                                        \
  X(cudaError_t, cudaDeviceReset, (), ())                                                                              \
  X(cudaError_t, cudaSetDeviceFlags, (unsigned flags), (flags))                                                        \
  X(cudaError_t, cudaGetDeviceFlags, (unsigned *flags), (flags))                                                       \
  X(cudaError_t, cudaDeviceGetLimit, (size_t *value, cudaLimit limit), (value, limit))                                 \
  X(cudaError_t, cudaDeviceSetLimit, (cudaLimit limit, size_t value), (limit, value))                                  \
  X(cudaError_t, cudaDeviceSetCacheConfig, (cudaFuncCache config), (config))                                           \
  X(cudaError_t, cudaDeviceGetCacheConfig, (cudaFuncCache *config), (config))                                          \
  X(cudaError_t, cudaDeviceSetSharedMemConfig, (cudaSharedMemConfig config), (config))                                 \
  X(cudaError_t, cudaDeviceGetSharedMemConfig, (cudaSharedMemConfig *config), (config))                                \
  X(cudaError_t, cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), (least, greatest))                     \
  X(cudaError_t, cudaDeviceGetPCIBusId, (char *id, int bytes, int device), (id, bytes, device))                        \
  X(cudaError_t, cudaDeviceGetByPCIBusId, (int *device, const char *id), (device, id))                                 \
  X(cudaError_t, cudaDeviceCanAccessPeer, (int *can, int device, int peer), (can, device, peer))                       \
  X(cudaError_t, cudaDeviceEnablePeerAccess, (int peer, unsigned flags), (peer, flags))                                \
  X(cudaError_t, cudaDeviceDisablePeerAccess, (int peer), (peer))                                                      \
  X(cudaError_t, cudaDeviceGetP2PAttribute, (int *value, cudaDeviceP2PAttr attribute, int device, int peer),           \
    (value, attribute, device, peer))                                                                                  \
  X(cudaError_t, cudaDriverGetVersion, (int *version), (version))                                                      \
  X(cudaError_t, cudaRuntimeGetVersion, (int *version), (version))                                                     \
  X(cudaError_t, cudaProfilerStart, (), ())                                                                            \
  X(cudaError_t, cudaProfilerStop, (), ())                                                                             \
  /* memory */                                                                                                         \
  X(cudaError_t, cudaMalloc, (void **pointer, size_t bytes), (pointer, bytes))                                         \
  X(cudaError_t, cudaFree, (void *pointer), (pointer))                                                                 \
  X(cudaError_t, cudaMallocManaged, (void **pointer, size_t bytes, unsigned flags = cudaMemAttachGlobal),              \
    (pointer, bytes, flags))                                                                                           \
  X(cudaError_t, cudaMallocHost, (void **pointer, size_t bytes), (pointer, bytes))                                     \
  X(cudaError_t, cudaHostAlloc, (void **pointer, size_t bytes, unsigned flags), (pointer, bytes, flags))               \
  X(cudaError_t, cudaFreeHost, (void *pointer), (pointer))                                                             \
  X(cudaError_t, cudaHostRegister, (void *pointer, size_t bytes, unsigned flags), (pointer, bytes, flags))             \
  X(cudaError_t, cudaHostUnregister, (void *pointer), (pointer))                                                       \
  X(cudaError_t, cudaHostGetDevicePointer, (void **device, void *host, unsigned flags), (device, host, flags))         \
  X(cudaError_t, cudaHostGetFlags, (unsigned *flags, void *host), (flags, host))                                       \
  X(cudaError_t, cudaMallocPitch, (void **pointer, size_t *pitch, size_t width_bytes, size_t height),                  \
    (pointer, pitch, width_bytes, height))                                                                             \
  X(cudaError_t, cudaMalloc3D, (cudaPitchedPtr * pointer, cudaExtent extent), (pointer, extent))                       \
  X(cudaError_t, cudaMallocAsync, (void **pointer, size_t bytes, cudaStream_t stream), (pointer, bytes, stream))       \
  X(cudaError_t, cudaMallocFromPoolAsync, (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),     \
    (pointer, bytes, pool, stream))                                                                                    \
  X(cudaError_t, cudaFreeAsync, (void *pointer, cudaStream_t stream), (pointer, stream))                               \
  X(cudaError_t, cudaMemGetInfo, (size_t *free_bytes, size_t *total_bytes), (free_bytes, total_bytes))                 \
  X(cudaError_t, cudaPointerGetAttributes, (cudaPointerAttributes * attributes, const void *pointer),                  \
    (attributes, pointer))                                                                                             \
  X(cudaError_t, cudaMemPrefetchAsync, (const void *pointer, size_t bytes, int device, cudaStream_t stream = 0),       \
    (pointer, bytes, device, stream))                                                                                  \
  X(cudaError_t, cudaMemAdvise, (const void *pointer, size_t bytes, cudaMemoryAdvise advice, int device),              \
    (pointer, bytes, advice, device))                                                                                  \
  X(cudaError_t, cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), (pool, device))                      \
  X(cudaError_t, cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device), (pool, device))                             \
  X(cudaError_t, cudaDeviceSetMemPool, (int device, cudaMemPool_t pool), (device, pool))                               \
  X(cudaError_t, cudaMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps *properties), (pool, properties))    \
  X(cudaError_t, cudaMemPoolDestroy, (cudaMemPool_t pool), (pool))                                                     \
  X(cudaError_t, cudaMemPoolSetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value),                \
    (pool, attribute, value))                                                                                          \
  X(cudaError_t, cudaMemPoolGetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value),                \
    (pool, attribute, value))                                                                                          \
  X(cudaError_t, cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t bytes), (pool, bytes))                                 \
  X(cudaError_t, cudaMemPoolSetAccess, (cudaMemPool_t pool, const cudaMemAccessDesc *access, size_t count),            \
    (pool, access, count))                                                                                             \
  /* copies and fills */                                                                                               \
  X(cudaError_t, cudaMemcpy, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind), (to, from, bytes, kind)) \
  X(cudaError_t, cudaMemcpyAsync,                                                                                      \
    (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream = 0),                          \
    (to, from, bytes, kind, stream))                                                                                   \
  X(cudaError_t, cudaMemcpy2D,                                                                                         \
    (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width_bytes, size_t height,                \
     cudaMemcpyKind kind),                                                                                             \
    (to, to_pitch, from, from_pitch, width_bytes, height, kind))                                                       \
  X(cudaError_t, cudaMemcpy2DAsync,                                                                                    \
    (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width_bytes, size_t height,                \
     cudaMemcpyKind kind, cudaStream_t stream = 0),                                                                    \
    (to, to_pitch, from, from_pitch, width_bytes, height, kind, stream))                                               \
  X(cudaError_t, cudaMemcpy3D, (const cudaMemcpy3DParms *copy), (copy))                                                \
  X(cudaError_t, cudaMemcpy3DAsync, (const cudaMemcpy3DParms *copy, cudaStream_t stream = 0), (copy, stream))          \
  X(cudaError_t, cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t bytes),           \
    (to, to_device, from, from_device, bytes))                                                                         \
  X(cudaError_t, cudaMemcpyPeerAsync,                                                                                  \
    (void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream = 0),               \
    (to, to_device, from, from_device, bytes, stream))                                                                 \
  X(cudaError_t, cudaMemset, (void *pointer, int value, size_t bytes), (pointer, value, bytes))                        \
  X(cudaError_t, cudaMemsetAsync, (void *pointer, int value, size_t bytes, cudaStream_t stream = 0),                   \
    (pointer, value, bytes, stream))                                                                                   \
  X(cudaError_t, cudaMemset2D, (void *pointer, size_t pitch, int value, size_t width_bytes, size_t height),            \
    (pointer, pitch, value, width_bytes, height))                                                                      \
  X(cudaError_t, cudaMemset2DAsync,                                                                                    \
    (void *pointer, size_t pitch, int value, size_t width_bytes, size_t height, cudaStream_t stream = 0),              \
    (pointer, pitch, value, width_bytes, height, stream))                                                              \
  X(cudaError_t, cudaMemset3D, (cudaPitchedPtr pointer, int value, cudaExtent extent), (pointer, value, extent))       \
  X(cudaError_t, cudaMemset3DAsync,                                                                                    \
    (cudaPitchedPtr pointer, int value, cudaExtent extent, cudaStream_t stream = 0),                                   \
    (pointer, value, extent, stream))                                                                                  \
  /* symbols */                                                                                                        \
  X(cudaError_t, pk_symbol_address, (void **address, const void *symbol), (address, symbol))                           \
  X(cudaError_t, pk_symbol_size, (size_t *bytes, const void *symbol), (bytes, symbol))                                 \
  X(cudaError_t, pk_to_symbol,                                                                                         \
    (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind),                          \
    (symbol, from, bytes, offset, kind))                                                                               \
  X(cudaError_t, pk_to_symbol_async,                                                                                   \
    (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),     \
    (symbol, from, bytes, offset, kind, stream))                                                                       \
  X(cudaError_t, pk_from_symbol,                                                                                       \
    (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),                                  \
    (to, symbol, bytes, offset, kind))                                                                                 \
  X(cudaError_t, pk_from_symbol_async,                                                                                 \
    (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),             \
    (to, symbol, bytes, offset, kind, stream))                                                                         \
  /* streams and events */                                                                                             \
  X(cudaError_t, cudaStreamCreate, (cudaStream_t * stream), (stream))                                                  \
  X(cudaError_t, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags))                  \
  X(cudaError_t, cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),                  \
    (stream, flags, priority))                                                                                         \
  X(cudaError_t, cudaStreamDestroy, (cudaStream_t stream), (stream))                                                   \
  X(cudaError_t, cudaStreamSynchronize, (cudaStream_t stream), (stream))                                               \
  X(cudaError_t, cudaStreamQuery, (cudaStream_t stream), (stream))                                                     \
  X(cudaError_t, cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags = 0),                    \
    (stream, event, flags))                                                                                            \
  X(cudaError_t, cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags), (stream, flags))                          \
  X(cudaError_t, cudaStreamGetPriority, (cudaStream_t stream, int *priority), (stream, priority))                      \
  X(cudaError_t, cudaStreamAddCallback,                                                                                \
    (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags),                                  \
    (stream, callback, data, flags))                                                                                   \
  X(cudaError_t, cudaStreamAttachMemAsync,                                                                             \
    (cudaStream_t stream, void *pointer, size_t bytes = 0, unsigned flags = cudaMemAttachSingle),                      \
    (stream, pointer, bytes, flags))                                                                                   \
  X(cudaError_t, cudaStreamSetAttribute,                                                                               \
    (cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue *value), (stream, attribute, value))   \
  X(cudaError_t, cudaCtxResetPersistingL2Cache, (), ())                                                                \
  X(cudaError_t, cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),                         \
    (stream, function, data))                                                                                          \
  X(cudaError_t, cudaEventCreate, (cudaEvent_t * event), (event))                                                      \
  X(cudaError_t, cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))                      \
  X(cudaError_t, cudaEventDestroy, (cudaEvent_t event), (event))                                                       \
  X(cudaError_t, cudaEventRecord, (cudaEvent_t event, cudaStream_t stream = 0), (event, stream))                       \
  X(cudaError_t, cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream = 0, unsigned flags = 0),           \
    (event, stream, flags))                                                                                            \
  X(cudaError_t, cudaEventQuery, (cudaEvent_t event), (event))                                                         \
  X(cudaError_t, cudaEventSynchronize, (cudaEvent_t event), (event))                                                   \
  X(cudaError_t, cudaEventElapsedTime, (float *milliseconds, cudaEvent_t start, cudaEvent_t end),                      \
    (milliseconds, start, end))                                                                                        \
  /* launches and functions */                                                                                         \
  X(cudaError_t, pk_launch_kernel,                                                                                     \
    (const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream),             \
    (stub, grid, block, arguments, shared_bytes, stream))                                                              \
  X(cudaError_t, pk_launch_cooperative,                                                                                \
    (const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream),             \
    (stub, grid, block, arguments, shared_bytes, stream))                                                              \
  X(cudaError_t, pk_launch_configured, (const cudaLaunchConfig_t *config, const void *stub, void **arguments),         \
    (config, stub, arguments))                                                                                         \
  X(cudaError_t, pk_function_attributes, (cudaFuncAttributes * attributes, const void *stub), (attributes, stub))      \
  X(cudaError_t, pk_function_set, (const void *stub, cudaFuncAttribute attribute, int value),                          \
    (stub, attribute, value))                                                                                          \
  X(cudaError_t, pk_occupancy_blocks, (int *blocks, const void *stub, int block_threads, size_t shared_bytes),         \
    (blocks, stub, block_threads, shared_bytes))                                                                       \
  /* graphs */                                                                                                         \
  X(cudaError_t, cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode), (stream, mode))            \
  X(cudaError_t, cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t * graph), (stream, graph))                    \
  X(cudaError_t, cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus * status), (stream, status))     \
  X(cudaError_t, cudaThreadExchangeStreamCaptureMode, (cudaStreamCaptureMode * mode), (mode))                          \
  X(cudaError_t, cudaGraphCreate, (cudaGraph_t * graph, unsigned flags), (graph, flags))                               \
  X(cudaError_t, cudaGraphDestroy, (cudaGraph_t graph), (graph))                                                       \
  X(cudaError_t, cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph), (clone, graph))                             \
  X(cudaError_t, cudaGraphAddKernelNode,                                                                               \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,                            \
     const cudaKernelNodeParams *kernel),                                                                              \
    (node, graph, after, count, kernel))                                                                               \
  X(cudaError_t, cudaGraphAddMemcpyNode,                                                                               \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,                            \
     const cudaMemcpy3DParms *copy),                                                                                   \
    (node, graph, after, count, copy))                                                                                 \
  X(cudaError_t, cudaGraphAddMemcpyNode1D,                                                                             \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count, void *to,                  \
     const void *from, size_t bytes, cudaMemcpyKind kind),                                                             \
    (node, graph, after, count, to, from, bytes, kind))                                                                \
  X(cudaError_t, cudaGraphAddMemsetNode,                                                                               \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,                            \
     const cudaMemsetParams *fill),                                                                                    \
    (node, graph, after, count, fill))                                                                                 \
  X(cudaError_t, cudaGraphAddHostNode,                                                                                 \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,                            \
     const cudaHostNodeParams *host),                                                                                  \
    (node, graph, after, count, host))                                                                                 \
  X(cudaError_t, cudaGraphAddEmptyNode,                                                                                \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count),                           \
    (node, graph, after, count))                                                                                       \
  X(cudaError_t, cudaGraphAddMemAllocNode,                                                                             \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,                            \
     cudaMemAllocNodeParams *memory),                                                                                  \
    (node, graph, after, count, memory))                                                                               \
  X(cudaError_t, cudaGraphAddMemFreeNode,                                                                              \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count, void *pointer),            \
    (node, graph, after, count, pointer))                                                                              \
  X(cudaError_t, cudaDeviceGetGraphMemAttribute, (int device, cudaGraphMemAttributeType which, void *value),           \
    (device, which, value))                                                                                            \
  X(cudaError_t, cudaDeviceGraphMemTrim, (int device), (device))                                                       \
  X(cudaError_t, cudaGraphAddChildGraphNode,                                                                           \
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count, cudaGraph_t child),        \
    (node, graph, after, count, child))                                                                                \
  X(cudaError_t, cudaGraphAddDependencies,                                                                             \
    (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count),                         \
    (graph, from, to, count))                                                                                          \
  X(cudaError_t, cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t * nodes, size_t *count),                       \
    (graph, nodes, count))                                                                                             \
  X(cudaError_t, cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t * nodes, size_t *count),                   \
    (graph, nodes, count))                                                                                             \
  X(cudaError_t, cudaGraphNodeGetType, (cudaGraphNode_t node, cudaGraphNodeType * type), (node, type))                 \
  X(cudaError_t, cudaGraphKernelNodeSetParams, (cudaGraphNode_t node, const cudaKernelNodeParams *kernel),             \
    (node, kernel))                                                                                                    \
  X(cudaError_t, cudaGraphExecKernelNodeSetParams,                                                                     \
    (cudaGraphExec_t executable, cudaGraphNode_t node, const cudaKernelNodeParams *kernel),                            \
    (executable, node, kernel))                                                                                        \
  X(cudaError_t, pk_graph_instantiate, (cudaGraphExec_t * executable, cudaGraph_t graph), (executable, graph))         \
  X(cudaError_t, cudaGraphExecUpdate,                                                                                  \
    (cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo * result),                           \
    (executable, graph, result))                                                                                       \
  X(cudaError_t, cudaGraphLaunch, (cudaGraphExec_t executable, cudaStream_t stream), (executable, stream))             \
  X(cudaError_t, cudaGraphUpload, (cudaGraphExec_t executable, cudaStream_t stream), (executable, stream))             \
  X(cudaError_t, cudaGraphExecDestroy, (cudaGraphExec_t executable), (executable))                                     \
  /* arrays, textures and surfaces */                                                                                  \
  X(cudaError_t, cudaMallocArray,                                                                                      \
    (cudaArray_t * array, const cudaChannelFormatDesc *format, size_t width, size_t height = 0, unsigned flags = 0),   \
    (array, format, width, height, flags))                                                                             \
  X(cudaError_t, cudaMalloc3DArray,                                                                                    \
    (cudaArray_t * array, const cudaChannelFormatDesc *format, cudaExtent extent, unsigned flags = 0),                 \
    (array, format, extent, flags))                                                                                    \
  X(cudaError_t, cudaMallocMipmappedArray,                                                                             \
    (cudaMipmappedArray_t * array, const cudaChannelFormatDesc *format, cudaExtent extent, unsigned levels,            \
     unsigned flags = 0),                                                                                              \
    (array, format, extent, levels, flags))                                                                            \
  X(cudaError_t, cudaGetMipmappedArrayLevel,                                                                           \
    (cudaArray_t * array, cudaMipmappedArray_const_t mipmapped, unsigned level),                                       \
    (array, mipmapped, level))                                                                                         \
  X(cudaError_t, cudaFreeArray, (cudaArray_t array), (array))                                                          \
  X(cudaError_t, cudaFreeMipmappedArray, (cudaMipmappedArray_t array), (array))                                        \
  X(cudaError_t, cudaArrayGetInfo,                                                                                     \
    (cudaChannelFormatDesc * format, cudaExtent * extent, unsigned *flags, cudaArray_t array),                         \
    (format, extent, flags, array))                                                                                    \
  X(cudaError_t, cudaGetChannelDesc, (cudaChannelFormatDesc * format, cudaArray_const_t array), (format, array))       \
  X(cudaError_t, cudaMemcpyToArray,                                                                                    \
    (cudaArray_t to, size_t x_bytes, size_t y, const void *from, size_t bytes, cudaMemcpyKind kind),                   \
    (to, x_bytes, y, from, bytes, kind))                                                                               \
  X(cudaError_t, cudaMemcpyFromArray,                                                                                  \
    (void *to, cudaArray_const_t from, size_t x_bytes, size_t y, size_t bytes, cudaMemcpyKind kind),                   \
    (to, from, x_bytes, y, bytes, kind))                                                                               \
  X(cudaError_t, cudaMemcpy2DToArray,                                                                                  \
    (cudaArray_t to, size_t x_bytes, size_t y, const void *from, size_t pitch, size_t width_bytes, size_t height,      \
     cudaMemcpyKind kind),                                                                                             \
    (to, x_bytes, y, from, pitch, width_bytes, height, kind))                                                          \
  X(cudaError_t, cudaMemcpy2DToArrayAsync,                                                                             \
    (cudaArray_t to, size_t x_bytes, size_t y, const void *from, size_t pitch, size_t width_bytes, size_t height,      \
     cudaMemcpyKind kind, cudaStream_t stream = 0),                                                                    \
    (to, x_bytes, y, from, pitch, width_bytes, height, kind, stream))                                                  \
  X(cudaError_t, cudaMemcpy2DFromArray,                                                                                \
    (void *to, size_t pitch, cudaArray_const_t from, size_t x_bytes, size_t y, size_t width_bytes, size_t height,      \
     cudaMemcpyKind kind),                                                                                             \
    (to, pitch, from, x_bytes, y, width_bytes, height, kind))                                                          \
  X(cudaError_t, cudaCreateTextureObject,                                                                              \
    (cudaTextureObject_t * object, const cudaResourceDesc *resource, const cudaTextureDesc *texture,                   \
     const cudaResourceViewDesc *view),                                                                                \
    (object, resource, texture, view))                                                                                 \
  X(cudaError_t, cudaDestroyTextureObject, (cudaTextureObject_t object), (object))                                     \
  X(cudaError_t, cudaGetTextureObjectResourceDesc, (cudaResourceDesc * resource, cudaTextureObject_t object),          \
    (resource, object))                                                                                                \
  X(cudaError_t, cudaCreateSurfaceObject, (cudaSurfaceObject_t * object, const cudaResourceDesc *resource),            \
    (object, resource))                                                                                                \
  X(cudaError_t, cudaDestroySurfaceObject, (cudaSurfaceObject_t object), (object))
// clang-format on

// The table: each call with the place that makes it.
#define PK_UNWRAP(...) __VA_ARGS__
#define PK_AFTER(...) __VA_OPT__(, ) __VA_ARGS__
namespace pk_program {
#define PK_TYPE(result, name, parameters, arguments) result name##_type(const pk_place *PK_AFTER parameters);
PK_PROGRAM_CALLS(PK_TYPE)
#undef PK_TYPE
struct Table {
#define PK_ENTRY(result, name, parameters, arguments) decltype(&name##_type) name;
  PK_PROGRAM_CALLS(PK_ENTRY)
#undef PK_ENTRY
};
}  // namespace pk_program
