// calls_memory.cpp: calls of the driver table about devices, memory and copies.
#include <cstdlib>

#include "sim/calls.h"
#include "sim/state.h"
#include "sim/transfer.h"

namespace pygpukit::sim {

static pk_status CheckDevice(int32_t device) {
  if (pk_status bad = CheckProcess()) return bad;
  if (device >= 0 && device < state->config.devices) return PK_OK;
  return Fail(PK_ERROR_INVALID_DEVICE,
              Format("there is no device %d: %d are simulated", static_cast<int>(device), state->config.devices));
}

pk_status DeviceCount(int32_t *count) {
  *count = state->config.devices;
  return PK_OK;
}

pk_status DeviceInfo(int32_t device, pk_device_info *info) {
  if (pk_status bad = CheckDevice(device)) return bad;
  state->devices[static_cast<size_t>(device)]->Info(info);
  return PK_OK;
}

pk_status DeviceAttribute(int32_t device, int32_t attribute, int32_t *) {
  if (pk_status bad = CheckDevice(device)) return bad;
  return Fail(PK_ERROR_NOT_SUPPORTED, "the simulated device has no attribute " + std::to_string(attribute));
}

pk_status DeviceUse(int32_t device) {
  if (pk_status bad = CheckDevice(device)) return bad;
  MakeCurrent(device);
  return PK_OK;
}

pk_status DeviceWait() {
  return OnDevice([](Device &device) {
    device.WaitIdle();
    return device.Fault();
  });
}

pk_status MemoryInfo(uint64_t *free_bytes, uint64_t *total_bytes) {
  return OnDevice([&](Device &device) {
    device.memory.Info(free_bytes, total_bytes);
    return pk_status{PK_OK};
  });
}

// ---- memory

pk_status Granularity(uint64_t *bytes) {
  *bytes = kGranule;
  return PK_OK;
}
pk_status AddressReserve(uint64_t bytes, uint64_t *address) {
  return OnDevice([&](Device &device) { return device.memory.Reserve(bytes, address); });
}
pk_status AddressFree(uint64_t address, uint64_t bytes) {
  return OnDevice([&](Device &device) { return device.memory.Free(address, bytes); });
}
pk_status PhysicalCreate(uint64_t bytes, uint64_t *physical) {
  return OnDevice([&](Device &device) { return device.memory.Create(bytes, physical); });
}
pk_status PhysicalRelease(uint64_t physical) {
  return OnDevice([&](Device &device) { return device.memory.Release(physical); });
}
pk_status Map(uint64_t address, uint64_t bytes, uint64_t physical) {
  return OnDevice([&](Device &device) { return device.memory.Map(address, bytes, physical); });
}
pk_status Unmap(uint64_t address, uint64_t bytes) {
  return OnDevice([&](Device &device) { return device.memory.Unmap(address, bytes); });
}
pk_status PhysicalExport(uint64_t physical, int32_t *fd) {
  return OnDevice([&](Device &device) { return device.memory.Export(physical, fd); });
}
pk_status PhysicalImport(int32_t fd, uint64_t bytes, uint64_t *physical) {
  return OnDevice([&](Device &device) { return device.memory.Import(fd, bytes, physical); });
}

pk_status HostAlloc(uint64_t bytes, void **host) {
  return OnDevice([&](Device &) -> pk_status {
    constexpr uint64_t kPage = 4096;
    if (bytes == 0 || bytes > (uint64_t{1} << 46)) return Fail(PK_ERROR_INVALID_VALUE, "host_alloc: no such size");
    *host = aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (!*host) return Fail(PK_ERROR_OUT_OF_MEMORY, "the system refused pinned host memory");
    std::lock_guard guard(state->host_mutex);
    state->host_blocks[reinterpret_cast<uint64_t>(*host)] = bytes;
    return PK_OK;
  });
}

pk_status HostFree(void *host) {
  return OnDevice([&](Device &) -> pk_status {
    std::lock_guard guard(state->host_mutex);
    if (!state->host_blocks.erase(reinterpret_cast<uint64_t>(host)))
      return Fail(PK_ERROR_INVALID_VALUE, "host_free: not from host_alloc");
    free(host);
    return PK_OK;
  });
}

// The host's memory is the device's.
pk_status HostRegister(void *, uint64_t) { return PK_OK; }
pk_status HostUnregister(void *) { return PK_OK; }

static uint64_t Granules(uint64_t bytes) { return (bytes + kGranule - 1) / kGranule * kGranule; }

pk_status ManagedAlloc(uint64_t bytes, uint64_t *address) {
  return OnDevice([&](Device &device) -> pk_status {
    Memory &memory = device.memory;
    const uint64_t whole = Granules(bytes);
    uint64_t physical = 0;
    if (whole < bytes) return Fail(PK_ERROR_OUT_OF_MEMORY, "managed_alloc: no device has so many bytes");
    if (pk_status bad = memory.Create(whole, &physical)) return bad;
    pk_status status = memory.Reserve(whole, address);
    if (status == PK_OK) {
      status = memory.Map(*address, whole, physical);
      if (status != PK_OK) memory.Free(*address, whole);
    }
    memory.Release(physical);  // what is mapped keeps it
    return status;
  });
}

pk_status ManagedFree(uint64_t address, uint64_t bytes) {
  return OnDevice([&](Device &device) {
    const pk_status status = device.memory.Unmap(address, Granules(bytes));
    return status == PK_OK ? device.memory.Free(address, Granules(bytes)) : status;
  });
}

// ---- copies

pk_status CopyH2D(uint64_t dst, const void *src, uint64_t bytes, uint64_t stream) {
  const Place place = FindFree(stream);
  if (place.status) return place.status;
  return EnqueueCopy(place.device, place.stream.get(),
                     {dst, reinterpret_cast<uint64_t>(src), place.device, nullptr, bytes});
}
pk_status CopyD2H(void *dst, uint64_t src, uint64_t bytes, uint64_t stream) {
  const Place place = FindFree(stream);
  if (place.status) return place.status;
  return EnqueueCopy(place.device, place.stream.get(),
                     {reinterpret_cast<uint64_t>(dst), src, nullptr, place.device, bytes});
}
pk_status CopyD2D(uint64_t dst, uint64_t src, uint64_t bytes, uint64_t stream) {
  const Place place = FindFree(stream);
  if (place.status) return place.status;
  return EnqueueCopy(place.device, place.stream.get(), {dst, src, place.device, place.device, bytes});
}
pk_status FillMemory(uint64_t dst, uint32_t pattern, uint32_t width_bytes, uint64_t count, uint64_t stream) {
  const Place place = FindFree(stream);
  if (place.status) return place.status;
  return EnqueueFill(place.device, place.stream.get(), dst, pattern, width_bytes, count);
}

}  // namespace pygpukit::sim
