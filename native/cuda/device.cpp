// device.cpp: devices, and the one context that each has in this process (the primary one, shared with other
// libraries).
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "cuda/table.h"

namespace pk::cuda {

namespace {

struct Context {
  std::atomic<Handle> handle = 0;  // 0: not retained yet; written once, after the rest
  int32_t lowest_priority = 0;
  int32_t greatest_priority = 0;
};

Context g_contexts[kMaxDevices];
std::mutex *const g_mutex = new std::mutex;  // leaked: threads may outlive static destruction
thread_local int32_t t_device = -1;

pk_status retain(int32_t device) {
  std::lock_guard<std::mutex> lock(*g_mutex);
  Context &context = g_contexts[device];
  if (context.handle.load(std::memory_order_relaxed) != 0) return PK_OK;
  Handle handle = 0;
  if (pk_status status = PK_CU(cuDevicePrimaryCtxRetain, &handle, library().devices[device].handle)) return status;
  if (pk_status status = PK_CU(cuCtxSetCurrent, handle)) return status;
  if (pk_status status = PK_CU(cuCtxGetStreamPriorityRange, &context.lowest_priority, &context.greatest_priority)) {
    return status;
  }
  context.handle.store(handle, std::memory_order_release);
  return PK_OK;
}

pk_status check_ordinal(int32_t device) {
  if (device >= 0 && device < library().device_count) return PK_OK;
  char detail[96];
  std::snprintf(detail, sizeof(detail), "device %d does not exist: there are %d", device, library().device_count);
  return fail(PK_ERROR_INVALID_DEVICE, "device_use", detail);
}

}  // namespace

int32_t current_ordinal() { return t_device; }

const Device *current_device() { return t_device >= 0 ? &library().devices[t_device] : nullptr; }

pk_status device_count(int32_t *count) {
  *count = library().device_count;
  return PK_OK;
}

static pk_status find_context(int32_t device, Handle *context) {
  if (pk_status status = check_ordinal(device)) return status;
  const std::string &refusal = library().devices[device].refusal;
  if (!refusal.empty()) return fail(PK_ERROR_NOT_SUPPORTED, "device_use", refusal.c_str());
  if (g_contexts[device].handle.load(std::memory_order_acquire) == 0) {
    if (pk_status status = retain(device)) return status;
  }
  *context = g_contexts[device].handle.load(std::memory_order_acquire);
  return PK_OK;
}

pk_status context_of(int32_t device, Handle *context) {
  Handle before = 0;
  const bool known = g_api.cuCtxGetCurrent(&before) == 0;
  const pk_status status = find_context(device, context);
  Handle now = 0;
  if (known && g_api.cuCtxGetCurrent(&now) == 0 && now != before) g_api.cuCtxSetCurrent(before);
  return status;
}

pk_status device_use(int32_t device) {
  Handle handle = 0;
  if (pk_status status = find_context(device, &handle)) return status;
  t_device = device;
  // Asked of the driver, not remembered: another library may have made its own context current on this thread.
  Handle current = 0;
  if (g_api.cuCtxGetCurrent(&current) == 0 && current == handle) return PK_OK;
  return PK_CU(cuCtxSetCurrent, handle);
}

pk_status device_wait() { return PK_CU(cuCtxSynchronize); }

pk_status memory_info(uint64_t *free_bytes, uint64_t *total_bytes) {
  size_t free_size = 0, total_size = 0;
  const pk_status status = PK_CU(cuMemGetInfo, &free_size, &total_size);
  *free_bytes = free_size;
  *total_bytes = total_size;
  return status;
}

pk_status clamp_priority(int32_t requested, int32_t *allowed) {
  if (t_device < 0) return fail(kErrorInvalidContext, "stream_create", nullptr);
  const Context &context = g_contexts[t_device];
  *allowed = requested;  // numerically lower is more urgent
  if (requested > context.lowest_priority) *allowed = context.lowest_priority;
  if (requested < context.greatest_priority) *allowed = context.greatest_priority;
  return PK_OK;
}

pk_status device_info(int32_t device, pk_device_info *info) {
  if (pk_status status = check_ordinal(device)) return status;
  const Device &known = library().devices[device];
  std::memset(info, 0, sizeof(*info));
  std::memcpy(info->name, known.name, sizeof(info->name));
  info->compute_major = known.compute_major;
  info->compute_minor = known.compute_minor;
  info->driver_version = library().driver_version;
  size_t total_bytes = 0;
  if (pk_status status = PK_CU(cuDeviceTotalMem, &total_bytes, known.handle)) return status;
  info->total_memory_bytes = total_bytes;
  Uuid uuid = {};
  if (pk_status status = PK_CU(cuDeviceGetUuid, &uuid, known.handle)) return status;
  std::memcpy(info->uuid, uuid.bytes, sizeof(info->uuid));
  struct Requested {
    int32_t attribute;
    int32_t *value;
  };
  const Requested required[] = {
      {kMultiprocessorCount, &info->multiprocessor_count},
      {kWarpSize, &info->warp_size},
      {kMaxThreadsPerBlock, &info->max_threads_per_block},
      {kMaxThreadsPerMultiprocessor, &info->max_threads_per_multiprocessor},
      {kMaxBlockX, &info->max_block[0]},
      {kMaxBlockX + 1, &info->max_block[1]},
      {kMaxBlockX + 2, &info->max_block[2]},
      {kMaxGridX, &info->max_grid[0]},
      {kMaxGridX + 1, &info->max_grid[1]},
      {kMaxGridX + 2, &info->max_grid[2]},
      {kMaxSharedPerBlock, &info->max_shared_per_block_bytes},
      {kMaxSharedPerBlockOptin, &info->max_shared_per_block_optin_bytes},
      {kMaxSharedPerMultiprocessor, &info->max_shared_per_multiprocessor_bytes},
      {kRegistersPerMultiprocessor, &info->registers_per_multiprocessor},
      {kL2Bytes, &info->l2_bytes},
  };
  for (const Requested &entry : required) {
    if (pk_status status = PK_CU(cuDeviceGetAttribute, entry.value, entry.attribute, known.handle)) return status;
  }
  // Virtual devices may not tell these: 0 = unknown.
  const Requested if_known[] = {{kClockKhz, &info->clock_khz},
                                {kMemoryClockKhz, &info->memory_clock_khz},
                                {kMemoryBusBits, &info->memory_bus_bits}};
  for (const Requested &entry : if_known) {
    if (g_api.cuDeviceGetAttribute(entry.value, entry.attribute, known.handle) != PK_OK) *entry.value = 0;
  }
  if (g_api.cuDeviceGetAttribute(&info->mps, kMpsEnabled, known.handle) != PK_OK) info->mps = -1;
  return PK_OK;
}

pk_status device_attribute(int32_t device, int32_t attribute, int32_t *value) {
  if (pk_status status = check_ordinal(device)) return status;
  return PK_CU(cuDeviceGetAttribute, value, attribute, library().devices[device].handle);
}

}  // namespace pk::cuda
