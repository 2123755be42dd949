// times.h: when launches, copies and fills begin and end: by the clock on the simulation, by two events around each on
// a GPU.
#pragma once
#include <cstdint>
#include <string>

#include "program/streams.h"

namespace pk::program {

// What is told of a piece of work besides its times. blocks and threads (of a block): of a kernel. bytes: of a copy or
// fill, and of the memory that a kernel's arguments point to.
struct Described {
  const char *kind = "";  // "kernel", "copy" or "fill"
  std::string name;
  uint64_t blocks = 0, threads = 0, bytes = 0;
};

// The times of the first pieces of work, so many, are kept and reported. 0, as at first: of none.
void keep_times(uint32_t limit);

// From its making to end(), which the work on its stream lies between.
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
