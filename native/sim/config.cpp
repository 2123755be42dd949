// config.cpp: strict reading of PYGPUKIT_SIM. A word that means nothing is an error, never a default.
#include "sim/config.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "sim/status.h"

namespace pygpukit::sim {
namespace {

constexpr int kMaxDevices = 64;
constexpr uint64_t kMinMemory = uint64_t{512} << 20;  // of a device whose size nobody said

bool ParseNumber(const std::string &text, double *value, std::string *rest) {
  if (text.empty() || !(text[0] >= '0' && text[0] <= '9')) return false;
  char *end = nullptr;
  *value = std::strtod(text.c_str(), &end);
  *rest = end;
  return std::isfinite(*value);
}

bool ParseInteger(const std::string &text, int low, int high, int *value) {
  double number;
  std::string rest;
  if (!ParseNumber(text, &number, &rest) || !rest.empty() || number != std::floor(number)) return false;
  if (number < low || number > high) return false;
  *value = static_cast<int>(number);
  return true;
}

bool ParseBytes(const std::string &text, uint64_t *bytes) {
  double number, unit = 0;
  std::string rest;
  if (!ParseNumber(text, &number, &rest)) return false;
  const struct {
    const char *name;
    double bytes;
  } units[] = {{"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};
  for (const auto &candidate : units)
    if (rest == candidate.name) unit = candidate.bytes;
  if (unit == 0 || number * unit < 0x1p21 || number * unit > 0x1p46) return false;
  *bytes = static_cast<uint64_t>(number * unit);
  return true;
}

bool ParseOne(const std::string &key, const std::string &value, Config *config, std::string *why) {
  double number;
  std::string rest;
  if (key == "sms") {
    if (ParseInteger(value, 1, 1024, &config->sms)) return true;
    *why = "a whole number from 1 to 1024";
  } else if (key == "memory") {
    if (ParseBytes(value, &config->memory_bytes)) return true;
    *why = "a size of 2 MiB to 64 TiB with its unit, such as 512MiB or 2GiB";
  } else if (key == "copy_gbps") {
    if (ParseNumber(value, &number, &rest) && rest.empty() && number >= 0) {
      config->copy_gbps = number;
      return true;
    }
    *why = "gigabytes per second, or 0 for no limit";
  } else if (key == "devices") {
    if (ParseInteger(value, 1, kMaxDevices, &config->devices)) return true;
    *why = Format("a whole number from 1 to %d", kMaxDevices);
  } else if (key == "workers") {
    if (ParseInteger(value, 0, 64, &config->workers)) return true;
    *why = "a whole number from 0 (automatic) to 64";
  } else if (key == "guard") {
    if (ParseInteger(value, 0, 4096, &config->guard_bytes)) return true;
    *why = "a whole number of bytes from 0 to 4096";
  } else {
    *why = Format("PYGPUKIT_SIM knows no \"%s\": use sms, memory, copy_gbps, devices, workers, guard", key.c_str());
    return false;
  }
  *why = Format("PYGPUKIT_SIM: %s=%s: it must be %s", key.c_str(), value.c_str(), why->c_str());
  return false;
}

// The number of devices by a variable of its own, which must not say another one than PYGPUKIT_SIM.
bool ParseDevices(const char *text, bool said, Config *config, std::string *why) {
  int devices;
  if (!ParseInteger(text, 1, kMaxDevices, &devices)) {
    *why = Format("PYGPUKIT_SIM_DEVICES=%s: it must be a whole number from 1 to %d", text, kMaxDevices);
    return false;
  }
  if (said && devices != config->devices) {
    *why = Format("PYGPUKIT_SIM_DEVICES=%s, but PYGPUKIT_SIM says devices=%d: leave one of them out", text,
                  config->devices);
    return false;
  }
  config->devices = devices;
  return true;
}

// Bytes of memory that this process may use: the machine's, or its container's where that has less.
uint64_t MachineBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  uint64_t bytes = pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
  for (const char *path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    uint64_t limit;  // "max" is no number
    if (std::ifstream(path) >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

// Half of it, in equal parts; in steps of 2 MiB, as device memory is had.
uint64_t DefaultBytes(int devices) {
  const uint64_t step = uint64_t{2} << 20, share = MachineBytes() / 2 / static_cast<uint64_t>(devices);
  return std::max(kMinMemory, share / step * step);
}

}  // namespace

bool ParseConfig(const char *text, const char *devices, const char *timeout, Config *config, std::string *why) {
  bool devices_said = false;
  std::string left = text ? text : "";
  while (!left.empty()) {
    const size_t comma = left.find(',');
    const std::string item = left.substr(0, comma);
    left = comma == std::string::npos ? "" : left.substr(comma + 1);
    const size_t equals = item.find('=');
    if (equals == std::string::npos) {
      *why = Format("PYGPUKIT_SIM: \"%s\" is not of the form key=value", item.c_str());
      return false;
    }
    const std::string key = item.substr(0, equals);
    if (!ParseOne(key, item.substr(equals + 1), config, why)) return false;
    devices_said |= key == "devices";
  }
  if (devices && *devices && !ParseDevices(devices, devices_said, config, why)) return false;
  if (config->memory_bytes == 0) config->memory_bytes = DefaultBytes(config->devices);
  if (timeout && *timeout) {
    std::string rest;
    if (!ParseNumber(timeout, &config->timeout_s, &rest) || !rest.empty() || config->timeout_s <= 0) {
      *why = Format("PYGPUKIT_SIM_TIMEOUT_S=%s: it must be a number of seconds greater than 0", timeout);
      return false;
    }
  }
  if (config->workers == 0) {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    config->workers = cores < 1 ? 1 : cores < config->sms ? cores : config->sms;
    if (config->workers > 64) config->workers = 64;
  }
  return true;
}

}  // namespace pygpukit::sim
