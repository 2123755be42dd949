// cores.h: the cores of one device, lent to launches: the most urgent first, then in order. A core that is lent works
// as one of the device's multiprocessors; a launch on a partition's stream gets those of the partition only.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "sim/core.h"

namespace pygpukit::sim {

// The multiprocessors that the kernels of some streams may use, at most one core on each.
struct SmSet {
  std::vector<unsigned> sms;
  size_t lent = 0;  // under the lock of the device's cores
};

class Cores {
 public:
  Cores(int count, int sms);
  int count() const { return static_cast<int>(all_.size()); }
  const std::vector<Core *> &all() const { return all_; }

  // set: null for the whole device, whose cores may be more than its multiprocessors.
  Core *Acquire(int priority, SmSet *set);  // waits for one
  Core *TryAcquire(SmSet *set);             // null when all are lent, or as many as the set has multiprocessors
  void Release(Core *core, SmSet *set);
  // Somebody with a smaller, more urgent priority waits.
  bool IsPreempted(int priority) const { return top_priority_.load(std::memory_order_relaxed) < priority; }

 private:
  struct Waiter {
    int priority;
    SmSet *set;
    Core *core;
  };
  bool Available(const SmSet *set) const { return !free_.empty() && (!set || set->lent < set->sms.size()); }
  Core *Lend(SmSet *set);
  void Update();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Core *> all_, free_;
  std::vector<unsigned> load_;     // by multiprocessor: how many cores work as it
  std::vector<Waiter *> waiters_;  // in order of arrival; none of them could be served now
  std::atomic<int> top_priority_{1 << 30};
};

}  // namespace pygpukit::sim
