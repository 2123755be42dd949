// late.cpp: events after the last uses of what is to be destroyed.
#include "bindings/late.h"

#include <utility>

#include "bindings/gil.h"
#include "launch/ordered.h"
#include "launch/runtime.h"

namespace pk {
namespace {

struct Late {
  int32_t device;
  std::vector<uint64_t> events;
  bool whole_device;  // every stream of it may have uses
  std::function<void()> destroy;
};
std::vector<Late> *g_late = new std::vector<Late>;  // under the GIL

bool done(const Late &late) {
  if (late.whole_device) return false;
  return std::all_of(late.events.begin(), late.events.end(),
                     [](uint64_t event) { return g_driver->event_query(event) != PK_ERROR_NOT_READY; });
}

void finish(const Late &late) {
  for (const uint64_t event : late.events) g_driver->event_destroy(event);
  late.destroy();
}

}  // namespace

void Uses::end(int32_t device, std::function<void()> destroy) {
  if (forked() || g_driver == nullptr) return;
  Late late = {device, {}, in_graph_, std::move(destroy)};
  {
    NoGil released;
    if (pk_use_device(device) != PK_OK) return;
    for (const uint64_t stream : streams_) {
      uint64_t event = 0;
      if (g_driver->stream_query(stream) != PK_ERROR_NOT_READY) continue;  // also of one that is gone
      if (g_driver->event_create(0, &event) != PK_OK) {
        late.whole_device = true;
      } else if (g_driver->event_record(event, stream) == PK_OK) {
        late.events.push_back(event);
      } else {
        g_driver->event_destroy(event);
      }
    }
  }
  g_late->push_back(std::move(late));
  collect_late(false);
}

bool collect_late(bool wait) {
  std::vector<Late> all, kept;
  all.swap(*g_late);
  if (all.empty() || forked()) return false;
  {
    NoGil released;
    for (Late &late : all) {
      if (pk_use_device(late.device) != PK_OK) continue;  // the device is lost, and all on it
      if (!done(late)) {
        if (!wait) {
          kept.push_back(std::move(late));
          continue;
        }
        g_driver->device_wait();
      }
      finish(late);
    }
  }
  g_late->insert(g_late->end(), std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end()));
  return true;
}

}  // namespace pk
