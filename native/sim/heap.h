// heap.h: what malloc() and new give to kernels. Memory of its own between pages that cannot be touched, and the record
// of its blocks elsewhere: a kernel that writes past a block, or frees what is none, harms no other allocator.
#pragma once

#include <cstdint>

namespace pygpukit::sim {

constexpr uint64_t kHeapBytes = uint64_t{1} << 30;  // of addresses; only touched pages cost memory

// Null when there is no room. 16-byte aligned, also for 0 bytes.
void *HeapTake(uint64_t bytes);
// False, and no change, for what is not the start of a block in use.
bool HeapGive(void *block);

}  // namespace pygpukit::sim
