// allocations.h: what memory the program has, by address, and who may touch it now.
#pragma once
#include <cstdint>
#include <optional>

#include "program/state.h"

namespace pk::program {

enum class Kind { kDevice, kManaged, kPinned, kRegistered, kSymbol };

struct Allocation {
  Kind kind;
  uint64_t address, bytes;  // as asked for
  uint64_t whole_bytes;     // that are mapped
  uint64_t physical;        // 0: not of its own
  int device;
  Place place;
  uint64_t serial;  // never given out twice
};
struct Freed {
  Allocation was;
  Place place;
};

// Of the current device. Fails with cudaErrorMemoryAllocation.
cudaError_t allocate(Kind kind, uint64_t bytes, Allocation *made);
// Back to the driver.
cudaError_t release(const Allocation &allocation);

// That an address lies in, its end included; null for memory that the runtime knows nothing of.
const Allocation *find_allocation(uint64_t address);
inline const Allocation *find_allocation(const void *pointer) {
  return find_allocation(reinterpret_cast<uint64_t>(pointer));
}
const Freed *find_freed(uint64_t address);
// "inside the 4096 bytes of cudaMalloc at a.cu:7", "20 bytes past the end of ...", "freed at ...", or "" for others.
std::string describe_address(uint64_t address);
std::vector<Allocation> all_allocations();
void add_allocation(const Allocation &allocation);
void forget_allocation(const Allocation &allocation);
// What the program has not given back.
void tell_leaks();

// While one exists the device's memory can be touched: by kernels and copies, which are done when it goes. Host text
// that touches device memory at any other time ends in host_access.cpp. Nothing on a real device.
class Gate {
 public:
  Gate();                                       // all memory
  explicit Gate(const Allocation *allocation);  // one allocation's; null for none
  ~Gate();
  Gate(const Gate &) = delete;
  Gate &operator=(const Gate &) = delete;

 private:
  const Allocation *const one_;
  const bool all_;
};

// Memory that host text must not touch, if the address lies in some.
const Allocation *find_closed(uint64_t address);

}  // namespace pk::program
