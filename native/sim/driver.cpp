// driver.cpp: the driver table of the simulated devices: handles and argument checks in front of the parts.
#include "pygpukit/driver.h"

#include <pthread.h>

#include <cstdlib>
#include <vector>

#include "sim/counters.h"
#include "sim/device.h"
#include "sim/handles.h"
#include "sim/launch.h"
#include "sim/module.h"
#include "sim/output.h"
#include "sim/sim.h"
#include "sim/status.h"
#include "sim/transfer.h"

namespace pygpukit::sim {
namespace {

struct OwnedStream {
  Device *device;
  std::shared_ptr<Stream> stream;
};
struct HostBlock {
  void *start;
};

// Everything that lives as long as the process: never destroyed, because work may be under way when it exits.
struct State {
  Config config;
  std::vector<Device *> devices;
  Handles<OwnedStream> streams{1};
  Handles<Event> events{2};
  Handles<Module> modules{3};
  Handles<Function> functions{4};
  std::mutex host_mutex;
  std::unordered_map<void *, uint64_t> host_blocks;
};
State *state = nullptr;
volatile bool forked = false;
thread_local int current_device = -1;

// ---- looking things up: null means that the status has been set

pk_status CheckProcess() {
  if (!forked) return PK_OK;
  return Fail(
      PK_ERROR_NOT_INITIALIZED,
      "this process was forked after the simulated device was opened, and has none of its threads: start processes "
      "with the \"spawn\" method");
}

Device *Current(pk_status *status) {
  if ((*status = CheckProcess())) return nullptr;
  if (current_device < 0) {
    *status = Fail(PK_ERROR_NOT_INITIALIZED, "no device is current on this thread: device_use() comes first");
    return nullptr;
  }
  return state->devices[static_cast<size_t>(current_device)];
}

// The stream and the device that the call acts on; a fault of the device is an error.
struct Place {
  pk_status status = PK_OK;
  Device *device = nullptr;
  std::shared_ptr<Stream> stream;
};
Place Find(uint64_t handle) {
  Place place;
  place.device = Current(&place.status);
  if (!place.device) return place;
  if (handle == 0) {
    place.stream = place.device->default_stream;
  } else if (auto owned = state->streams.Find(handle)) {
    place.device = owned->device;
    place.stream = owned->stream;
  } else {
    place.status =
        Fail(PK_ERROR_INVALID_HANDLE, Format("0x%llx is no stream", static_cast<unsigned long long>(handle)));
  }
  return place;
}
Place FindWorking(uint64_t handle) {
  Place place = Find(handle);
  if (place.status == PK_OK) place.status = place.device->Fault();
  return place;
}

template <class T>
std::shared_ptr<T> FindObject(Handles<T> &handles, uint64_t handle, const char *what, pk_status *status) {
  if (!Current(status)) return nullptr;
  auto object = handles.Find(handle);
  if (!object)
    *status = Fail(PK_ERROR_INVALID_HANDLE, Format("0x%llx is no %s", static_cast<unsigned long long>(handle), what));
  return object;
}

// Calls method(device) of the current device.
template <class Method>
pk_status OnDevice(Method method) {
  pk_status status;
  Device *device = Current(&status);
  return device ? method(*device) : status;
}

// ---- devices

pk_status CheckDevice(int32_t device) {
  if (pk_status bad = CheckProcess()) return bad;
  if (device >= 0 && device < state->config.devices) return PK_OK;
  return Fail(PK_ERROR_INVALID_DEVICE,
              Format("there is no device %d: %d are simulated", static_cast<int>(device), state->config.devices));
}

pk_status DeviceCount(int32_t *count) {
  *count = state->config.devices;
  return PK_OK;
}

pk_status DeviceInfo(int32_t device, pk_device_info *info) {
  if (pk_status bad = CheckDevice(device)) return bad;
  state->devices[static_cast<size_t>(device)]->Info(info);
  return PK_OK;
}

pk_status DeviceUse(int32_t device) {
  if (pk_status bad = CheckDevice(device)) return bad;
  current_device = device;
  return PK_OK;
}

pk_status DeviceWait() {
  return OnDevice([](Device &device) {
    device.WaitIdle();
    return device.Fault();
  });
}

pk_status MemoryInfo(uint64_t *free_bytes, uint64_t *total_bytes) {
  return OnDevice([&](Device &device) {
    device.memory.Info(free_bytes, total_bytes);
    return pk_status{PK_OK};
  });
}

// ---- memory

pk_status Granularity(uint64_t *bytes) {
  *bytes = kGranule;
  return PK_OK;
}
pk_status AddressReserve(uint64_t bytes, uint64_t *address) {
  return OnDevice([&](Device &device) { return device.memory.Reserve(bytes, address); });
}
pk_status AddressFree(uint64_t address, uint64_t bytes) {
  return OnDevice([&](Device &device) { return device.memory.Free(address, bytes); });
}
pk_status PhysicalCreate(uint64_t bytes, uint64_t *physical) {
  return OnDevice([&](Device &device) { return device.memory.Create(bytes, physical); });
}
pk_status PhysicalRelease(uint64_t physical) {
  return OnDevice([&](Device &device) { return device.memory.Release(physical); });
}
pk_status Map(uint64_t address, uint64_t bytes, uint64_t physical) {
  return OnDevice([&](Device &device) { return device.memory.Map(address, bytes, physical); });
}
pk_status Unmap(uint64_t address, uint64_t bytes) {
  return OnDevice([&](Device &device) { return device.memory.Unmap(address, bytes); });
}
pk_status PhysicalExport(uint64_t physical, int32_t *fd) {
  return OnDevice([&](Device &device) { return device.memory.Export(physical, fd); });
}
pk_status PhysicalImport(int32_t fd, uint64_t bytes, uint64_t *physical) {
  return OnDevice([&](Device &device) { return device.memory.Import(fd, bytes, physical); });
}

pk_status HostAlloc(uint64_t bytes, void **host) {
  return OnDevice([&](Device &) -> pk_status {
    constexpr uint64_t kPage = 4096;
    if (bytes == 0 || bytes > (uint64_t{1} << 46)) return Fail(PK_ERROR_INVALID_VALUE, "host_alloc: no such size");
    *host = aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (!*host) return Fail(PK_ERROR_OUT_OF_MEMORY, "the system refused pinned host memory");
    std::lock_guard guard(state->host_mutex);
    state->host_blocks[*host] = bytes;
    return PK_OK;
  });
}

pk_status HostFree(void *host) {
  return OnDevice([&](Device &) -> pk_status {
    std::lock_guard guard(state->host_mutex);
    if (!state->host_blocks.erase(host)) return Fail(PK_ERROR_INVALID_VALUE, "host_free: not from host_alloc");
    free(host);
    return PK_OK;
  });
}

// ---- copies

pk_status CopyH2D(uint64_t dst, const void *src, uint64_t bytes, uint64_t stream) {
  const Place place = FindWorking(stream);
  if (place.status) return place.status;
  return EnqueueCopy(place.device, place.stream.get(), {dst, reinterpret_cast<uint64_t>(src), true, false, bytes});
}
pk_status CopyD2H(void *dst, uint64_t src, uint64_t bytes, uint64_t stream) {
  const Place place = FindWorking(stream);
  if (place.status) return place.status;
  return EnqueueCopy(place.device, place.stream.get(), {reinterpret_cast<uint64_t>(dst), src, false, true, bytes});
}
pk_status CopyD2D(uint64_t dst, uint64_t src, uint64_t bytes, uint64_t stream) {
  const Place place = FindWorking(stream);
  if (place.status) return place.status;
  return EnqueueCopy(place.device, place.stream.get(), {dst, src, true, true, bytes});
}
pk_status FillMemory(uint64_t dst, uint32_t pattern, uint32_t width_bytes, uint64_t count, uint64_t stream) {
  const Place place = FindWorking(stream);
  if (place.status) return place.status;
  return EnqueueFill(place.device, place.stream.get(), dst, pattern, width_bytes, count);
}

// ---- streams and events

pk_status StreamCreate(int32_t priority, uint64_t *stream) {
  return OnDevice([&](Device &device) -> pk_status {
    if (priority > 0 || priority < -5)
      return Fail(PK_ERROR_INVALID_VALUE,
                  Format("stream priority %d: 0 (lowest) to -5 (most urgent)", static_cast<int>(priority)));
    *stream = state->streams.Add(std::make_shared<OwnedStream>(OwnedStream{&device, device.NewStream(priority)}));
    return PK_OK;
  });
}

pk_status StreamDestroy(uint64_t stream) {
  const Place place = Find(stream);
  if (place.status) return place.status;
  if (stream == 0) return Fail(PK_ERROR_INVALID_HANDLE, "the default stream cannot be destroyed");
  state->streams.Remove(stream);
  return PK_OK;
}

pk_status StreamQuery(uint64_t stream) {
  const Place place = FindWorking(stream);
  if (place.status) return place.status;
  if (!place.stream->Idle()) return PK_ERROR_NOT_READY;
  return place.device->Fault();
}

pk_status StreamWait(uint64_t stream) {
  const Place place = Find(stream);
  if (place.status) return place.status;
  place.stream->Wait();
  return place.device->Fault();
}

pk_status EventCreate(int32_t timing, uint64_t *event) {
  return OnDevice([&](Device &) {
    *event = state->events.Add(std::make_shared<Event>(timing != 0));
    return pk_status{PK_OK};
  });
}

pk_status EventDestroy(uint64_t event) {
  pk_status status;
  if (!FindObject(state->events, event, "event", &status)) return status;
  state->events.Remove(event);
  return PK_OK;
}

pk_status StreamWaitEvent(uint64_t stream, uint64_t event) {
  const Place place = FindWorking(stream);
  if (place.status) return place.status;
  pk_status status;
  const auto found = FindObject(state->events, event, "event", &status);
  if (!found) return status;
  found->MakeWait(*place.stream);
  return PK_OK;
}

pk_status EventRecord(uint64_t event, uint64_t stream) {
  const Place place = FindWorking(stream);
  if (place.status) return place.status;
  pk_status status;
  const auto found = FindObject(state->events, event, "event", &status);
  if (!found) return status;
  found->Record(*place.stream);
  return PK_OK;
}

pk_status EventQuery(uint64_t event) {
  pk_status status;
  const auto found = FindObject(state->events, event, "event", &status);
  if (!found) return status;
  if (!found->Done()) return PK_ERROR_NOT_READY;
  return OnDevice([](Device &device) { return device.Fault(); });
}

pk_status EventWait(uint64_t event) {
  pk_status status;
  const auto found = FindObject(state->events, event, "event", &status);
  if (!found) return status;
  found->Wait();
  return OnDevice([](Device &device) { return device.Fault(); });
}

pk_status EventElapsed(uint64_t start, uint64_t end, double *milliseconds) {
  uint64_t times[2];
  for (int i = 0; i < 2; ++i) {
    pk_status status;
    const auto event = FindObject(state->events, i ? end : start, "event", &status);
    if (!event) return status;
    if (!event->timing) return Fail(PK_ERROR_INVALID_HANDLE, "event_elapsed: the event was made without timing");
    const Event::Elapsed got = event->Time(&times[i]);
    if (got == Event::Elapsed::kNotRecorded)
      return Fail(PK_ERROR_INVALID_HANDLE, "event_elapsed: the event was never recorded");
    if (got == Event::Elapsed::kNotReady) return PK_ERROR_NOT_READY;
  }
  *milliseconds = static_cast<double>(static_cast<int64_t>(times[1] - times[0])) * 1e-6;
  return PK_OK;
}

// ---- modules

pk_status ModuleLoad(const void *image, uint64_t bytes, uint64_t *module) {
  return OnDevice([&](Device &device) {
    std::shared_ptr<Module> loaded;
    const pk_status status = Module::Load(image, bytes, &device.memory, &loaded);
    if (status == PK_OK) *module = state->modules.Add(std::move(loaded));
    return status;
  });
}

pk_status ModuleUnload(uint64_t module) {
  pk_status status;
  const auto found = FindObject(state->modules, module, "module", &status);
  if (!found) return status;
  state->functions.RemoveIf([&](const Function &function) { return function.module == found; });
  state->modules.Remove(module);  // launches under way keep it
  return PK_OK;
}

pk_status ModuleFunction(uint64_t module, const char *name, uint64_t *function) {
  pk_status status;
  const auto found = FindObject(state->modules, module, "module", &status);
  if (!found) return status;
  std::shared_ptr<Function> made;
  status = found->FindFunction(name, &made);
  if (status == PK_OK) *function = state->functions.Add(std::move(made));
  return status;
}

pk_status ModuleGlobal(uint64_t module, const char *name, uint64_t *address, uint64_t *bytes) {
  pk_status status;
  const auto found = FindObject(state->modules, module, "module", &status);
  return found ? found->FindGlobal(name, address, bytes) : status;
}

pk_status FunctionInfo(uint64_t function, pk_function_info *info) {
  pk_status status;
  const auto found = FindObject(state->functions, function, "function", &status);
  return found ? found->Info(info) : status;
}

pk_status FunctionParam(uint64_t function, uint32_t index, uint64_t *offset, uint64_t *bytes) {
  pk_status status;
  const auto found = FindObject(state->functions, function, "function", &status);
  return found ? found->Parameter(index, offset, bytes) : status;
}

pk_status FunctionSetDynamicShared(uint64_t function, uint32_t bytes) {
  pk_status status;
  const auto found = FindObject(state->functions, function, "function", &status);
  return found ? found->SetDynamicShared(bytes) : status;
}

pk_status FunctionOccupancy(uint64_t function, uint32_t block_threads, uint32_t shared_bytes, int32_t *blocks) {
  pk_status status;
  const auto found = FindObject(state->functions, function, "function", &status);
  return found ? found->Occupancy(block_threads, shared_bytes, blocks) : status;
}

// ---- launches

pk_status LaunchKernel(const pk_launch *request) {
  const Place place = FindWorking(request->stream);
  if (place.status) return place.status;
  pk_status status;
  const auto function = FindObject(state->functions, request->function, "function", &status);
  if (!function) return status;
  std::shared_ptr<Launch> launch;
  status = Launch::Make(place.device, function, *request, &launch);
  if (status) return status;
  Count(PK_SIM_LAUNCHES);
  place.stream->Enqueue([launch, priority = place.stream->priority] { launch->Run(priority); });
  return PK_OK;
}

pk_status LaunchHost(uint64_t stream, void (*fn)(void *), void *arg) {
  const Place place = FindWorking(stream);
  if (place.status) return place.status;
  Count(PK_SIM_HOST_LAUNCHES);
  place.stream->Enqueue([device = place.device, fn, arg] {
    if (!device->Faulted()) fn(arg);
  });
  return PK_OK;
}

const pk_driver kTable = {
    PK_DRIVER_VERSION,
    sizeof(pk_driver),
    "sim",
    ErrorName,
    ErrorText,
    DeviceCount,
    DeviceInfo,
    DeviceUse,
    DeviceWait,
    MemoryInfo,
    Granularity,
    AddressReserve,
    AddressFree,
    PhysicalCreate,
    PhysicalRelease,
    Map,
    Unmap,
    PhysicalExport,
    PhysicalImport,
    HostAlloc,
    HostFree,
    CopyH2D,
    CopyD2H,
    CopyD2D,
    FillMemory,
    StreamCreate,
    StreamDestroy,
    StreamQuery,
    StreamWait,
    StreamWaitEvent,
    EventCreate,
    EventDestroy,
    EventRecord,
    EventQuery,
    EventWait,
    EventElapsed,
    ModuleLoad,
    ModuleUnload,
    ModuleFunction,
    ModuleGlobal,
    FunctionInfo,
    FunctionParam,
    FunctionSetDynamicShared,
    FunctionOccupancy,
    LaunchKernel,
    LaunchHost,
};

}  // namespace
}  // namespace pygpukit::sim

using namespace pygpukit::sim;

const pk_driver *pk_sim_driver(const char **why) {
  static std::mutex &mutex = *new std::mutex;
  static std::string &reason = *new std::string;
  std::lock_guard guard(mutex);
  if (!state) {
    Config config;
    if (!ParseConfig(getenv("PYGPUKIT_SIM"), getenv("PYGPUKIT_SIM_TIMEOUT_S"), &config, &reason)) {
      if (why) *why = reason.c_str();
      return nullptr;
    }
    state = new State;
    state->config = config;
    for (int i = 0; i < config.devices; ++i) state->devices.push_back(new Device(i, config));
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
  }
  return &kTable;
}

void pk_sim_counters(uint64_t out[8]) {
  for (int i = 0; i < 8; ++i) out[i] = counters[i].load(std::memory_order_relaxed);
  if (!state) return;
  for (const Device *device : state->devices) {
    out[PK_SIM_PHYSICAL_BYTES] += device->memory.physical_bytes();
    out[PK_SIM_PHYSICAL_CREATED_BYTES] += device->memory.created_bytes();
  }
}

uint64_t pk_sim_take_output(char *buffer, uint64_t capacity) { return TakeOutput(buffer, capacity); }

uint64_t pk_sim_cancel(void) {
  pk_status status;
  Device *device = Current(&status);
  return device ? Watchdog::Get().Cancel(device, "cancelled") : 0;
}

pk_status pk_sim_clear_fault(void) {
  return OnDevice([](Device &device) { return device.ClearFault(); });
}
