// counters.h: what the simulated devices have seen, counted by themselves.
#pragma once

#include <atomic>
#include <cstdint>

#include "sim/sim.h"

namespace pygpukit::sim {

inline std::atomic<uint64_t> counters[8];

inline void Count(int counter, uint64_t amount = 1) { counters[counter].fetch_add(amount, std::memory_order_relaxed); }

}  // namespace pygpukit::sim
