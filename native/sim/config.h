// config.h: what PYGPUKIT_SIM, PYGPUKIT_SIM_DEVICES and PYGPUKIT_SIM_TIMEOUT_S say about the simulated devices.
#pragma once

#include <cstdint>
#include <string>

namespace pygpukit::sim {

struct Config {
  int sms = 8;
  uint64_t memory_bytes = 0;  // 0 = half of the machine's or the container's, shared by the devices
  double copy_gbps = 0;       // modelled bandwidth of copies and fills, 0 = as fast as the host copies
  int devices = 1;
  int workers = 0;       // threads that run kernels on each device; 0 = the smaller of cores and sms
  int guard_bytes = 32;  // behind every small array at least
  double timeout_s = 60;
};

// Reads "key=value,key=value", the number of devices and the time limit, each of which may be null; false and a
// sentence for anything not understood.
bool ParseConfig(const char *text, const char *devices, const char *timeout, Config *config, std::string *why);

}  // namespace pygpukit::sim
