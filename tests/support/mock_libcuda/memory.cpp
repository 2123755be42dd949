// memory.cpp: virtual memory over memfd and mmap, pinned memory, copies and fills that are done at once.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "mock.h"

namespace mock {

namespace {

constexpr size_t kGranularity = 2u << 20;

struct Physical {
  int fd;
  size_t bytes;
};

std::mutex g_mutex;
std::map<Handle, Physical> g_physical;
std::map<Address, size_t> g_reserved, g_mapped, g_managed;
std::map<void *, size_t> g_pinned, g_registered;
uint64_t g_used_bytes = 0, g_pinned_bytes = 0;
Handle g_next = 1;

bool aligned(uint64_t value) { return value != 0 && value % kGranularity == 0; }

Handle keep(int fd, size_t bytes) {
  g_physical[g_next] = {fd, bytes};
  return g_next++;
}

// The address range lies in one mapping, as every copy and fill must.
bool is_mapped(Address address, size_t bytes) {
  std::lock_guard<std::mutex> lock(g_mutex);
  auto after = g_mapped.upper_bound(address);
  if (after == g_mapped.begin()) return false;
  const auto &[start, size] = *std::prev(after);
  return address + bytes <= start + size;
}

template <typename T>
Result fill(Address dst, T value, size_t count) {
  if (!is_mapped(dst, count * sizeof(T)) || dst % sizeof(T) != 0) return 1;
  auto *out = reinterpret_cast<T *>(dst);
  for (size_t i = 0; i < count; ++i) out[i] = value;
  return 0;
}

}  // namespace

void add_memory(Address address, size_t bytes) {
  std::lock_guard<std::mutex> lock(g_mutex);
  g_mapped[address] = bytes;
}

Result cuMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  MOCK_CALL(cuMemGetInfo, "%s", "");
  MOCK_CONTEXT();
  std::lock_guard<std::mutex> lock(g_mutex);
  *total_bytes = memory_bytes();
  *free_bytes = memory_bytes() - g_used_bytes;
  return 0;
}

Result cuMemGetAllocationGranularity(size_t *bytes, const MemAllocationProp *prop, uint32_t) {
  MOCK_CALL(cuMemGetAllocationGranularity, "type %u location %u:%d", prop->type, prop->location.type,
            prop->location.id);
  *bytes = kGranularity;
  return 0;
}

Result cuMemAddressReserve(Address *address, size_t bytes, size_t, Address, uint64_t) {
  MOCK_CALL(cuMemAddressReserve, "%zu", bytes);
  if (!aligned(bytes)) return 1;
  void *base = mmap(nullptr, bytes + kGranularity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return 2;
  *address = (reinterpret_cast<Address>(base) + kGranularity - 1) / kGranularity * kGranularity;
  std::lock_guard<std::mutex> lock(g_mutex);
  g_reserved[*address] = bytes;
  return 0;
}

Result cuMemAddressFree(Address address, size_t bytes) {
  MOCK_CALL(cuMemAddressFree, "%zu", bytes);
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_reserved.find(address);
  if (found == g_reserved.end() || found->second != bytes) return 1;
  g_reserved.erase(found);
  munmap(reinterpret_cast<void *>(address), bytes);
  return 0;
}

Result cuMemCreate(Handle *physical, size_t bytes, const MemAllocationProp *prop, uint64_t) {
  MOCK_CALL(cuMemCreate, "%zu type %u handles %u location %u:%d", bytes, prop->type, prop->requested_handle_types,
            prop->location.type, prop->location.id);
  if (!aligned(bytes)) return 1;
  std::lock_guard<std::mutex> lock(g_mutex);
  if (g_used_bytes + bytes > memory_bytes()) return 2;
  const int fd = memfd_create("mock", 0);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return 2;
  g_used_bytes += bytes;
  *physical = keep(fd, bytes);
  return 0;
}

Result cuMemRelease(Handle physical) {
  MOCK_CALL(cuMemRelease, "%lu", physical);
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_physical.find(physical);
  if (found == g_physical.end()) return 1;
  g_used_bytes -= found->second.bytes;
  close(found->second.fd);
  g_physical.erase(found);
  return 0;
}

Result cuMemMap(Address address, size_t bytes, size_t offset, Handle physical, uint64_t) {
  MOCK_CALL(cuMemMap, "%zu physical %lu", bytes, physical);
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_physical.find(physical);
  if (found == g_physical.end() || offset != 0 || found->second.bytes != bytes || g_mapped.count(address) != 0)
    return 1;
  // No access yet: a caller that forgets cuMemSetAccess faults, as on a device.
  void *at = reinterpret_cast<void *>(address);
  if (mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, found->second.fd, 0) == MAP_FAILED) return 1;
  g_mapped[address] = bytes;
  return 0;
}

Result cuMemUnmap(Address address, size_t bytes) {
  MOCK_CALL(cuMemUnmap, "%zu", bytes);
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_mapped.find(address);
  if (found == g_mapped.end() || found->second != bytes) return 1;
  g_mapped.erase(found);
  mmap(reinterpret_cast<void *>(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
       0);
  return 0;
}

Result cuMemSetAccess(Address address, size_t bytes, const MemAccessDesc *access, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    MOCK_CALL(cuMemSetAccess, "%zu location %u:%d flags %u", bytes, access[i].location.type, access[i].location.id,
              access[i].flags);
    if (access[i].flags != pk::cuda::kAccessReadWrite) return 1;
  }
  if (count == 0 || !is_mapped(address, bytes)) return 1;
  return mprotect(reinterpret_cast<void *>(address), bytes, PROT_READ | PROT_WRITE) == 0 ? 0 : 1;
}

Result cuMemExportToShareableHandle(void *handle, Handle physical, uint32_t type, uint64_t) {
  MOCK_CALL(cuMemExportToShareableHandle, "type %u", type);
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_physical.find(physical);
  if (found == g_physical.end() || type != pk::cuda::kHandlePosixFd) return 1;
  *static_cast<int *>(handle) = dup(found->second.fd);
  return 0;
}

Result cuMemImportFromShareableHandle(Handle *physical, void *handle, uint32_t type) {
  MOCK_CALL(cuMemImportFromShareableHandle, "type %u", type);
  struct stat file;
  const int fd = dup(static_cast<int>(reinterpret_cast<intptr_t>(handle)));
  if (fd < 0 || fstat(fd, &file) != 0 || type != pk::cuda::kHandlePosixFd) return 1;
  std::lock_guard<std::mutex> lock(g_mutex);
  g_used_bytes += static_cast<uint64_t>(file.st_size);
  *physical = keep(fd, static_cast<size_t>(file.st_size));
  return 0;
}

Result cuMemHostAlloc(void **host, size_t bytes, uint32_t flags) {
  MOCK_CALL(cuMemHostAlloc, "%zu flags %u", bytes, flags);
  bytes = (bytes + 4095) / 4096 * 4096;
  std::lock_guard<std::mutex> lock(g_mutex);
  rlimit locked = {RLIM_INFINITY, RLIM_INFINITY};
  if (setting("MOCK_CUDA_MEMLOCK", 0) != 0) getrlimit(RLIMIT_MEMLOCK, &locked);
  if (g_pinned_bytes + bytes > locked.rlim_cur) return 2;
  *host = std::aligned_alloc(4096, bytes);
  if (*host == nullptr) return 2;
  g_pinned[*host] = bytes;
  g_pinned_bytes += bytes;
  return 0;
}

Result cuMemFreeHost(void *host) {
  MOCK_CALL(cuMemFreeHost, "%s", "");
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_pinned.find(host);
  if (found == g_pinned.end()) return 1;
  g_pinned_bytes -= found->second;
  g_pinned.erase(found);
  std::free(host);
  return 0;
}

Result cuMemHostRegister(void *host, size_t bytes, uint32_t flags) {
  MOCK_CALL(cuMemHostRegister, "%zu flags %u", bytes, flags);
  if (host == nullptr || bytes == 0) return 1;
  std::lock_guard<std::mutex> lock(g_mutex);
  return g_registered.emplace(host, bytes).second ? 0 : 712;
}

Result cuMemHostUnregister(void *host) {
  MOCK_CALL(cuMemHostUnregister, "%s", "");
  std::lock_guard<std::mutex> lock(g_mutex);
  return g_registered.erase(host) == 1 ? 0 : 713;
}

Result cuMemAllocManaged(Address *address, size_t bytes, uint32_t flags) {
  MOCK_CALL(cuMemAllocManaged, "%zu flags %u", bytes, flags);
  if (bytes == 0) return 1;
  bytes = (bytes + 4095) / 4096 * 4096;
  std::lock_guard<std::mutex> lock(g_mutex);
  if (g_used_bytes + bytes > memory_bytes()) return 2;
  void *base = std::aligned_alloc(4096, bytes);
  if (base == nullptr) return 2;
  g_used_bytes += bytes;
  *address = reinterpret_cast<Address>(base);
  g_managed[*address] = bytes;
  g_mapped[*address] = bytes;
  return 0;
}

Result cuMemFree(Address address) {
  MOCK_CALL(cuMemFree, "%s", "");
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_managed.find(address);
  if (found == g_managed.end()) return 1;
  g_used_bytes -= found->second;
  g_mapped.erase(address);
  g_managed.erase(found);
  std::free(reinterpret_cast<void *>(address));
  return 0;
}

Result cuMemcpyHtoDAsync(Address dst, const void *src, size_t bytes, Handle stream) {
  MOCK_CALL(cuMemcpyHtoDAsync, "%zu stream %lu", bytes, stream);
  if (!is_mapped(dst, bytes)) return 1;
  std::memcpy(reinterpret_cast<void *>(dst), src, bytes);
  return 0;
}

Result cuMemcpyDtoHAsync(void *dst, Address src, size_t bytes, Handle stream) {
  MOCK_CALL(cuMemcpyDtoHAsync, "%zu stream %lu", bytes, stream);
  if (!is_mapped(src, bytes)) return 1;
  std::memcpy(dst, reinterpret_cast<const void *>(src), bytes);
  return 0;
}

Result cuMemcpyDtoDAsync(Address dst, Address src, size_t bytes, Handle stream) {
  MOCK_CALL(cuMemcpyDtoDAsync, "%zu stream %lu", bytes, stream);
  if (!is_mapped(dst, bytes) || !is_mapped(src, bytes)) return 1;
  std::memmove(reinterpret_cast<void *>(dst), reinterpret_cast<const void *>(src), bytes);
  return 0;
}

Result cuMemcpyPeerAsync(Address dst, Handle dst_context, Address src, Handle src_context, size_t bytes,
                         Handle stream) {
  MOCK_CALL(cuMemcpyPeerAsync, "%zu from %lx to %lx stream %lu", bytes, src_context, dst_context, stream);
  if (!is_mapped(dst, bytes) || !is_mapped(src, bytes)) return 1;
  std::memmove(reinterpret_cast<void *>(dst), reinterpret_cast<const void *>(src), bytes);
  return 0;
}

Result cuMemsetD8Async(Address dst, uint8_t value, size_t count, Handle stream) {
  MOCK_CALL(cuMemsetD8Async, "%zu stream %lu", count, stream);
  return fill(dst, value, count);
}

Result cuMemsetD16Async(Address dst, uint16_t value, size_t count, Handle stream) {
  MOCK_CALL(cuMemsetD16Async, "%zu stream %lu", count, stream);
  return fill(dst, value, count);
}

Result cuMemsetD32Async(Address dst, uint32_t value, size_t count, Handle stream) {
  MOCK_CALL(cuMemsetD32Async, "%zu stream %lu", count, stream);
  return fill(dst, value, count);
}

}  // namespace mock
