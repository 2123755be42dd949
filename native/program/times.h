// times.h: when launches, copies and fills begin and end: by the clock on the simulation, by two events around each on
// a GPU.
#pragma once
#include <cstdint>
#include <string>

#include "program/streams.h"

namespace pk::program {

// A launch, copy or fill as the report has it, beside its times. blocks: of a kernel's grid; threads: of each block.
// bytes: those that a copy or fill writes, or those of the memory that a kernel's arguments point to.
struct Described {
  const char *kind = "";  // "kernel", "copy" or "fill"
  std::string name;
  uint64_t blocks = 0, threads = 0, bytes = 0;
};

// Keep and report the times of the first `limit` launches, copies and fills. It is 0 until this is called.
void keep_times(uint32_t limit);

// Times the work that is put on a stream between its construction and end().
class Timing {
 public:
  explicit Timing(const Stream &stream);
  void end(Described what);

 private:
  const Stream &stream_;
  uint64_t begin_ns_ = 0, begin_event_ = 0;
  bool kept_ = false;
};

// At the program's end: waits for what is timed, so that the sums are whole; and reports each.
void settle_times();
void tell_times();

}  // namespace pk::program
