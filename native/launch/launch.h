// launch.h: the one launch function. Every kernel and every host launch of the process goes through here.
#pragma once
#include <cstdint>

#include "launch/capture.h"
#include "launch/runtime.h"

namespace pk {

// The notebook cell (interned id) and line that launch, for the record; 0 = unknown.
struct LaunchPlace {
  uint32_t cell = 0;
  uint32_t line = 0;
};

// Enqueues a kernel. name: interned kernel name for the record. Asynchronous. PK_GATE_STOPPED when the thread's task
// was cancelled. On a captured stream it only becomes part of the graph: counted, recorded and paced when that runs.
pk_status launch(const pk_launch &launch, uint32_t name, uint32_t stream_id, const LaunchPlace &place = {});

// Enqueues a graph: its launches are counted and recorded each. Errors as launch().
pk_status launch_graph(uint64_t graph, const Capture &captured, uint64_t stream, uint32_t stream_id);

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
