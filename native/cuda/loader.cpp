// loader.cpp: opens libcuda, resolves every symbol with its version, and looks at the devices. No context is created.
#include "cuda/loader.h"

#include "cuda/dynlib.h"
#include "cuda/errors.h"

namespace pk::cuda {

Api g_api;

namespace {

using GetProcAddress = Result(PK_CUDAAPI *)(const char *name, void **function, int32_t version, uint64_t flags,
                                            uint32_t *query);
using DriverGetVersion = Result(PK_CUDAAPI *)(int32_t *version);

constexpr bool required = true;
constexpr bool optional = false;

std::string version_text(int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string stub_text(const std::string &path) {
  return "CUDA driver not detected (" + path +
         " is the CUDA toolkit's stub, not a driver: take its folder out of LD_LIBRARY_PATH and install an NVIDIA "
         "driver)";
}

std::string too_old_text(const std::string &version) {
  return "The CUDA driver is too old: it supports CUDA " + version + ", pygpukit needs CUDA " +
         version_text(kMinimumDriver) + " or newer; install NVIDIA driver 525 or newer";
}

// Names the required symbols that are absent; optional ones stay null.
std::string resolve_symbols(GetProcAddress get) {
  std::string missing;
  const auto resolve = [&](const char *name, int32_t version, bool needed) {
    void *function = nullptr;
    uint32_t query = 0;
    if (get(name, &function, version, 0, &query) != 0 || query != 0) function = nullptr;
    if (function == nullptr && needed) missing += (missing.empty() ? "" : ", ") + std::string(name);
    return function;
  };
#define PK_RESOLVE(name, version, need, parameters) \
  g_api.name = reinterpret_cast<decltype(g_api.name)>(resolve(#name, version, need));
  PK_CUDA_SYMBOLS(PK_RESOLVE)
#undef PK_RESOLVE
  return missing;
}

// "cuInit failed: CUDA_ERROR_X (803): sentence"
std::string failure_text(const char *call, Result status) {
  return std::string(call) + " failed: " + error_name(status) + " (" + std::to_string(status) +
         "): " + describe(status, nullptr);
}

std::string open_and_resolve(Library *library) {
  const Dynlib file = dynlib_open(kCudaLibrary);
  if (file.handle == nullptr) {
    return "CUDA driver not detected (" + (file.exists ? file.error : std::string(kCudaLibrary) + " not found") + ")";
  }
  const auto get_version = reinterpret_cast<DriverGetVersion>(file.symbol("cuDriverGetVersion"));
  library->path = get_version != nullptr ? dynlib_path_of(reinterpret_cast<void *>(get_version)) : kCudaLibrary;
  if (get_version == nullptr) return "The CUDA driver library " + library->path + " lacks cuDriverGetVersion";
  const Result status = get_version(&library->driver_version);
  if (status == kErrorStubLibrary) return stub_text(library->path);
  if (status != 0) return "cuDriverGetVersion failed with status " + std::to_string(status);
  if (library->driver_version < kMinimumDriver) return too_old_text(version_text(library->driver_version));
  const auto get = reinterpret_cast<GetProcAddress>(file.symbol("cuGetProcAddress_v2"));
  const std::string missing = get != nullptr ? resolve_symbols(get) : "cuGetProcAddress_v2";
  if (missing.empty()) return "";
  return "The CUDA driver library " + library->path + " (CUDA " + version_text(library->driver_version) + ") lacks " +
         missing + ": install a complete NVIDIA driver";
}

int32_t attribute(DeviceAttribute which, int32_t device) {
  int32_t value = 0;
  return g_api.cuDeviceGetAttribute(&value, which, device) == 0 ? value : 0;
}

void look_at(int32_t ordinal, Device *device) {
  const Result status = g_api.cuDeviceGet(&device->handle, ordinal);
  if (status != 0) {
    device->refusal = "device " + std::to_string(ordinal) + ": " + failure_text("cuDeviceGet", status);
    return;
  }
  g_api.cuDeviceGetName(device->name, sizeof(device->name), device->handle);
  device->name[sizeof(device->name) - 1] = '\0';
  device->compute_major = attribute(kComputeMajor, device->handle);
  device->compute_minor = attribute(kComputeMinor, device->handle);
  device->exportable = attribute(kPosixFdSupported, device->handle) != 0;
  if (device->compute_major < kMinimumComputeMajor) {
    device->refusal = std::string(device->name) + " is SM " + std::to_string(device->compute_major) + "." +
                      std::to_string(device->compute_minor) + "; pygpukit needs SM " +
                      std::to_string(kMinimumComputeMajor) + ".0 or newer";
  } else if (attribute(kVirtualMemorySupported, device->handle) == 0) {
    device->refusal = std::string(device->name) + " has no virtual memory management in this driver (cuMemMap)";
  }
}

std::string find_devices(Library *library) {
  Result status = g_api.cuInit(0);
  if (status == kErrorStubLibrary) return stub_text(library->path);
  if (status != 0 && status != PK_ERROR_NO_DEVICE) return failure_text("cuInit", status);
  int32_t count = 0;
  if (status == 0) status = g_api.cuDeviceGetCount(&count);
  if (status != 0 && status != PK_ERROR_NO_DEVICE) return failure_text("cuDeviceGetCount", status);
  if (count == 0) return "No GPU devices found (cudaGetDeviceCount == 0)";
  library->device_count = count < kMaxDevices ? count : kMaxDevices;
  std::string refusals;
  int32_t usable = 0;
  for (int32_t ordinal = 0; ordinal < library->device_count; ++ordinal) {
    Device &device = library->devices[ordinal];
    look_at(ordinal, &device);
    usable += device.refusal.empty();
    refusals += (refusals.empty() ? "" : "; ") + device.refusal;
  }
  return usable > 0 ? "" : refusals;
}

}  // namespace

const Library &library() {
  static const Library *const opened = [] {
    auto *fresh = new Library;  // leaked: other threads may use the table until the process ends
    fresh->reason = open_and_resolve(fresh);
    if (fresh->reason.empty()) fresh->reason = find_devices(fresh);
    return fresh;
  }();
  return *opened;
}

}  // namespace pk::cuda
