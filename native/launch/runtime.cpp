// runtime.cpp: opening a backend, once a process.
#include "launch/runtime.h"

#include <mutex>

#include "launch/ordered.h"
#include "sim/sim.h"

namespace pk {

thread_local ThreadState t_state;
OpenDriver g_driver;

static std::string g_name;
static std::mutex *g_mutex = new std::mutex;  // leaked: threads may outlive static destruction

std::string open_driver(const std::string &name) {
  std::lock_guard<std::mutex> lock(*g_mutex);
  if (g_driver != nullptr) {
    if (g_name == name) return "";
    return "backend '" + g_name + "' is already open; '" + name + "' needs a new process";
  }
  const char *why = nullptr;
  const pk_driver *driver = nullptr;
  if (name == "cuda") {
    driver = pk_cuda_driver(&why);
  } else if (name == "sim") {
    driver = pk_sim_driver(&why);
  } else {
    return "unknown backend '" + name + "': use 'cuda' or 'sim'";
  }
  if (driver == nullptr) return why != nullptr ? why : "no reason given";
  if (driver->version < PK_DRIVER_VERSION || driver->size_bytes < sizeof(pk_driver)) {
    return "the '" + name + "' driver table is older than this build";
  }
  const pk_driver *ordered = order_driver(driver);
  pk_core_attach(ordered, driver);
  g_name = name;
  g_driver.set(ordered);
  return "";
}

const std::string &driver_name() { return g_name; }

pk_status bind_device_slow() { return pk_use_device(t_state.device); }

uint64_t default_pool() {
  constexpr int kDevices = 64;
  static uint64_t pools[kDevices] = {};
  int32_t device = t_state.device;
  if (device < 0 || device >= kDevices) return 0;
  if (pools[device] == 0) pools[device] = pk_pool_default(device);
  return pools[device];
}

}  // namespace pk

extern "C" uint64_t pk_current_context(void) { return pk::t_state.context; }

extern "C" uint64_t pk_current_account(void) { return pk::t_state.account; }

extern "C" int32_t pk_fault_stands(void) { return pk::driver_name() != "sim" || pk_sim_faulted(); }

extern "C" pk_status pk_use_device(int32_t device) {
  if (pk::t_state.device_bound == device) return PK_OK;
  // The core is attached a moment before the driver is set. What a forked process has is its parent's device.
  if (pk::g_driver == nullptr || pk::forked()) return PK_ERROR_NOT_INITIALIZED;
  const pk_status status = pk::g_driver->device_use(device);
  if (status == PK_OK) pk::t_state.device_bound = device;
  return status;
}
