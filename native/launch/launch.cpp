// launch.cpp: gate, device call, counter and record, in that order.
#include "launch/launch.h"

namespace pk {

enum : uint16_t { kRecordLaunch = 16, kRecordHostLaunch = 17, kRecordCopy = 18 };

static pk_event event_of(uint16_t kind, uint32_t name, uint32_t stream_id) {
  pk_event event = {};
  event.kind = kind;
  event.device = static_cast<uint16_t>(t_state.device);
  event.stream = stream_id;
  event.tenant = t_state.tenant;
  event.name = name;
  return event;
}

static uint64_t product(const uint32_t extent[3]) { return uint64_t{extent[0]} * extent[1] * extent[2]; }

pk_event launch_record(const pk_launch &launch, uint32_t name, const LaunchPlace &place) {
  pk_event event = event_of(kRecordLaunch, name, 0);
  event.a = product(launch.grid);
  event.b = product(launch.block);
  event.c = launch.shared_bytes;
  event.cell = place.cell;
  event.line = place.line;
  return event;
}

void count_launch(pk_event record, uint32_t stream_id) {
  pk_count(PK_COUNT_LAUNCH, 1);
  record.stream = stream_id;
  record.tenant = t_state.tenant;
  pk_ring_push(&record);
}

pk_status launch(const pk_launch &launch, uint32_t name, uint32_t stream_id, const LaunchPlace &place) {
  const uint64_t context = t_state.context;
  if (__builtin_expect(context != 0, 0) && pk_gate_before(context, &launch) != PK_GATE_OPEN) return PK_GATE_STOPPED;
  const pk_status status = g_driver->launch(&launch);
  if (__builtin_expect(context != 0, 0)) pk_gate_after(context, &launch, status);
  if (status == PK_OK) count_launch(launch_record(launch, name, place), stream_id);
  return status;
}

pk_status paced(uint64_t stream, const std::function<pk_status()> &work) {
  const uint64_t context = t_state.context;
  if (context == 0) return work();
  pk_launch whole = {};
  whole.stream = stream;
  for (int axis = 0; axis < 3; ++axis) whole.grid[axis] = whole.block[axis] = 1;
  if (pk_gate_before(context, &whole) != PK_GATE_OPEN) return PK_GATE_STOPPED;
  const pk_status status = work();
  pk_gate_after(context, &whole, status);
  return status;
}

HostLaunch host_launch_begin(uint64_t stream) {
  HostLaunch host = {};
  host.launch.stream = stream;
  for (int axis = 0; axis < 3; ++axis) host.launch.grid[axis] = host.launch.block[axis] = 1;
  host.stopped = t_state.context != 0 && pk_gate_before(t_state.context, &host.launch) != PK_GATE_OPEN;
  host.start_ns = pk_now_ns();
  return host;
}

void host_launch_end(const HostLaunch &host, uint32_t name, uint32_t stream_id, bool ok) {
  const uint64_t end_ns = pk_now_ns();
  if (t_state.context != 0) pk_gate_after(t_state.context, &host.launch, ok ? PK_OK : PK_ERROR_LAUNCH_FAILED);
  if (!ok) return;
  pk_count(PK_COUNT_HOST_LAUNCH, 1);
  pk_event event = event_of(kRecordHostLaunch, name, stream_id);
  event.a = end_ns - host.start_ns;
  pk_ring_push(&event);
}

void record_copy(CopyDirection direction, uint64_t bytes, uint32_t stream_id) {
  static constexpr uint32_t kCounter[] = {PK_COUNT_H2D_BYTES, PK_COUNT_D2H_BYTES, PK_COUNT_D2D_BYTES, PK_COUNT_FILL};
  pk_count(kCounter[direction], direction == kFill ? 1 : bytes);
  pk_event event = event_of(kRecordCopy, 0, stream_id);
  event.a = bytes;
  event.b = direction;
  pk_ring_push(&event);
}

}  // namespace pk
