// memory.cpp: memory: of the device, managed, pinned, pitched, and in the order of a stream.
#include <cstring>

#include "program/allocations.h"
#include "program/graphs.h"
#include "program/report.h"
#include "program/streams.h"

namespace pk::program {
namespace {

cudaError_t take(Kind kind, void **pointer, uint64_t bytes, const char *call) {
  if (const cudaError_t fault = standing(); fault != cudaSuccess) return fault;
  if (pointer == nullptr) return fail(cudaErrorInvalidValue, std::string(call) + " has no place for the address");
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  Allocation made;
  const cudaError_t failed = allocate(kind, bytes, &made);
  if (failed == cudaSuccess) *pointer = reinterpret_cast<void *>(made.address);
  return failed;
}

// What is given back must be where something begins, and of the call's own kind.
cudaError_t give_back(void *pointer, bool host, const char *call) {
  if (const cudaError_t fault = standing(); fault != cudaSuccess) return fault;
  if (pointer == nullptr || (!host && give_to_graph(pointer))) return cudaSuccess;
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  const Allocation *found = find_allocation(address);
  if (found != nullptr && found->address == address && found->kind != Kind::kRegistered &&
      (found->kind == Kind::kPinned) == host) {
    if (!state().simulated) driver().device_wait();
    return release(*found);
  }
  std::string why = std::string(call) + ": ";
  if (const Freed *freed = find_freed(address); freed != nullptr && freed->was.address == address) {
    why += "freed already at " + freed->place.text() + " (allocated at " + freed->was.place.text() + ")";
    tell_finding("double free", why, thread().place);
  } else {
    const std::string where = describe_address(address);
    why += where.empty() ? "the address is in memory that the runtime did not give" : "the address is " + where;
    if (found != nullptr && found->address == address)
      why += host ? ": cudaFree() is for that" : ": cudaFreeHost() is for that";
    tell_finding("bad free", why, thread().place);
  }
  return fail(cudaErrorInvalidValue, why);
}

}  // namespace

cudaError_t cudaMalloc(void **pointer, size_t bytes) { return take(Kind::kDevice, pointer, bytes, "cudaMalloc"); }

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
  if (bytes == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
    return fail(cudaErrorInvalidValue, "cudaMallocManaged takes some bytes, and cudaMemAttachGlobal or -Host");
  return take(Kind::kManaged, pointer, bytes, "cudaMallocManaged");
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
  return take(Kind::kPinned, pointer, bytes, "cudaMallocHost");
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned) {
  return take(Kind::kPinned, pointer, bytes, "cudaHostAlloc");
}

cudaError_t cudaFree(void *pointer) { return give_back(pointer, false, "cudaFree"); }

cudaError_t cudaFreeHost(void *pointer) { return give_back(pointer, true, "cudaFreeHost"); }

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned) {
  if (const cudaError_t fault = standing(); fault != cudaSuccess) return fault;
  if (pointer == nullptr || bytes == 0) return fail(cudaErrorInvalidValue, "cudaHostRegister takes some memory");
  const Allocation *found = find_allocation(pointer);
  if (found != nullptr && reinterpret_cast<uint64_t>(pointer) - found->address < found->bytes)
    return fail(cudaErrorHostMemoryAlreadyRegistered, "registered or allocated at " + found->place.text());
  if (const cudaError_t failed = check(driver().host_register(pointer, bytes)); failed != cudaSuccess) return failed;
  add_allocation(
      {Kind::kRegistered, reinterpret_cast<uint64_t>(pointer), bytes, 0, 0, thread().device, thread().place, 0});
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *pointer) {
  const Allocation *found = find_allocation(pointer);
  if (found == nullptr || found->kind != Kind::kRegistered || found->address != reinterpret_cast<uint64_t>(pointer))
    return fail(cudaErrorHostMemoryNotRegistered, "no cudaHostRegister() gave this address");
  return release(*found);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned) {
  const Allocation *found = find_allocation(host);
  if (device == nullptr || found == nullptr || (found->kind != Kind::kPinned && found->kind != Kind::kRegistered))
    return fail(cudaErrorInvalidValue, "the address is in no pinned or registered memory");
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
  const Allocation *found = find_allocation(host);
  if (flags == nullptr || found == nullptr || found->kind != Kind::kPinned)
    return fail(cudaErrorInvalidValue, "the address is in no pinned memory");
  *flags = cudaHostAllocMapped;
  return cudaSuccess;
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width_bytes, size_t height) {
  constexpr size_t kPitch = 512;
  if (pitch == nullptr) return fail(cudaErrorInvalidValue, "cudaMallocPitch has no place for the pitch");
  if (height != 0 && width_bytes > SIZE_MAX / 2 / height)
    return fail(cudaErrorMemoryAllocation, "no device has so many bytes");
  *pitch = (width_bytes + kPitch - 1) / kPitch * kPitch;
  return take(Kind::kDevice, pointer, *pitch * height, "cudaMallocPitch");
}

cudaError_t cudaMalloc3D(cudaPitchedPtr *pointer, cudaExtent extent) {
  if (pointer == nullptr) return fail(cudaErrorInvalidValue, "cudaMalloc3D has no place for the address");
  pointer->xsize = extent.width;
  pointer->ysize = extent.height;
  return cudaMallocPitch(&pointer->ptr, &pointer->pitch, extent.width, extent.height * extent.depth);
}

// ---- in the order of a stream: what comes before a free in its stream is done by then

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  if (Stream &on = *find_stream(stream); on.capture != nullptr && bytes > 0) return capture_malloc(on, pointer, bytes);
  return take(Kind::kDevice, pointer, bytes, "cudaMallocAsync");
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t, cudaStream_t stream) {
  return cudaMallocAsync(pointer, bytes, stream);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  if (Stream &on = *find_stream(stream); on.capture != nullptr) return capture_free(on, pointer);
  return give_back(pointer, false, "cudaFreeAsync");
}

// A pool is its device's number plus one, or a made one, which is no other.
namespace {
struct Pool {
  int device = 0;
  uint64_t threshold_bytes = 0;
};
std::map<cudaMemPool_t, Pool> &pools() {
  static auto &only = *new std::map<cudaMemPool_t, Pool>;
  return only;
}
cudaMemPool_t pool_of(int device) {
  const auto pool = reinterpret_cast<cudaMemPool_t>(static_cast<uint64_t>(device) + 1);
  pools().try_emplace(pool, Pool{device, 0});
  return pool;
}
}  // namespace

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
  if (pool == nullptr || device < 0 || device >= static_cast<int>(state().devices.size()))
    return fail(cudaErrorInvalidDevice, "there is no such device");
  *pool = pool_of(device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t pool) {
  return pools().count(pool) ? cudaSuccess : fail(cudaErrorInvalidValue, "there is no such pool");
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties) {
  if (pool == nullptr || properties == nullptr)
    return fail(cudaErrorInvalidValue, "cudaMemPoolCreate has no properties");
  static uint64_t next = 1 << 16;
  *pool = reinterpret_cast<cudaMemPool_t>(++next);
  pools()[*pool] = {properties->location.id, 0};
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return pools().erase(pool) ? cudaSuccess : fail(cudaErrorInvalidValue, "there is no such pool");
}
// A pool's memory is reached by its device's peers as all other memory is.
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *access, size_t count) {
  if (!pools().count(pool)) return fail(cudaErrorInvalidValue, "there is no such pool");
  for (size_t i = 0; i < count; ++i) {
    const int peer = access[i].location.id;
    if (access[i].location.type != cudaMemLocationTypeDevice || peer == pools()[pool].device) continue;
    const int before = thread().device;
    cudaError_t failed = cudaSetDevice(peer);
    if (failed == cudaSuccess) failed = check(driver().peer_enable(pools()[pool].device));
    cudaSetDevice(before);
    if (failed != cudaSuccess) return failed;
  }
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return pools().count(pool) ? cudaSuccess : fail(cudaErrorInvalidValue, "there is no such pool");
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
  if (!pools().count(pool) || value == nullptr) return fail(cudaErrorInvalidValue, "there is no such pool");
  if (attribute == cudaMemPoolAttrReleaseThreshold)
    std::memcpy(&pools()[pool].threshold_bytes, value, sizeof(uint64_t));
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
  if (!pools().count(pool) || value == nullptr) return fail(cudaErrorInvalidValue, "there is no such pool");
  if (attribute <= cudaMemPoolReuseAllowInternalDependencies) {
    *static_cast<int *>(value) = 1;
    return cudaSuccess;
  }
  uint64_t bytes = 0;
  if (attribute == cudaMemPoolAttrReleaseThreshold) {
    bytes = pools()[pool].threshold_bytes;
  } else {
    for (const Allocation &one : all_allocations()) bytes += one.kind == Kind::kDevice ? one.bytes : 0;
  }
  *static_cast<uint64_t *>(value) = bytes;
  return cudaSuccess;
}

// ---- questions and advice

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  uint64_t left = 0, all = 0;
  const cudaError_t failed = check(driver().memory_info(&left, &all));
  if (free_bytes != nullptr) *free_bytes = left;
  if (total_bytes != nullptr) *total_bytes = all;
  return failed;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  if (attributes == nullptr) return fail(cudaErrorInvalidValue, "cudaPointerGetAttributes has no place for the answer");
  *attributes = {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, const_cast<void *>(pointer)};
  const Allocation *found = find_allocation(pointer);
  if (found == nullptr) return cudaSuccess;
  void *const same = const_cast<void *>(pointer);
  attributes->device = found->device;
  attributes->devicePointer = same;
  attributes->hostPointer = found->kind == Kind::kDevice ? nullptr : same;
  attributes->type = found->kind == Kind::kDevice    ? cudaMemoryTypeDevice
                     : found->kind == Kind::kManaged ? cudaMemoryTypeManaged
                                                     : cudaMemoryTypeHost;
  return cudaSuccess;
}

namespace {
cudaError_t check_managed(const void *pointer, size_t bytes, int device, const char *call) {
  if (device != cudaCpuDeviceId && (device < 0 || device >= static_cast<int>(state().devices.size())))
    return fail(cudaErrorInvalidDevice, std::string(call) + ": there is no device " + std::to_string(device));
  const Allocation *found = find_allocation(pointer);
  if (found != nullptr && found->kind == Kind::kManaged &&
      reinterpret_cast<uint64_t>(pointer) + bytes <= found->address + found->whole_bytes)
    return cudaSuccess;
  return fail(cudaErrorInvalidValue, std::string(call) + ": the address is in no managed memory");
}
}  // namespace

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device, cudaStream_t stream) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  return check_managed(pointer, bytes, device, "cudaMemPrefetchAsync");
}

cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise, int device) {
  return check_managed(pointer, bytes, device, "cudaMemAdvise");
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t bytes, unsigned) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  return check_managed(pointer, bytes, cudaCpuDeviceId, "cudaStreamAttachMemAsync");
}

}  // namespace pk::program
