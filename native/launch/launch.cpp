// launch.cpp: gate, device call, counter and record, in that order.
#include "launch/launch.h"

#include "launch/kernel_command.h"
#include "launch/submit.h"

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

// As an expression of its own, so that a launch without a context costs one branch.
static pk_status governed(const pk_launch &launch, uint32_t name, bool now) {
  KernelCommand command(launch);
  if (now || !command.can_keep()) return at_once([&] { return g_driver->launch(&launch); });
  return submit({.stream = launch.stream, .size = product(launch.grid), .name = name, .device = t_state.device},
                command.as_command());
}

pk_status launch(const pk_launch &launch, uint32_t name, uint32_t stream_id, const LaunchPlace &place) {
  const pk_status status =
      __builtin_expect(t_state.context != 0, 0) ? governed(launch, name, place.at_once) : g_driver->launch(&launch);
  if (status == PK_OK) count_launch(launch_record(launch, name, place), stream_id);
  return status;
}

pk_status at_once(const std::function<pk_status()> &work) {
  const uint64_t context = t_state.context;
  if (context != 0 && pk_gate_stopped(context)) return PK_GATE_STOPPED;
  const pk_status status = work();
  if (context != 0 && status == PK_OK) pk_gate_note(context, t_state.device, 0);
  return status;
}

HostLaunch::HostLaunch(uint32_t name, uint32_t stream_id)
    : name_(name),
      stream_id_(stream_id),
      stopped_(t_state.context != 0 && pk_gate_stopped(t_state.context)),
      start_ns_(pk_now_ns()) {}

void HostLaunch::end(bool ok) {
  const uint64_t ns = pk_now_ns() - start_ns_;
  if (!ok) return;
  if (t_state.context != 0) pk_gate_note(t_state.context, t_state.device, ns);
  pk_count(PK_COUNT_HOST_LAUNCH, 1);
  pk_event event = event_of(kRecordHostLaunch, name_, stream_id_);
  event.a = ns;
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
