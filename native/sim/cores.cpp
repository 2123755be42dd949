// cores.cpp: lending cores.
#include "sim/cores.h"

#include <algorithm>

namespace pygpukit::sim {

Cores::Cores(int count) {
  for (int i = 0; i < count; ++i) all_.push_back(new Core);
  free_ = all_;
}

void Cores::Update() {
  int urgent = 1 << 30;
  for (const Waiter *waiter : waiters_) urgent = std::min(urgent, waiter->priority);
  most_urgent_ = urgent;
}

Core *Cores::Acquire(int priority) {
  std::unique_lock guard(mutex_);
  if (!free_.empty()) {
    Core *core = free_.back();
    free_.pop_back();
    return core;
  }
  Waiter self = {priority, nullptr};
  waiters_.push_back(&self);
  Update();
  changed_.wait(guard, [&] { return self.core != nullptr; });
  return self.core;
}

Core *Cores::TryAcquire() {
  std::lock_guard guard(mutex_);
  if (free_.empty()) return nullptr;
  Core *core = free_.back();
  free_.pop_back();
  return core;
}

void Cores::Release(Core *core) {
  std::lock_guard guard(mutex_);
  if (waiters_.empty()) {
    free_.push_back(core);
    return;
  }
  const auto next = std::min_element(waiters_.begin(), waiters_.end(),
                                     [](const Waiter *a, const Waiter *b) { return a->priority < b->priority; });
  (*next)->core = core;
  waiters_.erase(next);
  Update();
  changed_.notify_all();
}

}  // namespace pygpukit::sim
