// launch.h: the one launch function. Every kernel and every host launch of the process goes through here.
#pragma once
#include <cstdint>

#include "launch/runtime.h"

namespace pk {

// Enqueues a kernel. name: interned kernel name for the record. Asynchronous. PK_GATE_STOPPED when the thread's task
// was cancelled.
pk_status launch(const pk_launch &launch, uint32_t name, uint32_t stream_id);

// A host launch (sim): begin before the function runs on the calling thread, end after it.
struct HostLaunch {
  pk_launch launch;
  uint64_t start_ns;
  bool stopped;  // the thread's task was cancelled: the function must not run
};
HostLaunch host_launch_begin(uint64_t stream);
void host_launch_end(const HostLaunch &host, uint32_t name, uint32_t stream_id, bool ok);

// Copies and fills: counted and recorded like launches.
enum CopyDirection : uint64_t { kH2D = 0, kD2H = 1, kD2D = 2, kFill = 3 };
void record_copy(CopyDirection direction, uint64_t bytes, uint32_t stream_id);

}  // namespace pk
