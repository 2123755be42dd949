// core.cpp: running blocks: fibers, barriers, faults.
#include "sim/core.h"

#include <sched.h>
#include <sys/mman.h>

#include "sim/fault.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

constexpr size_t kDynamicSharedBytes = 256 << 10;  // room for the largest opt-in size
constexpr size_t kSharedAlign = 128;
// Guards split the address space; Linux allows a process 65530 pieces.
constexpr int kMaxGuardedStacks = 12000;

// Every core of the process, for the signal handler: it must neither lock nor allocate.
constexpr int kMaxCores = 1024;
std::atomic<Core *> all_cores[kMaxCores];
std::atomic<int> core_count{0};
std::atomic<int> stack_count{0};

}  // namespace

Core::Core() {
  const int index = core_count.fetch_add(1);
  if (index < kMaxCores) all_cores[index] = this;
  // Above the memory lies a page that cannot be touched.
  void *start = mmap(nullptr, kDynamicSharedBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start != MAP_FAILED) {
    shared_end_ = static_cast<char *>(start) + kDynamicSharedBytes;
    mprotect(shared_end_, kGuardBytes, PROT_NONE);
  }
}

Core *Core::Current() {
  const int count = core_count.load(std::memory_order_relaxed);
  for (int i = 0; i < count && i < kMaxCores; ++i) {
    Core *core = all_cores[i].load(std::memory_order_relaxed);
    if (core && core->owned_.load(std::memory_order_relaxed) && pthread_equal(core->owner_, pthread_self()))
      return core;
  }
  return nullptr;
}

bool Core::Run(const KernelRun &run, uint64_t first, uint64_t last) {
  if (!shared_end_) {
    failure_ = {PK_ERROR_OUT_OF_MEMORY, "the system refused memory for a simulated core"};
    return false;
  }
  run_ = &run;
  threads_ = run.block.x * run.block.y * run.block.z;
  const size_t room = (run.dynamic_shared_bytes + kSharedAlign - 1) / kSharedAlign * kSharedAlign;
  grid_ = {this, run.grid, run.block, shared_end_ - room, run.dynamic_shared_bytes};
  first_ = first;
  last_ = last;
  failure_ = {};
  signal_ = 0;
  run.image->touch();
  launch_ = run.cancelled;
  owner_ = pthread_self();
  owned_ = true;
  while (first_ < last_ && failure_.status == PK_OK && !signal_) {
    Fiber *fiber = Take();
    if (!fiber) {
      failure_ = {PK_ERROR_OUT_OF_MEMORY, "the system refused a stack for a simulated thread"};
      break;
    }
    fiber->runs_blocks = true;
    current_ = fiber;
    SwitchContext(&main_, &fiber->context);
  }
  owned_ = false;
  if (signal_ || failure_.status != PK_OK) {
    if (signal_) DescribeSignal();
    Abandon();
    return false;
  }
  return true;
}

// ---- fibers

Fiber *Core::Take() {
  in_runtime = 1;
  Fiber *fiber = nullptr;
  if (!free_.empty()) {
    fiber = free_.back();
    free_.pop_back();
  } else if (char *stack = NewStack(stack_count.fetch_add(1) < kMaxGuardedStacks)) {
    fiber = new Fiber{};
    fiber->core = this;
    fiber->stack = stack;
    fiber->color = static_cast<unsigned>(fibers_.size() * 5 % 61 * 64);
    fiber->thread = kNoThread;
    fiber->fresh = true;
    fibers_.push_back(fiber);
    free_.reserve(fibers_.size());
  }
  if (fiber) {
    if (fiber->fresh)
      MakeContext(&fiber->context, fiber->stack, kGuardBytes + kStackBytes - fiber->color, Enter, fiber);
    fiber->fresh = false;
    fiber->file = nullptr;
    ++live_;
  }
  in_runtime = 0;
  return fiber;
}

void Core::Enter(void *argument) {
  Fiber *fiber = static_cast<Fiber *>(argument);
  Core *core = fiber->core;
  for (;;) {
    if (fiber->runs_blocks) {
      core->in_kernel_ = 1;
      core->first_ = core->run_->kernel->run(core->run_->arguments, &core->grid_, core->first_, core->last_);
      fiber->runs_blocks = false;
    } else {
      core->run_->kernel->resume(core->run_->arguments);
    }
    core->FinishFiber(fiber);
  }
}

// Returns when the fiber has been taken again.
void Core::FinishFiber(Fiber *fiber) {
  if (fiber->thread != kNoThread) warps_[fiber->thread / 32].held &= ~(1u << fiber->thread % 32);
  fiber->thread = kNoThread;
  free_.push_back(fiber);
  if (--live_ == 0) {
    in_kernel_ = 0;
    SwitchContext(&fiber->context, &main_);
    return;
  }
  // A fiber ends only when every thread of the block has been started.
  if (barrier_count_ == live_) ReleaseBarrier();
  SwitchTo(fiber, NextRunnable(threads_));
}

// After a failure the stacks hold threads that will never go on.
void Core::Abandon() {
  free_ = fibers_;
  for (Fiber *fiber : fibers_) {
    fiber->fresh = true;
    fiber->runs_blocks = false;
    fiber->thread = kNoThread;
  }
  for (Warp &warp : warps_) warp.held = warp.waiting = 0;
  queue_head_ = queue_tail_ = barrier_head_ = barrier_tail_ = nullptr;
  live_ = barrier_count_ = 0;
  barrier_sum_ = 0;
  in_runtime = 0;
}

void Core::SwitchTo(Fiber *from, Fiber *to) {
  current_ = to;
  if (from != to) SwitchContext(&from->context, &to->context);
}

void Core::Append(Fiber *fiber) {
  fiber->next = nullptr;
  (queue_tail_ ? queue_tail_->next : queue_head_) = fiber;
  queue_tail_ = fiber;
}

Fiber *Core::NextRunnable(unsigned started) {
  for (;;) {
    if (Fiber *fiber = queue_head_) {
      queue_head_ = fiber->next;
      if (!queue_head_) queue_tail_ = nullptr;
      return fiber;
    }
    if (started < threads_) {
      if (Fiber *fiber = Take()) return fiber;
      Abort(PK_ERROR_OUT_OF_MEMORY, "the system refused a stack for a simulated thread");
    }
    if (!Quiescent(started)) Deadlock();
  }
}

// A thread is not reported when it exits: it has exited when it was started and no fiber holds it. Whoever waits only
// for such threads is found here, when nothing else can run.
bool Core::Quiescent(unsigned started) {
  bool any = false;
  for (unsigned warp = 0; warp * 32 < threads_; ++warp)
    if (warps_[warp].waiting && FinishComplete(warp, started)) any = true;
  return any || FinishConverged();
}

// Where a fiber stands now: the thread it held before has exited.
void Core::Note(Fiber *fiber, const pk_sim_self &self) {
  if (fiber->thread != self.thread) {
    if (fiber->thread != kNoThread) warps_[fiber->thread / 32].held &= ~(1u << fiber->thread % 32);
    fiber->thread = self.thread;
    warps_[self.thread / 32].held |= 1u << self.thread % 32;
  }
  fiber->file = self.file;
  fiber->line = self.line;
}

// ---- barriers

int Core::Barrier(const pk_sim_self &self, pk_sim_barrier_kind kind, int predicate) {
  Fiber *fiber = current_;
  Note(fiber, self);
  fiber->waits_at_barrier = true;
  fiber->next = nullptr;
  (barrier_tail_ ? barrier_tail_->next : barrier_head_) = fiber;
  barrier_tail_ = fiber;
  barrier_sum_ += predicate != 0;
  if (++barrier_count_ == live_ && self.started == threads_) ReleaseBarrier();
  SwitchTo(fiber, NextRunnable(self.started));
  switch (kind) {
    case PK_SIM_BARRIER_COUNT:
      return barrier_true_;
    case PK_SIM_BARRIER_AND:
      return barrier_true_ == static_cast<int>(barrier_arrived_);
    case PK_SIM_BARRIER_OR:
      return barrier_true_ != 0;
    default:
      return 0;
  }
}

// In the order of arrival, so that a block runs the same way every time.
void Core::ReleaseBarrier() {
  if (!barrier_head_) return;
  (queue_tail_ ? queue_tail_->next : queue_head_) = barrier_head_;
  queue_tail_ = barrier_tail_;
  barrier_head_ = barrier_tail_ = nullptr;
  barrier_true_ = barrier_sum_;
  barrier_arrived_ = barrier_count_;
  barrier_sum_ = 0;
  barrier_count_ = 0;
}

// Threads that have not been started go before those that already ran: the one waited for may be among them.
void Core::Yield(const pk_sim_self &self) {
  Fiber *fiber = current_;
  Note(fiber, self);
  if (self.started < threads_) {
    Fiber *next = Take();
    if (!next) Abort(PK_ERROR_OUT_OF_MEMORY, "the system refused a stack for a simulated thread");
    Append(fiber);
    SwitchTo(fiber, next);
    return;
  }
  Quiescent(self.started);
  if (!queue_head_) {
    sched_yield();  // only another block can help
    return;
  }
  Append(fiber);
  SwitchTo(fiber, NextRunnable(self.started));
}

// ---- failures

void Core::Abort(pk_status status, std::string text) {
  in_runtime = 1;
  failure_.text = KernelAndBlock() + Thread() + ": " + text;
  std::string().swap(text);
  Leave(status);
}

// The stack left behind is never unwound: nothing on it may own memory when this is called.
void Core::Leave(pk_status status) {
  failure_.status = status;
  in_kernel_ = 0;
  JumpContext(&main_);
}

bool Core::Interruptible(int signal) const {
  if (!in_kernel_) return false;
  return signal != SIGURG || (!in_runtime && run_->cancelled->load(std::memory_order_relaxed) != PK_OK);
}

void Core::Interrupted(int signal, uintptr_t program_counter, uintptr_t address) {
  in_kernel_ = 0;
  signal_ = signal;
  program_counter_ = program_counter;
  address_ = address;
  JumpContext(&main_);
}

void Core::Interrupt(const std::atomic<int> *cancelled) const {
  if (owned_ && launch_ == cancelled) InterruptThread(owner_);
}

}  // namespace pygpukit::sim
