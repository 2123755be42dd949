// launch.cpp: gate, device call, counter and record, in that order.
#include "launch/launch.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "launch/busy.h"
#include "launch/kernel_command.h"
#include "launch/submit.h"
#include "launch/ticket.h"

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

// A figure of the thread's task.
static void count_for_task(uint32_t kind) {
  if (t_state.context != 0) pk_task_count(t_state.context, kind);
}

static uint64_t product(const uint32_t extent[3]) { return uint64_t{extent[0]} * extent[1] * extent[2]; }

static std::string text_of(uint32_t name) {
  char text[256];
  const uint64_t length = pk_name_text(name, text, sizeof text);
  return std::string(text, std::min<uint64_t>(length, sizeof text));
}

// The name of a launch in its record: that of the plugin whose operation launches follows it.
static uint32_t recorded_name(uint32_t name) {
  if (__builtin_expect(t_state.plugin == 0, 1)) return name;
  static std::mutex mutex;
  static auto *names = new std::map<std::pair<uint32_t, uint32_t>, uint32_t>;
  const std::lock_guard lock(mutex);
  uint32_t &known = (*names)[{name, t_state.plugin}];
  if (known == 0) {
    const std::string text = text_of(name) + ", by plugin " + text_of(t_state.plugin);
    known = pk_intern(text.data(), text.size());
  }
  return known;
}

pk_event launch_record(const pk_launch &launch, uint32_t name, const LaunchPlace &place) {
  pk_event event = event_of(kRecordLaunch, recorded_name(name), 0);
  event.a = product(launch.grid);
  event.b = product(launch.block);
  event.c = launch.shared_bytes;
  event.cell = place.cell;
  event.line = place.line;
  return event;
}

void count_launch(pk_event record, uint32_t stream_id) {
  pk_count(PK_COUNT_LAUNCH, 1);
  count_for_task(PK_WORK_KERNEL);
  record.stream = stream_id;
  record.tenant = t_state.tenant;
  if (tracing()) trace_issued(record);
  pk_ring_push(&record);
}

std::atomic<uint64_t> g_measured_launches{0};

static pk_status governed(const pk_launch &launch, uint32_t name, bool now) {
  KernelCommand command(launch);
  if (now || !command.can_keep())
    return at_once(launch.stream, 1,
                   [&] { return with_ticket(launch.stream, [&] { return g_driver->launch(&launch); }); });
  const pk_gate_work work = command.work(name);
  const pk_status status = submit(work, command.as_command());
  if (status == PK_OK) ++g_measured_launches;
  return status;
}

// The clock is read once, for the stretch and for the record.
static pk_status timed_launch(const pk_launch &launch, uint32_t name, uint32_t stream_id, const LaunchPlace &place) {
  const uint64_t now_ns = pk_now_ns();
  busy_before(launch.stream, now_ns);
  const pk_status status = g_driver->launch(&launch);
  if (status != PK_OK) return status;
  busy_after(launch.stream, 1);
  pk_event record = launch_record(launch, name, place);
  record.stream = stream_id;
  if (tracing()) trace_issued(record);
  pk_count(PK_COUNT_LAUNCH, 1);
  pk_ring_push_at(now_ns, &record);
  return PK_OK;
}

// One that is neither in a scheduling context nor timed costs one branch.
pk_status launch(const pk_launch &launch, uint32_t name, uint32_t stream_id, const LaunchPlace &place) {
  const bool accounts = (t_state.context | static_cast<uint64_t>(timed())) != 0;
  if (__builtin_expect(accounts, 0) && t_state.context == 0) return timed_launch(launch, name, stream_id, place);
  const pk_status status =
      __builtin_expect(accounts, 0) ? governed(launch, name, place.at_once) : g_driver->launch(&launch);
  if (status == PK_OK) count_launch(launch_record(launch, name, place), stream_id);
  return status;
}

pk_status at_once(uint64_t stream, uint64_t launches, const std::function<pk_status()> &work) {
  const uint64_t context = t_state.context;
  if (const pk_status refused = enter()) return refused;
  const pk_status status = busy(stream, launches, work);
  if (context != 0 && status == PK_OK) pk_gate_note(context, t_state.device, stream, 0);
  return status;
}

HostLaunch::HostLaunch(uint32_t name, uint32_t stream_id)
    : name_(name), stream_id_(stream_id), start_ns_(pk_now_ns()) {}

void HostLaunch::end(bool ok) {
  const uint64_t ns = pk_now_ns() - start_ns_;
  if (!ok) return;
  if (t_state.context != 0) pk_gate_note(t_state.context, t_state.device, t_state.stream, ns);
  pk_count(PK_COUNT_HOST_LAUNCH, 1);
  count_for_task(PK_WORK_KERNEL);
  pk_event event = event_of(kRecordHostLaunch, recorded_name(name_), stream_id_);
  event.a = ns;
  event.b = t_state.context != 0;
  if (tracing()) trace_host(event, start_ns_);
  pk_ring_push(&event);
}

void record_copy(CopyDirection direction, uint64_t bytes, uint32_t stream_id, uint64_t begin_ns, uint64_t peer) {
  static constexpr uint32_t kCounter[] = {PK_COUNT_H2D_BYTES, PK_COUNT_D2H_BYTES, PK_COUNT_D2D_BYTES, PK_COUNT_FILL,
                                          PK_COUNT_D2D_BYTES};
  pk_count(kCounter[direction], direction == kFill ? 1 : bytes);
  count_for_task(direction == kFill ? PK_WORK_FILL : PK_WORK_TRANSFER);
  pk_event event = event_of(kRecordCopy, 0, stream_id);
  event.a = bytes;
  event.b = direction;
  event.c = peer;
  if (tracing()) begin_ns != 0 ? trace_host(event, begin_ns) : trace_issued(event);
  pk_ring_push(&event);
}

}  // namespace pk
