// driver.cpp: the driver table of the simulated devices, and what they export beside it (sim.h).
#include "pygpukit/driver.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>

#include "sim/calls.h"
#include "sim/counters.h"
#include "sim/launch.h"
#include "sim/output.h"
#include "sim/sim.h"
#include "sim/state.h"

namespace pygpukit::sim {
namespace {

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
    CaptureBegin,
    CaptureEnd,
    GraphLaunch,
    GraphDestroy,
    SmGroups,
    SmPartitionCreate,
    SmPartitionDestroy,
    SmStreamCreate,
    PtxAssemble,
    ArrayCreate,
    ArrayDestroy,
    ArrayLevel,
    ArrayCopy,
    TextureCreate,
    TextureDestroy,
    SurfaceCreate,
    SurfaceDestroy,
    PeerInfo,
    PeerEnable,
    CopyPeer,
    StreamCreate,
    ManagedAlloc,
    ManagedFree,
    HostRegister,
    HostUnregister,
    DeviceAttribute,
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
    if (!ParseConfig(getenv("PYGPUKIT_SIM"), getenv("PYGPUKIT_SIM_DEVICES"), getenv("PYGPUKIT_SIM_TIMEOUT_S"), &config,
                     &reason) ||
        !MakeState(config, getenv("PYGPUKIT_SIM_LINK"), getenv("PYGPUKIT_SIM_PEERS"), &reason)) {
      if (why) *why = reason.c_str();
      return nullptr;
    }
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
  if (!device || device->Idle()) return 0;
  device->Halt();  // what waits for a core would begin as soon as another launch ends, before that leaves its fault
  const uint64_t ended = Watchdog::Get().Cancel(device, "cancelled");
  if (ended) return ended;
  // Nothing runs yet, or only a copy does: what is queued is dropped.
  device->SetFault(PK_ERROR_LAUNCH_FAILED, "queued work was cancelled");
  return 1;
}

uint64_t pk_sim_idle_count(void) { return Idling::Get().Count(); }

void pk_sim_await_idle(uint64_t seen, uint64_t microseconds) { Idling::Get().Await(seen, microseconds); }

int32_t pk_sim_faulted(void) {
  if (!state) return 0;
  return std::any_of(state->devices.begin(), state->devices.end(),
                     [](const Device *device) { return device->Faulted(); });
}

pk_status pk_sim_clear_fault(void) {
  return OnDevice([](Device &device) { return device.ClearFault(); });
}
