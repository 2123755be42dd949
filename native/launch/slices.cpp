// slices.cpp: the table of variants, and of those that the gates still want.
#include "launch/slices.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "launch/ordered.h"

namespace pk {

namespace {

using Shape = std::tuple<uint64_t, uint32_t, uint32_t>;  // variant, threads of a block, dynamic shared bytes

struct Table {
  std::mutex mutex;
  std::condition_variable asked;
  std::deque<uint64_t> requests;
  std::unordered_map<uint64_t, uint64_t> variants;  // by function; 0: wanted, or there is none
  std::map<Shape, uint64_t> waves;
  std::unordered_map<uint64_t, uint32_t> shared_bytes;  // by variant: the most that it was allowed
};

Table &table() {
  static auto *one = new Table;  // the gate's thread may outlive static objects
  return *one;
}

// 0 where the variant cannot run so. What was allowed before stays allowed: launches may be deferred that need it.
uint64_t wave_of(Table &t, uint64_t variant, const pk_launch &launch) {
  uint32_t &allowed = t.shared_bytes[variant];
  if (launch.shared_bytes > allowed) {
    if (g_raw_driver->function_set_dynamic_shared(variant, launch.shared_bytes) != PK_OK) return 0;
    allowed = launch.shared_bytes;
  }
  const uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  int32_t blocks = 0;
  if (g_raw_driver->function_occupancy(variant, threads, launch.shared_bytes, &blocks) != PK_OK || blocks < 1) return 0;
  pk_device_info info = {};
  if (g_raw_driver->device_info(t_state.device, &info) != PK_OK) return 0;
  return static_cast<uint64_t>(blocks) * static_cast<uint64_t>(info.multiprocessor_count);
}

}  // namespace

Slices slices_of(const pk_launch &launch) {
  if (launch.flags != 0) return {};  // blocks that run together, or a slice already
  Table &t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  const auto entry = t.variants.find(launch.function);
  if (entry == t.variants.end() || entry->second == 0) return {};
  const Shape shape{entry->second, launch.block[0] * launch.block[1] * launch.block[2], launch.shared_bytes};
  const auto known = t.waves.find(shape);
  const uint64_t wave = known != t.waves.end() ? known->second : t.waves[shape] = wave_of(t, entry->second, launch);
  return {wave == 0 ? 0 : entry->second, wave};
}

void want_slices(uint64_t function) {
  Table &t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  if (!t.variants.emplace(function, 0).second) return;
  t.requests.push_back(function);
  t.asked.notify_one();
}

uint64_t next_request(uint64_t timeout_ns) {
  Table &t = table();
  std::unique_lock<std::mutex> lock(t.mutex);
  if (!t.asked.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return !t.requests.empty(); })) return 0;
  const uint64_t function = t.requests.front();
  t.requests.pop_front();
  return function;
}

void set_slices(uint64_t function, uint64_t variant) {
  Table &t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  t.variants[function] = variant;
}

void forget_slices() {
  Table &t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  t.requests.clear();
  t.variants.clear();
  t.waves.clear();
  t.shared_bytes.clear();
}

}  // namespace pk
