// cores.h: the cores of one device, lent to launches: the most urgent first, then in order.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "sim/core.h"

namespace pygpukit::sim {

class Cores {
 public:
  explicit Cores(int count);
  int count() const { return static_cast<int>(all_.size()); }
  const std::vector<Core *> &all() const { return all_; }

  Core *Acquire(int priority);  // waits for one
  Core *TryAcquire();           // null when all are lent, or somebody waits
  void Release(Core *core);
  // Somebody with a smaller, more urgent priority waits.
  bool Wanted(int priority) const { return most_urgent_.load(std::memory_order_relaxed) < priority; }

 private:
  struct Waiter {
    int priority;
    Core *core;
  };
  void Update();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Core *> all_, free_;
  std::vector<Waiter *> waiters_;  // in order of arrival
  std::atomic<int> most_urgent_{1 << 30};
};

}  // namespace pygpukit::sim
