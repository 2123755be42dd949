// foreign.cpp: the other library may reuse its memory the moment we let go of it, so we do that after our work.
#include "bindings/foreign.h"

#include <utility>
#include <vector>

#include "bindings/stream.h"
#include "launch/capture.h"
#include "launch/runtime.h"

namespace pk {

struct Waiting {
  PyObject *keeper;
  int32_t device;
  bool marked;                   // events are recorded; not while a stream is captured, which takes none
  std::vector<uint64_t> events;  // those not yet passed
};

static auto *g_waiting = new std::vector<Waiting>;  // under the GIL

// An event after the work of each busy stream. A stream that reports a fault has no work to wait for.
static void mark(Waiting &waiting) {
  if (capturing() || g_driver == nullptr) return;
  waiting.marked = true;
  const int32_t bound = t_state.device_bound;
  if (pk_use_device(waiting.device) != PK_OK) return;
  for (const uint64_t stream : live_streams()) {
    uint64_t event = 0;
    if (g_driver->stream_query(stream) != PK_ERROR_NOT_READY) continue;
    if (g_driver->event_create(0, &event) != PK_OK) continue;
    if (g_driver->event_record(event, stream) == PK_OK) {
      waiting.events.push_back(event);
    } else {
      g_driver->event_destroy(event);
    }
  }
  if (bound >= 0) pk_use_device(bound);
}

static bool passed(Waiting &waiting) {
  if (!waiting.marked) mark(waiting);
  std::erase_if(waiting.events, [](uint64_t event) {
    if (g_driver->event_query(event) == PK_ERROR_NOT_READY) return false;
    g_driver->event_destroy(event);
    return true;
  });
  return waiting.marked && waiting.events.empty();
}

void let_go(PyObject *keeper, int32_t device) {
  if (keeper == nullptr) return;
  Waiting waiting{keeper, device, false, {}};
  if (g_driver == nullptr || passed(waiting)) {
    Py_DECREF(keeper);
  } else {
    g_waiting->push_back(std::move(waiting));
  }
  let_go_of_passed();
}

void let_go_of_passed() {
  if (g_waiting->empty()) return;
  std::vector<PyObject *> done;  // dropped last: a producer's deleter may come back here
  std::erase_if(*g_waiting, [&done](Waiting &waiting) {
    if (!passed(waiting)) return false;
    done.push_back(waiting.keeper);
    return true;
  });
  for (PyObject *keeper : done) Py_DECREF(keeper);
}

}  // namespace pk
