// loader.h: opening libcuda: symbols, version, devices. Everything that can be wrong is found here and said in one
// sentence.
#pragma once
#include <cstdint>
#include <string>

#include "cuda/cuda_api.h"

namespace pk::cuda {

constexpr int32_t kMinimumDriver = 12000;
constexpr int32_t kMinimumComputeMajor = 8;
constexpr int32_t kMaxDevices = 64;

struct Device {
  int32_t handle = 0;  // CUdevice
  char name[128] = "";
  int32_t compute_major = 0;
  int32_t compute_minor = 0;
  bool exportable = false;  // memory can leave the process as a file descriptor
  std::string refusal;      // why pygpukit does not use it, or ""
};

struct Library {
  std::string path;
  std::string reason;  // why there is no CUDA backend, or ""
  int32_t driver_version = 0;
  int32_t device_count = 0;
  Device devices[kMaxDevices];
};

// Opens libcuda on the first call. Creates no context. Thread-safe; the answer never changes within a process.
const Library &library();

// Filled by library(); valid while library().reason is empty, and read on every launch.
extern Api g_api;

}  // namespace pk::cuda
