// calls_check.cpp: what sim.h exports about checked kernels.
#include <algorithm>
#include <cstring>

#include "sim/check.h"
#include "sim/launch.h"
#include "sim/sim.h"
#include "sim/state.h"

using namespace pygpukit::sim;

namespace {

template <size_t capacity>
void Copy(char (&to)[capacity], const std::string &text) {
  const size_t bytes = std::min(text.size(), capacity - 1);
  memcpy(to, text.data(), bytes);
  to[bytes] = 0;
}

}  // namespace

int32_t pk_sim_checked(uint64_t function) {
  pk_status status;
  const auto held = FindObject(state->functions, function, "function", &status);
  return held && held->module->check() ? static_cast<int32_t>(held->module->check()->mode) : 0;
}

void pk_sim_describe(const pk_sim_array *arrays, uint64_t array_count, const pk_sim_argument *arguments,
                     uint64_t argument_count) {
  LaunchMemory &next = NextLaunchMemory();
  next = {};
  next.described = true;
  for (const pk_sim_array *one = arrays; one != arrays + array_count; ++one)
    next.arrays.push_back({one->id, one->address, one->bytes, one->freed != 0, one->name});
  for (const pk_sim_argument *one = arguments; one != arguments + argument_count; ++one)
    next.arguments.push_back({one->parameter, one->element_bytes, one->name, one->array, one->address, one->bytes});
}

void pk_sim_watch_zones(const pk_sim_zone *zones, uint64_t count) {
  std::vector<Zone> &next = NextLaunchZones();
  next.clear();
  for (const pk_sim_zone *one = zones; one != zones + count; ++one)
    next.push_back({one->address, one->bytes, one->array_bytes, one->item_bytes, one->parameter, one->array});
}

uint64_t pk_sim_guard_bytes() { return state ? static_cast<uint64_t>(state->config.guard_bytes) : 0; }

int32_t pk_sim_get_finding(pk_sim_finding *out) {
  pk_status status;
  Device *device = state ? Current(&status) : nullptr;
  const Finding finding = device ? device->FaultFinding() : Finding();
  if (finding.kind.empty()) return 0;
  *out = {};
  Copy(out->kind, finding.kind);
  Copy(out->message, finding.message);
  Copy(out->kernel, finding.kernel);
  Copy(out->array, finding.array);
  const pk_sim_dim places[2] = {finding.block, finding.thread};
  memcpy(out->block, &places[0], sizeof out->block);
  memcpy(out->thread, &places[1], sizeof out->thread);
  out->line = finding.line;
  out->has_index = finding.has_index;
  out->index = finding.index;
  return 1;
}

void pk_sim_take_traffic(uint64_t out[5]) {
  Checker &checker = Checker::Get();
  std::lock_guard guard(checker.mutex());
  static_assert(sizeof checker.traffic == 5 * sizeof(uint64_t));
  memcpy(out, &checker.traffic, sizeof checker.traffic);
  checker.traffic = {};
}
