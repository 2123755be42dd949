// memory.cpp: virtual memory (reserve, create, map, export), who else may use it, and pinned host memory.
#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "cuda/table.h"

namespace pk::cuda {

namespace {

pk_status no_device(const char *call) { return fail(kErrorInvalidContext, call, nullptr); }

MemAllocationProp properties(const Device &device) {
  MemAllocationProp prop = {};
  prop.type = kAllocationPinned;
  prop.requested_handle_types = device.exportable ? kHandlePosixFd : kHandleNone;
  prop.location = {kLocationDevice, device.handle};
  return prop;
}

// What is mapped on a device, and which others may use it. Held while access is set, so that no mapping is missed.
struct Mappings {
  std::mutex mutex;
  std::map<Address, uint64_t> own;  // bytes of each; memory of other processes is not among them
  std::vector<int32_t> shared_with;
};
auto *const g_mappings = new Mappings[kMaxDevices];  // leaked: threads may outlive static destruction

std::mutex *const g_imported_mutex = new std::mutex;
auto *const g_imported = new std::set<Handle>;  // memory of other processes

bool is_imported(Handle physical) {
  std::lock_guard<std::mutex> lock(*g_imported_mutex);
  return g_imported->count(physical) != 0;
}

MemAccessDesc read_write(const Device &device) { return {{kLocationDevice, device.handle}, kAccessReadWrite}; }

}  // namespace

pk_status granularity(uint64_t *bytes) {
  const Device *device = current_device();
  if (device == nullptr) return no_device("cuMemGetAllocationGranularity");
  const MemAllocationProp prop = properties(*device);
  size_t value = 0;
  const pk_status status = PK_CU(cuMemGetAllocationGranularity, &value, &prop, kGranularityMinimum);
  *bytes = value;
  return status;
}

pk_status address_reserve(uint64_t bytes, uint64_t *address) {
  return PK_CU(cuMemAddressReserve, address, bytes, 0, 0, 0);
}

pk_status address_free(uint64_t address, uint64_t bytes) { return PK_CU(cuMemAddressFree, address, bytes); }

pk_status physical_create(uint64_t bytes, uint64_t *physical) {
  const Device *device = current_device();
  if (device == nullptr) return no_device("cuMemCreate");
  const MemAllocationProp prop = properties(*device);
  return PK_CU(cuMemCreate, physical, bytes, &prop, 0);
}

pk_status physical_release(uint64_t physical) {
  {
    std::lock_guard<std::mutex> lock(*g_imported_mutex);
    g_imported->erase(physical);
  }
  return PK_CU(cuMemRelease, physical);
}

pk_status map(uint64_t address, uint64_t bytes, uint64_t physical) {
  const Device *device = current_device();
  if (device == nullptr) return no_device("cuMemMap");
  Mappings &mappings = g_mappings[current_ordinal()];
  std::lock_guard<std::mutex> lock(mappings.mutex);
  if (pk_status status = PK_CU(cuMemMap, address, bytes, 0, physical, 0)) return status;
  std::vector<MemAccessDesc> access{read_write(*device)};
  const bool own = !is_imported(physical);
  if (own) {
    for (const int32_t peer : mappings.shared_with) access.push_back(read_write(library().devices[peer]));
  }
  const pk_status status = PK_CU(cuMemSetAccess, address, bytes, access.data(), access.size());
  if (status != PK_OK) {
    g_api.cuMemUnmap(address, bytes);  // all or nothing
  } else if (own) {
    mappings.own[address] = bytes;
  }
  return status;
}

pk_status unmap(uint64_t address, uint64_t bytes) {
  if (current_device() == nullptr) return no_device("cuMemUnmap");
  Mappings &mappings = g_mappings[current_ordinal()];
  std::lock_guard<std::mutex> lock(mappings.mutex);
  const pk_status status = PK_CU(cuMemUnmap, address, bytes);
  if (status == PK_OK) mappings.own.erase(address);
  return status;
}

bool shares_memory(int32_t owner, int32_t with) {
  Mappings &mappings = g_mappings[owner];
  std::lock_guard<std::mutex> lock(mappings.mutex);
  return std::count(mappings.shared_with.begin(), mappings.shared_with.end(), with) != 0;
}

pk_status share_memory(int32_t owner, int32_t with) {
  Mappings &mappings = g_mappings[owner];
  std::lock_guard<std::mutex> lock(mappings.mutex);
  if (std::count(mappings.shared_with.begin(), mappings.shared_with.end(), with) != 0) return PK_OK;
  const MemAccessDesc access = read_write(library().devices[with]);
  for (const auto &[address, bytes] : mappings.own) {
    if (pk_status status = PK_CU(cuMemSetAccess, address, bytes, &access, 1)) return status;
  }
  mappings.shared_with.push_back(with);
  return PK_OK;
}

pk_status physical_export(uint64_t physical, int32_t *fd) {
  if (g_api.cuMemExportToShareableHandle == nullptr) return missing("cuMemExportToShareableHandle");
  const Device *device = current_device();
  if (device != nullptr && !device->exportable) {
    return fail(PK_ERROR_NOT_SUPPORTED, "cuMemExportToShareableHandle",
                "this device's memory cannot be shared as a file descriptor (so it is under WSL and Windows)");
  }
  return PK_CU(cuMemExportToShareableHandle, fd, physical, kHandlePosixFd, 0);
}

pk_status physical_import(int32_t fd, uint64_t, uint64_t *physical) {
  if (g_api.cuMemImportFromShareableHandle == nullptr) return missing("cuMemImportFromShareableHandle");
  void *handle = reinterpret_cast<void *>(static_cast<intptr_t>(fd));  // by value, as the driver wants it
  const pk_status status = PK_CU(cuMemImportFromShareableHandle, physical, handle, kHandlePosixFd);
  if (status == PK_OK) {
    std::lock_guard<std::mutex> lock(*g_imported_mutex);
    g_imported->insert(*physical);
  }
  return status;
}

pk_status host_alloc(uint64_t bytes, void **host) { return PK_CU(cuMemHostAlloc, host, bytes, kHostAllocPortable); }

pk_status host_free(void *host) { return PK_CU(cuMemFreeHost, host); }

pk_status host_register(void *host, uint64_t bytes) {
  return PK_CU(cuMemHostRegister, host, bytes, kHostAllocPortable);
}

pk_status host_unregister(void *host) { return PK_CU(cuMemHostUnregister, host); }

pk_status managed_alloc(uint64_t bytes, uint64_t *address) {
  return PK_CU(cuMemAllocManaged, address, bytes, kAttachGlobal);
}

pk_status managed_free(uint64_t address, uint64_t) { return PK_CU(cuMemFree, address); }

}  // namespace pk::cuda
