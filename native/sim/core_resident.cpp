// core_resident.cpp: blocks that share a core: all of a cooperative launch, or those of a cluster. They take turns.
//
// A block has the same addresses for its shared memory as every other one: what it keeps there is copied out when its
// turn ends and in again before the next, so that pointers stay valid. Another block's copy is where the threads of a
// cluster find its shared memory.
#include <algorithm>
#include <cstring>

#include "sim/check.h"
#include "sim/core.h"
#include "sim/module.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

constexpr size_t kAlign = 128;

constexpr size_t Rounded(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

void Core::RunSet(uint64_t set) {
  MakeSet(set);
  size_t done = 0;
  while (done < residents_.size()) {
    bool any = false;
    for (Resident &one : residents_) {
      if (one.place > Resident::kReady) continue;
      RunResident(&one);
      if (failure_.status != PK_OK || signal_) return;
      done += one.place == Resident::kDone;
      any = true;
    }
    if (const int status = run_->cancelled->load(std::memory_order_relaxed)) {
      failure_ = {status, Format("kernel %s: it was ended while its blocks took turns", run_->kernel->name), {}};
      return;
    }
    if (!ReleaseResidents() && !any && done < residents_.size()) {
      failure_ = {PK_ERROR_LAUNCH_FAILED, DescribeResidents(), {}};
      failure_.finding.kind = "deadlock";
      failure_.finding.kernel = run_->kernel->name;
      failure_.finding.message = failure_.text;
      return;
    }
  }
  residents_.clear();
  resident_ = nullptr;
}

void Core::MakeSet(uint64_t set) {
  const pk_sim_dim grid = run_->grid, cluster = run_->cluster;
  const pk_sim_dim clusters = {grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z};
  const uint64_t count = uint64_t{clusters.x} * clusters.y * clusters.z;
  const unsigned cluster_blocks = cluster.x * cluster.y * cluster.z;
  const uint64_t first = run_->cooperative ? 0 : set, last = run_->cooperative ? count : set + 1;
  residents_.clear();
  for (uint64_t index = first; index < last; ++index) {
    const uint64_t x = index % clusters.x, y = index / clusters.x % clusters.y, z = index / clusters.x / clusters.y;
    for (unsigned rank = 0; rank < cluster_blocks; ++rank) {
      Resident one;
      const uint64_t bx = x * cluster.x + rank % cluster.x, by = y * cluster.y + rank / cluster.x % cluster.y,
                     bz = z * cluster.z + rank / cluster.x / cluster.y;
      one.block = (bz * grid.y + by) * grid.x + bx;
      one.cluster = static_cast<unsigned>(index - first);
      one.rank = rank;
      residents_.push_back(one);
    }
  }
  thread_memory_ = run_->module->ThreadMemory();
  thread_memory_bytes_ = run_->module->thread_memory_bytes();
  // A copy starts where its original would start in a cache line, so that it is as well aligned.
  const size_t lead = reinterpret_cast<uintptr_t>(thread_memory_) % kAlign;
  const pk_sim_check_image *check = run_->module->check();
  own_bytes_ = check ? static_cast<size_t>(check->own_end - check->own) : 0;
  const size_t bytes = Rounded(lead + thread_memory_bytes_) + Rounded(run_->dynamic_shared_bytes) + Rounded(own_bytes_);
  resident_memory_.resize(bytes * residents_.size() + kAlign);
  char *memory = resident_memory_.data();
  memory += -reinterpret_cast<uintptr_t>(memory) % kAlign;
  for (Resident &one : residents_) {
    one.memory = memory + lead;
    memory += bytes;
  }
}

// Until the block waits for others, or is done.
void Core::RunResident(Resident *resident) {
  const bool fresh = resident->place == Resident::kNew;
  Load(*resident);
  resident_ = resident;
  resident->place = Resident::kReady;
  yields_ = 0;
  Fiber *fiber;
  if (fresh) {
    fiber = Take();
    if (!fiber) {
      failure_ = {PK_ERROR_OUT_OF_MEMORY, "the system refused a stack for a simulated thread", {}};
      return;
    }
    fiber->runs_blocks = true;
    first_ = resident->block;
    last_ = first_ + 1;
  } else {
    if (run_->checker) run_->checker->ResumeBlock(resident->block);
    if (barrier_count_ == live_) ReleaseBarrier();  // the others have come
    fiber = NextRunnable(threads_);
  }
  current_ = fiber;
  in_kernel_ = 1;
  SwitchContext(&main_, &fiber->context);
  if (failure_.status != PK_OK || signal_) return;
  if (live_ == 0) resident->place = Resident::kDone;
  Save(resident);
}

// At the end of a turn of every block: those that all waited for go on. A block that has exited is not waited for by
// its cluster, but by the grid, as on a device.
bool Core::ReleaseResidents() {
  bool any = false, all_at_grid = true;
  for (const Resident &one : residents_) all_at_grid &= one.place == Resident::kAtGrid;
  const unsigned cluster_blocks = run_->cluster.x * run_->cluster.y * run_->cluster.z;
  for (size_t first = 0; first < residents_.size(); first += cluster_blocks) {
    bool all_at_cluster = true;
    for (size_t i = first; i < first + cluster_blocks; ++i)
      all_at_cluster &= residents_[i].place == Resident::kAtCluster || residents_[i].place == Resident::kDone;
    for (size_t i = first; i < first + cluster_blocks; ++i) {
      if (residents_[i].place == Resident::kDone || !(all_at_grid || all_at_cluster)) continue;
      residents_[i].place = Resident::kReady;
      any = true;
    }
  }
  if (any && run_->checker) run_->checker->GridBarrier();
  return any;
}

void Core::Load(const Resident &resident) {
  live_ = resident.live;
  barrier_count_ = resident.barrier_count;
  barrier_arrived_ = resident.barrier_arrived;
  barrier_scopes_ = resident.barrier_scopes;
  barrier_sum_ = resident.barrier_sum;
  barrier_true_ = resident.barrier_true;
  queue_head_ = resident.queue_head;
  queue_tail_ = resident.queue_tail;
  barrier_head_ = resident.barrier_head;
  barrier_tail_ = resident.barrier_tail;
  if (resident.place == Resident::kNew) {
    for (Warp &warp : warps_) warp.held = warp.waiting = 0;
    return;
  }
  std::copy(resident.warps.begin(), resident.warps.end(), warps_);
  memcpy(thread_memory_, resident.memory, thread_memory_bytes_);
  memcpy(grid_.dynamic_shared, DynamicShared(resident), run_->dynamic_shared_bytes);
  if (own_bytes_)
    memcpy(run_->module->check()->own, DynamicShared(resident) + Rounded(run_->dynamic_shared_bytes), own_bytes_);
}

void Core::Save(Resident *resident) const {
  resident->live = live_;
  resident->barrier_count = barrier_count_;
  resident->barrier_arrived = barrier_arrived_;
  resident->barrier_scopes = barrier_scopes_;
  resident->barrier_sum = barrier_sum_;
  resident->barrier_true = barrier_true_;
  resident->queue_head = queue_head_;
  resident->queue_tail = queue_tail_;
  resident->barrier_head = barrier_head_;
  resident->barrier_tail = barrier_tail_;
  resident->warps.assign(warps_, warps_ + (threads_ + 31) / 32);
  memcpy(resident->memory, thread_memory_, thread_memory_bytes_);
  memcpy(DynamicShared(*resident), grid_.dynamic_shared, run_->dynamic_shared_bytes);
  if (own_bytes_)
    memcpy(DynamicShared(*resident) + Rounded(run_->dynamic_shared_bytes), run_->module->check()->own, own_bytes_);
}

char *Core::DynamicShared(const Resident &resident) const {
  const size_t lead = reinterpret_cast<uintptr_t>(thread_memory_) % kAlign;
  return resident.memory - lead + Rounded(lead + thread_memory_bytes_);
}

void *Core::MapShared(const void *address, unsigned rank) {
  if (!resident_ || rank >= run_->cluster.x * run_->cluster.y * run_->cluster.z) return nullptr;
  Resident &other = *(resident_ - resident_->rank + rank);
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  const uintptr_t in_static = at - reinterpret_cast<uintptr_t>(thread_memory_);
  const uintptr_t in_dynamic = at - reinterpret_cast<uintptr_t>(grid_.dynamic_shared);
  if (in_static >= thread_memory_bytes_ && in_dynamic >= run_->dynamic_shared_bytes) return nullptr;
  if (&other == resident_) return const_cast<void *>(address);
  return in_static < thread_memory_bytes_ ? other.memory + in_static : DynamicShared(other) + in_dynamic;
}

unsigned Core::SharedRank(const void *address) const {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  const auto inside = [&](const void *fixed, const void *dynamic) {
    return at - reinterpret_cast<uintptr_t>(fixed) < thread_memory_bytes_ ||
           at - reinterpret_cast<uintptr_t>(dynamic) < run_->dynamic_shared_bytes;
  };
  if (!resident_) return ~0u;
  if (inside(thread_memory_, grid_.dynamic_shared)) return resident_->rank;
  for (const Resident &one : residents_)
    if (one.cluster == resident_->cluster && inside(one.memory, DynamicShared(one))) return one.rank;
  return ~0u;
}

bool Core::InResidentMemory(uintptr_t address) const {
  return address - reinterpret_cast<uintptr_t>(resident_memory_.data()) < resident_memory_.size();
}

}  // namespace pygpukit::sim
