// submit.h: work of a thread in a scheduling context: issued now, or kept until its turn.
#pragma once
#include <atomic>
#include <utility>

#include "launch/busy.h"
#include "launch/ordered.h"
#include "launch/runtime.h"

namespace pk {

// With the GIL or without; waits without it while the task's line is full. PK_OK: issued or deferred. PK_GATE_STOPPED,
// PK_GATE_INTERRUPTED, or the driver's status.
pk_status submit(const pk_gate_work &work, const pk_command &command);

// With the GIL; waits without it while the thread's task is paused: before work that does not pass the gate. PK_OK,
// PK_GATE_STOPPED or PK_GATE_INTERRUPTED.
pk_status enter();

extern std::atomic<uint64_t> g_measured_launches;  // those whose time the gate measures

// Work for a stream that can be deferred. kind: PK_WORK_... issue: copyable, owns what it needs, runs on any thread on
// g_raw_driver. name and size tell which works take the same time. launches: how many count as such.
template <typename Issue>
pk_status paced(uint64_t stream, uint32_t kind, uint32_t name, uint64_t size, Issue issue, uint64_t launches = 0) {
  if (t_state.context == 0) {
    const pk_status status = settle(stream);
    return status == PK_OK ? busy(stream, launches, issue) : status;
  }
  const pk_command command = {
      .self = &issue,
      .issue = [](void *self) { return (*static_cast<Issue *>(self))(); },
      .keep = [](void *self) -> void * { return new Issue(std::move(*static_cast<Issue *>(self))); },
      .drop = [](void *kept) { delete static_cast<Issue *>(kept); },
      .issue_part = nullptr,
      .want_parts = nullptr};
  const pk_gate_work work = {.stream = stream,
                             .size = size,
                             .name = name,
                             .device = t_state.device,
                             .grid = {1, 1, 1},
                             .kind = kind,
                             .wave = 0};
  const pk_status status = submit(work, command);
  if (status == PK_OK) g_measured_launches += launches;
  return status;
}

}  // namespace pk
