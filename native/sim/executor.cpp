// executor.cpp: threads that take jobs in the order they were posted.
#include "sim/executor.h"

#include <pthread.h>

#include "sim/fault.h"

namespace pygpukit::sim {

Executor &Executor::Get() {
  static Executor &executor = *new Executor;
  return executor;
}

void Executor::Post(std::function<void()> job) {
  bool start = false;
  {
    std::lock_guard guard(mutex_);
    jobs_.push_back(std::move(job));
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

void Executor::Work() {
  std::unique_lock guard(mutex_);
  for (;;) {
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
