// capture.h: streams that are captured now. Work for them is kept for a graph instead of run.
#pragma once
#include <cstdint>
#include <vector>

namespace pk {

// Read and changed with the GIL.
struct Capture {
  uint64_t stream = 0;
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
