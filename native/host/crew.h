// crew.h: the threads that compute on the host: as many as the machine has cores, or PYGPUKIT_HOST_THREADS says.
#pragma once
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace pk {

// Work in parts, dealt out to the threads that ask: one that the system has put aside holds nobody up for longer than a
// part takes. Which thread takes which part must not matter.
struct Job {
  void (*run)(void *self, int64_t begin, int64_t end);
  void *self;
  int64_t count, part;  // of all, and at once
  std::atomic<int64_t> next{0};

  void work();
};

// Runs a job on the calling thread and on those that are free, and returns when all of it is done. They look for work
// for a moment before they sleep, since a step of a model has hundreds of jobs. Without the GIL.
void compute(Job &job);

// fn(begin, end) over 0 to count, in parts of that size.
template <typename Fn>
void in_parts(int64_t count, int64_t part, const Fn &fn) {
  using Plain = std::remove_const_t<Fn>;
  Job job{[](void *self, int64_t begin, int64_t end) { (*static_cast<Plain *>(self))(begin, end); },
          const_cast<Plain *>(&fn), count, part < 1 ? 1 : part};
  compute(job);
}

// Threads of a job, the caller's among them.
int crew_size();

}  // namespace pk
