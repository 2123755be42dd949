// core.h: one core of the simulated device. It runs one block at a time: threads one after the other, on fibers.
//
// One fiber starts the threads of a block back to back. Only when a thread blocks is another fiber taken, which goes on
// starting threads or resumes one that may run again. A kernel that never blocks therefore never switches.
#pragma once

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "pygpukit/driver.h"
#include "sim/fiber.h"
#include "sim/include/pk_sim_abi.h"

namespace pygpukit::sim {

class Core;
class Module;

constexpr unsigned kNoThread = ~0u;
constexpr unsigned kMaxThreads = 1024;

// One cache line: switching among a thousand of them is what a block with barriers does all the time.
struct alignas(64) Fiber {
  Context context;
  Core *core;
  Fiber *next;
  char *stack;
  unsigned color;         // bytes by which its stack starts lower, to spread hot lines over the cache
  unsigned thread;        // the thread it holds, as far as its last blocking call told; kNoThread
  bool runs_blocks;       // the first of a run, which also goes from block to block
  bool fresh;             // its context must be made before it is used
  bool waits_at_barrier;  // else at a warp function
  const char *file;       // where it waits
  int line;
};

struct Lane {
  pk_sim_warp_call call;
  Fiber *fiber;
  uint64_t result;
};

struct Warp {
  unsigned held;     // lanes whose thread sits in a fiber: started and not finished
  unsigned waiting;  // lanes inside a warp function
  Lane lanes[32];
};

// What a core needs to know of a launch.
struct KernelRun {
  const Module *module;
  const pk_sim_image *image;
  const pk_sim_kernel *kernel;
  void *const *arguments;
  pk_sim_dim grid, block;
  unsigned dynamic_shared_bytes;
  const std::atomic<int> *cancelled;  // a status other than PK_OK ends the launch
};

struct Failure {
  pk_status status = PK_OK;
  std::string text;
};

class Core {
 public:
  Core();

  // Runs blocks [first, last) on the calling thread. False: see failure(); what the blocks did up to there remains.
  bool Run(const KernelRun &run, uint64_t first, uint64_t last);
  const Failure &failure() const { return failure_; }

  // Called by kernels through pk_sim_api.
  int Barrier(const pk_sim_self &self, pk_sim_barrier_kind kind, int predicate);
  uint64_t WarpCall(const pk_sim_self &self, const pk_sim_warp_call &call);
  void Yield(const pk_sim_self &self);
  // Ends the launch; the text follows the kernel, block and thread that were running.
  [[noreturn]] void Abort(pk_status status, std::string text);

  // Called by the signal handler of the thread that this core runs on. The second never returns.
  bool Interruptible(int signal) const;
  [[noreturn]] void Interrupted(int signal, uintptr_t program_counter, uintptr_t address);
  // The core that runs a kernel on the calling thread, or null. Safe in a signal handler.
  static Core *Current();
  // Sends the interrupt signal to the thread that runs the launch on this core, if any does.
  void Interrupt(const std::atomic<int> *cancelled) const;

  // While true, an interrupt has to wait: locks may be held.
  volatile std::sig_atomic_t in_runtime = 0;

 private:
  Fiber *Take();
  static void Enter(void *fiber);
  void FinishFiber(Fiber *fiber);
  void Note(Fiber *fiber, const pk_sim_self &self);
  void SwitchTo(Fiber *from, Fiber *to);
  Fiber *NextRunnable(unsigned started);  // taken off the queue, or fresh
  void Append(Fiber *fiber);
  void ReleaseBarrier();
  bool Quiescent(unsigned started);  // lets go whoever waits only for threads that have exited
  [[noreturn]] void Leave(pk_status status);
  [[noreturn]] void Deadlock();
  std::string KernelAndBlock() const;
  std::string Thread() const;
  std::string Describe(const Fiber &fiber) const;
  std::string DescribeDeadlock() const;
  std::string DescribeLane(unsigned thread) const;
  void DescribeSignal();
  void Abandon();

  unsigned Unstarted(unsigned warp, unsigned started) const;
  bool Complete(unsigned warp, unsigned lane, unsigned started, unsigned *lanes) const;
  void Finish(unsigned warp, unsigned lanes, const Fiber *self);
  bool FinishComplete(unsigned warp, unsigned started);
  bool FinishConverged();

  const KernelRun *run_ = nullptr;
  pk_sim_grid grid_ = {};
  unsigned threads_ = 0;  // of a block
  uint64_t first_ = 0, last_ = 0;
  Context main_ = {};
  Fiber *current_ = nullptr;
  unsigned live_ = 0;  // fibers in use for this block
  Fiber *queue_head_ = nullptr, *queue_tail_ = nullptr;
  Fiber *barrier_head_ = nullptr, *barrier_tail_ = nullptr;
  unsigned barrier_count_ = 0;
  int barrier_sum_ = 0;   // predicates that held, of those who wait
  int barrier_true_ = 0;  // and of the last barrier that was passed
  unsigned barrier_arrived_ = 0;
  Warp warps_[kMaxThreads / 32] = {};
  std::vector<Fiber *> fibers_, free_;
  char *shared_end_ = nullptr;  // dynamic shared memory ends here, at a page that cannot be touched
  Failure failure_;
  volatile std::sig_atomic_t in_kernel_ = 0;
  std::atomic<bool> owned_{false};
  std::atomic<pthread_t> owner_{};
  std::atomic<const void *> launch_{nullptr};  // run_->cancelled, as a name of the launch
  int signal_ = 0;
  uintptr_t program_counter_ = 0, address_ = 0;
};

// The table that images are bound to.
const pk_sim_api &KernelApi();

}  // namespace pygpukit::sim
