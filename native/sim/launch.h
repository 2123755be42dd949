// launch.h: one launch of a kernel: its blocks, shared among the cores that work on them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/check_memory.h"
#include "sim/core.h"
#include "sim/module.h"
#include "sim/zones.h"

namespace pygpukit::sim {

class Device;
class Stream;
struct SmSet;

// What the calling thread has said of its next launch; taken by Launch::Make().
LaunchMemory &NextLaunchMemory();

// Null and a status when the device would refuse the launch.
class Launch : public std::enable_shared_from_this<Launch> {
 public:
  // stream: which the launch is for.
  static pk_status Make(Device *device, const Stream &stream, std::shared_ptr<Function> function,
                        const pk_launch &request, std::shared_ptr<Launch> *launch);
  // The same launch once more, with the same arguments: a launch runs once.
  pk_status Again(const Stream &stream, std::shared_ptr<Launch> *launch) const;
  // On the thread of its stream; returns when all blocks are done. A failure becomes the device's sticky fault.
  void Run();

  Device *device() const { return device_; }
  // Ends the launch; says why in the fault's text. The first call counts. kind: of the finding, "" for none.
  void Cancel(pk_status status, const char *kind, const std::string &why);
  // Called now and then while it runs: ends it when its time is over, and repeats the interrupts of a cancelled one.
  // missed_ns: time in which nothing of this process could run, which does not count.
  void Watch(uint64_t now_ns, uint64_t missed_ns);

 private:
  Launch(Device *device, const Stream &stream, std::shared_ptr<Function> function);
  void CopyArguments(const pk_launch &request);
  void RunChecked();
  void RunBlocks();
  void Work(Core *core);
  void Help();
  int HelpersWorthWaking() const;
  void Fault(const Failure &failure);

  Device *device_;
  const int priority_;
  const std::shared_ptr<SmSet> sms_;
  std::shared_ptr<Function> function_;
  pk_launch request_ = {};  // params are pointers_
  pk_slice slice_ = {};     // with PK_LAUNCH_SLICE
  KernelRun run_ = {};
  LaunchMemory memory_;
  std::vector<Zone> zones_;
  std::vector<char> arguments_;
  std::vector<void *> pointers_;
  uint64_t blocks_ = 0, chunk_ = 1;  // blocks, or sets of blocks that run together
  uint64_t first_ = 0;               // of the whole grid's blocks
  std::atomic<uint64_t> next_{0};
  std::atomic<int> cancelled_{PK_OK};
  uint64_t deadline_ns_ = 0;

  std::mutex mutex_;
  std::condition_variable left_;
  bool closed_ = false;  // no helper may join any more
  int helpers_ = 0;
  std::string why_cancelled_;
  Failure failure_;
};

// The launches that run now. One thread looks at them from time to time.
class Watchdog {
 public:
  static Watchdog &Get();
  void Add(Launch *launch);
  void Remove(Launch *launch);
  // Cancels those of one device; returns how many.
  uint64_t Cancel(const Device *device, const std::string &why);

 private:
  void Loop();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Launch *> running_;
  bool started_ = false, asleep_ = false;
};

}  // namespace pygpukit::sim
