// links.cpp: strict reading of what the environment says about links, and their time.
#include "sim/links.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>

#include "sim/status.h"

namespace pygpukit::sim {
namespace {

struct Unit {
  const char *name;
  double factor;
};

// "390GB/s" by its units; false for anything else.
bool ParseQuantity(const std::string &text, std::initializer_list<Unit> units, double *value) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  char *end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const auto unit =
      std::find_if(units.begin(), units.end(), [&](const Unit &one) { return std::string(end) == one.name; });
  if (unit == units.end() || !std::isfinite(number)) return false;
  *value = number * unit->factor;
  return true;
}

bool ParseDevice(const std::string &text, int devices, int *device) {
  if (text.empty() || text.size() > 2 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  *device = std::atoi(text.c_str());
  return *device < devices;
}

}  // namespace

bool Links::Parse(const char *link, const char *peers, int devices, std::string *why) {
  devices_ = devices;
  links_.resize(static_cast<size_t>(devices * devices));
  if (link && *link) {
    const std::string text = link;
    const size_t comma = text.find(',');
    const bool rate =
        ParseQuantity(text.substr(0, comma), {{"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}}, &bytes_per_s_);
    const bool latency = comma == std::string::npos ||
                         ParseQuantity(text.substr(comma + 1), {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}}, &latency_s_);
    if (!rate || !latency || bytes_per_s_ <= 0) {
      *why = "PYGPUKIT_SIM_LINK=" + text +
             ": it must be a rate above 0 with MB/s, GB/s or TB/s, and after a comma a latency with ns, us or ms, such "
             "as 390GB/s,7us";
      return false;
    }
  }
  std::string left = peers ? peers : "";
  if (left.empty()) {
    for (int device = 0; device < devices; ++device)
      access_[static_cast<size_t>(device)] =
          ~(uint64_t{1} << device) & (devices < 64 ? (uint64_t{1} << devices) - 1 : ~uint64_t{0});
    return true;
  }
  if (left == "none") return true;
  for (bool more = true; more;) {
    const size_t comma = left.find(',');
    const std::string pair = left.substr(0, comma);
    more = comma != std::string::npos;
    left = more ? left.substr(comma + 1) : "";
    const size_t dash = pair.find('-');
    int one, other;
    if (dash == std::string::npos || !ParseDevice(pair.substr(0, dash), devices, &one) ||
        !ParseDevice(pair.substr(dash + 1), devices, &other) || one == other) {
      *why = Format(
          "PYGPUKIT_SIM_PEERS=%s: it must be \"none\", or pairs of two different devices from 0 to %d, such as 0-1,2-3",
          peers, devices - 1);
      return false;
    }
    access_[static_cast<size_t>(one)] |= uint64_t{1} << other;
    access_[static_cast<size_t>(other)] |= uint64_t{1} << one;
  }
  return true;
}

uint64_t Links::Take(int from, int to, uint64_t bytes, uint64_t now_ns) {
  if (!Timed()) return now_ns;
  std::lock_guard guard(mutex_);
  uint64_t &busy_until_ns = At(from, to).busy_until_ns;
  const uint64_t begin = std::max(now_ns, busy_until_ns);
  busy_until_ns = begin + static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 / bytes_per_s_);
  return busy_until_ns + static_cast<uint64_t>(latency_s_ * 1e9);
}

void Links::FailAfter(int from, int to, uint64_t copies) {
  std::lock_guard guard(mutex_);
  At(from, to).left = static_cast<int64_t>(copies);
}

bool Links::Fails(int from, int to) {
  std::lock_guard guard(mutex_);
  int64_t &left = At(from, to).left;
  return left >= 0 && left-- == 0;
}

}  // namespace pygpukit::sim
