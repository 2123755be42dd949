// devices.cpp: devices, what they are and can do, and which one a thread works on.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "program/allocations.h"
#include "program/arrays.h"
#include "program/report.h"
#include "program/streams.h"
#include "program/symbols.h"
#include "sim/sim.h"

namespace pk::program {
namespace {

bool exists(int device) { return device >= 0 && device < static_cast<int>(state().devices.size()); }

cudaError_t no_device(int device) {
  return fail(cudaErrorInvalidDevice,
              "there is no device " + std::to_string(device) + ": there are " + std::to_string(state().devices.size()));
}

const pk_device_info &info_of(int device) { return state().devices[static_cast<size_t>(device)].info; }

// Of the simulated device, and of others where their driver does not tell.
constexpr int kTexture1D = 131072, kTexture2D[2] = {131072, 65536}, kTexture3D = 16384, kLayers = 2048;

void fill_textures(cudaDeviceProp *of) {
  of->maxTexture1D = of->maxSurface1D = kTexture1D;
  of->maxTexture1DMipmap = 32768;
  of->maxTexture1DLinear = 1 << 28;
  const int flat[] = {kTexture2D[0], kTexture2D[1]}, mipmapped[] = {32768, 32768}, linear[] = {131072, 65000, 2097120};
  const int volume[] = {kTexture3D, kTexture3D, kTexture3D}, volume_other[] = {8192, 8192, 32768};
  const int layered[] = {32768, 32768, kLayers};
  std::copy(flat, flat + 2, of->maxTexture2D);
  std::copy(flat, flat + 2, of->maxSurface2D);
  std::copy(mipmapped, mipmapped + 2, of->maxTexture2DMipmap);
  std::copy(mipmapped, mipmapped + 2, of->maxTexture2DGather);
  std::copy(linear, linear + 3, of->maxTexture2DLinear);
  std::copy(volume, volume + 3, of->maxTexture3D);
  std::copy(volume_other, volume_other + 3, of->maxTexture3DAlt);
  std::copy(volume, volume + 3, of->maxSurface3D);
  std::copy(layered, layered + 3, of->maxTexture2DLayered);
  std::copy(layered, layered + 3, of->maxSurface2DLayered);
  of->maxTextureCubemap = of->maxSurfaceCubemap = 32768;
  const int rows[] = {32768, kLayers}, faces[] = {32768, 2046};
  std::copy(rows, rows + 2, of->maxTexture1DLayered);
  std::copy(rows, rows + 2, of->maxSurface1DLayered);
  std::copy(faces, faces + 2, of->maxTextureCubemapLayered);
  std::copy(faces, faces + 2, of->maxSurfaceCubemapLayered);
  of->surfaceAlignment = of->textureAlignment = PK_TEXTURE_ALIGNMENT;
  of->texturePitchAlignment = PK_TEXTURE_PITCH_ALIGNMENT;
}

void fill_abilities(cudaDeviceProp *of) {
  of->deviceOverlap = of->canMapHostMemory = of->concurrentKernels = of->unifiedAddressing = 1;
  of->streamPrioritiesSupported = of->globalL1CacheSupported = of->localL1CacheSupported = 1;
  of->managedMemory = of->computePreemptionSupported = of->cooperativeLaunch = 1;
  of->canUseHostPointerForRegisteredMem = of->hostRegisterSupported = of->memoryPoolsSupported = 1;
  // Of the simulated device, whose launches and copies are done when their calls return.
  of->concurrentManagedAccess = of->asyncEngineCount = 1;
  of->singleToDoublePrecisionPerfRatio = 1;
}

struct Attribute {
  cudaDeviceAttr which;
  int (*value)(const cudaDeviceProp &of);
  void (*set)(cudaDeviceProp *of, int value);
};
template <class Field>
void set_field(Field *field, int value) {
  *field = static_cast<Field>(value);
}
#define PK_ATTRIBUTE(name, field)                                                           \
  {                                                                                         \
    cudaDevAttr##name, [](const cudaDeviceProp &of) { return static_cast<int>(of.field); }, \
        [](cudaDeviceProp *of, int value) { set_field(&of->field, value); }                 \
  }
constexpr Attribute kAttributes[] = {
    PK_ATTRIBUTE(MaxThreadsPerBlock, maxThreadsPerBlock),
    PK_ATTRIBUTE(MaxBlockDimX, maxThreadsDim[0]),
    PK_ATTRIBUTE(MaxBlockDimY, maxThreadsDim[1]),
    PK_ATTRIBUTE(MaxBlockDimZ, maxThreadsDim[2]),
    PK_ATTRIBUTE(MaxGridDimX, maxGridSize[0]),
    PK_ATTRIBUTE(MaxGridDimY, maxGridSize[1]),
    PK_ATTRIBUTE(MaxGridDimZ, maxGridSize[2]),
    PK_ATTRIBUTE(MaxSharedMemoryPerBlock, sharedMemPerBlock),
    PK_ATTRIBUTE(TotalConstantMemory, totalConstMem),
    PK_ATTRIBUTE(WarpSize, warpSize),
    PK_ATTRIBUTE(MaxPitch, memPitch),
    PK_ATTRIBUTE(MaxRegistersPerBlock, regsPerBlock),
    PK_ATTRIBUTE(ClockRate, clockRate),
    PK_ATTRIBUTE(TextureAlignment, textureAlignment),
    PK_ATTRIBUTE(GpuOverlap, deviceOverlap),
    PK_ATTRIBUTE(MultiProcessorCount, multiProcessorCount),
    PK_ATTRIBUTE(KernelExecTimeout, kernelExecTimeoutEnabled),
    PK_ATTRIBUTE(Integrated, integrated),
    PK_ATTRIBUTE(CanMapHostMemory, canMapHostMemory),
    PK_ATTRIBUTE(ComputeMode, computeMode),
    PK_ATTRIBUTE(SurfaceAlignment, surfaceAlignment),
    PK_ATTRIBUTE(ConcurrentKernels, concurrentKernels),
    PK_ATTRIBUTE(EccEnabled, ECCEnabled),
    PK_ATTRIBUTE(PciBusId, pciBusID),
    PK_ATTRIBUTE(PciDeviceId, pciDeviceID),
    PK_ATTRIBUTE(PciDomainId, pciDomainID),
    PK_ATTRIBUTE(TccDriver, tccDriver),
    PK_ATTRIBUTE(MemoryClockRate, memoryClockRate),
    PK_ATTRIBUTE(GlobalMemoryBusWidth, memoryBusWidth),
    PK_ATTRIBUTE(L2CacheSize, l2CacheSize),
    PK_ATTRIBUTE(MaxThreadsPerMultiProcessor, maxThreadsPerMultiProcessor),
    PK_ATTRIBUTE(AsyncEngineCount, asyncEngineCount),
    PK_ATTRIBUTE(UnifiedAddressing, unifiedAddressing),
    PK_ATTRIBUTE(TexturePitchAlignment, texturePitchAlignment),
    PK_ATTRIBUTE(ComputeCapabilityMajor, major),
    PK_ATTRIBUTE(ComputeCapabilityMinor, minor),
    PK_ATTRIBUTE(StreamPrioritiesSupported, streamPrioritiesSupported),
    PK_ATTRIBUTE(GlobalL1CacheSupported, globalL1CacheSupported),
    PK_ATTRIBUTE(LocalL1CacheSupported, localL1CacheSupported),
    PK_ATTRIBUTE(MaxSharedMemoryPerMultiprocessor, sharedMemPerMultiprocessor),
    PK_ATTRIBUTE(MaxRegistersPerMultiprocessor, regsPerMultiprocessor),
    PK_ATTRIBUTE(ManagedMemory, managedMemory),
    PK_ATTRIBUTE(IsMultiGpuBoard, isMultiGpuBoard),
    PK_ATTRIBUTE(MultiGpuBoardGroupID, multiGpuBoardGroupID),
    PK_ATTRIBUTE(HostNativeAtomicSupported, hostNativeAtomicSupported),
    PK_ATTRIBUTE(SingleToDoublePrecisionPerfRatio, singleToDoublePrecisionPerfRatio),
    PK_ATTRIBUTE(PageableMemoryAccess, pageableMemoryAccess),
    PK_ATTRIBUTE(ConcurrentManagedAccess, concurrentManagedAccess),
    PK_ATTRIBUTE(ComputePreemptionSupported, computePreemptionSupported),
    PK_ATTRIBUTE(CanUseHostPointerForRegisteredMem, canUseHostPointerForRegisteredMem),
    PK_ATTRIBUTE(CooperativeLaunch, cooperativeLaunch),
    PK_ATTRIBUTE(CooperativeMultiDeviceLaunch, cooperativeMultiDeviceLaunch),
    PK_ATTRIBUTE(MaxSharedMemoryPerBlockOptin, sharedMemPerBlockOptin),
    PK_ATTRIBUTE(HostRegisterSupported, hostRegisterSupported),
    PK_ATTRIBUTE(PageableMemoryAccessUsesHostPageTables, pageableMemoryAccessUsesHostPageTables),
    PK_ATTRIBUTE(DirectManagedMemAccessFromHost, directManagedMemAccessFromHost),
    PK_ATTRIBUTE(MaxBlocksPerMultiprocessor, maxBlocksPerMultiProcessor),
    PK_ATTRIBUTE(MaxPersistingL2CacheSize, persistingL2CacheMaxSize),
    PK_ATTRIBUTE(ReservedSharedMemoryPerBlock, reservedSharedMemPerBlock),
    PK_ATTRIBUTE(MemoryPoolsSupported, memoryPoolsSupported),
    PK_ATTRIBUTE(ClusterLaunch, clusterLaunch),
};
#undef PK_ATTRIBUTE

// What a program sets and reads back; the driver has its own.
struct Settings {
  std::map<cudaLimit, size_t> limits = {{cudaLimitStackSize, 1024},
                                        {cudaLimitPrintfFifoSize, 1 << 20},
                                        {cudaLimitMallocHeapSize, 8 << 20},
                                        {cudaLimitDevRuntimeSyncDepth, 2},
                                        {cudaLimitDevRuntimePendingLaunchCount, 2048},
                                        {cudaLimitMaxL2FetchGranularity, 64},
                                        {cudaLimitPersistingL2CacheSize, 0}};
  unsigned flags = cudaDeviceScheduleAuto;
  cudaFuncCache cache = cudaFuncCachePreferNone;
  cudaSharedMemConfig banks = cudaSharedMemBankSizeFourByte;
};
Settings &settings() {
  static Settings &only = *new Settings;
  return only;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int *count) {
  *count = static_cast<int>(state().devices.size());
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device) {
  if (!exists(device)) return no_device(device);
  thread().device = device;
  const cudaError_t failed = check(driver().device_use(device));
  if (failed == cudaSuccess) thread().bound = device;
  return failed;
}

cudaError_t cudaGetDevice(int *device) {
  *device = thread().device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  if (!exists(device)) return no_device(device);
  const pk_device_info &info = info_of(device);
  cudaDeviceProp &of = *properties;
  of = {};
  std::snprintf(of.name, sizeof of.name, "%s", info.name);
  std::memcpy(of.uuid.bytes, info.uuid, sizeof of.uuid.bytes);
  of.totalGlobalMem = info.total_memory_bytes;
  of.sharedMemPerBlock = static_cast<size_t>(info.max_shared_per_block_bytes);
  of.regsPerBlock = of.regsPerMultiprocessor = info.registers_per_multiprocessor;
  of.warpSize = info.warp_size;
  of.memPitch = INT32_MAX;
  of.maxThreadsPerBlock = info.max_threads_per_block;
  std::copy(info.max_block, info.max_block + 3, of.maxThreadsDim);
  std::copy(info.max_grid, info.max_grid + 3, of.maxGridSize);
  of.totalConstMem = 64 << 10;
  of.major = info.compute_major;
  of.minor = info.compute_minor;
  of.clockRate = info.clock_khz;
  of.multiProcessorCount = info.multiprocessor_count;
  of.memoryClockRate = info.memory_clock_khz;
  of.memoryBusWidth = info.memory_bus_bits;
  // What a program asks to have kept there is advice.
  of.l2CacheSize = of.persistingL2CacheMaxSize = of.accessPolicyMaxWindowSize = info.l2_bytes;
  of.maxThreadsPerMultiProcessor = info.max_threads_per_multiprocessor;
  of.sharedMemPerMultiprocessor = static_cast<size_t>(info.max_shared_per_multiprocessor_bytes);
  of.sharedMemPerBlockOptin = static_cast<size_t>(info.max_shared_per_block_optin_bytes);
  of.maxBlocksPerMultiProcessor = info.max_threads_per_multiprocessor / (2 * info.warp_size);
  of.reservedSharedMemPerBlock = 1 << 10;
  of.pciBusID = device + 1;
  of.clusterLaunch = info.compute_major >= 9;
  fill_textures(&of);
  fill_abilities(&of);
  if (state().simulated) return cudaSuccess;
  int32_t value = 0;
  for (const Attribute &one : kAttributes)
    if (driver().device_attribute(device, one.which, &value) == PK_OK) one.set(&of, value);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  if (!exists(device)) return no_device(device);
  if (!state().simulated && driver().device_attribute(device, attribute, value) == PK_OK) return cudaSuccess;
  cudaDeviceProp properties;
  if (const cudaError_t bad = cudaGetDeviceProperties(&properties, device); bad != cudaSuccess) return bad;
  for (const Attribute &one : kAttributes) {
    if (one.which != attribute) continue;
    *value = one.value(properties);
    return cudaSuccess;
  }
  return fail(cudaErrorInvalidValue, "there is no device attribute " + std::to_string(attribute));
}

// The first that has what is asked for, or the first.
cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *wanted) {
  *device = 0;
  for (int one = static_cast<int>(state().devices.size()) - 1; one >= 0; --one)
    if (info_of(one).compute_major >= wanted->major && info_of(one).total_memory_bytes >= wanted->totalGlobalMem)
      *device = one;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return wait_device(); }

cudaError_t cudaDeviceReset() {
  driver().device_wait();
  show_output();
  for (const Allocation &one : all_allocations())
    if (one.device == thread().device && one.kind == Kind::kSymbol) forget_allocation(one);
  forget_arrays();
  forget_symbols();
  forget_streams();
  for (const Allocation &one : all_allocations())
    if (one.device == thread().device) release(one);
  if (state().simulated) pk_sim_clear_fault();
  DeviceState &current = device();
  current.fault = cudaSuccess;
  current.told = current.used = false;
  current.peers.clear();
  thread().last_error = cudaSuccess;
  settings() = {};
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  settings().flags = flags;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceFlags(unsigned *flags) {
  *flags = settings().flags;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
  const auto at = settings().limits.find(limit);
  if (at == settings().limits.end()) return fail(cudaErrorUnsupportedLimit, "no such limit");
  *value = at->second;
  return cudaSuccess;
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  const auto at = settings().limits.find(limit);
  if (at == settings().limits.end()) return fail(cudaErrorUnsupportedLimit, "no such limit");
  at->second = value;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  settings().cache = config;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *config) {
  *config = settings().cache;
  return cudaSuccess;
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  settings().banks = config;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config) {
  *config = settings().banks;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *lowest, int *greatest) {
  if (lowest != nullptr) *lowest = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device) {
  if (!exists(device)) return no_device(device);
  std::snprintf(id, static_cast<size_t>(bytes), "0000:%02x:00.0", static_cast<unsigned>(device + 1));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id) {
  for (int one = 0; one < static_cast<int>(state().devices.size()); ++one) {
    char own[32];
    cudaDeviceGetPCIBusId(own, sizeof own, one);
    if (strcasecmp(own, id) != 0) continue;
    *device = one;
    return cudaSuccess;
  }
  return fail(cudaErrorInvalidDevice, std::string("there is no device at ") + id);
}

// ---- peers

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  if (!exists(device) || !exists(peer)) return no_device(exists(device) ? peer : device);
  pk_peer_info info = {};
  *can = 0;
  if (device == peer) return cudaSuccess;
  const cudaError_t failed = check(driver().peer_info(device, peer, &info));
  *can = info.access == 1;
  return failed;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (!exists(peer) || peer == thread().device) return no_device(peer);
  if (flags != 0) return fail(cudaErrorInvalidValue, "cudaDeviceEnablePeerAccess takes flags of 0");
  bool &enabled = device().peers[peer];
  if (enabled) return cudaErrorPeerAccessAlreadyEnabled;
  const cudaError_t failed = check(driver().peer_enable(peer));
  enabled = failed == cudaSuccess;
  return failed;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (!exists(peer)) return no_device(peer);
  return device().peers.erase(peer) ? cudaSuccess : fail(cudaErrorPeerAccessNotEnabled, "it was not enabled");
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attribute, int device, int peer) {
  if (!exists(device) || !exists(peer) || device == peer) return no_device(peer);
  pk_peer_info info = {};
  const cudaError_t failed = check(driver().peer_info(device, peer, &info));
  *value = attribute == cudaDevP2PAttrPerformanceRank         ? info.performance_rank
           : attribute == cudaDevP2PAttrNativeAtomicSupported ? info.atomics == 1
                                                              : info.access == 1;
  return failed;
}

// ---- versions, and the profiler's switches

cudaError_t cudaDriverGetVersion(int *version) {
  *version = info_of(0).driver_version != 0 ? info_of(0).driver_version : CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

}  // namespace pk::program
