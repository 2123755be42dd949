// calls_sms.cpp: calls of the driver table about partitions of the multiprocessors.
#include <algorithm>

#include "sim/calls.h"
#include "sim/state.h"

namespace pygpukit::sim {
namespace {

constexpr unsigned kGroupSms = 2;  // as a device of compute capability 9.0; the last group may have one

unsigned Groups(const Device &device) { return (static_cast<unsigned>(device.sms()) + kGroupSms - 1) / kGroupSms; }

}  // namespace

pk_status SmGroups(int32_t *sms, uint32_t capacity, uint32_t *count) {
  return OnDevice([&](Device &device) {
    *count = Groups(device);
    for (uint32_t i = 0; i < capacity && i < *count; ++i)
      sms[i] = std::min<int32_t>(kGroupSms, device.sms() - static_cast<int32_t>(i * kGroupSms));
    return pk_status{PK_OK};
  });
}

pk_status SmPartitionCreate(const uint32_t *groups, uint32_t count, int32_t *sms, uint64_t *partition) {
  return OnDevice([&](Device &device) -> pk_status {
    auto set = std::make_shared<SmSet>();
    for (uint32_t i = 0; i < count; ++i) {
      if (groups[i] >= Groups(device) || std::find(groups, groups + i, groups[i]) != groups + i)
        return Fail(PK_ERROR_INVALID_VALUE, Format("sm_partition_create: group %u, of %u, is unknown or named twice",
                                                   static_cast<unsigned>(groups[i]), Groups(device)));
      for (unsigned sm = groups[i] * kGroupSms;
           sm < (groups[i] + 1) * kGroupSms && sm < static_cast<unsigned>(device.sms()); ++sm)
        set->sms.push_back(sm);
    }
    if (set->sms.empty()) return Fail(PK_ERROR_INVALID_VALUE, "sm_partition_create: no groups");
    *sms = static_cast<int32_t>(set->sms.size());
    *partition = state->partitions.Add(std::make_shared<SmPartition>(SmPartition{&device, std::move(set)}));
    return PK_OK;
  });
}

pk_status SmPartitionDestroy(uint64_t partition) {
  pk_status status;
  if (!FindObject(state->partitions, partition, "partition", &status)) return status;
  state->partitions.Remove(partition);
  return PK_OK;
}

pk_status SmStreamCreate(uint64_t partition, int32_t priority, uint64_t *stream) {
  pk_status status;
  const auto held = FindObject(state->partitions, partition, "partition", &status);
  return held ? MakeStream(*held->device, priority, held->set, stream) : status;
}

}  // namespace pygpukit::sim
