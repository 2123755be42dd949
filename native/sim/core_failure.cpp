// core_failure.cpp: how a block ends that cannot go on, and what is told about it.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "sim/check.h"
#include "sim/core.h"
#include "sim/fault.h"
#include "sim/module.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

constexpr size_t kMinStackBytes = 24 << 10;

std::string Dim(pk_sim_dim d) { return Format("(%u,%u,%u)", d.x, d.y, d.z); }

pk_sim_dim Unravel(uint64_t index, pk_sim_dim extent) {
  return {static_cast<unsigned>(index % extent.x), static_cast<unsigned>(index / extent.x % extent.y),
          static_cast<unsigned>(index / extent.x / extent.y)};
}

// " 0-15, 32"
std::string Ranges(std::vector<unsigned> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::string text;
  for (size_t i = 0, j; i < numbers.size(); i = j) {
    for (j = i + 1; j < numbers.size() && numbers[j] == numbers[j - 1] + 1;) ++j;
    text += Format(j - i > 1 ? "%s %u-%u" : "%s %u", i ? "," : "", numbers[i], numbers[j - 1]);
  }
  return text;
}

}  // namespace

void Core::Abort(pk_status status, const char *kind, std::string text, int line) {
  if (run_->checker && *kind) run_->checker->TellPending();
  in_runtime = 1;
  failure_.text = KernelAndBlock() + Thread() + ": " + text;
  Fill(&failure_.finding, kind, text, line);
  std::string().swap(text);
  Leave(status);
}

// The stack left behind is never unwound: nothing on it may own memory when this is called.
void Core::Leave(pk_status status) {
  failure_.status = status;
  in_kernel_ = 0;
  JumpContext(&main_);
}

void Core::AskForStack() {
  const char here = 0;
  const size_t left = static_cast<size_t>(&here - current_->stack) - kGuardBytes;
  if (left >= kMinStackBytes) return;
  Abort(PK_ERROR_LAUNCH_FAILED, "stack overflow",
        Format("stack overflow: a simulated thread has %zu KiB for its local variables", kStackBytes >> 10));
}

bool Core::Interruptible(int signal) const {
  if (placing_) return signal != SIGURG;
  if (!in_kernel_) return false;
  return signal != SIGURG ||
         (!in_runtime && !KnownStack::Switching() && run_->cancelled->load(std::memory_order_relaxed) != PK_OK);
}

void Core::Interrupted(int signal, uintptr_t program_counter, uintptr_t address) {
  if (placing_) {  // the stack leads nowhere: the first signal is told, with what is known of its place
    placing_ = 0;
    JumpContext(&main_);
  }
  in_kernel_ = 0;
  signal_ = signal;
  // Interrupted in a function that the kernel called, the device's or the C library's: the place is the kernel's call
  // of it. After a fault in the kernel itself its stack may be anything.
  program_counter_ = places_[0] = program_counter;
  place_count_ = 1;
  if (signal == SIGURG || !run_->module->Contains(program_counter)) {
    placing_ = 1;
    place_count_ = PlacesIn(*run_->module, places_, std::size(places_));
    placing_ = 0;
  }
  address_ = address;
  JumpContext(&main_);
}

void Core::Interrupt(const std::atomic<int> *cancelled) const {
  if (owned_ && launch_ == cancelled) InterruptThread(owner_);
}

void Core::Fill(Finding *finding, const char *kind, std::string message, int line) const {
  pk_sim_position at = {};
  run_->image->position(&at);
  finding->kind = kind;
  finding->message = std::move(message);
  finding->kernel = run_->kernel->name;
  finding->block = Unravel(at.block, run_->grid);
  finding->thread = Unravel(at.thread, run_->block);
  finding->line = line;
}

void Core::Report(pk_status status, Finding finding) {
  finding.kernel = run_->kernel->name;
  failure_.text = Format("kernel %s, block %s, thread %s: %s: ", run_->kernel->name, Dim(finding.block).c_str(),
                         Dim(finding.thread).c_str(), finding.kind.c_str()) +
                  finding.message;
  failure_.finding = std::move(finding);
  Leave(status);
}

// Threads that wait for one barrier at several places, or that ended without it: some code is not executed by all of
// them alike. A device may go on without those that have ended, or wait for them for ever.
void Core::CheckBarrier() {
  bool alike = true;
  for (const Fiber *fiber = barrier_head_; fiber; fiber = fiber->next)
    alike &= fiber->line == barrier_head_->line && fiber->file == barrier_head_->file;
  in_runtime = 1;
  if (!alike) DivergentBarrier();
  const pk_sim_barrier_kind kind = barrier_head_->barrier;
  if (live_ < threads_ && kind != PK_SIM_BARRIER_GRID && kind != PK_SIM_BARRIER_CLUSTER) UnreachedBarrier();
  run_->checker->Barrier();
  in_runtime = 0;
}

// Returns when the places have several names only.
void Core::DivergentBarrier() {
  std::map<std::pair<int, std::string_view>, std::vector<unsigned>> places;
  for (const Fiber *fiber = barrier_head_; fiber; fiber = fiber->next)
    places[{fiber->line, fiber->file}].push_back(fiber->thread);
  if (places.size() < 2) return;
  run_->checker->TellPending();
  const auto rarest = places.begin();  // the first in the source: most often the one that some threads pass by
  std::string text = "threads of one block wait at different barriers";
  for (auto at = places.begin(); at != places.end(); ++at) {
    text += Format("; %zu at %.*s:%d:", at->second.size(), static_cast<int>(at->first.second.size()),
                   at->first.second.data(), at->first.first) +
            Ranges(at->second);
  }
  Finding finding;
  Fill(&finding, "divergent barrier", std::move(text), rarest->first.first);
  finding.thread = Unravel(*std::min_element(rarest->second.begin(), rarest->second.end()), run_->block);
  places.clear();
  Report(PK_ERROR_LAUNCH_FAILED, std::move(finding));
}

// Never returns.
void Core::UnreachedBarrier() {
  run_->checker->TellPending();
  Finding finding;
  {
    std::vector<bool> waits(threads_);
    for (const Fiber *fiber = barrier_head_; fiber; fiber = fiber->next) waits[fiber->thread] = true;
    std::vector<unsigned> exited;
    for (unsigned thread = 0; thread < threads_; ++thread)
      if (!waits[thread]) exited.push_back(thread);
    Fill(&finding, "divergent barrier",
         Format("not every thread of the block comes to this barrier; %u wait at %s:%d, %zu have ended without it:",
                barrier_count_, barrier_head_->file, barrier_head_->line, exited.size()) +
             Ranges(exited),
         barrier_head_->line);
    finding.thread = Unravel(exited.front(), run_->block);
  }
  Report(PK_ERROR_LAUNCH_FAILED, std::move(finding));
}

namespace {

int LineOf(const std::string &place) {
  const size_t colon = place.rfind(':');
  return colon == std::string::npos ? 0 : atoi(place.c_str() + colon + 1);
}

}  // namespace

std::string Core::KernelAndBlock() const {
  pk_sim_position at = {};
  run_->image->position(&at);
  return Format("kernel %s, block %s", run_->kernel->name, Dim(Unravel(at.block, run_->grid)).c_str());
}

std::string Core::Thread() const {
  pk_sim_position at = {};
  run_->image->position(&at);
  return ", thread " + Dim(Unravel(at.thread, run_->block));
}

std::string Core::PlaceOfSignal() const {
  std::string where;
  // A call into the device tells its place, which is better than what is known of code that was inlined and moved away.
  const bool has_line = current_->file && current_->line;
  const std::string call = has_line ? Format("%s:%d", current_->file, current_->line) : "";
  if (!run_->checker && !run_->module->Contains(program_counter_)) where = call;
  for (size_t i = 0; i < place_count_ && where.empty(); ++i) where = run_->module->SourceLine(places_[i]);
  if (where.empty()) where = call;
  if (where.empty()) where = run_->module->SourceLine(program_counter_, false);
  return where;
}

void Core::DescribeSignal() {
  const std::string where = PlaceOfSignal();
  const int line = LineOf(where);
  const std::string at = where.empty() ? "" : " at " + where;
  bool overflow = false;
  for (const Fiber *fiber : fibers_) overflow |= address_ - reinterpret_cast<uintptr_t>(fiber->stack) < kGuardBytes;
  const char *kind = "";
  std::string text;
  failure_.status = PK_ERROR_LAUNCH_FAILED;
  switch (signal_) {
    case SIGSEGV:
    case SIGBUS:
      if (overflow) {
        kind = "stack overflow";
        text = Format("stack overflow%s: a simulated thread has %zu KiB for its local variables", at.c_str(),
                      kStackBytes >> 10);
        break;
      }
      failure_.status = PK_ERROR_ILLEGAL_ADDRESS;
      kind = "out of bounds";
      text = Format("illegal memory access%s: address 0x%llx", at.c_str(), static_cast<unsigned long long>(address_));
      break;
    case SIGFPE:
      kind = "integer division by zero";
      text = "integer division by zero" + at;
      break;
    case SIGURG:
      failure_.status = run_->cancelled->load();
      kind = "time limit";
      text = "the kernel was ended" + at;
      break;
    default:
      kind = "assert";
      text = "illegal instruction or trap" + at;
  }
  failure_.text = KernelAndBlock() + Thread() + ": " + text;
  Fill(&failure_.finding, kind, std::move(text), line);
  if (run_->checker && signal_ != SIGURG && run_->checker->TakeUnwritten(&failure_.finding))
    failure_.text = KernelAndBlock() + ", thread " + Dim(failure_.finding.thread) + ": " + failure_.finding.message;
}

std::string Core::Describe(const Fiber &fiber) const {
  const char *barrier = fiber.barrier == PK_SIM_BARRIER_GRID      ? "grid.sync()"
                        : fiber.barrier == PK_SIM_BARRIER_CLUSTER ? "cluster.sync()"
                                                                  : "__syncthreads()";
  const std::string what = fiber.waits_at_barrier ? barrier : DescribeLane(fiber.thread);
  return Format("%s at %s:%d", what.c_str(), fiber.file, fiber.line);
}

std::string Core::DescribeDeadlock() const {
  std::map<std::string, std::vector<unsigned>> groups;
  std::vector<bool> held(threads_);
  for (const Fiber *fiber : fibers_)
    if (fiber->thread != kNoThread && (!resident_ || fiber->resident == resident_ - residents_.data())) {
      groups[Describe(*fiber)].push_back(fiber->thread);
      held[fiber->thread] = true;
    }
  std::vector<unsigned> exited;
  for (unsigned thread = 0; thread < threads_; ++thread)
    if (!held[thread]) exited.push_back(thread);
  std::string text = KernelAndBlock() + ": deadlock, no thread of the block can go on";
  for (const auto &[what, threads] : groups)
    text += Format("; %zu waiting in ", threads.size()) + what + ":" + Ranges(threads);
  if (!exited.empty()) text += Format("; %zu exited:", exited.size()) + Ranges(exited);
  return text;
}

// Blocks of a set that wait for others which cannot come.
std::string Core::DescribeResidents() const {
  std::map<std::string, std::vector<unsigned>> groups;
  for (const Resident &one : residents_)
    groups[one.place == Resident::kDone ? "exited" : "waiting in " + Describe(*one.barrier_head)].push_back(
        static_cast<unsigned>(one.block));
  std::string text = Format("kernel %s: deadlock, no block can go on", run_->kernel->name);
  for (const auto &[what, blocks] : groups)
    text += Format("; %zu blocks ", blocks.size()) + what + ":" + Ranges(blocks);
  return text;
}

void Core::Deadlock() {
  if (run_->checker) run_->checker->TellPending();
  in_runtime = 1;
  failure_.text = DescribeDeadlock();
  // Who waits for a warp, before who waits for the block: the block waits for them.
  const Fiber *first = nullptr;
  for (const Fiber *fiber : fibers_) {
    if (fiber->thread == kNoThread) continue;
    const auto rank = [](const Fiber *one) { return std::pair(one->waits_at_barrier, one->thread); };
    if (!first || rank(fiber) < rank(first)) first = fiber;
  }
  const size_t start = failure_.text.find(": ");
  Fill(&failure_.finding, "deadlock", failure_.text.substr(start + 2), first ? first->line : 0);
  if (first) failure_.finding.thread = Unravel(first->thread, run_->block);
  Leave(PK_ERROR_LAUNCH_FAILED);
}

}  // namespace pygpukit::sim
