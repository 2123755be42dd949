// wait.cpp: spin at first (short kernels), then sleep a part of the time waited so far; look at signals every 20 ms.
#include "bindings/wait.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <unordered_map>

#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/recorder.h"
#include "launch/busy.h"
#include "launch/exact_sleep.h"
#include "sim/sim.h"

namespace pk {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// A stream query costs about 0.25 us on the device; spinning this long keeps the latency of short kernels at the
// driver's own. After that a wait ends at most about a twentieth of itself late. The simulated device needs the cores
// itself, and wakes whoever sleeps when it is done.
static constexpr microseconds kSpin{500}, kSpinSim{100};
static constexpr microseconds kShortestPause{10}, kLongestPause{500};
static constexpr int kPart = 20;
static constexpr milliseconds kSignalPeriod{20};

// Polls until done or until the next look at signals is due.
static pk_status poll_once(const std::function<pk_status()> &done, Clock::time_point since, bool spin) {
  const auto begin = Clock::now();
  std::optional<ExactSleep> exact;
  const bool sim = driver_name() == "sim";
  const microseconds spinning = sim ? kSpinSim : kSpin;
  for (;;) {
    const uint64_t idled = sim ? pk_sim_idle_count() : 0;
    const pk_status status = done();
    if (status != PK_ERROR_NOT_READY) return status;
    const auto waited = Clock::now() - begin;
    if (waited >= kSignalPeriod) return status;
    if (spin && waited < spinning) continue;
    if (!exact) exact.emplace();
    const auto part = std::chrono::duration_cast<microseconds>(Clock::now() - since) / kPart;
    const microseconds pause = std::clamp(part, kShortestPause, kLongestPause);
    if (sim) {
      pk_sim_await_idle(idled, static_cast<uint64_t>(pause.count()));
    } else {
      std::this_thread::sleep_for(pause);
    }
  }
}

// The simulated device outlives a fault, unlike a CUDA context: once reported, it is forgotten. An interrupt ends what
// still runs there, because an endless kernel would keep a core busy.
static void settle_sim(bool cancel) {
  if (g_driver == nullptr || driver_name() != "sim") return;
  NoGil released;
  if (cancel) pk_sim_cancel();
  pk_sim_clear_fault();
}

void show_output() {
  if (g_driver == nullptr || driver_name() != "sim" || pk_sim_take_output(nullptr, 0) == 0) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *module = PyImport_ImportModule("pygpukit.core.output");
  PyObject *nothing = module != nullptr ? PyObject_CallMethod(module, "emit", nullptr) : nullptr;
  if (nothing == nullptr) PyErr_WriteUnraisable(module);
  Py_XDECREF(nothing);
  Py_XDECREF(module);
  PyErr_Restore(type, value, trace);
}

bool wait_until(const std::function<pk_status()> &done, const char *doing) {
  spoil_record();
  pk_status status = done();
  const auto since = Clock::now();
  for (bool spin = true; status == PK_ERROR_NOT_READY; spin = false) {
    {
      NoGil released;
      status = poll_once(done, since, spin);
    }
    if (PyErr_CheckSignals() != 0) {
      settle_sim(true);
      return false;
    }
  }
  show_output();
  if (status == PK_OK) return true;
  raise_driver_error(status, doing);
  settle_sim(false);
  return false;
}

static auto *g_waited_ns = new std::unordered_map<uint64_t, uint64_t>;  // by stream handle; under the GIL

bool wait_stream(uint64_t stream, const char *doing) {
  busy_mark(stream);
  const uint64_t begin_ns = pk_now_ns();
  if (!wait_until([stream] { return g_driver->stream_query(stream); }, doing)) return false;
  note_waited(stream, begin_ns);
  return true;
}

void note_waited(uint64_t stream, uint64_t begin_ns) {
  uint64_t &waited_ns = (*g_waited_ns)[stream];
  waited_ns = std::max(waited_ns, begin_ns);
}

uint64_t waited_ns(uint64_t stream) {
  const auto entry = g_waited_ns->find(stream);
  return entry == g_waited_ns->end() ? 0 : entry->second;
}

void forget_waited(uint64_t stream) { g_waited_ns->erase(stream); }

bool wait_event(uint64_t event, const char *doing) {
  busy_mark(PK_ANY_STREAM);
  return wait_until([event] { return g_driver->event_query(event); }, doing);
}

}  // namespace pk
