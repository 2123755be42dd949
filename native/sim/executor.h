// executor.h: the threads of the simulator. Made when needed, parked when idle, never joined.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace pygpukit::sim {

class Executor {
 public:
  // Runs the job soon, off the calling thread. A job may block: there is always a thread for the next one.
  void Post(std::function<void()> job);

  // The process-wide one. Leaked, like all locks of the simulator: a parked thread must not keep the process from
  // exiting.
  static Executor &Get();

 private:
  void Work();
  void Watch(std::unique_lock<std::mutex> *guard);
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  size_t idle_ = 0;
  bool watching_ = false;
  std::atomic<uint64_t> posted_{0};
};

}  // namespace pygpukit::sim
