// core.cpp: running blocks: fibers, barriers, faults.
#include "sim/core.h"

#include <sched.h>
#include <sys/mman.h>

#include "sim/check.h"
#include "sim/module.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

constexpr size_t kDynamicSharedBytes = 256 << 10;  // room for the largest opt-in size
constexpr size_t kSharedAlign = 128;
// Guards split the address space; Linux allows a process 65530 pieces.
constexpr int kMaxGuardedStacks = 12000;  // of three pieces each

constexpr size_t kKeptFibers = 4 * kMaxThreads;

// Every core of the process, for the signal handler: it must neither lock nor allocate.
constexpr int kMaxCores = 1024;
std::atomic<Core *> all_cores[kMaxCores];
std::atomic<int> core_count{0};
std::atomic<int> stack_count{0};

constexpr unsigned kBlockScope = 1, kClusterScope = 2, kGridScope = 4;
// Whose turn comes next: the stacks of a large block do not fit into the first-level cache, and what a fiber needs of
// its stack when it goes on is known now.
void FetchAhead(const Fiber *fiber) {
#ifndef PK_SIM_UCONTEXT
  if (!fiber) return;
  const char *stack = static_cast<const char *>(fiber->context.stack_pointer);
  for (int line = 0; line < 6; ++line) __builtin_prefetch(stack + 64 * line, 1);
  __builtin_prefetch(fiber->next, 1);
#endif
}

unsigned ScopeBit(pk_sim_barrier_kind kind) {
  return kind == PK_SIM_BARRIER_CLUSTER ? kClusterScope : kind == PK_SIM_BARRIER_GRID ? kGridScope : kBlockScope;
}

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
    failure_ = {PK_ERROR_OUT_OF_MEMORY, "the system refused memory for a simulated core", {}};
    return false;
  }
  run_ = &run;
  threads_ = run.block.x * run.block.y * run.block.z;
  const size_t room = (run.dynamic_shared_bytes + kSharedAlign - 1) / kSharedAlign * kSharedAlign;
  grid_ = {this, run.grid, run.block, shared_end_ - room, run.dynamic_shared_bytes, run.cooperative, run.cluster};
  first_ = first;
  last_ = last;
  failure_ = {};
  signal_ = 0;
  char *memory = run.module->ThreadMemory();
  if (run.checker)
    run.checker->Attach(this, memory, run.module->thread_memory_bytes(), static_cast<char *>(grid_.dynamic_shared),
                        run.dynamic_shared_bytes);
  launch_ = run.cancelled;
  owner_ = pthread_self();
  owned_ = true;
  const bool sets = run.cooperative || run.cluster.x * run.cluster.y * run.cluster.z > 1;
  for (uint64_t set = first; sets && set < last && failure_.status == PK_OK && !signal_; ++set) RunSet(set);
  while (!sets && first_ < last_ && failure_.status == PK_OK && !signal_) {
    Fiber *fiber = Take();
    if (!fiber) {
      failure_ = {PK_ERROR_OUT_OF_MEMORY, "the system refused a stack for a simulated thread", {}};
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
    Trim();
    return false;
  }
  Trim();
  return true;
}

// A large cooperative launch leaves more stacks than a block needs, some without a guard: they go back.
void Core::Trim() {
  if (fibers_.size() <= kKeptFibers) return;
  for (size_t i = kKeptFibers; i < fibers_.size(); ++i) {
    DeleteStack(fibers_[i]->stack);
    delete fibers_[i];
    stack_count.fetch_sub(1);
  }
  fibers_.resize(kKeptFibers);
  free_ = fibers_;
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
    fiber->resident = resident_ ? static_cast<unsigned>(resident_ - residents_.data()) : 0;
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
    core->FinishFiber(fiber, core->threads_);
  }
}

// Returns when the fiber has been taken again. started: threads of the block, all of them unless one ended by itself.
void Core::FinishFiber(Fiber *fiber, unsigned started) {
  if (fiber->thread != kNoThread) warps_[fiber->thread / 32].held &= ~(1u << fiber->thread % 32);
  fiber->thread = kNoThread;
  --live_;
  const bool done = live_ == 0 && started == threads_;
  if (!done && started == threads_ && barrier_count_ == live_) CompleteBarrier();
  Fiber *next = done ? nullptr : NextRunnable(started);
  free_.push_back(fiber);  // only now: this function runs on its stack
  SwitchTo(fiber, next);
}

// PTX's exit, in whatever function of the thread: the stack is left as it is, and made anew for the next who takes it.
void Core::ExitThread(const pk_sim_self &self) {
  Fiber *fiber = current_;
  Note(fiber, self);
  if (fiber->runs_blocks) {
    pk_sim_position at = {};
    run_->image->position(&at);
    first_ = at.block + 1;
    fiber->runs_blocks = false;
  }
  fiber->fresh = true;
  FinishFiber(fiber, self.started);
  __builtin_unreachable();
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
  live_ = barrier_count_ = barrier_scopes_ = 0;
  barrier_sum_ = 0;
  residents_.clear();
  resident_ = nullptr;
  in_runtime = 0;
}

// To null: no thread of this block can go on before another block has run.
void Core::SwitchTo(Fiber *from, Fiber *to) {
  if (!to) {
    if (run_->checker) run_->checker->TellPending();
    in_kernel_ = 0;
    SwitchContext(&from->context, &main_);
    return;
  }
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
      FetchAhead(queue_head_);
      return fiber;
    }
    if (resident_ && resident_->place != Resident::kReady) return nullptr;
    if (started < threads_) {
      if (Fiber *fiber = Take()) return fiber;
      Abort(PK_ERROR_OUT_OF_MEMORY, "", "the system refused a stack for a simulated thread");
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

// A block's own barrier while another thread can go on, which is all of them but one in a block: it touches one line of
// cache besides the stack, and the compiler needs to save nothing for it.
int Core::Barrier(const pk_sim_self &self, pk_sim_barrier_kind kind, int predicate) {
  Fiber *fiber = current_, *next = queue_head_;
  if (!next || kind != PK_SIM_BARRIER || run_->checker || fiber->thread != self.thread)
    return AnyBarrier(self, kind, predicate);
  fiber->file = self.file;
  fiber->line = self.line;
  WaitAtBarrier(fiber, kind);
  queue_head_ = next->next;
  if (!queue_head_) queue_tail_ = nullptr;
  FetchAhead(queue_head_);
  current_ = next;
  return SwitchContext(&fiber->context, &next->context);
}

void Core::WaitAtBarrier(Fiber *fiber, pk_sim_barrier_kind kind) {
  fiber->waits_at_barrier = true;
  fiber->barrier = kind;
  fiber->next = nullptr;
  (barrier_tail_ ? barrier_tail_->next : barrier_head_) = fiber;
  barrier_tail_ = fiber;
  barrier_scopes_ |= ScopeBit(kind);
  ++barrier_count_;
}

int Core::AnyBarrier(const pk_sim_self &self, pk_sim_barrier_kind kind, int predicate) {
  Fiber *fiber = current_;
  Note(fiber, self);
  if (kind == PK_SIM_BARRIER_GRID && !run_->cooperative)
    Abort(PK_ERROR_LAUNCH_FAILED, "deadlock",
          Format("grid.sync() at %s:%d needs a cooperative launch: kernel.launcher(grid, block, "
                 "cooperative=True)",
                 self.file, self.line),
          self.line);
  WaitAtBarrier(fiber, kind);
  barrier_sum_ += predicate != 0;
  if (barrier_count_ == live_ && self.started == threads_) CompleteBarrier();
  SwitchTo(fiber, NextRunnable(self.started));
  if (run_->checker) run_->checker->Resume(self.thread);
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

// Every thread of the block that has not exited waits at a barrier. Where they wait for different ones nobody goes on,
// which is found as a deadlock.
void Core::CompleteBarrier() {
  if (barrier_scopes_ == kBlockScope || (!SharesCore() && !(barrier_scopes_ & (barrier_scopes_ - 1)))) {
    ReleaseBarrier();
  } else if (barrier_scopes_ == kClusterScope) {
    resident_->place = Resident::kAtCluster;
  } else if (barrier_scopes_ == kGridScope) {
    resident_->place = Resident::kAtGrid;
  }
}

// In the order of arrival, so that a block runs the same way every time.
void Core::ReleaseBarrier() {
  if (!barrier_head_) return;
  if (run_->checker) CheckBarrier();
  (queue_tail_ ? queue_tail_->next : queue_head_) = barrier_head_;
  queue_tail_ = barrier_tail_;
  barrier_head_ = barrier_tail_ = nullptr;
  barrier_true_ = barrier_sum_;
  barrier_arrived_ = barrier_count_;
  barrier_sum_ = 0;
  barrier_count_ = barrier_scopes_ = 0;
}

// Threads that have not been started go before those that already ran: the one waited for may be among them.
void Core::Yield(const pk_sim_self &self) {
  Fiber *fiber = current_;
  Note(fiber, self);
  if (self.started < threads_) {
    Fiber *next = Take();
    if (!next) Abort(PK_ERROR_OUT_OF_MEMORY, "", "the system refused a stack for a simulated thread");
    Append(fiber);
    SwitchTo(fiber, next);
    if (run_->checker) run_->checker->Resume(self.thread);
    return;
  }
  Quiescent(self.started);
  if (SharesCore() && (!queue_head_ || ++yields_ > live_)) {
    Append(fiber);
    SwitchTo(fiber, nullptr);
    if (run_->checker) run_->checker->Resume(self.thread);
    return;
  }
  if (!queue_head_) {
    sched_yield();  // only another block can help
    return;
  }
  Append(fiber);
  SwitchTo(fiber, NextRunnable(self.started));
  if (run_->checker) run_->checker->Resume(self.thread);
}

// ---- addresses

bool Core::OnStack(uintptr_t address) const {
  const auto on = [&](const Fiber *fiber) {
    return address - reinterpret_cast<uintptr_t>(fiber->stack) < kMappedStackBytes;
  };
  if (on(current_)) return true;
  for (const Fiber *fiber : fibers_)
    if (on(fiber)) return true;
  return false;
}

bool Core::InDynamicShared(uintptr_t address) const {
  return reinterpret_cast<uintptr_t>(shared_end_) - address - 1 < kDynamicSharedBytes ||
         address - reinterpret_cast<uintptr_t>(shared_end_) < kGuardBytes;
}

}  // namespace pygpukit::sim
