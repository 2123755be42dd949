// zones.cpp: what a kernel that is not checked has written behind its arrays.
#include "sim/zones.h"

#include <cstring>
#include <shared_mutex>

#include "sim/status.h"

namespace pygpukit::sim {
namespace {

constexpr unsigned char kFill = 0xff;  // a NaN of every type, and -1

}  // namespace

std::vector<Zone> &NextLaunchZones() {
  static thread_local std::vector<Zone> next;
  return next;
}

void FillZones(const std::vector<Zone> &zones, Memory *memory) {
  std::shared_lock guard(memory->lock());
  for (const Zone &zone : zones)
    if (memory->CheckLocked(zone.address, zone.bytes).empty())
      memset(reinterpret_cast<void *>(zone.address), kFill, zone.bytes);
}

bool FindOverrun(const std::vector<Zone> &zones, Memory *memory, Finding *finding) {
  std::shared_lock guard(memory->lock());
  for (const Zone &zone : zones) {
    if (!memory->CheckLocked(zone.address, zone.bytes).empty()) continue;
    const auto *bytes = reinterpret_cast<const unsigned char *>(zone.address);
    uint64_t at = 0;
    while (at < zone.bytes && bytes[at] == kFill) ++at;
    if (at == zone.bytes) continue;
    finding->kind = "out of bounds";
    finding->array = zone.array.empty() ? zone.parameter : zone.array;
    finding->index = static_cast<int64_t>((zone.array_bytes + at) / zone.item_bytes);
    finding->has_index = true;
    finding->message = Format(
        "wrote %s[%lld], past the end of its %llu bytes; with check=True (--check) the thread and the line are told",
        zone.parameter.c_str(), static_cast<long long>(finding->index),
        static_cast<unsigned long long>(zone.array_bytes));
    return true;
  }
  return false;
}

}  // namespace pygpukit::sim
