// transfer.h: copies and fills, in the order of a stream.
#pragma once

#include <cstdint>

#include "sim/device.h"

namespace pygpukit::sim {

// Device addresses are checked now, and again when the copy is done: memory unmapped in between is a fault.
struct Copy {
  uint64_t target, source;
  Device *target_device, *source_device;  // null for the host
  uint64_t bytes;
};

pk_status EnqueueCopy(Device *device, Stream *stream, const Copy &copy);
pk_status EnqueueFill(Device *device, Stream *stream, uint64_t target, uint32_t pattern, uint32_t width_bytes,
                      uint64_t count);

}  // namespace pygpukit::sim
