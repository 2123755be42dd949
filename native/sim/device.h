// device.h: one simulated device: memory, cores, default stream, and the fault it may have.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pygpukit/driver.h"
#include "sim/config.h"
#include "sim/cores.h"
#include "sim/memory.h"
#include "sim/stream.h"

namespace pygpukit::sim {

class Device {
 public:
  Device(int index, const Config &config);

  Memory memory;
  Cores cores;
  const std::shared_ptr<Stream> default_stream;

  void Info(pk_device_info *info) const;
  int index() const { return index_; }
  int sms() const { return config_.sms; }
  // Whether it may access a peer's memory, and that it may from now on.
  bool Reaches(int peer) const { return reached_ >> peer & 1; }
  void Reach(int peer) { reached_ |= uint64_t{1} << peer; }
  double timeout_s() const { return config_.timeout_s; }
  // Nanoseconds that a copy of so many bytes should take, 0 for as fast as it goes.
  uint64_t CopyNanoseconds(uint64_t bytes) const;

  std::shared_ptr<Stream> NewStream(int priority, std::shared_ptr<SmSet> set);
  void WaitIdle();
  bool Idle();

  bool Faulted() const { return fault_.load(std::memory_order_relaxed) != PK_OK; }
  pk_status Fault();  // with its text on the calling thread
  void SetFault(pk_status status, const std::string &text, Finding finding = {});
  Finding FaultFinding();  // without a kind when the fault was not found by the checker
  pk_status ClearFault();
  // What was launched is being cancelled: nothing begins until the fault that this leaves is cleared.
  void Halt() { halted_ = true; }
  bool Halted() const { return halted_ || Faulted(); }

 private:
  const int index_;
  const Config config_;
  std::atomic<pk_status> fault_{PK_OK};
  std::atomic<bool> halted_{false};
  std::atomic<uint64_t> reached_{0};  // a bit a peer
  std::mutex mutex_;
  std::string fault_text_;
  Finding finding_;
  std::vector<std::shared_ptr<Stream>> LiveStreams();
  std::vector<std::weak_ptr<Stream>> streams_;
};

}  // namespace pygpukit::sim
