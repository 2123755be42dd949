// memory.cpp: virtual memory (reserve, create, map, export) and pinned host memory.
#include <cstdint>

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

pk_status physical_release(uint64_t physical) { return PK_CU(cuMemRelease, physical); }

pk_status map(uint64_t address, uint64_t bytes, uint64_t physical) {
  const Device *device = current_device();
  if (device == nullptr) return no_device("cuMemMap");
  if (pk_status status = PK_CU(cuMemMap, address, bytes, 0, physical, 0)) return status;
  const MemAccessDesc access = {{kLocationDevice, device->handle}, kAccessReadWrite};
  const pk_status status = PK_CU(cuMemSetAccess, address, bytes, &access, 1);
  if (status != PK_OK) g_api.cuMemUnmap(address, bytes);  // all or nothing
  return status;
}

pk_status unmap(uint64_t address, uint64_t bytes) { return PK_CU(cuMemUnmap, address, bytes); }

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
  return PK_CU(cuMemImportFromShareableHandle, physical, handle, kHandlePosixFd);
}

pk_status host_alloc(uint64_t bytes, void **host) { return PK_CU(cuMemHostAlloc, host, bytes, kHostAllocPortable); }

pk_status host_free(void *host) { return PK_CU(cuMemFreeHost, host); }

}  // namespace pk::cuda
