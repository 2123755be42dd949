// pk_sim_cuda_barrier.h: cuda::barrier, cuda::latch and cuda's semaphores: objects in memory that threads of a block,
// or of a grid, wait at; and cuda::memcpy_async, whose copy is made at once by the calling threads.
#pragma once
#pragma GCC system_header

#include "pk_sim_copy.h"
#include "pk_sim_cuda_atomic.h"

namespace cuda {

template <size_t Alignment>
struct aligned_size_t {
  static constexpr size_t align = Alignment;
  size_t value;
  explicit constexpr aligned_size_t(size_t bytes) : value(bytes) {}
  constexpr operator size_t() const { return value; }
};

namespace std {
struct pk_sim_nothing {
  void operator()() const {}
};
}  // namespace std

// What threads wait at. Only making it writes this; in checked mode each use reads it, since the atomic operations of
// the thread that made it would hide that others do not know of it.
struct pk_sim_made {
  pk_sim_made() = default;
  explicit pk_sim_made(int one) : pk_sim_one(one) {}
  void pk_sim_look([[maybe_unused]] const char *file, [[maybe_unused]] int line) const {
#if PK_SIM_CHECK == 1
    pk_sim_check_access(&pk_sim_one, sizeof pk_sim_one, PK_SIM_READ, file, line);
#endif
  }
  int pk_sim_one;
};

template <thread_scope Scope, class Completion = std::pk_sim_nothing>
class barrier : pk_sim_made {
 public:
  struct arrival_token {
    unsigned pk_sim_phase;
  };
  barrier() = default;
  barrier(ptrdiff_t expected, Completion completion = Completion())
      : pk_sim_made(1), expected_((int)expected), left_((int)expected), phase_(0), completion_(completion) {}
  barrier(const barrier &) = delete;
  barrier &operator=(const barrier &) = delete;
  friend void init(barrier *made, ptrdiff_t expected, Completion completion = Completion()) {
    new (made) barrier(expected, completion);
  }
  static constexpr ptrdiff_t max() { return (1 << 20) - 1; }

  arrival_token arrive(ptrdiff_t count = 1, PK_SIM_HERE) {
    pk_sim_look(pk_sim_file, pk_sim_line);
    __threadfence(pk_sim_file, pk_sim_line);
    const unsigned phase = atomicAdd(&phase_, 0u, pk_sim_file, pk_sim_line);
    const int before = atomicSub(&left_, (int)count, pk_sim_file, pk_sim_line);
    if (before < count)
      pk_sim_fail(PK_SIM_FAIL_TRAP, "more arrivals at a cuda::barrier than it expects in a phase:", "", pk_sim_file,
                  pk_sim_line);
    if (before == count) {
      __threadfence(pk_sim_file, pk_sim_line);  // what the others did before they arrived is done
      completion_();
      atomicExch(&left_, atomicAdd(&expected_, 0, pk_sim_file, pk_sim_line), pk_sim_file, pk_sim_line);
      __threadfence(pk_sim_file, pk_sim_line);
      atomicAdd(&phase_, 1u, pk_sim_file, pk_sim_line);
    }
    return {phase};
  }
  void wait(arrival_token &&token, PK_SIM_HERE) const { wait_of(token.pk_sim_phase, pk_sim_file, pk_sim_line); }
  void wait_parity(bool parity, PK_SIM_HERE) const {
    while ((now(pk_sim_file, pk_sim_line) & 1u) == (unsigned)parity) pk_sim_yield(pk_sim_file, pk_sim_line);
    __threadfence(pk_sim_file, pk_sim_line);
  }
  bool try_wait(arrival_token &&token, PK_SIM_HERE) const {
    const bool over = now(pk_sim_file, pk_sim_line) != token.pk_sim_phase;
    over ? __threadfence(pk_sim_file, pk_sim_line) : pk_sim_yield(pk_sim_file, pk_sim_line);
    return over;
  }
  bool try_wait_parity(bool parity, PK_SIM_HERE) const {
    const bool over = (now(pk_sim_file, pk_sim_line) & 1u) != (unsigned)parity;
    over ? __threadfence(pk_sim_file, pk_sim_line) : pk_sim_yield(pk_sim_file, pk_sim_line);
    return over;
  }
  void arrive_and_wait(PK_SIM_HERE) {
    wait_of(arrive(1, pk_sim_file, pk_sim_line).pk_sim_phase, pk_sim_file, pk_sim_line);
  }
  void arrive_and_drop(PK_SIM_HERE) {
    atomicSub(&expected_, 1, pk_sim_file, pk_sim_line);
    arrive(1, pk_sim_file, pk_sim_line);
  }

 private:
  unsigned now(const char *file, int line) const {
    pk_sim_look(file, line);
    return atomicAdd((unsigned *)&phase_, 0u, file, line);
  }
  void wait_of(unsigned phase, const char *file, int line) const {
    while (now(file, line) == phase) pk_sim_yield(file, line);
    __threadfence(file, line);
  }
  int expected_, left_;
  unsigned phase_;
  Completion completion_;
};

template <thread_scope Scope>
class latch : pk_sim_made {
 public:
  explicit latch(ptrdiff_t expected) : pk_sim_made(1), left_((int)expected) {}
  static constexpr ptrdiff_t max() { return 0x7fffffff; }
  void count_down(ptrdiff_t count = 1, PK_SIM_HERE) {
    pk_sim_look(pk_sim_file, pk_sim_line);
    __threadfence(pk_sim_file, pk_sim_line);
    atomicSub(&left_, (int)count, pk_sim_file, pk_sim_line);
  }
  bool try_wait(PK_SIM_HERE) const {
    pk_sim_look(pk_sim_file, pk_sim_line);
    const bool over = atomicAdd((int *)&left_, 0, pk_sim_file, pk_sim_line) == 0;
    over ? __threadfence(pk_sim_file, pk_sim_line) : pk_sim_yield(pk_sim_file, pk_sim_line);
    return over;
  }
  void wait(PK_SIM_HERE) const {
    while (!try_wait(pk_sim_file, pk_sim_line)) {
    }
  }
  void arrive_and_wait(ptrdiff_t count = 1, PK_SIM_HERE) {
    count_down(count, pk_sim_file, pk_sim_line);
    wait(pk_sim_file, pk_sim_line);
  }

 private:
  int left_;
};

template <thread_scope Scope, ptrdiff_t Most = 0x7fffffff>
class counting_semaphore : pk_sim_made {
 public:
  explicit counting_semaphore(ptrdiff_t count) : pk_sim_made(1), count_((int)count) {}
  static constexpr ptrdiff_t max() { return Most; }
  void release(ptrdiff_t count = 1, PK_SIM_HERE) {
    pk_sim_look(pk_sim_file, pk_sim_line);
    __threadfence(pk_sim_file, pk_sim_line);
    atomicAdd(&count_, (int)count, pk_sim_file, pk_sim_line);
  }
  bool try_acquire(PK_SIM_HERE) {
    pk_sim_look(pk_sim_file, pk_sim_line);
    const int seen = atomicAdd(&count_, 0, pk_sim_file, pk_sim_line);
    const bool taken = seen > 0 && atomicCAS(&count_, seen, seen - 1, pk_sim_file, pk_sim_line) == seen;
    taken ? __threadfence(pk_sim_file, pk_sim_line) : pk_sim_yield(pk_sim_file, pk_sim_line);
    return taken;
  }
  void acquire(PK_SIM_HERE) {
    while (!try_acquire(pk_sim_file, pk_sim_line)) {
    }
  }

 private:
  int count_;
};
template <thread_scope Scope>
using binary_semaphore = counting_semaphore<Scope, 1>;

namespace std {
template <class Completion = pk_sim_nothing>
using barrier = cuda::barrier<thread_scope_system, Completion>;
using latch = cuda::latch<thread_scope_system>;
template <ptrdiff_t Most = 0x7fffffff>
using counting_semaphore = cuda::counting_semaphore<thread_scope_system, Most>;
using binary_semaphore = cuda::binary_semaphore<thread_scope_system>;
}  // namespace std

template <class T, class Size, thread_scope Scope, class Completion>
PK_SIM_INLINE void memcpy_async(T *to, const T *from, Size bytes, barrier<Scope, Completion> &) {
  pk_sim_copy(to, from, bytes, 0, 1);
}
template <class Group, class T, class Size, thread_scope Scope, class Completion>
PK_SIM_INLINE void memcpy_async(const Group &group, T *to, const T *from, Size bytes, barrier<Scope, Completion> &) {
  pk_sim_copy(to, from, bytes, group.thread_rank(), group.size());
}
}  // namespace cuda
