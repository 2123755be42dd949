// crew.cpp: threads that help whoever computes; one job at a time has them, others compute alone meanwhile. They live
// as long as the process, and a forked child starts its own.
#include "host/crew.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace pk {
namespace {

constexpr int64_t kLookingNs = 100'000;  // for work, before a thread sleeps
constexpr int kMaxThreads = 64;

inline void rest() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Until value is another than `seen`: looking for a moment, then asleep.
template <typename T>
T changed(const std::atomic<T> &value, T seen) {
  const int64_t until = now_ns() + kLookingNs;
  do {
    for (int i = 0; i < 64; ++i) {
      const T now = value.load(std::memory_order_acquire);
      if (now != seen) return now;
      rest();
    }
  } while (now_ns() < until);
  value.wait(seen, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

int thread_count() {
  const char *said = std::getenv("PYGPUKIT_HOST_THREADS");
  const int number = said == nullptr ? 0 : std::atoi(said);
  const int requested = number > 0 ? number : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(requested, 1, kMaxThreads);
}

class Crew {
 public:
  explicit Crew(int threads) : size(threads) {
    for (int i = 1; i < threads; ++i) std::thread([this] { run(); }).detach();
  }

  void compute(Job &job) {
    std::unique_lock<std::mutex> mine(owner_, std::try_to_lock);
    if (!mine || size == 1 || job.count <= job.part) {
      job.work();
      return;
    }
    job_.store(&job);
    number_.fetch_add(1);
    number_.notify_all();
    job.work();
    job_.store(nullptr);
    // Who came in before that may still look at the job.
    for (int inside = inside_.load(); inside != 0;) inside = changed(inside_, inside);
  }

  const int size;

 private:
  void run() {
    uint32_t seen = 0;
    for (;;) {
      seen = changed(number_, seen);
      inside_.fetch_add(1);
      if (Job *job = job_.load()) job->work();
      inside_.fetch_sub(1);
      inside_.notify_all();
    }
  }

  std::mutex owner_;
  std::atomic<Job *> job_{nullptr};
  std::atomic<uint32_t> number_{0};  // of jobs so far
  std::atomic<int> inside_{0};
};

std::atomic<Crew *> g_crew{nullptr};
std::mutex g_making;

Crew &crew() {
  if (Crew *crew = g_crew.load()) return *crew;
  std::lock_guard<std::mutex> hold(g_making);
  if (g_crew.load() == nullptr) {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { g_crew.store(nullptr); });
    (void)registered;
    g_crew.store(new Crew(thread_count()));  // never freed: its threads may still look at it
  }
  return *g_crew.load();
}

}  // namespace

void Job::work() {
  for (;;) {
    const int64_t begin = next.fetch_add(part);
    if (begin >= count) return;
    run(self, begin, std::min(begin + part, count));
  }
}

void compute(Job &job) { crew().compute(job); }

int crew_size() { return crew().size; }

}  // namespace pk
