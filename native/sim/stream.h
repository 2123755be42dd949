// stream.h: queues of work done in order, and events that mark places in them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace pygpukit::sim {

class Device;
class Launch;
struct SmSet;

// Launches in their order.
struct Graph {
  std::vector<std::shared_ptr<Launch>> launches;
};

uint64_t MonotonicNanoseconds();

// How often a stream has run out of work, for those who wait for more than one, or must look up now and then.
class Idling {
 public:
  static Idling &Get();
  uint64_t Count() const { return count_; }
  // Until the count is another than `seen`, or so long.
  void Await(uint64_t seen, uint64_t microseconds);
  void Note();

 private:
  std::atomic<uint64_t> count_{0};
  std::atomic<unsigned> waiters_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

// Its locks are leaked with it: streams may have work when the interpreter exits.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  explicit Stream(int priority, std::shared_ptr<SmSet> sms = nullptr) : priority(priority), sms(std::move(sms)) {}
  const int priority;
  const std::shared_ptr<SmSet> sms;  // where its kernels run; null for the whole device

  void Enqueue(std::function<void()> work);
  // For work of no duration: at once when the stream is idle, else queued.
  void EnqueueShort(std::function<void()> work);
  bool Idle();
  // Until all work enqueued before the call is done.
  void Wait();

  // While it is captured, launches are kept instead of run. Begin: false when it is captured already; End: null when it
  // is not; Keep: false when the launch must run.
  bool BeginCapture();
  std::shared_ptr<Graph> EndCapture();
  bool Keep(const std::shared_ptr<Launch> &launch);
  bool Captured();

 private:
  struct Work {
    std::function<void()> run;
    bool is_short;
  };
  void Put(std::function<void()> work, bool is_short);
  void Drain();
  std::mutex mutex_;
  std::condition_variable progress_;
  std::deque<Work> queue_;
  uint64_t submitted_ = 0, done_ = 0;
  unsigned waiters_ = 0;
  std::shared_ptr<Graph> capture_;
};

class Event : public std::enable_shared_from_this<Event> {
 public:
  Event(bool timing, const Device *device) : timing(timing), device(device) {}
  const bool timing;
  const Device *const device;  // whose streams it marks

  void Record(Stream &stream);
  bool Done();
  void Wait();
  void MakeWait(Stream &stream);
  enum class Elapsed { kOk, kNotRecorded, kNotReady };
  // Nanoseconds on the monotonic clock at which the last record was passed.
  Elapsed Time(uint64_t *nanoseconds);

 private:
  void Pass(uint64_t record);
  void WaitFor(uint64_t record);
  std::mutex mutex_;
  std::condition_variable passed_;
  uint64_t recorded_ = 0, done_ = 0;  // numbers of records
  uint64_t nanoseconds_ = 0;
};

}  // namespace pygpukit::sim
