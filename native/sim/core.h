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
#include "sim/finding.h"
#include "sim/include/pk_sim_abi.h"

namespace pygpukit::sim {

class Checker;
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
  pk_sim_barrier_kind barrier;
  const char *file;  // where it waits
  int line;
  unsigned resident;  // which of the blocks that share its core it belongs to
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
  bool cooperative;                   // all blocks are one set of blocks that share a core
  pk_sim_dim cluster;                 // else those of a cluster are
  const std::atomic<int> *cancelled;  // a status other than PK_OK ends the launch
  Checker *checker;                   // null for a plain image
};

// A block of a set that shares one core, as it is while another block of the set runs.
struct Resident {
  enum Place { kNew, kReady, kAtCluster, kAtGrid, kDone } place = kNew;
  uint64_t block = 0;    // its linear index
  unsigned cluster = 0;  // which cluster of the set it is in
  unsigned rank = 0;     // in the cluster
  unsigned live = 0, barrier_count = 0, barrier_arrived = 0, barrier_scopes = 0;
  int barrier_sum = 0, barrier_true = 0;
  Fiber *queue_head = nullptr, *queue_tail = nullptr, *barrier_head = nullptr, *barrier_tail = nullptr;
  std::vector<Warp> warps;
  char *memory = nullptr;  // copies of the image's thread-local memory and of the dynamic shared memory
};

struct Failure {
  pk_status status = PK_OK;
  std::string text;
  Finding finding;  // without a kind for failures that are no fault of the kernel
};

class Core {
 public:
  Core();

  // Runs blocks [first, last) on the calling thread, or sets of blocks that run together. False: see failure(); what
  // the blocks did up to there remains.
  bool Run(const KernelRun &run, uint64_t first, uint64_t last);
  const Failure &failure() const { return failure_; }
  Checker *checker() const { return run_->checker; }

  // Called by kernels through pk_sim_api.
  int Barrier(const pk_sim_self &self, pk_sim_barrier_kind kind, int predicate);
  uint64_t WarpCall(const pk_sim_self &self, const pk_sim_warp_call &call);
  void Yield(const pk_sim_self &self);
  [[noreturn]] void ExitThread(const pk_sim_self &self);
  void *MapShared(const void *address, unsigned rank);
  unsigned SharedRank(const void *address) const;
  // Ends the launch; the text follows the kernel, block and thread that were running. kind: as in Finding, or "".
  [[noreturn]] void Abort(pk_status status, const char *kind, std::string text, int line = 0);
  // Ends the launch; the finding names block and thread.
  [[noreturn]] void Report(pk_status status, Finding finding);

  // Where an address that a kernel uses may lie.
  bool OnStack(uintptr_t address) const;
  bool InDynamicShared(uintptr_t address) const;
  bool InResidentMemory(uintptr_t address) const;

  // Called by the signal handler of the thread that this core runs on. The second never returns.
  bool Interruptible(int signal) const;
  [[noreturn]] void Interrupted(int signal, uintptr_t program_counter, uintptr_t address);
  // The core that runs a kernel on the calling thread, or null. Safe in a signal handler.
  static Core *Current();
  // Sends the interrupt signal to the thread that runs the launch on this core, if any does.
  void Interrupt(const std::atomic<int> *cancelled) const;

  // The multiprocessor that it works as. Set by those who lend it.
  unsigned sm = 0;

  // Ends the launch where the running stack is all but used up: what would be called next could overflow it while it
  // holds locks.
  void AskForStack();

  // While true, an interrupt has to wait: locks may be held.
  volatile std::sig_atomic_t in_runtime = 0;

 private:
  Fiber *Take();
  static void Enter(void *fiber);
  void FinishFiber(Fiber *fiber, unsigned started);
  void Note(Fiber *fiber, const pk_sim_self &self);
  void SwitchTo(Fiber *from, Fiber *to);
  Fiber *NextRunnable(unsigned started);  // taken off the queue, or fresh
  void Append(Fiber *fiber);
  [[gnu::noinline]] int AnyBarrier(const pk_sim_self &self, pk_sim_barrier_kind kind, int predicate);
  void WaitAtBarrier(Fiber *fiber, pk_sim_barrier_kind kind);
  void CompleteBarrier();
  void ReleaseBarrier();
  bool Quiescent(unsigned started);  // lets go whoever waits only for threads that have exited
  [[noreturn]] void Leave(pk_status status);
  [[noreturn]] void Deadlock();
  void CheckBarrier();
  void DivergentBarrier();
  [[noreturn]] void UnreachedBarrier();
  void CheckSources(const Lane *lanes, unsigned set, unsigned warp);
  [[noreturn]] void PartOfWarp(const Lane *lanes, unsigned set, unsigned warp);
  void Fill(Finding *finding, const char *kind, std::string message, int line) const;
  std::string KernelAndBlock() const;
  std::string Thread() const;
  std::string Describe(const Fiber &fiber) const;
  std::string DescribeDeadlock() const;
  std::string DescribeLane(unsigned thread) const;
  std::string PlaceOfSignal() const;
  void DescribeSignal();
  void Abandon();
  void Trim();

  // Blocks that share this core: core_resident.cpp.
  void RunSet(uint64_t set);
  void MakeSet(uint64_t set);
  void RunResident(Resident *resident);
  void Load(const Resident &resident);
  void Save(Resident *resident) const;
  char *DynamicShared(const Resident &resident) const;
  bool ReleaseResidents();
  bool SharesCore() const { return residents_.size() > 1; }
  std::string DescribeResidents() const;

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
  unsigned barrier_scopes_ = 0;  // bits: a block's, a cluster's, a grid's barrier has somebody waiting
  Warp warps_[kMaxThreads / 32] = {};
  std::vector<Fiber *> fibers_, free_;
  std::vector<Resident> residents_;
  Resident *resident_ = nullptr;   // the one that runs, of a set; null for blocks that run alone
  unsigned yields_ = 0;            // of the resident block since it went on
  char *thread_memory_ = nullptr;  // the image's thread-local memory on this thread
  size_t thread_memory_bytes_ = 0;
  size_t own_bytes_ = 0;  // of a checked image's own variables, which are not thread-local
  std::vector<char> resident_memory_;
  char *shared_end_ = nullptr;  // dynamic shared memory ends here, at a page that cannot be touched
  Failure failure_;
  volatile std::sig_atomic_t in_kernel_ = 0;
  volatile std::sig_atomic_t placing_ = 0;  // an interrupt looks for its place on a stack that may be anything
  std::atomic<bool> owned_{false};
  std::atomic<pthread_t> owner_{};
  std::atomic<const void *> launch_{nullptr};  // run_->cancelled, as a name of the launch
  int signal_ = 0;
  uintptr_t program_counter_ = 0, places_[8] = {}, address_ = 0;
  size_t place_count_ = 0;
};

// The table that images are bound to.
const pk_sim_api &KernelApi();

}  // namespace pygpukit::sim
