// module.h: a loaded kernel image, its functions and its global variables.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pygpukit/driver.h"
#include "sim/elf.h"
#include "sim/include/pk_sim_abi.h"
#include "sim/include/pk_sim_check_abi.h"
#include "sim/memory.h"

namespace pygpukit::sim {

constexpr unsigned kSharedBytes = 48 << 10;        // of a block, without opt-in
constexpr unsigned kSharedOptinBytes = 227 << 10;  // with opt-in

class Module;

// A variable of the user's source, by its plain name: "As".
struct Variable {
  std::string name;
  uint64_t place;  // its address, or where it lies in the thread-local block
  uint64_t bytes;
  bool shared;
  bool own;  // the simulator's
};

struct Function {
  std::shared_ptr<Module> module;
  const pk_sim_kernel *kernel;
  unsigned static_shared_bytes;
  std::atomic<unsigned> dynamic_limit_bytes;   // raised by function_set_dynamic_shared
  std::atomic<uint64_t> block_nanoseconds{0};  // what a block took last time; 0 = not known yet

  pk_status Info(pk_function_info *info) const;
  pk_status Parameter(uint32_t index, uint64_t *offset, uint64_t *bytes) const;
  pk_status SetDynamicShared(uint32_t bytes);
  pk_status Occupancy(uint32_t block_threads, uint32_t shared_bytes, int32_t *blocks) const;
};

class Module : public std::enable_shared_from_this<Module> {
 public:
  // A private copy of the image. The memory learns of its variables, and forgets them with the module.
  static pk_status Load(const void *image, uint64_t bytes, Memory *memory, std::shared_ptr<Module> *module);
  ~Module();

  pk_status FindFunction(const char *name, std::shared_ptr<Function> *function);
  pk_status FindGlobal(const char *name, uint64_t *address, uint64_t *bytes);
  // "In[5]:12", or "" when the address is not in the image.
  std::string SourceLine(uintptr_t program_counter, bool same_function = true) const;
  // The image's thread-local memory on the calling thread, which this makes when it is new: static shared memory is
  // there.
  char *ThreadMemory() const { return static_cast<char *>(image_->anchor()) - anchor_; }
  size_t thread_memory_bytes() const { return file_.thread_local_bytes(); }
  const pk_sim_image &image() const { return *image_; }
  // Null unless the image is a checked one.
  const pk_sim_check_image *check() const { return check_; }
  std::vector<Variable> Variables() const;
  uintptr_t base() const { return base_; }
  bool Contains(uintptr_t address) const;  // in code or data of the image
  bool OwnData(uintptr_t address) const;   // a variable of the simulator in a checked image
  uint64_t serial() const { return serial_; }

 private:
  pk_status FindAnchor();
  pk_status CheckShared();
  unsigned StaticSharedBytes(const pk_sim_kernel &kernel) const;
  std::string_view MangledName(const void *address) const;

  std::string bytes_;
  ElfFile file_;
  void *handle_ = nullptr;
  const pk_sim_image *image_ = nullptr;
  const pk_sim_check_image *check_ = nullptr;
  uintptr_t base_ = 0, end_ = 0;
  uint64_t serial_ = 0;  // of this process's modules
  uint64_t anchor_ = 0;  // where pk_sim_anchor lies in thread-local memory
  Memory *memory_ = nullptr;
  std::vector<uint64_t> ranges_;
};

}  // namespace pygpukit::sim
