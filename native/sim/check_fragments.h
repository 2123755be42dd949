// check_fragments.h: what checked threads do to the elements of their warp matrix fragments. Which element of a matrix
// x[i] of a lane is nobody knows: who writes some of them alone relies on an order that there is not.
#pragma once

#include <cstdint>
#include <map>

namespace pygpukit::sim {

class Fragments {
 public:
  // Written to a part of the elements, the others neither read nor written.
  struct Part {
    bool is_written = false;
    unsigned element = 0, elements = 0;  // the first one that was written, and how many there are
    uint32_t site = 0;                   // of a write
  };

  void Clear() { states_.clear(); }
  bool any() const { return !states_.empty(); }
  // All elements have values of a matrix: what was done to them before counts no more.
  void Set(uintptr_t elements, unsigned bytes, unsigned element_bytes);
  void Touch(uintptr_t address, uint64_t bytes, bool writes, uint32_t site);
  // What was done since Set(), when the elements count as a matrix again.
  Part Use(uintptr_t elements) const;

 private:
  struct State {
    unsigned bytes, element_bytes;
    uint64_t touched, written;  // a bit for each element
    uint32_t site;
  };
  std::map<uintptr_t, State> states_;  // by the address of the elements
};

}  // namespace pygpukit::sim
