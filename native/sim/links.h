// links.h: how simulated devices reach each other: who may access whose memory, and how long a copy takes on the way.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace pygpukit::sim {

class Links {
 public:
  // Reads PYGPUKIT_SIM_LINK ("390GB/s,7us") and PYGPUKIT_SIM_PEERS ("0-1,2-3", "none"; else all), each of which may be
  // null; false and a sentence for anything not understood.
  bool Parse(const char *link, const char *peers, int devices, std::string *why);

  bool Access(int device, int peer) const { return access_[static_cast<size_t>(device)] >> peer & 1; }
  double bytes_per_s() const { return bytes_per_s_; }  // 0 = as fast as the host copies
  double latency_s() const { return latency_s_; }

  // Copies from a device to another follow one another: takes the link from now on, and returns when the copy has
  // arrived, on the monotonic clock.
  uint64_t Take(int from, int to, uint64_t bytes, uint64_t now_ns);
  bool Timed() const { return bytes_per_s_ > 0 || latency_s_ > 0; }

  // The copy after so many more fails. Tests.
  void FailAfter(int from, int to, uint64_t copies);
  bool Fails(int from, int to);

 private:
  struct Link {
    uint64_t busy_until_ns = 0;
    int64_t left = -1;  // copies until one fails; -1 for never
  };
  Link &At(int from, int to) { return links_[static_cast<size_t>(from * devices_ + to)]; }
  int devices_ = 1;
  double bytes_per_s_ = 0, latency_s_ = 0;
  std::array<uint64_t, 64> access_{};
  std::mutex mutex_;
  std::vector<Link> links_;
};

}  // namespace pygpukit::sim
