// pages.h: pages of the operating system: address ranges, shareable memory, and private copies of kernel images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pygpukit::sim {

// An inaccessible address range of at least `bytes`; null when the system refuses.
char *ReserveRange(uint64_t bytes);
// The same, far from everything else in the process if the system agrees: an index that overflowed ends at no page of
// the host, which would take the access without a fault.
char *ReserveApart(uint64_t bytes);
void ReleaseRange(char *start, uint64_t bytes);

// Memory without a name that can be mapped, and handed to another process, through its descriptor; -1 when refused.
int CreateMemory(uint64_t bytes);
int DuplicateDescriptor(int descriptor);
void CloseDescriptor(int descriptor);
// Size in bytes of what the descriptor refers to, 0 when it cannot be mapped.
uint64_t DescriptorBytes(int descriptor);

// Both act inside a reserved range.
bool MapMemory(char *address, uint64_t bytes, int descriptor);
// The pages around [offset, offset + bytes) of the descriptor, so that the first byte is at `address`, which lies as
// far into its page.
bool MapPages(char *address, uint64_t bytes, int descriptor, uint64_t offset);
bool UnmapMemory(char *address, uint64_t bytes);

// Memory that reads as zeros and is only there once it is touched; null when the system refuses.
void *ReserveZeros(uint64_t bytes);
// Makes it zeros again.
void ForgetPages(void *start, uint64_t bytes);

// Loads a shared object from memory: a new copy on every call, even of the same bytes. Null and why on failure.
void *LoadImage(const void *image, uint64_t bytes, std::string *why);

}  // namespace pygpukit::sim
