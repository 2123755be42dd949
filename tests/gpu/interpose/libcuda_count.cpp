// libcuda_count.cpp: a libcuda.so.1 that forwards everything to the real one and counts allocations, launches and
// copies.
//
// Put its folder first in LD_LIBRARY_PATH and the real library's absolute path in PK_REAL_LIBCUDA. It knows the two
// entry points that a loader needs (cuDriverGetVersion, cuGetProcAddress_v2); a client that links other symbols
// directly fails to load rather than pass uncounted. Counters are read with pk_count_get("cuMemCreate.calls"), by
// ctypes, in the same process.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Handle = uint64_t;
using Address = uint64_t;
using GetProcAddress = int (*)(const char *, void **, int, uint64_t, uint32_t *);

struct Counter {
  std::atomic<uint64_t> calls = 0;  // that succeeded
  std::atomic<uint64_t> failed = 0;
  std::atomic<uint64_t> bytes = 0;
};

// Functions that take device memory, launch work or move bytes: those that the package uses, and those that a mistake
// would add.
// clang-format off
#define COUNTED(X)                                                                                        \
  X(cuMemCreate) X(cuMemRelease) X(cuMemImportFromShareableHandle) X(cuMemMap) X(cuMemUnmap)              \
  X(cuMemAlloc) X(cuMemAllocPitch) X(cuMemAllocManaged) X(cuMemAllocAsync) X(cuMemAllocFromPoolAsync)     \
  X(cuMemFree) X(cuMemFreeAsync) X(cuMemHostAlloc) X(cuMemFreeHost)                                       \
  X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuLaunchCooperativeKernel) X(cuLaunchHostFunc) X(cuGraphLaunch) \
  X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync) X(cuMemcpyHtoD) X(cuMemcpyDtoH)          \
  X(cuMemcpyDtoD) X(cuMemcpyAsync) X(cuMemcpy)                                                            \
  X(cuMemsetD8Async) X(cuMemsetD16Async) X(cuMemsetD32Async)
// clang-format on

#define DECLARE(name) \
  Counter c_##name;   \
  std::atomic<void *> real_##name = nullptr;
COUNTED(DECLARE)
#undef DECLARE

Counter c_conflict;  // a second client asked for another variant of a counted function: it went past the counters

std::mutex g_mutex;
// Leaked: the client may release memory while the process ends.
auto &g_live = *new std::map<Handle, uint64_t>;  // physical handle -> bytes
auto &g_requested = *new std::vector<std::string>;
std::atomic<uint64_t> g_live_bytes = 0, g_peak_bytes = 0;

int tally(Counter &counter, int status, uint64_t bytes = 0) {
  if (status != 0) {
    ++counter.failed;
    return status;
  }
  ++counter.calls;
  counter.bytes += bytes;
  return status;
}

// Calls the real function of that name.
#define REAL(name, ...) reinterpret_cast<decltype(&name)>(real_##name.load(std::memory_order_relaxed))(__VA_ARGS__)

int cuMemCreate(Handle *handle, size_t bytes, const void *prop, uint64_t flags) {
  const int status = tally(c_cuMemCreate, REAL(cuMemCreate, handle, bytes, prop, flags), bytes);
  if (status != 0) return status;
  std::lock_guard<std::mutex> lock(g_mutex);
  g_live[*handle] = bytes;
  g_live_bytes += bytes;
  if (g_live_bytes > g_peak_bytes) g_peak_bytes = g_live_bytes.load();
  return status;
}

int cuMemRelease(Handle handle) {
  uint64_t bytes = 0;
  std::lock_guard<std::mutex> lock(g_mutex);  // held across the call: the handle may be given out again at once
  const int status = REAL(cuMemRelease, handle);
  if (const auto found = g_live.find(handle); status == 0 && found != g_live.end()) {
    bytes = found->second;
    g_live.erase(found);
    g_live_bytes -= bytes;
  }
  return tally(c_cuMemRelease, status, bytes);
}

int cuMemImportFromShareableHandle(Handle *handle, void *os_handle, uint32_t type) {
  return tally(c_cuMemImportFromShareableHandle, REAL(cuMemImportFromShareableHandle, handle, os_handle, type));
}

int cuMemMap(Address address, size_t bytes, size_t offset, Handle handle, uint64_t flags) {
  return tally(c_cuMemMap, REAL(cuMemMap, address, bytes, offset, handle, flags), bytes);
}

int cuMemUnmap(Address address, size_t bytes) { return tally(c_cuMemUnmap, REAL(cuMemUnmap, address, bytes), bytes); }

int cuMemAlloc(Address *address, size_t bytes) { return tally(c_cuMemAlloc, REAL(cuMemAlloc, address, bytes), bytes); }

int cuMemAllocPitch(Address *address, size_t *pitch, size_t width, size_t height, uint32_t element) {
  const int status = REAL(cuMemAllocPitch, address, pitch, width, height, element);
  return tally(c_cuMemAllocPitch, status, status == 0 ? *pitch * height : 0);
}

int cuMemAllocManaged(Address *address, size_t bytes, uint32_t flags) {
  return tally(c_cuMemAllocManaged, REAL(cuMemAllocManaged, address, bytes, flags), bytes);
}

int cuMemAllocAsync(Address *address, size_t bytes, Handle stream) {
  return tally(c_cuMemAllocAsync, REAL(cuMemAllocAsync, address, bytes, stream), bytes);
}

int cuMemAllocFromPoolAsync(Address *address, size_t bytes, Handle pool, Handle stream) {
  return tally(c_cuMemAllocFromPoolAsync, REAL(cuMemAllocFromPoolAsync, address, bytes, pool, stream), bytes);
}

int cuMemFree(Address address) { return tally(c_cuMemFree, REAL(cuMemFree, address)); }

int cuMemFreeAsync(Address address, Handle stream) {
  return tally(c_cuMemFreeAsync, REAL(cuMemFreeAsync, address, stream));
}

int cuMemHostAlloc(void **host, size_t bytes, uint32_t flags) {
  return tally(c_cuMemHostAlloc, REAL(cuMemHostAlloc, host, bytes, flags), bytes);
}

int cuMemFreeHost(void *host) { return tally(c_cuMemFreeHost, REAL(cuMemFreeHost, host)); }

int cuLaunchKernel(Handle function, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
                   uint32_t shared, Handle stream, void **params, void **extra) {
  return tally(c_cuLaunchKernel, REAL(cuLaunchKernel, function, gx, gy, gz, bx, by, bz, shared, stream, params, extra));
}

int cuLaunchKernelEx(const void *config, Handle function, void **params, void **extra) {
  return tally(c_cuLaunchKernelEx, REAL(cuLaunchKernelEx, config, function, params, extra));
}

int cuLaunchCooperativeKernel(Handle function, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
                              uint32_t bz, uint32_t shared, Handle stream, void **params) {
  return tally(c_cuLaunchCooperativeKernel,
               REAL(cuLaunchCooperativeKernel, function, gx, gy, gz, bx, by, bz, shared, stream, params));
}

int cuLaunchHostFunc(Handle stream, void (*function)(void *), void *argument) {
  return tally(c_cuLaunchHostFunc, REAL(cuLaunchHostFunc, stream, function, argument));
}

int cuGraphLaunch(Handle graph, Handle stream) { return tally(c_cuGraphLaunch, REAL(cuGraphLaunch, graph, stream)); }

int cuMemcpyHtoDAsync(Address dst, const void *src, size_t bytes, Handle stream) {
  return tally(c_cuMemcpyHtoDAsync, REAL(cuMemcpyHtoDAsync, dst, src, bytes, stream), bytes);
}

int cuMemcpyDtoHAsync(void *dst, Address src, size_t bytes, Handle stream) {
  return tally(c_cuMemcpyDtoHAsync, REAL(cuMemcpyDtoHAsync, dst, src, bytes, stream), bytes);
}

int cuMemcpyDtoDAsync(Address dst, Address src, size_t bytes, Handle stream) {
  return tally(c_cuMemcpyDtoDAsync, REAL(cuMemcpyDtoDAsync, dst, src, bytes, stream), bytes);
}

int cuMemcpyHtoD(Address dst, const void *src, size_t bytes) {
  return tally(c_cuMemcpyHtoD, REAL(cuMemcpyHtoD, dst, src, bytes), bytes);
}

int cuMemcpyDtoH(void *dst, Address src, size_t bytes) {
  return tally(c_cuMemcpyDtoH, REAL(cuMemcpyDtoH, dst, src, bytes), bytes);
}

int cuMemcpyDtoD(Address dst, Address src, size_t bytes) {
  return tally(c_cuMemcpyDtoD, REAL(cuMemcpyDtoD, dst, src, bytes), bytes);
}

int cuMemcpyAsync(Address dst, Address src, size_t bytes, Handle stream) {
  return tally(c_cuMemcpyAsync, REAL(cuMemcpyAsync, dst, src, bytes, stream), bytes);
}

int cuMemcpy(Address dst, Address src, size_t bytes) {
  return tally(c_cuMemcpy, REAL(cuMemcpy, dst, src, bytes), bytes);
}

int cuMemsetD8Async(Address dst, uint8_t value, size_t count, Handle stream) {
  return tally(c_cuMemsetD8Async, REAL(cuMemsetD8Async, dst, value, count, stream), count);
}

int cuMemsetD16Async(Address dst, uint16_t value, size_t count, Handle stream) {
  return tally(c_cuMemsetD16Async, REAL(cuMemsetD16Async, dst, value, count, stream), count * 2);
}

int cuMemsetD32Async(Address dst, uint32_t value, size_t count, Handle stream) {
  return tally(c_cuMemsetD32Async, REAL(cuMemsetD32Async, dst, value, count, stream), count * 4);
}

struct Entry {
  const char *name;
  Counter *counter;
  std::atomic<void *> *real;
  void *wrapper;
};
#define ENTRY(name) {#name, &c_##name, &real_##name, reinterpret_cast<void *>(name)},
const Entry kEntries[] = {COUNTED(ENTRY)};
#undef ENTRY

void *real_library() {
  static void *const library = [] {
    const char *path = std::getenv("PK_REAL_LIBCUDA");
    void *opened = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (opened == nullptr) {
      std::fprintf(stderr, "libcuda_count: PK_REAL_LIBCUDA=%s does not open: %s\n",
                   path != nullptr ? path : "(not set)",
                   path != nullptr ? dlerror() : "set it to the real libcuda.so.1");
      std::abort();
    }
    return opened;
  }();
  return library;
}

}  // namespace

EXPORT int cuDriverGetVersion(int *version) {
  return reinterpret_cast<int (*)(int *)>(dlsym(real_library(), "cuDriverGetVersion"))(version);
}

EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, uint32_t *query) {
  static const auto real = reinterpret_cast<GetProcAddress>(dlsym(real_library(), "cuGetProcAddress_v2"));
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    g_requested.push_back(name);
  }
  const int status = real(name, function, version, flags, query);
  if (status != 0 || *function == nullptr) return status;
  for (const Entry &entry : kEntries) {
    if (std::strcmp(entry.name, name) != 0) continue;
    void *expected = nullptr;
    if (entry.real->compare_exchange_strong(expected, *function) || expected == *function) {
      *function = entry.wrapper;
    } else {
      ++c_conflict.calls;
    }
    return status;
  }
  if (std::strcmp(name, "cuGetProcAddress") == 0) *function = reinterpret_cast<void *>(cuGetProcAddress_v2);
  return status;
}

// "NAME.calls", "NAME.failed", "NAME.bytes"; "live.bytes", "peak.bytes", "live.handles" of physical memory;
// "conflict.calls". UINT64_MAX for a name that is not counted.
EXPORT uint64_t pk_count_get(const char *name) {
  if (std::strcmp(name, "live.bytes") == 0) return g_live_bytes;
  if (std::strcmp(name, "peak.bytes") == 0) return g_peak_bytes;
  if (std::strcmp(name, "conflict.calls") == 0) return c_conflict.calls;
  if (std::strcmp(name, "live.handles") == 0) {
    std::lock_guard<std::mutex> lock(g_mutex);
    return g_live.size();
  }
  const char *dot = std::strrchr(name, '.');
  for (const Entry &entry : kEntries) {
    const size_t length = std::strlen(entry.name);
    if (dot == nullptr || static_cast<size_t>(dot - name) != length || std::strncmp(name, entry.name, length) != 0)
      continue;
    if (std::strcmp(dot, ".calls") == 0) return entry.counter->calls;
    if (std::strcmp(dot, ".failed") == 0) return entry.counter->failed;
    if (std::strcmp(dot, ".bytes") == 0) return entry.counter->bytes;
  }
  return UINT64_MAX;
}

// The counted functions, one name a call, null after the last.
EXPORT const char *pk_count_name(uint64_t index) {
  return index < sizeof(kEntries) / sizeof(kEntries[0]) ? kEntries[index].name : nullptr;
}

// Every symbol that was asked for, in order, null after the last: what is neither here nor counted was not used.
EXPORT const char *pk_count_requested(uint64_t index) {
  std::lock_guard<std::mutex> lock(g_mutex);
  return index < g_requested.size() ? g_requested[index].c_str() : nullptr;
}
