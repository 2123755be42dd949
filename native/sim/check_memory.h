// check_memory.h: what a checked kernel may touch: arrays in windows of their own, memory reached by other pointers,
// variables; and the shadow of each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/include/pk_sim_abi.h"

namespace pygpukit::sim {

class Memory;
class Module;

// The last write and the last reads of a piece of memory: ids of check_order.h, and the places of the accesses.
struct Cell {
  uint32_t writer, writer_site;
  uint32_t reader, reader_site;
};
// A place is an offset in the image's code, or the number of a file and a line; flags are above it.
constexpr uint32_t kSiteIsLine = 1u << 23, kSiteMask = (1u << 24) - 1;
constexpr unsigned kLineBits = 17;
constexpr size_t kFiles = 1u << (23 - kLineBits);
constexpr uint32_t kStrong = 1u << 24;  // the access was volatile or atomic
constexpr uint32_t kMany = 1u << 25;    // Cell::reader is not the only one: another is in Region::second
struct Reader {
  uint32_t id, site;
};

// What a launch says of its memory: sim.h.
struct LaunchMemory {
  struct Array {
    uint64_t id, address, bytes;
    bool freed;
    std::string name;
  };
  struct Argument {
    uint32_t parameter, element_bytes;
    std::string name;
    uint64_t array, address, bytes;
  };
  bool described = false;
  std::vector<Array> arrays;
  std::vector<Argument> arguments;
};

// How a kernel is passed an array.
struct View {
  std::string name;  // of the parameter
  uintptr_t start;   // as the kernel sees it
  unsigned element_bytes;
  uint64_t bytes;
};

struct Region {
  enum Kind : uint8_t { kArray, kShared, kVariable, kHeap };
  uintptr_t lo = 0;       // where kernels see it
  uint64_t bytes = 0;     // 0 once it was freed
  Cell *cells = nullptr;  // null until somebody looks for races
  unsigned shift = 2;     // log2 of the bytes of a cell
  Kind kind = kArray;
  bool freed = false;
  Reader *second = nullptr;  // another reader, where a cell says that there is one
  uint64_t whole_bytes = 0;  // as long as it lived
  uint64_t shadow_bytes = 0;
  std::string name;            // of a variable or of the array
  unsigned element_bytes = 0;  // 0 = not known
  std::vector<View> views;
  // Where kernels may go: from the first to the last byte of any view, and the views between, sorted and joined, where
  // they leave gaps.
  uint64_t from = 0, span = ~uint64_t{0};
  uint64_t open = 0;  // bytes from there on in which nothing but races is asked; 0 where there are gaps
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // offset and end
  uint64_t address = 0;                               // where the device has it
  uint64_t physical = 0;                              // the memory behind the window
  unsigned slot = 0, slots = 0;
  uint64_t used = 0;  // number of the last launch that knew it
};

// Windows lie in slots of a large inaccessible range, far apart, so that an index that is far off still meets the
// window of its own array, or none.
constexpr unsigned kSlotShift = 28;
constexpr size_t kSlots = 4096;
constexpr uint64_t kSlotBytes = uint64_t{1} << kSlotShift;
constexpr uint16_t kOwnVariable = 0xffff;  // in CheckMemory::shared_owner: the compiler's, of no interest
constexpr uint64_t kWindowMargin = uint64_t{64} << 20;

class CheckMemory {
 public:
  CheckMemory();
  // Places the launch's arguments in windows. False and a sentence when the system refuses memory.
  bool Prepare(const LaunchMemory &launch, Memory *memory, uint64_t launch_number, std::string *why);
  // Variables of the module and its __shared__ arrays in this thread's copy of its thread-local block.
  void Bind(const Module &module, char *shared, size_t shared_bytes, char *dynamic, uint64_t dynamic_bytes);
  // Where the kernel sees what the device has at this address.
  uintptr_t Translate(uintptr_t address);

  // The region that holds an address outside windows, and the offset in it; null when there is none.
  Region *Find(uintptr_t address, uint64_t *offset);
  // The one that an address outside every region is nearest to, within 64 MiB; null when there is none.
  Region *Nearest(uintptr_t address);
  void AddHeap(uintptr_t address, uint64_t bytes);
  bool FreeHeap(uintptr_t address, bool *twice);  // whether the block is of this launch
  void ClearHeap();

  // Whether a launch may go there in the region.
  static bool Open(const Region &region, uint64_t offset, uint64_t bytes) {
    if (offset - region.from >= region.span || region.span - (offset - region.from) < bytes) return false;
    return region.ranges.size() < 2 || InRange(region, offset, bytes);
  }

  // Each false when the system refuses memory.
  bool MakeCells(Region *region);
  bool MakeSecond(Region *region);
  bool Refine(Region *region, unsigned shift);  // smaller cells
  void ForgetShadows();

  uintptr_t arena = 0;
  Region *slots[kSlots];
  Region nothing;
  uintptr_t shared_base = 0;
  uint64_t shared_bytes = 0;
  std::vector<uint16_t> shared_owner;  // of each byte of the thread-local block: 1 + number in shared; 0 = none
  std::vector<Region *> shared;        // __shared__ variables
  std::string null_name;               // the parameter that was given a null pointer, if only one was
  Region dynamic;                      // dynamic shared memory

 private:
  static bool InRange(const Region &region, uint64_t offset, uint64_t bytes);
  static void Limit(Region *region);
  bool Place(Region *region, Memory *memory, std::string *why);
  bool TakeSlots(Region *region);
  void Bury(Region *region);
  void Drop(Region *region);
  template <class Visit>
  void ForEach(Visit visit);

  std::map<uint64_t, std::unique_ptr<Region>> arrays_;  // by id
  std::vector<std::unique_ptr<Region>> tombs_;          // windows of arrays that are gone, oldest first
  std::map<uintptr_t, Region *> by_address_;            // where the device has them
  std::map<uintptr_t, std::unique_ptr<Region>> variables_, heap_;
  std::vector<std::unique_ptr<Region>> shared_;
  uint64_t module_ = 0;  // serial
};

}  // namespace pygpukit::sim
