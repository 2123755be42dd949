// output.cpp: one buffer for all devices, bounded as the one of a real device is.
#include "sim/output.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "sim/status.h"

namespace pygpukit::sim {
namespace {

constexpr size_t kCapacityBytes = 1 << 20;

std::mutex &mutex = *new std::mutex;
std::string &waiting = *new std::string;
uint64_t dropped_bytes = 0;

}  // namespace

void AppendOutput(std::string_view text) {
  std::lock_guard guard(mutex);
  if (waiting.size() + text.size() > kCapacityBytes) {
    dropped_bytes += text.size();
  } else {
    waiting.append(text);
  }
}

uint64_t TakeOutput(char *buffer, uint64_t capacity) {
  std::lock_guard guard(mutex);
  if (dropped_bytes) {
    waiting += Format("[%llu bytes of device output dropped: more than %zu bytes between two reads]\n",
                      static_cast<unsigned long long>(dropped_bytes), kCapacityBytes);
    dropped_bytes = 0;
  }
  if (!buffer) return waiting.size();
  const size_t bytes = static_cast<size_t>(std::min<uint64_t>(capacity, waiting.size()));
  memcpy(buffer, waiting.data(), bytes);
  waiting.erase(0, bytes);
  return bytes;
}

}  // namespace pygpukit::sim
