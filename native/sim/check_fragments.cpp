// check_fragments.cpp: see check_fragments.h.
#include "sim/check_fragments.h"

#include <algorithm>
#include <iterator>

namespace pygpukit::sim {

void Fragments::Set(uintptr_t elements, unsigned bytes, unsigned element_bytes) {
  // Other variables lay there before.
  auto next = states_.lower_bound(elements);
  if (next != states_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > elements) --next;
  while (next != states_.end() && next->first < elements + bytes) next = states_.erase(next);
  states_[elements] = {bytes, element_bytes, 0, 0, 0};
}

void Fragments::Touch(uintptr_t address, uint64_t bytes, bool writes, uint32_t site) {
  for (auto at = states_.upper_bound(address + bytes - 1); at != states_.begin();) {
    State &state = (--at)->second;
    const uintptr_t end = std::min<uintptr_t>(address + bytes, at->first + state.bytes);
    if (end <= address) return;
    const uintptr_t begin = std::max<uintptr_t>(address, at->first);
    for (uintptr_t one = begin; one < end; ++one) {
      const uint64_t bit = uint64_t{1} << (one - at->first) / state.element_bytes;
      state.touched |= bit;
      if (writes) state.written |= bit, state.site = site;
    }
  }
}

Fragments::Part Fragments::Use(uintptr_t elements) const {
  const auto at = states_.find(elements);
  if (at == states_.end()) return {};
  const State &state = at->second;
  const unsigned count = state.bytes / state.element_bytes;
  const uint64_t all = count < 64 ? (uint64_t{1} << count) - 1 : ~uint64_t{0};
  if (!state.written || state.touched == all) return {};
  return {true, static_cast<unsigned>(__builtin_ctzll(state.written)), count, state.site};
}

}  // namespace pygpukit::sim
