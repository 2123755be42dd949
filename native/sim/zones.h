// zones.h: the memory behind the arrays of a launch that belongs to none: filled before a plain kernel, looked at
// after.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/finding.h"
#include "sim/memory.h"

namespace pygpukit::sim {

struct Zone {
  uint64_t address;  // where the array ends
  uint64_t bytes;
  uint64_t array_bytes;
  uint32_t item_bytes;
  std::string parameter, array;
};

// What the calling thread has said of its next launch; taken by Launch::Make().
std::vector<Zone> &NextLaunchZones();

// No kernel has a reason to write there, and one that reads there gets no number.
void FillZones(const std::vector<Zone> &zones, Memory *memory);
// The first zone that is not as it was filled; false when all are.
bool FindOverrun(const std::vector<Zone> &zones, Memory *memory, Finding *finding);

}  // namespace pygpukit::sim
