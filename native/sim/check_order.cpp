// check_order.cpp: ids, barriers, warps, and what fences and atomics hand from thread to thread.
#include "sim/check_order.h"

#include <algorithm>
#include <cstring>

namespace pygpukit::sim {
namespace {

constexpr size_t kMaxParts = 256, kMaxRanges = 1024, kMaxSegments = size_t{1} << 21;

}  // namespace

void Known::Add(uint32_t lo, uint32_t hi) {
  if (lo >= hi) return;
  auto at = std::lower_bound(ranges_.begin(), ranges_.end(), lo, [](const Range &r, uint32_t id) { return r.hi < id; });
  if (at == ranges_.end() || at->lo > hi) {
    ranges_.insert(at, {lo, hi});
  } else {
    at->lo = std::min(at->lo, lo);
    at->hi = std::max(at->hi, hi);
    auto next = at + 1;
    while (next != ranges_.end() && next->lo <= at->hi) at->hi = std::max(at->hi, (next++)->hi);
    ranges_.erase(at + 1, next);
  }
  Coarsen();
}

void Known::AddPart(const Part &part) {
  if (part.lo >= part.hi) return;
  const auto before = [](const Part &a, const Part &b) { return a.lo != b.lo ? a.lo < b.lo : a.thread < b.thread; };
  const auto at = std::lower_bound(parts_.begin(), parts_.end(), part, before);
  if (at != parts_.end() && at->lo == part.lo && at->thread == part.thread) {
    at->hi = std::max(at->hi, part.hi);
  } else {
    parts_.insert(at, part);
  }
  Coarsen();
}

void Known::Join(const Known &other) {
  for (const Range &range : other.ranges_) Add(range.lo, range.hi);
  for (const Part &part : other.parts_) AddPart(part);
}

// Long lists become one stretch: more counts as ordered than is.
void Known::Coarsen() {
  if (parts_.size() > kMaxParts) {
    Range all = {parts_.front().lo, 0};
    for (const Part &part : parts_) all.hi = std::max(all.hi, part.hi);
    parts_.clear();
    Add(all.lo, all.hi);
  }
  if (ranges_.size() > kMaxRanges) ranges_ = {{ranges_.front().lo, ranges_.back().hi}};
}

bool Known::Holds(uint32_t id, uint64_t thread) const {
  const auto at =
      std::upper_bound(ranges_.begin(), ranges_.end(), id, [](uint32_t key, const Range &r) { return key < r.hi; });
  if (at != ranges_.end() && at->lo <= id) return true;
  for (const Part &part : parts_) {
    if (part.lo > id) break;
    if (id < part.hi && part.thread == thread) return true;
  }
  return false;
}

// ---- blocks

void Order::BeginLaunch(unsigned threads) {
  threads_ = threads;
  segments_.clear();
  released_.clear();
  any_fence_ = false;
  floor = block_base = barrier_base = next_;
}

void Order::BeginBlock(uint64_t block) {
  if (exhausted() || segments_.size() > kMaxSegments) Forget();
  const uint32_t length = next_ - block_base;
  Segment *last = segments_.empty() ? nullptr : &segments_.back();
  if (last && !last->mask && plain_ && block == last->block + last->blocks &&
      (last->blocks == 1 || last->period == length)) {
    last->period = length;
    ++last->blocks;
  } else {
    segments_.push_back({next_, 0, 0, 0, block, 1});
  }
  plain_ = true;
  block_ = block;
  block_base = next_;
  published_ = next_;
  fenced_since_barrier_ = false;
  if (any_fence_) memset(fence_id_, 0, sizeof fence_id_);
  block_known_ = {};
  NewIds();
}

void Order::ResumeBlock(uint64_t block) {
  plain_ = false;
  BeginBlock(block);
}

// Everybody's id is new, and knows nothing beyond what the block does.
void Order::NewIds() {
  barrier_base = next_;
  for (unsigned thread = 0; thread < threads_; ++thread) ids_[thread] = next_ + thread;
  next_ += threads_;
  if (any_warp_synced_) memset(warp_synced_, 0, sizeof warp_synced_);
  any_warp_synced_ = false;
  if (any_known_) {
    for (auto &known : known_) known.reset();
    for (auto &met : met_) met.reset();
  }
  any_known_ = false;
}

// A history that has grown too long: what was before counts as ordered.
void Order::Forget() {
  segments_.clear();
  released_.clear();
  plain_ = false;
  floor = next_;
}

void Order::Learn(unsigned thread) {
  if (!met_[thread]) return;
  if (known_[thread]) {
    known_[thread]->Join(*met_[thread]);
    met_[thread].reset();
  } else {
    known_[thread] = std::move(met_[thread]);
  }
}

void Order::Barrier() {
  if (any_known_)
    for (unsigned thread = 0; thread < threads_; ++thread) Learn(thread);
  if (any_known_)
    for (const auto &known : known_)
      if (known) block_known_.Join(*known);
  if (fenced_since_barrier_) published_ = next_;
  fenced_since_barrier_ = false;
  const Segment &last = segments_.back();
  if (!plain_ || (last.blocks > 1 && next_ + threads_ - block_base > last.period)) {
    // The segment cannot be continued: it holds a thread's or a warp's ids, or blocks that were all shorter.
    segments_.push_back({next_, 0, 0, 0, block_, 1});
    plain_ = false;
  }
  NewIds();
}

void Order::GridBarrier() { floor = next_; }

void Order::WarpSync(unsigned warp, unsigned lanes) {
  const unsigned first = warp * 32;
  if (!warp_synced_[warp]) memset(seen_[first], 0, sizeof seen_[0] * 32);
  warp_synced_[warp] = any_warp_synced_ = true;
  uint32_t joined[32] = {};
  Known *together = nullptr;
  for (unsigned left = lanes; left; left &= left - 1) {
    const unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    for (unsigned other = 0; other < 32; ++other) joined[other] = std::max(joined[other], seen_[first + lane][other]);
    if (!any_known_) continue;
    Learn(first + lane);
    if (!known_[first + lane]) continue;
    if (together) {
      together->Join(*known_[first + lane]);
    } else {
      together = known_[first + lane].get();
    }
  }
  for (unsigned left = lanes; left; left &= left - 1) {
    const unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    joined[lane] = ids_[first + lane];
  }
  segments_.push_back({next_, lanes, warp, 0, block_, 1});
  plain_ = false;
  for (unsigned left = lanes; left; left &= left - 1) {
    const unsigned thread = first + static_cast<unsigned>(__builtin_ctz(left));
    memcpy(seen_[thread], joined, sizeof joined);
    ids_[thread] = next_++;
    if (together && known_[thread].get() != together) known_[thread] = std::make_unique<Known>(*together);
  }
}

// ---- fences and atomics

void Order::Fence() {
  any_fence_ = true;
  fenced_since_barrier_ = true;
  segments_.push_back({next_, 1u << thread_ % 32, thread_ / 32, 0, block_, 1});
  plain_ = false;
  me = ids_[thread_] = next_++;
  fence_id_[thread_] = me;
  fence_base_[thread_] = barrier_base;
  if (warp_synced_[thread_ / 32]) {
    memcpy(fence_seen_[thread_], seen_[thread_], sizeof seen_[0]);
  } else {
    memset(fence_seen_[thread_], 0, sizeof seen_[0]);
  }
  if (any_known_) Learn(thread_);
}

void Order::Acquire(uintptr_t address) {
  const auto entry = released_.find(address);
  if (entry == released_.end()) return;
  any_known_ = true;
  if (!met_[thread_]) met_[thread_] = std::make_unique<Known>();
  met_[thread_]->Join(entry->second);
}

// What the thread did before its fence, what the block did before the barrier before that, and what both knew.
void Order::Release(uintptr_t address) {
  const uint32_t fence = fence_id_[thread_];
  const uint32_t whole = std::max(published_, fence ? fence_base_[thread_] : 0);
  if (!fence && whole == block_base) return;
  Known &known = released_[address];
  known.Join(block_known_);
  if (any_known_ && known_[thread_]) known.Join(*known_[thread_]);
  known.Add(block_base, whole);
  if (!fence) return;
  known.AddPart({whole, fence, Tag(thread_)});
  for (unsigned lane = 0; lane < 32; ++lane)
    if (const uint32_t id = fence_seen_[thread_][lane]) known.AddPart({whole, id + 1, Tag(thread_ / 32 * 32 + lane)});
}

// ---- questions

Order::Who Order::Of(uint32_t id) const {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), id,
                                      [](uint32_t key, const Segment &s) { return key < s.first; });
  if (after == segments_.begin()) return {0, 0};
  const Segment &segment = *(after - 1);
  uint32_t at = id - segment.first;
  if (segment.mask) {
    unsigned left = segment.mask;
    for (; at && left; --at) left &= left - 1;
    return {segment.block, segment.warp * 32 + static_cast<unsigned>(left ? __builtin_ctz(left) : 0)};
  }
  const uint64_t block = segment.period ? at / segment.period : 0;
  if (segment.period) at %= segment.period;
  return {segment.block + std::min(block, segment.blocks - 1), at % threads_};
}

bool Order::Unordered(uint32_t id) const {
  if (id < floor || id == me) return false;
  if (id >= block_base && id < barrier_base) return false;
  const Who who = Of(id);
  if (who.block == block_) {
    if (id < block_base || who.thread == thread_) return false;  // of an earlier turn of the block, or its own
    const unsigned warp = thread_ / 32;
    if (who.thread / 32 == warp && warp_synced_[warp] && id <= seen_[thread_][who.thread % 32]) return false;
  }
  const uint64_t tag = who.block * 1024 + who.thread;
  return !block_known_.Holds(id, tag) && !(any_known_ && known_[thread_] && known_[thread_]->Holds(id, tag));
}

}  // namespace pygpukit::sim
