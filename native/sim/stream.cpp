// stream.cpp: a stream with work occupies one thread of the executor, an idle one none.
#include "sim/stream.h"

#include <chrono>

#include "sim/executor.h"

namespace pygpukit::sim {

uint64_t MonotonicNanoseconds() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

Idling &Idling::Get() {
  static Idling &idling = *new Idling;
  return idling;
}

void Idling::Await(uint64_t seen, uint64_t microseconds) {
  std::unique_lock guard(mutex_);
  ++waiters_;
  changed_.wait_for(guard, std::chrono::microseconds(microseconds), [&] { return Count() != seen; });
  --waiters_;
}

// Nobody pays for the lock while nobody waits. Both counters are sequentially consistent: a waiter that is not seen
// here sees the new count.
void Idling::Note() {
  ++count_;
  if (waiters_ == 0) return;
  { std::lock_guard guard(mutex_); }
  changed_.notify_all();
}

void Stream::Enqueue(std::function<void()> work) { Put(std::move(work), false); }

void Stream::Put(std::function<void()> work, bool is_short) {
  bool idle;
  {
    std::lock_guard guard(mutex_);
    idle = submitted_ == done_;
    ++submitted_;
    queue_.push_back({std::move(work), is_short});
  }
  if (idle) Executor::Get().Post([self = shared_from_this()] { self->Drain(); });
}

void Stream::EnqueueShort(std::function<void()> work) {
  {
    std::lock_guard guard(mutex_);
    if (submitted_ == done_) {
      work();
      return;
    }
  }
  Put(std::move(work), true);
}

void Stream::Drain() {
  std::unique_lock guard(mutex_);
  while (!queue_.empty()) {
    Work work = std::move(queue_.front());
    queue_.pop_front();
    if (work.is_short) {
      work.run();  // who learns of an event that it is passed finds its stream done
    } else {
      guard.unlock();
      work.run();
      work.run = nullptr;
      guard.lock();
    }
    ++done_;
    if (waiters_) progress_.notify_all();
  }
  guard.unlock();
  Idling::Get().Note();
}

bool Stream::Idle() {
  std::lock_guard guard(mutex_);
  return submitted_ == done_;
}

void Stream::Wait() {
  std::unique_lock guard(mutex_);
  const uint64_t target = submitted_;
  ++waiters_;
  progress_.wait(guard, [&] { return done_ >= target; });
  --waiters_;
}

bool Stream::BeginCapture() {
  std::lock_guard guard(mutex_);
  if (capture_) return false;
  capture_ = std::make_shared<Graph>();
  return true;
}

std::shared_ptr<Graph> Stream::EndCapture() {
  std::lock_guard guard(mutex_);
  return std::move(capture_);
}

bool Stream::Keep(const std::shared_ptr<Launch> &launch) {
  std::lock_guard guard(mutex_);
  if (capture_) capture_->launches.push_back(launch);
  return capture_ != nullptr;
}

bool Stream::Captured() {
  std::lock_guard guard(mutex_);
  return capture_ != nullptr;
}

void Event::Pass(uint64_t record) {
  const uint64_t now = MonotonicNanoseconds();
  std::lock_guard guard(mutex_);
  if (record <= done_) return;
  done_ = record;
  nanoseconds_ = now;
  passed_.notify_all();
}

void Event::Record(Stream &stream) {
  uint64_t record;
  {
    std::lock_guard guard(mutex_);
    record = ++recorded_;
  }
  stream.EnqueueShort([self = shared_from_this(), record] { self->Pass(record); });
}

bool Event::Done() {
  std::lock_guard guard(mutex_);
  return done_ == recorded_;
}

void Event::WaitFor(uint64_t record) {
  std::unique_lock guard(mutex_);
  passed_.wait(guard, [&] { return done_ >= record; });
}

void Event::Wait() {
  uint64_t record;
  {
    std::lock_guard guard(mutex_);
    record = recorded_;
  }
  WaitFor(record);
}

void Event::MakeWait(Stream &stream) {
  uint64_t record;
  {
    std::lock_guard guard(mutex_);
    record = recorded_;
    if (done_ == record) return;
  }
  stream.Enqueue([self = shared_from_this(), record] { self->WaitFor(record); });
}

Event::Elapsed Event::Time(uint64_t *nanoseconds) {
  std::lock_guard guard(mutex_);
  if (!recorded_) return Elapsed::kNotRecorded;
  if (done_ != recorded_) return Elapsed::kNotReady;
  *nanoseconds = nanoseconds_;
  return Elapsed::kOk;
}

}  // namespace pygpukit::sim
