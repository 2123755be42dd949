// slices.h: which kernels the gate may launch in parts, and the variants that run the parts (jit/slicing.py makes
// them).
#pragma once
#include "pygpukit/driver.h"

namespace pk {

struct Slices {
  uint64_t function = 0;  // runs a part; 0: the launch stays whole
  uint64_t wave = 0;      // blocks that the device runs at once
};

// The variant for a launch, if there is one and the launch may be cut.
Slices slices_of(const pk_launch &launch);

// The gate would like a variant of a function. Asks once, and never waits.
void want_slices(uint64_t function);

// A function that was wanted, or 0 after the timeout. Call without the GIL.
uint64_t next_request(uint64_t timeout_ns);

// The variant of a function; 0: it has none and is not asked for again.
void set_slices(uint64_t function, uint64_t variant);

// A module goes: handles may name other functions later.
void forget_slices();

}  // namespace pk
