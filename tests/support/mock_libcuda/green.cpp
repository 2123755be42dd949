// green.cpp: parts of the device's multiprocessors: counted, and told apart by the groups that they were made of.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "mock.h"

namespace mock {

namespace {

constexpr uint32_t kGrain = 2;  // the least group of a device of compute capability 9.0

struct Part {
  uint32_t sms;
  std::string groups;
};

std::mutex g_mutex;
std::map<Handle, Part> g_descriptions, g_green;
Handle g_next = 0x6000;

// The first multiprocessor of a group is kept where the driver keeps what it does not tell.
DevResource resource_of(uint32_t first, uint32_t sms) {
  DevResource resource = {};
  resource.type = pk::cuda::kResourceSm;
  std::memcpy(resource.internal, &first, sizeof(first));
  resource.sm_count = sms;
  return resource;
}

}  // namespace

Result cuDeviceGetDevResource(int32_t device, DevResource *resource, uint32_t type) {
  MOCK_CALL(cuDeviceGetDevResource, "%d type %u", device, type);
  *resource = resource_of(0, static_cast<uint32_t>(setting("MOCK_CUDA_SMS", 132)));
  return 0;
}

Result cuDevSmResourceSplitByCount(DevResource *groups, uint32_t *count, const DevResource *whole, DevResource *rest,
                                   uint32_t flags, uint32_t least_sms) {
  MOCK_CALL(cuDevSmResourceSplitByCount, "of %u flags %u least %u%s", whole->sm_count, flags, least_sms,
            groups == nullptr ? " count" : "");
  const uint32_t grain = (flags & pk::cuda::kSplitIgnoreCoscheduling) != 0 ? kGrain : 4 * kGrain;
  const uint32_t size = (least_sms + grain - 1) / grain * grain, made = whole->sm_count / size;
  if (groups == nullptr) {
    *count = made;
    return 0;
  }
  *count = *count < made ? *count : made;
  for (uint32_t i = 0; i < *count; ++i) groups[i] = resource_of(i * size, size);
  const uint32_t left = whole->sm_count - *count * size;
  if (rest != nullptr) *rest = left > 0 ? resource_of(*count * size, left) : DevResource{};
  return 0;
}

Result cuDevResourceGenerateDesc(Handle *description, DevResource *resources, uint32_t count) {
  MOCK_CALL(cuDevResourceGenerateDesc, "%u", count);
  Part part = {0, ""};
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t first = 0;
    std::memcpy(&first, resources[i].internal, sizeof(first));
    part.sms += resources[i].sm_count;
    part.groups += (i == 0 ? "" : ",") + std::to_string(first);
  }
  std::lock_guard<std::mutex> lock(g_mutex);
  g_descriptions[ *description = ++g_next] = part;
  return 0;
}

Result cuGreenCtxCreate(Handle *green, Handle description, int32_t device, uint32_t flags) {
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_descriptions.find(description);
  if (found == g_descriptions.end() || flags != pk::cuda::kGreenDefaultStream) return 1;
  MOCK_CALL(cuGreenCtxCreate, "device %d sms %u first %s", device, found->second.sms, found->second.groups.c_str());
  g_green[ *green = ++g_next] = found->second;
  return 0;
}

Result cuGreenCtxDestroy(Handle green) {
  MOCK_CALL(cuGreenCtxDestroy, "%s", "");
  std::lock_guard<std::mutex> lock(g_mutex);
  return g_green.erase(green) == 1 ? 0 : 1;
}

Result cuGreenCtxGetDevResource(Handle green, DevResource *resource, uint32_t type) {
  MOCK_CALL(cuGreenCtxGetDevResource, "type %u", type);
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_green.find(green);
  if (found == g_green.end()) return 1;
  *resource = resource_of(0, found->second.sms);
  return 0;
}

Result cuGreenCtxStreamCreate(Handle *stream, Handle green, uint32_t flags, int32_t priority) {
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    if (g_green.count(green) == 0) return 1;
    MOCK_CALL(cuGreenCtxStreamCreate, "sms %u flags %u priority %d", g_green[green].sms, flags, priority);
  }
  return cuStreamCreateWithPriority(stream, flags, priority);
}

}  // namespace mock
