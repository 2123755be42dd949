// api.cpp: the two functions that libcuda exports for the loader, settings, devices, contexts and error names.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mock.h"

namespace mock {

namespace {

constexpr int kMaxDevices = 4;
thread_local Handle t_context = 0;

int device_count() {
  const char *visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && visible[0] == '\0') return 0;
  const long listed = static_cast<long>(list_setting("MOCK_CUDA_SM").size());
  return static_cast<int>(setting("MOCK_CUDA_DEVICES", listed > 0 ? listed : 1));
}

struct ErrorEntry {
  Result status;
  const char *name;
  const char *text;
};
constexpr ErrorEntry kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
};

const ErrorEntry *entry_of(Result status) {
  for (const ErrorEntry &entry : kErrors) {
    if (entry.status == status) return &entry;
  }
  return nullptr;
}

}  // namespace

long setting(const char *name, long otherwise) {
  const char *text = std::getenv(name);
  return text != nullptr ? std::strtol(text, nullptr, 10) : otherwise;
}

std::vector<std::string> list_setting(const char *name) {
  std::vector<std::string> items;
  const char *text = std::getenv(name);
  std::string rest = text != nullptr ? text : "";
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    items.push_back(rest.substr(0, comma));
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return items;
}

int device_sm(int device) {
  const std::vector<std::string> all = list_setting("MOCK_CUDA_SM");
  return device < static_cast<int>(all.size()) ? std::atoi(all[device].c_str()) : 90;
}

uint64_t memory_bytes() { return static_cast<uint64_t>(setting("MOCK_CUDA_MEMORY", 1L << 30)); }

Result called(const char *name, const char *format, ...) {
  static FILE *const log = [] {
    const char *path = std::getenv("MOCK_CUDA_LOG");
    return path != nullptr ? std::fopen(path, "a") : nullptr;
  }();
  if (log != nullptr) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    std::fprintf(log, "%s %s\n", name, line);
    std::fflush(log);
  }
  for (const std::string &item : list_setting("MOCK_CUDA_FAIL")) {
    const size_t colon = item.find(':');
    if (item.substr(0, colon) == name) return std::atoi(item.c_str() + colon + 1);
  }
  return 0;
}

Result need_context() { return t_context != 0 ? 0 : 201; }

Result cuInit(uint32_t) {
  MOCK_CALL(cuInit, "%s", "");
  return device_count() == 0 ? 100 : 0;
}

Result cuGetErrorName(Result error, const char **text) {
  const ErrorEntry *entry = entry_of(error);
  *text = entry != nullptr ? entry->name : nullptr;
  return entry != nullptr ? 0 : 1;
}

Result cuGetErrorString(Result error, const char **text) {
  const ErrorEntry *entry = entry_of(error);
  *text = entry != nullptr ? entry->text : nullptr;
  return entry != nullptr ? 0 : 1;
}

Result cuDeviceGetCount(int32_t *count) {
  *count = device_count();
  return 0;
}

Result cuDeviceGet(int32_t *device, int32_t ordinal) {
  if (ordinal < 0 || ordinal >= device_count() || ordinal >= kMaxDevices) return 101;
  *device = ordinal;
  return 0;
}

Result cuDeviceGetName(char *name, int32_t bytes, int32_t device) {
  std::snprintf(name, static_cast<size_t>(bytes), "NVIDIA Mock %d", device_sm(device));
  return 0;
}

Result cuDeviceGetUuid(Uuid *uuid, int32_t device) {
  std::memset(uuid->bytes, 0xa0 + device, sizeof(uuid->bytes));
  return 0;
}

Result cuDeviceTotalMem(size_t *bytes, int32_t) {
  *bytes = memory_bytes();
  return 0;
}

Result cuDeviceGetAttribute(int32_t *value, int32_t attribute, int32_t device) {
  switch (attribute) {
    case pk::cuda::kComputeMajor:
      *value = device_sm(device) / 10;
      return 0;
    case pk::cuda::kComputeMinor:
      *value = device_sm(device) % 10;
      return 0;
    case pk::cuda::kVirtualMemorySupported:
    case pk::cuda::kPosixFdSupported:
      *value = 1;
      return 0;
    case pk::cuda::kMpsEnabled:  // attributes that a driver does not know are refused
      *value = static_cast<int32_t>(setting("MOCK_CUDA_MPS", 0));
      return *value < 0 ? 1 : 0;
    case pk::cuda::kWarpSize:
      *value = 32;
      return 0;
    case pk::cuda::kMaxSharedPerBlock:
      *value = 49152;
      return 0;
    case pk::cuda::kMaxSharedPerBlockOptin:
      *value = 232448;
      return 0;
    default:
      *value = 1000 + attribute;  // any number, another for each
      return 0;
  }
}

Result cuDevicePrimaryCtxRetain(Handle *context, int32_t device) {
  MOCK_CALL(cuDevicePrimaryCtxRetain, "%d", device);
  *context = 0xc0de0001u + static_cast<Handle>(device);
  return 0;
}

Result cuCtxGetCurrent(Handle *context) {
  *context = t_context;
  return 0;
}

Result cuCtxSetCurrent(Handle context) {
  MOCK_CALL(cuCtxSetCurrent, "%lx", context);
  t_context = context;
  return 0;
}

Result cuCtxSynchronize(void) {
  MOCK_CALL(cuCtxSynchronize, "%s", "");
  return need_context();
}

Result cuCtxGetStreamPriorityRange(int32_t *least, int32_t *greatest) {
  *least = 0;
  *greatest = -5;
  return need_context();
}

Result cuDeviceCanAccessPeer(int32_t *access, int32_t, int32_t) {
  *access = static_cast<int32_t>(setting("MOCK_CUDA_PEERS", 1));
  return 0;
}

Result cuDeviceGetP2PAttribute(int32_t *value, int32_t attribute, int32_t, int32_t) {
  *value = attribute == pk::cuda::kPeerNativeAtomics ? 1 : 0;
  return 0;
}

Result cuCtxEnablePeerAccess(Handle peer_context, uint32_t flags) {
  MOCK_CALL(cuCtxEnablePeerAccess, "%lx from %lx flags %u", peer_context, t_context, flags);
  return need_context();
}

}  // namespace mock

extern "C" __attribute__((visibility("default"))) pk::cuda::Result cuDriverGetVersion(int32_t *version) {
  *version = static_cast<int32_t>(mock::setting("MOCK_CUDA_VERSION", 13000));
  return mock::setting("MOCK_CUDA_STUB", 0) != 0 ? pk::cuda::kErrorStubLibrary : 0;
}

extern "C" __attribute__((visibility("default"))) pk::cuda::Result cuGetProcAddress_v2(const char *name,
                                                                                       void **function, int32_t version,
                                                                                       uint64_t, uint32_t *query) {
  struct Symbol {
    const char *name;
    int32_t version;
    void *function;
  };
  // The cast checks each function against the loader's own declaration.
#define MOCK_ENTRY(name, version, need, parameters) \
  {#name, version, reinterpret_cast<void *>(static_cast<decltype(pk::cuda::Api::name)>(mock::name))},
  static const Symbol symbols[] = {PK_CUDA_SYMBOLS(MOCK_ENTRY)};
#undef MOCK_ENTRY
  *function = nullptr;
  *query = 1;  // not found
  for (const std::string &missing : mock::list_setting("MOCK_CUDA_MISSING")) {
    if (missing == name) return 500;
  }
  for (const Symbol &symbol : symbols) {
    if (std::strcmp(symbol.name, name) != 0) continue;
    *query = version >= symbol.version && symbol.version <= mock::setting("MOCK_CUDA_VERSION", 13000) ? 0 : 2;
    if (*query != 0) return 500;
    *function = symbol.function;
    return 0;
  }
  return 500;
}
