// launch.cpp: checking, sharing out and finishing launches.
#include "sim/launch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/check.h"
#include "sim/device.h"
#include "sim/executor.h"
#include "sim/fault.h"
#include "sim/status.h"
#include "sim/stream.h"

namespace pygpukit::sim {
namespace {

// Waking another thread costs about as much as this.
constexpr uint64_t kWorthHelpNanoseconds = 30000;
// What a thread of a kernel that never ran before is taken to cost.
constexpr uint64_t kGuessNanosecondsPerThread = 5;

// Those above 8 need a function's consent on a device, which the driver table gives by itself.
constexpr unsigned kMaxClusterBlocks = 16;
// The watchdog looks every 20 ms. When it did not for so long, the process could not run.
constexpr uint64_t kMissedNanoseconds = 500000000;

std::string Shape(const uint32_t *shape) {
  return Format("(%u,%u,%u)", static_cast<unsigned>(shape[0]), static_cast<unsigned>(shape[1]),
                static_cast<unsigned>(shape[2]));
}

uint64_t Blocks(const pk_launch &request) { return uint64_t{request.grid[0]} * request.grid[1] * request.grid[2]; }

pk_sim_dim ClusterOf(const pk_sim_kernel &kernel, const pk_launch &request) {
  if (request.flags & PK_LAUNCH_CLUSTER) return {request.cluster[0], request.cluster[1], request.cluster[2]};
  if (kernel.cluster[0]) return {kernel.cluster[0], kernel.cluster[1], kernel.cluster[2]};
  return {1, 1, 1};
}

// Blocks that must be on the device together: clusters, and the whole grid of a cooperative launch.
pk_status CheckTogether(int sms, const Function &function, const pk_launch &request) {
  const pk_sim_kernel &kernel = *function.kernel;
  const pk_sim_dim cluster = ClusterOf(kernel, request);
  const uint32_t shape[3] = {cluster.x, cluster.y, cluster.z};
  const uint64_t blocks = uint64_t{shape[0]} * shape[1] * shape[2];
  if (blocks == 0 || blocks > kMaxClusterBlocks)
    return Fail(PK_ERROR_INVALID_CLUSTER_SIZE,
                Format("kernel %s: cluster %s: 1 to %u blocks", kernel.name, Shape(shape).c_str(), kMaxClusterBlocks));
  for (int axis = 0; axis < 3; ++axis) {
    if (kernel.cluster[0] && shape[axis] != kernel.cluster[axis])
      return Fail(PK_ERROR_INVALID_VALUE, Format("kernel %s: cluster %s is not what its __cluster_dims__ say, %s",
                                                 kernel.name, Shape(shape).c_str(), Shape(kernel.cluster).c_str()));
    if (request.grid[axis] % shape[axis])
      return Fail(PK_ERROR_INVALID_VALUE, Format("kernel %s: grid %s is no multiple of cluster %s", kernel.name,
                                                 Shape(request.grid).c_str(), Shape(shape).c_str()));
  }
  if (!(request.flags & PK_LAUNCH_COOPERATIVE)) return PK_OK;
  int32_t resident = 0;
  const uint32_t threads = request.block[0] * request.block[1] * request.block[2];
  if (pk_status bad = function.Occupancy(threads, request.shared_bytes, &resident)) return bad;
  const uint64_t max_blocks = static_cast<uint64_t>(resident) * static_cast<uint64_t>(sms);
  if (Blocks(request) > max_blocks)
    return Fail(PK_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                Format("kernel %s: a cooperative launch of %llu blocks, but the device holds at most %llu of them at "
                       "once: %d on each of its %d multiprocessors",
                       kernel.name, static_cast<unsigned long long>(Blocks(request)),
                       static_cast<unsigned long long>(max_blocks), resident, sms));
  return PK_OK;
}

bool IsSlice(const pk_launch &request) { return (request.flags & PK_LAUNCH_SLICE) != 0; }

const pk_slice &SliceOf(const Function &function, const pk_launch &request) {
  return *static_cast<const pk_slice *>(request.params[function.kernel->parameter_count]);
}

uint64_t BlockNumber(const uint32_t *place, const uint32_t *grid) {
  return (uint64_t{place[2]} * grid[1] + place[1]) * grid[0] + place[0];
}

// The blocks of a slice lie in the whole grid and follow one another there; none waits for those of other slices.
pk_status CheckSlice(const Function &function, const pk_launch &request) {
  const char *name = function.kernel->name;
  if (!request.params) return Fail(PK_ERROR_INVALID_VALUE, Format("kernel %s: a slice without parameters", name));
  if ((request.flags & (PK_LAUNCH_COOPERATIVE | PK_LAUNCH_CLUSTER)) || function.kernel->cluster[0])
    return Fail(PK_ERROR_NOT_SUPPORTED,
                Format("kernel %s: a cooperative launch or one with clusters cannot be sliced", name));
  const pk_slice &slice = SliceOf(function, request);
  uint32_t last[3];
  bool inside = slice.whole[0] <= 0x7fffffffu && slice.whole[1] <= 65535 && slice.whole[2] <= 65535;
  for (int axis = 0; axis < 3; ++axis) {
    inside &= uint64_t{slice.first[axis]} + request.grid[axis] <= slice.whole[axis];
    last[axis] = slice.first[axis] + request.grid[axis] - 1;
  }
  const uint64_t first = BlockNumber(slice.first, slice.whole);
  if (!inside || BlockNumber(last, slice.whole) - first + 1 != Blocks(request))
    return Fail(PK_ERROR_INVALID_VALUE,
                Format("kernel %s: blocks %s from %s on are no run of blocks of the grid %s", name,
                       Shape(request.grid).c_str(), Shape(slice.first).c_str(), Shape(slice.whole).c_str()));
  return PK_OK;
}

// The limits of a GPU of compute capability 9.0, with its statuses.
pk_status CheckRequest(const Device &device, const Stream &stream, const Function &function, const pk_launch &request) {
  const char *name = function.kernel->name;
  const uint32_t *grid = request.grid, *block = request.block;
  if (!block[0] || !block[1] || !block[2] || block[0] > 1024 || block[1] > 1024 || block[2] > 64 ||
      uint64_t{block[0]} * block[1] * block[2] > kMaxThreads)
    return Fail(PK_ERROR_INVALID_VALUE, Format("kernel %s: block %s: at most 1024 x 1024 x 64 threads, and 1024 in all",
                                               name, Shape(block).c_str()));
  if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 0x7fffffffu || grid[1] > 65535 || grid[2] > 65535)
    return Fail(
        PK_ERROR_INVALID_VALUE,
        Format("kernel %s: grid %s: at least 1, at most 2147483647 x 65535 x 65535 blocks", name, Shape(grid).c_str()));
  if (block[0] * block[1] * block[2] > function.kernel->max_threads)
    return Fail(PK_ERROR_LAUNCH_OUT_OF_RESOURCES,
                Format("kernel %s: block %s has more threads than its __launch_bounds__(%u)", name,
                       Shape(block).c_str(), function.kernel->max_threads));
  const unsigned limit = function.dynamic_limit_bytes;
  if (request.shared_bytes > limit)
    return Fail(
        PK_ERROR_INVALID_VALUE,
        Format("kernel %s: %u bytes of dynamic shared memory, but %u are allowed beside its %u static ones (raise it "
               "with function_set_dynamic_shared, up to %u)",
               name, static_cast<unsigned>(request.shared_bytes), limit, function.static_shared_bytes,
               kSharedOptinBytes - function.static_shared_bytes));
  if (function.kernel->parameter_count && !request.params)
    return Fail(PK_ERROR_INVALID_VALUE,
                Format("kernel %s takes %u parameters, none were given", name, function.kernel->parameter_count));
  if (IsSlice(request))
    if (pk_status bad = CheckSlice(function, request)) return bad;
  return CheckTogether(stream.sms ? static_cast<int>(stream.sms->sms.size()) : device.sms(), function, request);
}

}  // namespace

LaunchMemory &NextLaunchMemory() {
  static thread_local LaunchMemory next;
  return next;
}

Launch::Launch(Device *device, const Stream &stream, std::shared_ptr<Function> function)
    : device_(device), priority_(stream.priority), sms_(stream.sms), function_(std::move(function)) {}

pk_status Launch::Make(Device *device, const Stream &stream, std::shared_ptr<Function> function,
                       const pk_launch &request, std::shared_ptr<Launch> *launch) {
  LaunchMemory memory = std::exchange(NextLaunchMemory(), {});
  std::vector<Zone> zones = std::exchange(NextLaunchZones(), {});
  if (pk_status bad = CheckRequest(*device, stream, *function, request)) return bad;
  std::shared_ptr<Launch> created(new Launch(device, stream, std::move(function)));
  created->memory_ = std::move(memory);
  created->zones_ = std::move(zones);
  created->CopyArguments(request);
  created->request_ = request;
  created->request_.params = created->pointers_.data();
  const pk_sim_dim cluster = ClusterOf(*created->function_->kernel, request);
  const bool cooperative = (request.flags & PK_LAUNCH_COOPERATIVE) != 0;
  created->blocks_ = cooperative ? 1 : Blocks(request) / (cluster.x * cluster.y * cluster.z);
  created->chunk_ = std::clamp<uint64_t>(created->blocks_ / (static_cast<uint64_t>(device->cores.count()) * 8), 1, 64);
  const uint32_t *grid = IsSlice(request) ? created->slice_.whole : request.grid;
  created->first_ = IsSlice(request) ? BlockNumber(created->slice_.first, created->slice_.whole) : 0;
  const Module &module = *created->function_->module;
  created->run_ = {&module,
                   &module.image(),
                   created->function_->kernel,
                   created->pointers_.data(),
                   {grid[0], grid[1], grid[2]},
                   {request.block[0], request.block[1], request.block[2]},
                   request.shared_bytes,
                   cooperative,
                   cluster,
                   &created->cancelled_,
                   module.check() ? &Checker::Get() : nullptr};
  if (created->run_.checker) created->chunk_ = created->blocks_;
  *launch = std::move(created);
  return PK_OK;
}

pk_status Launch::Again(const Stream &stream, std::shared_ptr<Launch> *launch) const {
  NextLaunchMemory() = memory_;
  return Make(device_, stream, function_, request_, launch);
}

void Launch::CopyArguments(const pk_launch &request) {
  const pk_sim_kernel &kernel = *function_->kernel;
  uint64_t offset = 0, bytes = 0;
  for (uint32_t i = 0; i < kernel.parameter_count; ++i) function_->Parameter(i, &offset, &bytes);
  arguments_.resize(offset + bytes + 64);
  char *base = arguments_.data() + (-reinterpret_cast<uintptr_t>(arguments_.data()) & 63);
  for (uint32_t i = 0; i < kernel.parameter_count; ++i) {
    function_->Parameter(i, &offset, &bytes);
    memcpy(base + offset, request.params[i], bytes);
    pointers_.push_back(base + offset);
  }
  if (!IsSlice(request)) return;
  slice_ = SliceOf(*function_, request);
  pointers_.push_back(&slice_);
}

int Launch::HelpersWorthWaking() const {
  const uint64_t threads = uint64_t{run_.block.x} * run_.block.y * run_.block.z;
  const uint64_t measured = function_->block_nanoseconds.load(std::memory_order_relaxed);
  const uint64_t block_ns = measured ? measured : threads * kGuessNanosecondsPerThread;
  if (run_.checker || blocks_ < 2 || block_ns * blocks_ < kWorthHelpNanoseconds) return 0;
  return static_cast<int>(
             std::min<uint64_t>((blocks_ + chunk_ - 1) / chunk_, static_cast<uint64_t>(device_->cores.count()))) -
         1;
}

void Launch::Run() {
  InstallFaultHandlers();
  Finding overrun;
  if (run_.checker) {
    RunChecked();
  } else {
    FillZones(zones_, &device_->memory);
    RunBlocks();
    if (FindOverrun(zones_, &device_->memory, &overrun) && cancelled_ == PK_OK) {
      overrun.kernel = run_.kernel->name;
      Fault({PK_ERROR_ILLEGAL_ADDRESS, Format("kernel %s: out of bounds: ", run_.kernel->name) + overrun.message, {}});
    }
  }
  if (cancelled_ != PK_OK) device_->SetFault(failure_.status, failure_.text, run_.checker ? failure_.finding : overrun);
}

// One at a time, so that the time limit of one that waits does not run.
void Launch::RunChecked() {
  std::lock_guard guard(run_.checker->mutex());
  std::string why;
  if (run_.checker->Begin(run_, memory_, &device_->memory, &why)) {
    RunBlocks();
  } else {
    Fault({PK_ERROR_OUT_OF_MEMORY, Format("kernel %s: ", run_.kernel->name) + why, {}});
  }
  run_.checker->End();
}

void Launch::RunBlocks() {
  Core *core = device_->cores.Acquire(priority_, sms_.get());
  deadline_ns_ = MonotonicNanoseconds() + static_cast<uint64_t>(device_->timeout_s() * 1e9);
  // Known to the watchdog before it looks whether it may run: whoever cancels sees the launch, or is seen by it.
  Watchdog::Get().Add(this);
  if (!device_->Halted()) {
    for (int helpers = HelpersWorthWaking(); helpers > 0; --helpers)
      Executor::Get().Post([self = shared_from_this()] { self->Help(); });
    while (next_ < blocks_ && cancelled_ == PK_OK) {
      Work(core);
      if (next_ >= blocks_ || cancelled_ != PK_OK) break;
      device_->cores.Release(core, sms_.get());  // somebody more urgent waits
      core = device_->cores.Acquire(priority_, sms_.get());
    }
  }
  device_->cores.Release(core, sms_.get());
  std::unique_lock guard(mutex_);
  closed_ = true;
  left_.wait(guard, [&] { return helpers_ == 0; });
  guard.unlock();
  Watchdog::Get().Remove(this);
}

// Until the blocks are shared out, or somebody more urgent wants the core.
void Launch::Work(Core *core) {
  while (cancelled_.load(std::memory_order_relaxed) == PK_OK) {
    const uint64_t first = next_.fetch_add(chunk_);
    if (first >= blocks_) return;
    const uint64_t last = std::min(first + chunk_, blocks_), start = MonotonicNanoseconds();
    if (!core->Run(run_, first_ + first, first_ + last)) {
      Fault(core->failure());
      return;
    }
    function_->block_nanoseconds.store((MonotonicNanoseconds() - start) / (last - first) + 1,
                                       std::memory_order_relaxed);
    if (device_->cores.IsPreempted(priority_)) return;
  }
}

void Launch::Help() {
  {
    std::lock_guard guard(mutex_);
    if (closed_) return;
    ++helpers_;
  }
  if (Core *core = device_->cores.TryAcquire(sms_.get())) {
    Work(core);
    device_->cores.Release(core, sms_.get());
  }
  std::lock_guard guard(mutex_);
  --helpers_;
  left_.notify_all();
}

void Launch::Fault(const Failure &failure) {
  std::lock_guard guard(mutex_);
  // The first failure is told; a core that was interrupted adds where it was to the reason.
  if (cancelled_ == PK_OK) {
    failure_ = failure;
    cancelled_ = failure.status;
  } else if (!why_cancelled_.empty()) {
    failure_.text = failure.text + ": " + why_cancelled_;
    const std::string kind = failure_.finding.kind;
    failure_.finding = failure.finding;
    failure_.finding.kind = kind;
    failure_.finding.message += ": " + why_cancelled_;
    why_cancelled_.clear();
  }
}

void Launch::Cancel(pk_status status, const char *kind, const std::string &why) {
  std::lock_guard guard(mutex_);
  if (cancelled_ != PK_OK) return;
  why_cancelled_ = why;
  failure_ = {status, Format("kernel %s: ", run_.kernel->name) + why, {}};
  failure_.finding.kind = kind;
  failure_.finding.kernel = run_.kernel->name;
  failure_.finding.message = why;
  cancelled_ = status;
}

void Launch::Watch(uint64_t now_ns, uint64_t missed_ns) {
  deadline_ns_ += missed_ns;
  if (now_ns > deadline_ns_)
    Cancel(PK_ERROR_LAUNCH_TIMEOUT, "time limit",
           Format("it ran longer than %g s (PYGPUKIT_SIM_TIMEOUT_S sets the limit)", device_->timeout_s()));
  if (cancelled_ != PK_OK)
    for (const Core *core : device_->cores.all()) core->Interrupt(&cancelled_);
}

Watchdog &Watchdog::Get() {
  static Watchdog &watchdog = *new Watchdog;
  return watchdog;
}

void Watchdog::Add(Launch *launch) {
  std::unique_lock guard(mutex_);
  running_.push_back(launch);
  if (!started_) Executor::Get().Post([this] { Loop(); });
  started_ = true;
  if (!asleep_) return;
  asleep_ = false;
  guard.unlock();
  wake_.notify_one();
}

void Watchdog::Remove(Launch *launch) {
  std::lock_guard guard(mutex_);
  running_.erase(std::remove(running_.begin(), running_.end(), launch), running_.end());
}

uint64_t Watchdog::Cancel(const Device *device, const std::string &why) {
  std::lock_guard guard(mutex_);
  uint64_t count = 0;
  for (Launch *launch : running_) {
    if (launch->device() != device) continue;
    launch->Cancel(PK_ERROR_LAUNCH_FAILED, "", why);
    launch->Watch(0, 0);
    ++count;
  }
  return count;
}

// Looks every few milliseconds; sleeps only after a while without launches, so that launching need not wake it. When it
// could not look for much longer, the process was stopped: time that counts for no launch.
void Watchdog::Loop() {
  std::unique_lock guard(mutex_);
  int idle = 0;
  for (;;) {
    uint64_t last = MonotonicNanoseconds();
    if (idle < 50) {
      wake_.wait_for(guard, std::chrono::milliseconds(20));
    } else {
      asleep_ = true;
      wake_.wait(guard, [&] { return !asleep_; });
      last = MonotonicNanoseconds();
    }
    const uint64_t now = MonotonicNanoseconds();
    const uint64_t missed = now - last > kMissedNanoseconds ? now - last : 0;
    for (Launch *launch : running_) launch->Watch(now, missed);
    idle = running_.empty() ? idle + 1 : 0;
  }
}

}  // namespace pygpukit::sim
