// ordered.cpp: the table of device functions that waits for what is deferred.
#include "launch/ordered.h"

#include <pthread.h>

#include <tuple>

#include "launch/kernel_command.h"
#include "launch/slices.h"

namespace pk {

const pk_driver *g_raw_driver = nullptr;

static constexpr uint64_t kNothing = 0;
const uint64_t *g_deferred = &kNothing;

static volatile bool g_forked = false;
bool forked() { return g_forked; }

pk_status settle_slow(uint64_t stream) { return pk_gate_drain(t_state.device_bound, stream); }

namespace {

// A table function whose argument number kStream is a stream.
template <auto kMember, size_t kStream, typename Signature>
struct Ordered;
template <auto kMember, size_t kStream, typename... Args>
struct Ordered<kMember, kStream, pk_status (*)(Args...)> {
  static pk_status call(Args... args) {
    const uint64_t stream = std::get<kStream>(std::tie(args...));
    const pk_status status = settle(stream);
    return status == PK_OK ? (g_raw_driver->*kMember)(args...) : status;
  }
};

// One after which something is gone that commands for any stream may need.
template <auto kMember, typename Signature>
struct Final;
template <auto kMember, typename... Args>
struct Final<kMember, pk_status (*)(Args...)> {
  static pk_status call(Args... args) {
    settle(PK_ANY_STREAM);
    return (g_raw_driver->*kMember)(args...);
  }
};

pk_status launch(const pk_launch *launch) {
  const pk_status status = settle(launch->stream);
  return status == PK_OK ? g_raw_driver->launch(launch) : status;
}

// Never waits: what is deferred is not done.
pk_status stream_query(uint64_t stream) {
  if (has_deferred()) {
    const int32_t device = t_state.device_bound;
    if (pk_gate_has_deferred(device, stream)) return PK_ERROR_NOT_READY;
    if (const pk_status refused = pk_gate_refusal(device, stream)) return refused;
  }
  return g_raw_driver->stream_query(stream);
}

// A stream goes whatever became of its work.
pk_status stream_destroy(uint64_t stream) {
  settle(stream);
  return g_raw_driver->stream_destroy(stream);
}

pk_status module_unload(uint64_t module) {
  settle(PK_ANY_STREAM);
  forget_parameters();
  forget_slices();
  return g_raw_driver->module_unload(module);
}

const char *error_text(pk_status status) {
  if (forked() && status == PK_ERROR_NOT_INITIALIZED)
    return "this process was forked after its device was opened, and cannot use it: start processes with the \"spawn\" "
           "method";
  const char *refused = pk_gate_error_text(status);
  return refused != nullptr ? refused : g_raw_driver->error_text(status);
}

}  // namespace

#define PK_ORDERED(function, stream) \
  g_table.function = Ordered<&pk_driver::function, stream, decltype(g_table.function)>::call
#define PK_FINAL(function) g_table.function = Final<&pk_driver::function, decltype(g_table.function)>::call

const pk_driver *order_driver(const pk_driver *raw) {
  static pk_driver g_table;
  g_raw_driver = raw;
  g_table = *raw;
  g_table.size_bytes = sizeof(pk_driver);
  PK_ORDERED(copy_h2d, 3);
  PK_ORDERED(copy_d2h, 3);
  PK_ORDERED(copy_d2d, 3);
  PK_ORDERED(fill, 4);
  PK_ORDERED(stream_wait, 0);
  PK_ORDERED(stream_wait_event, 0);
  PK_ORDERED(event_record, 1);
  PK_ORDERED(launch_host, 0);
  PK_ORDERED(capture_begin, 0);
  PK_ORDERED(graph_launch, 1);
  PK_ORDERED(array_copy, 1);
  PK_ORDERED(copy_peer, 5);
  PK_FINAL(device_wait);
  PK_FINAL(graph_destroy);
  PK_FINAL(array_destroy);
  PK_FINAL(texture_destroy);
  PK_FINAL(surface_destroy);
  g_table.launch = launch;
  g_table.stream_query = stream_query;
  g_table.stream_destroy = stream_destroy;
  g_table.module_unload = module_unload;
  g_table.error_text = error_text;
  g_deferred = pk_gate_deferred();
  // A forked process has none of the gate's threads, so that nothing may wait for them. Nor has it a thread that may
  // have held the pool's lock: its one thread has no device from here on, and is told so before it comes to any lock.
  pthread_atfork(nullptr, nullptr, [] {
    g_forked = true;
    g_deferred = &kNothing;
    t_state.device_bound = -1;
  });
  return &g_table;
}

}  // namespace pk

extern "C" int32_t pk_forked(void) { return pk::forked() ? 1 : 0; }
