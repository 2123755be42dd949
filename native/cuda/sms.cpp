// sms.cpp: parts of a device's multiprocessors as green contexts. They share the primary context's memory and modules;
// none is ever made current: their streams are enough.
#include <mutex>
#include <string>
#include <vector>

#include "cuda/table.h"

namespace pk::cuda {

namespace {

constexpr uint32_t kGroupSms = 2;

// The one split of each device: groups of two splits may overlap.
struct Split {
  bool done = false;
  std::vector<DevResource> groups;
};
Split g_splits[kMaxDevices];
std::mutex *const g_mutex = new std::mutex;  // leaked: threads may outlive static destruction

bool has_green_contexts() {
  return g_api.cuDeviceGetDevResource != nullptr && g_api.cuDevSmResourceSplitByCount != nullptr &&
         g_api.cuDevResourceGenerateDesc != nullptr && g_api.cuGreenCtxCreate != nullptr &&
         g_api.cuGreenCtxDestroy != nullptr && g_api.cuGreenCtxGetDevResource != nullptr &&
         g_api.cuGreenCtxStreamCreate != nullptr;
}

pk_status too_old() {
  const int32_t version = library().driver_version;
  const std::string detail = "this driver supports CUDA " + std::to_string(version / 1000) + "." +
                             std::to_string(version % 1000 / 10) +
                             "; partitions of multiprocessors (green contexts) need CUDA 12.5 or newer";
  return fail(PK_ERROR_NOT_SUPPORTED, "unsupported, driver too old", detail.c_str());
}

pk_status split(const Device &device, std::vector<DevResource> *groups) {
  DevResource whole = {}, rest = {};
  if (pk_status status = PK_CU(cuDeviceGetDevResource, device.handle, &whole, kResourceSm)) return status;
  uint32_t count = 0;
  if (pk_status status =
          PK_CU(cuDevSmResourceSplitByCount, nullptr, &count, &whole, nullptr, kSplitIgnoreCoscheduling, kGroupSms)) {
    return status;
  }
  groups->resize(count);
  if (pk_status status = PK_CU(cuDevSmResourceSplitByCount, groups->data(), &count, &whole, &rest,
                               kSplitIgnoreCoscheduling, kGroupSms)) {
    return status;
  }
  groups->resize(count);
  if (rest.sm_count > 0) groups->push_back(rest);
  return PK_OK;
}

// The groups of the calling thread's device.
pk_status groups_here(const Device **device, const std::vector<DevResource> **groups) {
  *device = current_device();
  if (*device == nullptr) return fail(kErrorInvalidContext, "sm_groups", nullptr);
  if (!has_green_contexts()) return too_old();
  std::lock_guard<std::mutex> lock(*g_mutex);
  Split &known = g_splits[*device - library().devices];
  if (!known.done) {
    std::vector<DevResource> split_groups;
    if (pk_status status = split(**device, &split_groups)) return status;
    known.groups = std::move(split_groups);
    known.done = true;
  }
  *groups = &known.groups;  // never changed again
  return PK_OK;
}

}  // namespace

pk_status sm_groups(int32_t *sms, uint32_t capacity, uint32_t *count) {
  const Device *device = nullptr;
  const std::vector<DevResource> *groups = nullptr;
  if (pk_status status = groups_here(&device, &groups)) return status;
  *count = static_cast<uint32_t>(groups->size());
  for (uint32_t i = 0; i < capacity && i < *count; ++i) sms[i] = static_cast<int32_t>((*groups)[i].sm_count);
  return PK_OK;
}

pk_status sm_partition_create(const uint32_t *groups, uint32_t count, int32_t *sms, uint64_t *partition) {
  const Device *device = nullptr;
  const std::vector<DevResource> *known = nullptr;
  if (pk_status status = groups_here(&device, &known)) return status;
  std::vector<DevResource> chosen;
  for (uint32_t i = 0; i < count; ++i) {
    if (groups[i] >= known->size()) {
      const std::string detail = "group " + std::to_string(groups[i]) + " of " + std::to_string(known->size());
      return fail(PK_ERROR_INVALID_VALUE, "sm_partition_create", detail.c_str());
    }
    chosen.push_back((*known)[groups[i]]);
  }
  if (chosen.empty()) return fail(PK_ERROR_INVALID_VALUE, "sm_partition_create", "no groups");
  Handle description = 0, green = 0;
  if (pk_status status = PK_CU(cuDevResourceGenerateDesc, &description, chosen.data(), count)) return status;
  if (pk_status status = PK_CU(cuGreenCtxCreate, &green, description, device->handle, kGreenDefaultStream)) {
    return status;
  }
  DevResource got = {};
  if (pk_status status = PK_CU(cuGreenCtxGetDevResource, green, &got, kResourceSm)) {
    g_api.cuGreenCtxDestroy(green);
    return status;
  }
  *sms = static_cast<int32_t>(got.sm_count);
  *partition = green;
  return PK_OK;
}

pk_status sm_partition_destroy(uint64_t partition) {
  return has_green_contexts() ? PK_CU(cuGreenCtxDestroy, partition) : too_old();
}

pk_status sm_stream_create(uint64_t partition, int32_t priority, uint64_t *stream) {
  if (!has_green_contexts()) return too_old();
  int32_t allowed = 0;
  if (pk_status status = clamp_priority(priority, &allowed)) return status;
  return PK_CU(cuGreenCtxStreamCreate, stream, partition, kStreamNonBlocking, allowed);
}

}  // namespace pk::cuda
