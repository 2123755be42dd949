// core_failure.cpp: what is told about a block that cannot go on.
#include <algorithm>
#include <map>

#include "sim/core.h"
#include "sim/module.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

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

void Core::DescribeSignal() {
  std::string where = run_->module->SourceLine(program_counter_);
  // Outside the image: in a function of the device or of the C library. The last call that told its place is near.
  if (where.empty() && current_->file) where = Format("%s:%d", current_->file, current_->line);
  if (!where.empty()) where = " at " + where;
  bool overflow = false;
  for (const Fiber *fiber : fibers_) overflow |= address_ - reinterpret_cast<uintptr_t>(fiber->stack) < kGuardBytes;
  switch (signal_) {
    case SIGSEGV:
    case SIGBUS:
      failure_ =
          overflow ? Failure{PK_ERROR_LAUNCH_FAILED,
                             Format("stack overflow%s: a simulated thread has %zu KiB for its local variables",
                                    where.c_str(), kStackBytes >> 10)}
                   : Failure{PK_ERROR_ILLEGAL_ADDRESS, Format("illegal memory access%s: address 0x%llx", where.c_str(),
                                                              static_cast<unsigned long long>(address_))};
      break;
    case SIGFPE:
      failure_ = {PK_ERROR_LAUNCH_FAILED, "integer division by zero" + where};
      break;
    case SIGURG:
      failure_ = {run_->cancelled->load(), "the kernel was ended" + where};
      break;
    default:
      failure_ = {PK_ERROR_LAUNCH_FAILED, "illegal instruction or trap" + where};
  }
  failure_.text = KernelAndBlock() + Thread() + ": " + failure_.text;
}

std::string Core::Describe(const Fiber &fiber) const {
  const std::string what = fiber.waits_at_barrier ? "__syncthreads()" : DescribeLane(fiber.thread);
  return Format("%s at %s:%d", what.c_str(), fiber.file, fiber.line);
}

std::string Core::DescribeDeadlock() const {
  std::map<std::string, std::vector<unsigned>> groups;
  std::vector<bool> held(threads_);
  for (const Fiber *fiber : fibers_)
    if (fiber->thread != kNoThread) {
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

void Core::Deadlock() {
  in_runtime = 1;
  failure_.text = DescribeDeadlock();
  Leave(PK_ERROR_LAUNCH_FAILED);
}

}  // namespace pygpukit::sim
