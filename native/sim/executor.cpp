// executor.cpp: threads that take jobs in the order they were posted.
#include "sim/executor.h"

#include <pthread.h>

#include <chrono>

#include "sim/fault.h"

namespace pygpukit::sim {

// How long a thread that has just ended a job looks out for the next one. Waking a thread takes longer than most
// programs take between the end of a short kernel and the next launch.
static constexpr std::chrono::microseconds kWatch{15};

Executor &Executor::Get() {
  static Executor &executor = *new Executor;
  return executor;
}

void Executor::Post(std::function<void()> job) {
  bool start = false;
  {
    std::lock_guard guard(mutex_);
    jobs_.push_back(std::move(job));
    posted_.fetch_add(1, std::memory_order_release);
    start = jobs_.size() > idle_;
  }
  if (!start) {
    wake_.notify_one();
    return;
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, size_t{1} << 20);
  pthread_t thread;
  const auto body = [](void *self) -> void * {
    PrepareThreadForFaults();
    static_cast<Executor *>(self)->Work();
    return nullptr;
  };
  // Refused by the system: a busy thread will come to the job later.
  pthread_create(&thread, &attributes, body, this);
  pthread_attr_destroy(&attributes);
}

// At most one thread does this: it takes a core that kernels may need. Another one is woken all the same when a job
// comes, because this one may have lost its core.
void Executor::Watch(std::unique_lock<std::mutex> *guard) {
  watching_ = true;
  const uint64_t posted = posted_.load(std::memory_order_relaxed);
  guard->unlock();
  const auto end = std::chrono::steady_clock::now() + kWatch;
  while (posted_.load(std::memory_order_acquire) == posted && std::chrono::steady_clock::now() < end) {
  }
  guard->lock();
  watching_ = false;
}

void Executor::Work() {
  std::unique_lock guard(mutex_);
  for (;;) {
    if (jobs_.empty() && !watching_) Watch(&guard);
    while (jobs_.empty()) {
      ++idle_;
      wake_.wait(guard);
      --idle_;
    }
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    guard.unlock();
    job();
    job = nullptr;
    guard.lock();
  }
}

}  // namespace pygpukit::sim
