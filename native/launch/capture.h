// capture.h: streams that are captured now. Launches on them are kept for a graph instead of run.
#pragma once
#include <cstdint>
#include <vector>

#include "pygpukit/core.h"

namespace pk {

// Read and changed with the GIL.
struct Capture {
  uint64_t stream = 0;
  std::vector<pk_event> records;  // of the launches, to be written again at every launch of the graph
};

extern std::vector<Capture *> g_captures;

inline bool capturing() { return __builtin_expect(!g_captures.empty(), 0); }

// The capture of a stream, null when it is not captured.
inline Capture *capture_of(uint64_t stream) {
  for (Capture *capture : g_captures)
    if (capture->stream == stream) return capture;
  return nullptr;
}

}  // namespace pk
