// check.h: the checker: looks at every access of a checked kernel. One checked launch runs at a time in the process, on
// one core, so that its runs are all the same and the checker is one object that compiled code reaches at once.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "pygpukit/driver.h"
#include "sim/check_fragments.h"
#include "sim/check_memory.h"
#include "sim/check_order.h"
#include "sim/finding.h"
#include "sim/include/pk_sim_check_abi.h"

namespace pygpukit::sim {

class Core;
class Module;
struct KernelRun;

// Bytes moved, in the order of pk_sim_take_traffic().
struct Traffic {
  uint64_t global_loaded, global_stored, shared_loaded, shared_stored, flops;
};

class Checker {
 public:
  static Checker &Get();

  // ---- by launches. Held from Begin() to End().
  std::mutex &mutex() { return mutex_; }
  // Puts the launch's arrays where the kernel shall see them, and the pointers among its arguments right.
  bool Begin(const KernelRun &run, const LaunchMemory &launch, Memory *memory, std::string *why);
  void End();

  // ---- by the core that runs the kernel
  void Attach(Core *core, char *thread_memory, size_t thread_memory_bytes, char *dynamic, uint64_t dynamic_bytes);
  void Barrier();
  void GridBarrier() { order_.GridBarrier(); }
  void WarpSync(unsigned warp, unsigned lanes);
  void Resume(unsigned thread);
  void ResumeBlock(uint64_t block);
  void HeapTaken(const void *block, uint64_t bytes);
  bool HeapFreed(const void *block, bool *twice);
  unsigned thread() const { return order_.thread(); }
  // What was found and only waited for what would come. It explains whatever failure comes after.
  void TellPending();
  bool TakeUnwritten(Finding *finding);

  // ---- by compiled kernels, through the table
  void Access(uintptr_t address, uint64_t bytes, pk_sim_access kind, uint32_t site);
  void BeginBlock(uint64_t block);
  void BeginThread(unsigned thread);
  void Fence();
  void DynamicName(const char *name, unsigned element_bytes);
  void Fragment(uintptr_t elements, unsigned bytes, unsigned element_bytes, const char *file, int line);
  uint32_t SiteOfLine(const char *file, int line);
  [[noreturn]] void Index(const char *type, int64_t index, uint32_t site, int column);
  [[noreturn]] void Misaligned(uintptr_t address, unsigned alignment, const char *type, uint32_t site);
  [[noreturn]] void DividedByZero(uint32_t site);
  [[noreturn]] void OutOfSteps(uint32_t site);

  Traffic traffic = {};
  static const pk_sim_check_api &Api(pk_sim_check_mode mode);

 private:
  struct Place {
    Region *region = nullptr;
    uint64_t offset = 0;
    bool ignored = false;  // local memory, or the simulator's own
  };
  // A read of shared memory that nobody has written yet.
  struct Unwritten {
    Region *region = nullptr;
    uint64_t offset = 0;
    unsigned bytes = 0;
    unsigned thread = 0;
    uint32_t site = 0;
  };
  // A second write whose value is not known yet: of the same value it does no harm.
  struct Rewrite {
    bool waits = false;
    uintptr_t address = 0;
    unsigned bytes = 0;
    char before[16];
    Region *region = nullptr;
    uint64_t offset = 0;
    uint32_t site = 0, earlier = 0, earlier_site = 0;
  };

  Place Locate(uintptr_t address, uint64_t bytes, pk_sim_access kind, uint32_t site);
  void Count(const Region &region, uint64_t bytes, pk_sim_access kind);
  void Touch(Region *region, uint64_t offset, uint64_t bytes, uintptr_t address, pk_sim_access kind, uint32_t site);
  void TouchCell(Region *region, uint64_t at, uintptr_t address, unsigned bytes, pk_sim_access kind, uint32_t site);
  bool Tolerated(const Region &region, uint32_t site, uint32_t earlier, uint32_t earlier_site) const;
  void Resolve();
  void Publish();

  [[noreturn]] void OutOfBounds(Region *region, uintptr_t address, uint64_t bytes, pk_sim_access kind, uint32_t site);
  [[noreturn]] void Race(Region *region, uint64_t offset, unsigned bytes, bool write, uint32_t site, bool earlier_write,
                         uint32_t earlier, uint32_t earlier_site);
  [[noreturn]] void Raise(pk_status status, Finding finding);
  void Name(const Region &region, uintptr_t address, uint64_t bytes, Finding *finding) const;
  std::string Element(const Finding &finding) const;
  std::string Who(uint64_t block, unsigned thread) const;
  pk_sim_dim ThreadIndex(unsigned thread) const;
  pk_sim_dim BlockIndex(uint64_t block) const;
  std::string At(uint32_t site) const;
  std::string ArrayAt(uint32_t site, int column) const;
  // What the thread does at the place is the finding.
  [[noreturn]] void PartOfFragment(const Fragments::Part &part, const char *file, int line);
  Finding MakeFinding(const char *kind, unsigned thread, uint32_t site) const;

  std::mutex mutex_;
  CheckMemory memory_;
  Order order_;
  Fragments fragments_;
  const KernelRun *run_ = nullptr;
  const Module *module_ = nullptr;
  Core *core_ = nullptr;
  pk_sim_check_mode mode_ = PK_SIM_CHECK_ALL;
  const char *files_[kFiles];  // those of the unit that places name by number; the first is its own
  size_t file_count_ = 1;
  uint64_t launches_ = 0;
  bool resumed_ = false;  // shared memory holds what the block wrote in an earlier turn
  Unwritten unwritten_;
  Rewrite rewrite_;
};

}  // namespace pygpukit::sim
