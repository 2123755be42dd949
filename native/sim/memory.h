// memory.h: the memory of one simulated device: reserved addresses, physical memory, what is mapped where.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "pygpukit/driver.h"

namespace pygpukit::sim {

constexpr uint64_t kGranule = uint64_t{2} << 20;

class Memory {
 public:
  explicit Memory(uint64_t total_bytes) : total_bytes_(total_bytes) {}

  pk_status Reserve(uint64_t bytes, uint64_t *address);
  pk_status Free(uint64_t address, uint64_t bytes);
  pk_status Create(uint64_t bytes, uint64_t *physical);
  pk_status Release(uint64_t physical);
  pk_status Map(uint64_t address, uint64_t bytes, uint64_t physical);
  pk_status Unmap(uint64_t address, uint64_t bytes);
  pk_status Export(uint64_t physical, int32_t *descriptor);
  pk_status Import(int32_t descriptor, uint64_t bytes, uint64_t *physical);
  void Info(uint64_t *free_bytes, uint64_t *total_bytes);

  // Memory of an array in a layout of the device's own: counted, and without an address.
  pk_status TakeArray(uint64_t bytes);
  void GiveArray(uint64_t bytes);

  // Memory that belongs to a module (its global variables): valid for copies, not counted.
  void AddModuleRange(uint64_t address, uint64_t bytes);
  void RemoveModuleRange(uint64_t address);

  // Maps the pages that hold [address, address + bytes) once more, so that they are also at `at`, which lies as far
  // into its page. What `physical` tells before is left as it is when it is still right. False when the system refuses.
  bool MapAgain(uint64_t address, uint64_t bytes, char *at, uint64_t *physical);
  // Address and bytes of all that is mapped, modules' variables aside.
  std::vector<std::pair<uint64_t, uint64_t>> Mapped() const;

  // Empty when all of [address, address + bytes) is mapped; else one sentence.
  std::string Check(uint64_t address, uint64_t bytes);
  // Held shared while the host touches device memory, so that it is not unmapped meanwhile.
  std::shared_mutex &lock() { return *lock_; }
  std::string CheckLocked(uint64_t address, uint64_t bytes) const;

  uint64_t physical_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t created_bytes() const { return created_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Range {
    char *start;  // with the guard zones
    uint64_t whole_bytes;
    uint64_t bytes;
  };
  struct Physical {
    int descriptor;
    uint64_t bytes;
    int mappings;
    bool released;
  };
  struct Mapping {
    uint64_t bytes;
    uint64_t physical;  // 0: a module's variables
  };
  pk_status CheckRoom(uint64_t bytes) const;
  pk_status Adopt(int descriptor, uint64_t bytes, uint64_t *physical);
  void DropIfUnused(std::map<uint64_t, Physical>::iterator at);
  const Range *Holding(uint64_t address, uint64_t bytes) const;
  bool Overlaps(uint64_t address, uint64_t bytes) const;

  const uint64_t total_bytes_;
  std::atomic<uint64_t> used_bytes_{0}, created_bytes_{0};
  // Never destroyed: work may still be under way when the interpreter exits.
  std::shared_mutex *const lock_ = new std::shared_mutex;
  std::map<uint64_t, Range> ranges_;
  std::map<uint64_t, Physical> physicals_;
  std::map<uint64_t, Mapping> mappings_;
  uint64_t next_physical_ = 1;
};

}  // namespace pygpukit::sim
