// launch.h: the one launch function. Every kernel and every host launch of the process goes through here.
#pragma once
#include <cstdint>
#include <functional>

#include "launch/runtime.h"

namespace pk {

// The notebook cell (interned id) and line that launch, for the record; 0 = unknown.
struct LaunchPlace {
  uint32_t cell = 0;
  uint32_t line = 0;
  bool at_once = false;  // the device must see the launch before this returns, and on this thread: never deferred
};

// Enqueues a kernel. name: interned kernel name for the record. Asynchronous. PK_GATE_STOPPED when the thread's task
// was cancelled.
pk_status launch(const pk_launch &launch, uint32_t name, uint32_t stream_id, const LaunchPlace &place = {});

// What a launch is recorded as, and counting and recording one that ran on a stream.
pk_event launch_record(const pk_launch &launch, uint32_t name, const LaunchPlace &place);
void count_launch(pk_event record, uint32_t stream_id);

// Other work for a stream that cannot be deferred. Errors as launch().
pk_status at_once(uint64_t stream, uint64_t launches, const std::function<pk_status()> &work);

// A host launch (sim): made after enter(), before the function runs on the calling thread; ended after it.
class HostLaunch {
 public:
  HostLaunch(uint32_t name, uint32_t stream_id);
  void end(bool ok);

 private:
  uint32_t name_, stream_id_;
  uint64_t start_ns_;
};

// Copies and fills: counted and recorded like launches. begin_ns: of one that the host waited for.
enum CopyDirection : uint64_t { kH2D = 0, kD2H = 1, kD2D = 2, kFill = 3, kPeer = 4 };
void record_copy(CopyDirection direction, uint64_t bytes, uint32_t stream_id, uint64_t begin_ns = 0, uint64_t peer = 0);

}  // namespace pk
