// cuda_api.h: the part of the CUDA driver's binary interface that we call, declared here so that no CUDA header is
// needed.
//
// Handles (contexts, streams, events, modules, functions) and device addresses are all 64-bit values of one register
// class on every system that we support, so each is declared as uint64_t; structures and constants follow the driver's
// layout exactly.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pk::cuda {

static_assert(sizeof(void *) == 8, "64-bit systems only");

using Result = int32_t;
using Handle = uint64_t;   // CUcontext, CUstream, CUevent, CUmodule, CUfunction, CUmemGenericAllocationHandle
using Address = uint64_t;  // CUdeviceptr
using HostFunction = void (*)(void *);

#ifdef _WIN32
#define PK_CUDAAPI __stdcall
#else
#define PK_CUDAAPI
#endif

constexpr Result kErrorStubLibrary = 34;
constexpr Result kErrorInvalidContext = 201;
constexpr Result kErrorPeerAccessAlreadyEnabled = 704;

struct Uuid {
  uint8_t bytes[16];
};

// ---- virtual memory ----
constexpr uint32_t kAllocationPinned = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
constexpr uint32_t kHandleNone = 0;
constexpr uint32_t kHandlePosixFd = 1;
constexpr uint32_t kLocationDevice = 1;
constexpr uint32_t kAccessReadWrite = 3;
constexpr uint32_t kGranularityMinimum = 0;

struct MemLocation {
  uint32_t type;
  int32_t id;
};

struct MemAllocationProp {
  uint32_t type;
  uint32_t requested_handle_types;
  MemLocation location;
  void *win32_handle_meta_data;
  struct {
    uint8_t compression_type;
    uint8_t gpu_direct_rdma_capable;
    uint16_t usage;
    uint8_t reserved[4];
  } alloc_flags;
};
static_assert(sizeof(MemAllocationProp) == 32 && offsetof(MemAllocationProp, alloc_flags) == 24);

struct MemAccessDesc {
  MemLocation location;
  uint32_t flags;
};
static_assert(sizeof(MemAccessDesc) == 12);

// ---- launches ----
constexpr uint32_t kAttributeCooperative = 2;
constexpr uint32_t kAttributeClusterDimension = 4;
constexpr uint32_t kAttributeProgrammaticStreamSerialization = 6;

union LaunchAttributeValue {
  uint8_t pad[64];
  uint64_t align;
  int32_t flag;
  uint32_t cluster[3];
};

struct LaunchAttribute {
  uint32_t id;
  uint32_t pad;
  LaunchAttributeValue value;
};
static_assert(sizeof(LaunchAttribute) == 72 && offsetof(LaunchAttribute, value) == 8);

struct LaunchConfig {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  Handle stream;
  LaunchAttribute *attributes;
  uint32_t attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56 && offsetof(LaunchConfig, stream) == 32);

// ---- parts of a device ----
constexpr uint32_t kResourceSm = 1;               // CU_DEV_RESOURCE_TYPE_SM
constexpr uint32_t kSplitIgnoreCoscheduling = 1;  // CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING
constexpr uint32_t kGreenDefaultStream = 1;       // CU_GREEN_CTX_DEFAULT_STREAM, which has to be set

struct alignas(8) DevResource {
  uint32_t type;
  uint8_t internal[92];
  uint32_t sm_count;
  uint8_t external[44];
};
static_assert(sizeof(DevResource) == 144 && offsetof(DevResource, sm_count) == 96);

// ---- arrays, textures and surfaces ----
struct ArrayDescriptor {  // CUDA_ARRAY3D_DESCRIPTOR
  size_t width, height, depth;
  uint32_t format, channels, flags;
};
static_assert(sizeof(ArrayDescriptor) == 40);

constexpr uint32_t kMemoryDevice = 2;
constexpr uint32_t kMemoryArray = 3;

struct CopySide {
  size_t x_bytes, y, z, level;
  uint32_t memory_type;
  void *host;
  Address device;
  Handle array;
  void *reserved;
  size_t pitch, height;
};
struct Copy3D {  // CUDA_MEMCPY3D
  CopySide source, target;
  size_t width_bytes, height, depth;
};
static_assert(sizeof(CopySide) == 88 && sizeof(Copy3D) == 200);

struct ResourceDescriptor {  // CUDA_RESOURCE_DESC
  uint32_t type;
  union {
    Handle array;
    struct {
      Address address;
      uint32_t format, channels;
      size_t bytes;
    } linear;
    struct {
      Address address;
      uint32_t format, channels;
      size_t width, height, pitch_bytes;
    } pitched;
    int32_t reserved[32];
  };
  uint32_t flags;
};
static_assert(sizeof(ResourceDescriptor) == 144 && offsetof(ResourceDescriptor, flags) == 136);

struct TextureDescriptor {  // CUDA_TEXTURE_DESC
  uint32_t address_modes[3];
  uint32_t filter;
  uint32_t flags;
  uint32_t max_anisotropy;
  uint32_t mipmap_filter;
  float level_bias, least_level, most_level;
  float border[4];
  int32_t reserved[12];
};
static_assert(sizeof(TextureDescriptor) == 104);

// ---- flags and attribute numbers ----
constexpr uint32_t kStreamNonBlocking = 1;
constexpr int32_t kCaptureRelaxed = 2;  // forbids this process nothing: modules load and memory is mapped meanwhile
constexpr uint32_t kEventDisableTiming = 2;
constexpr uint32_t kHostAllocPortable = 1;
constexpr uint32_t kAttachGlobal = 1;
constexpr uint32_t kJitErrorLogBuffer = 5;
constexpr uint32_t kJitErrorLogBufferBytes = 6;
constexpr uint32_t kJitInputPtx = 1;

enum DeviceAttribute : int32_t {
  kMaxThreadsPerBlock = 1,
  kMaxBlockX = 2,
  kMaxGridX = 5,
  kMaxSharedPerBlock = 8,
  kWarpSize = 10,
  kClockKhz = 13,
  kMultiprocessorCount = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kMaxSharedPerMultiprocessor = 81,
  kRegistersPerMultiprocessor = 82,
  kMaxSharedPerBlockOptin = 97,
  kVirtualMemorySupported = 102,
  kPosixFdSupported = 103,
  kMpsEnabled = 133,
};

enum PeerAttribute : int32_t {
  kPeerPerformanceRank = 1,
  kPeerNativeAtomics = 3,
};

enum FunctionAttribute : int32_t {
  kFunctionMaxThreads = 0,
  kFunctionStaticShared = 1,
  kFunctionConst = 2,
  kFunctionLocal = 3,
  kFunctionRegisters = 4,
  kFunctionBinaryVersion = 6,
  kFunctionMaxDynamicShared = 8,
  kFunctionNonPortableCluster = 14,
};

// Every function that we call: name, the interface version that we ask for, whether we can work without it, parameters.
// clang-format off
#define PK_CUDA_SYMBOLS(X)                                                                                           \
  X(cuInit, 2000, required, (uint32_t flags))                                                                        \
  X(cuGetErrorName, 6000, required, (Result error, const char **text))                                               \
  X(cuGetErrorString, 6000, required, (Result error, const char **text))                                             \
  X(cuDeviceGetCount, 2000, required, (int32_t *count))                                                              \
  X(cuDeviceGet, 2000, required, (int32_t *device, int32_t ordinal))                                                 \
  X(cuDeviceGetName, 2000, required, (char *name, int32_t bytes, int32_t device))                                    \
  X(cuDeviceGetUuid, 11040, required, (Uuid *uuid, int32_t device))                                                  \
  X(cuDeviceTotalMem, 3020, required, (size_t *bytes, int32_t device))                                               \
  X(cuDeviceGetAttribute, 2000, required, (int32_t *value, int32_t attribute, int32_t device))                       \
  X(cuDevicePrimaryCtxRetain, 7000, required, (Handle *context, int32_t device))                                     \
  X(cuCtxGetCurrent, 4000, required, (Handle *context))                                                              \
  X(cuCtxSetCurrent, 4000, required, (Handle context))                                                               \
  X(cuCtxSynchronize, 2000, required, (void))                                                                        \
  X(cuCtxGetStreamPriorityRange, 5050, required, (int32_t *least, int32_t *greatest))                                \
  X(cuMemGetInfo, 3020, required, (size_t *free_bytes, size_t *total_bytes))                                         \
  X(cuMemGetAllocationGranularity, 10020, required, (size_t *bytes, const MemAllocationProp *prop, uint32_t option)) \
  X(cuMemAddressReserve, 10020, required, (Address *address, size_t bytes, size_t alignment, Address hint,           \
    uint64_t flags))                                                                                                 \
  X(cuMemAddressFree, 10020, required, (Address address, size_t bytes))                                              \
  X(cuMemCreate, 10020, required, (Handle *physical, size_t bytes, const MemAllocationProp *prop, uint64_t flags))   \
  X(cuMemRelease, 10020, required, (Handle physical))                                                                \
  X(cuMemMap, 10020, required, (Address address, size_t bytes, size_t offset, Handle physical, uint64_t flags))      \
  X(cuMemUnmap, 10020, required, (Address address, size_t bytes))                                                    \
  X(cuMemSetAccess, 10020, required, (Address address, size_t bytes, const MemAccessDesc *access, size_t count))     \
  X(cuMemExportToShareableHandle, 10020, optional, (void *handle, Handle physical, uint32_t type, uint64_t flags))   \
  X(cuMemImportFromShareableHandle, 10020, optional, (Handle *physical, void *handle, uint32_t type))                \
  X(cuMemHostAlloc, 2020, required, (void **host, size_t bytes, uint32_t flags))                                     \
  X(cuMemFreeHost, 2000, required, (void *host))                                                                     \
  X(cuMemHostRegister, 6050, required, (void *host, size_t bytes, uint32_t flags))                                   \
  X(cuMemHostUnregister, 4000, required, (void *host))                                                               \
  X(cuMemAllocManaged, 6000, required, (Address *address, size_t bytes, uint32_t flags))                             \
  X(cuMemFree, 3020, required, (Address address))                                                                    \
  X(cuMemcpyHtoDAsync, 3020, required, (Address dst, const void *src, size_t bytes, Handle stream))                  \
  X(cuMemcpyDtoHAsync, 3020, required, (void *dst, Address src, size_t bytes, Handle stream))                        \
  X(cuMemcpyDtoDAsync, 3020, required, (Address dst, Address src, size_t bytes, Handle stream))                      \
  X(cuMemsetD8Async, 3020, required, (Address dst, uint8_t value, size_t count, Handle stream))                      \
  X(cuMemsetD16Async, 3020, required, (Address dst, uint16_t value, size_t count, Handle stream))                    \
  X(cuMemsetD32Async, 3020, required, (Address dst, uint32_t value, size_t count, Handle stream))                    \
  X(cuStreamCreateWithPriority, 5050, required, (Handle *stream, uint32_t flags, int32_t priority))                  \
  X(cuStreamDestroy, 4000, required, (Handle stream))                                                                \
  X(cuStreamQuery, 2000, required, (Handle stream))                                                                  \
  X(cuStreamSynchronize, 2000, required, (Handle stream))                                                            \
  X(cuStreamWaitEvent, 3020, required, (Handle stream, Handle event, uint32_t flags))                                \
  X(cuEventCreate, 2000, required, (Handle *event, uint32_t flags))                                                  \
  X(cuEventDestroy, 4000, required, (Handle event))                                                                  \
  X(cuEventRecord, 2000, required, (Handle event, Handle stream))                                                    \
  X(cuEventQuery, 2000, required, (Handle event))                                                                    \
  X(cuEventSynchronize, 2000, required, (Handle event))                                                              \
  X(cuEventElapsedTime, 2000, required, (float *milliseconds, Handle start, Handle end))                             \
  X(cuModuleLoadDataEx, 2010, required, (Handle *module, const void *image, uint32_t count, uint32_t *options,       \
    void **values))                                                                                                  \
  X(cuModuleUnload, 2000, required, (Handle module))                                                                 \
  X(cuLinkCreate, 6050, required, (uint32_t count, uint32_t *options, void **values, Handle *link))                  \
  X(cuLinkAddData, 6050, required, (Handle link, uint32_t type, const void *data, size_t bytes, const char *name,    \
    uint32_t count, uint32_t *options, void **values))                                                               \
  X(cuLinkComplete, 5050, required, (Handle link, void **cubin, size_t *bytes))                                      \
  X(cuLinkDestroy, 5050, required, (Handle link))                                                                    \
  X(cuModuleGetFunction, 2000, required, (Handle *function, Handle module, const char *name))                        \
  X(cuModuleGetGlobal, 3020, required, (Address *address, size_t *bytes, Handle module, const char *name))           \
  X(cuFuncGetAttribute, 2020, required, (int32_t *value, int32_t attribute, Handle function))                        \
  X(cuFuncSetAttribute, 9000, required, (Handle function, int32_t attribute, int32_t value))                         \
  X(cuFuncGetParamInfo, 12040, optional, (Handle function, size_t index, size_t *offset, size_t *bytes))             \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, required, (int32_t *blocks, Handle function,                  \
    int32_t block_threads, size_t shared_bytes))                                                                     \
  X(cuLaunchKernel, 4000, required, (Handle function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,             \
    uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes, Handle stream, void **params,       \
    void **extra))                                                                                                   \
  X(cuLaunchKernelEx, 11060, optional, (const LaunchConfig *config, Handle function, void **params, void **extra))   \
  X(cuLaunchHostFunc, 10000, required, (Handle stream, HostFunction function, void *argument))                       \
  X(cuStreamBeginCapture, 10010, required, (Handle stream, int32_t mode))                                            \
  X(cuStreamEndCapture, 10000, required, (Handle stream, Handle *graph))                                             \
  X(cuGraphInstantiateWithFlags, 11040, required, (Handle *executable, Handle graph, uint64_t flags))                \
  X(cuGraphLaunch, 10000, required, (Handle executable, Handle stream))                                              \
  X(cuGraphExecDestroy, 10000, required, (Handle executable))                                                        \
  X(cuGraphDestroy, 10000, required, (Handle graph))                                                                 \
  X(cuDeviceGetDevResource, 12040, optional, (int32_t device, DevResource *resource, uint32_t type))                 \
  X(cuDevSmResourceSplitByCount, 12040, optional, (DevResource *groups, uint32_t *count, const DevResource *whole,   \
    DevResource *rest, uint32_t flags, uint32_t least_sms))                                                          \
  X(cuDevResourceGenerateDesc, 12040, optional, (Handle *description, DevResource *resources, uint32_t count))       \
  X(cuGreenCtxCreate, 12040, optional, (Handle *green, Handle description, int32_t device, uint32_t flags))          \
  X(cuGreenCtxDestroy, 12040, optional, (Handle green))                                                              \
  X(cuGreenCtxGetDevResource, 12040, optional, (Handle green, DevResource *resource, uint32_t type))                 \
  X(cuGreenCtxStreamCreate, 12050, optional, (Handle *stream, Handle green, uint32_t flags, int32_t priority))       \
  X(cuArray3DCreate, 3020, required, (Handle *array, const ArrayDescriptor *shape))                                  \
  X(cuArrayDestroy, 2000, required, (Handle array))                                                                  \
  X(cuMipmappedArrayCreate, 5000, required, (Handle *array, const ArrayDescriptor *shape, uint32_t levels))          \
  X(cuMipmappedArrayDestroy, 5000, required, (Handle array))                                                         \
  X(cuMipmappedArrayGetLevel, 5000, required, (Handle *array, Handle mipmapped, uint32_t level))                     \
  X(cuMemcpy3DAsync, 3020, required, (const Copy3D *copy, Handle stream))                                            \
  X(cuTexObjectCreate, 5000, required, (uint64_t *object, const ResourceDescriptor *resource,                        \
    const TextureDescriptor *how, const void *view))                                                                 \
  X(cuTexObjectDestroy, 5000, required, (uint64_t object))                                                           \
  X(cuSurfObjectCreate, 5000, required, (uint64_t *object, const ResourceDescriptor *resource))                      \
  X(cuSurfObjectDestroy, 5000, required, (uint64_t object))                                                          \
  X(cuDeviceCanAccessPeer, 4000, optional, (int32_t *access, int32_t device, int32_t peer))                          \
  X(cuDeviceGetP2PAttribute, 8000, optional, (int32_t *value, int32_t attribute, int32_t device, int32_t peer))      \
  X(cuCtxEnablePeerAccess, 4000, optional, (Handle peer_context, uint32_t flags))                                    \
  X(cuMemcpyPeerAsync, 4000, optional, (Address dst, Handle dst_context, Address src, Handle src_context,            \
    size_t bytes, Handle stream))
// clang-format on

struct Api {
#define PK_DECLARE(name, version, need, parameters) Result(PK_CUDAAPI *name) parameters = nullptr;
  PK_CUDA_SYMBOLS(PK_DECLARE)
#undef PK_DECLARE
};

}  // namespace pk::cuda
