// cores.cpp: lending cores.
#include "sim/cores.h"

#include <algorithm>

namespace pygpukit::sim {

Cores::Cores(int count, int sms) : load_(static_cast<size_t>(sms)) {
  for (int i = 0; i < count; ++i) all_.push_back(new Core);
  free_ = all_;
}

void Cores::Update() {
  int urgent = 1 << 30;
  for (const Waiter *waiter : waiters_) urgent = std::min(urgent, waiter->priority);
  top_priority_ = urgent;
}

// One that is available works as the multiprocessor with the least to do.
Core *Cores::Lend(SmSet *set) {
  Core *core = free_.back();
  free_.pop_back();
  if (set) {
    ++set->lent;
    core->sm = *std::min_element(set->sms.begin(), set->sms.end(),
                                 [this](unsigned a, unsigned b) { return load_[a] < load_[b]; });
  } else {
    core->sm = static_cast<unsigned>(std::min_element(load_.begin(), load_.end()) - load_.begin());
  }
  ++load_[core->sm];
  return core;
}

Core *Cores::Acquire(int priority, SmSet *set) {
  std::unique_lock guard(mutex_);
  if (Available(set)) return Lend(set);
  Waiter self = {priority, set, nullptr};
  waiters_.push_back(&self);
  Update();
  changed_.wait(guard, [&] { return self.core != nullptr; });
  return self.core;
}

Core *Cores::TryAcquire(SmSet *set) {
  std::lock_guard guard(mutex_);
  return Available(set) ? Lend(set) : nullptr;
}

void Cores::Release(Core *core, SmSet *set) {
  std::lock_guard guard(mutex_);
  --load_[core->sm];
  if (set) --set->lent;
  free_.push_back(core);
  // The core, or the room in the set, is for one of them: the first of the most urgent that can use it.
  auto next = waiters_.end();
  for (auto at = waiters_.begin(); at != waiters_.end(); ++at)
    if (Available((*at)->set) && (next == waiters_.end() || (*at)->priority < (*next)->priority)) next = at;
  if (next == waiters_.end()) return;
  (*next)->core = Lend((*next)->set);
  waiters_.erase(next);
  Update();
  changed_.notify_all();
}

}  // namespace pygpukit::sim
