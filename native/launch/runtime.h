// runtime.h: the open backend and what each thread carries (device, stream, scheduling context, owner).
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "pygpukit/core.h"
#include "pygpukit/driver.h"

namespace pk {

// What the calling thread launches on and for. Plain thread-local data: reading it costs nothing.
struct ThreadState {
  int32_t device = 0;         // chosen device
  int32_t device_bound = -1;  // device that is current in the driver for this thread
  uint64_t stream = 0;
  uint32_t stream_id = 0;
  uint32_t tenant = 0;
  uint64_t account = 0;  // of the device's pool, 0 = none
  uint64_t context = 0;  // scheduling context, 0 = none
  uint32_t plugin = 0;   // interned name of the plugin whose operation runs, 0 = none; for records
};

extern thread_local ThreadState t_state;

// The open table, or null: with regard to what is deferred (ordered.h). open_driver() returns an empty string or the
// reason.
class OpenDriver {
 public:
  operator const pk_driver *() const { return table_.load(std::memory_order_acquire); }
  const pk_driver *operator->() const { return *this; }
  void set(const pk_driver *table) { table_.store(table, std::memory_order_release); }

 private:
  std::atomic<const pk_driver *> table_ = nullptr;  // set once, without the GIL: whoever sees it sees it whole
};
extern OpenDriver g_driver;
std::string open_driver(const std::string &name);
const std::string &driver_name();

// Makes the thread's device current in the driver; 0 on success. Cheap after the first call.
pk_status bind_device_slow();
inline pk_status bind_device() { return t_state.device_bound == t_state.device ? PK_OK : bind_device_slow(); }

// The default pool of the thread's device (0 on failure: pk_pool_raise()).
uint64_t default_pool();

}  // namespace pk
