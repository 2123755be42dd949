// transfers.cpp: which transfers each storage is part of. The core moves the bytes; arrays are kept by Python until
// their transfers end.
#include "bindings/transfers.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/graph.h"
#include "bindings/stream.h"
#include "launch/ordered.h"

namespace py = pybind11;

namespace pk {

namespace {

struct Moving {
  uint64_t engine, transfer;
  uint64_t begin, end;  // addresses
};

constexpr uint64_t kSignalPeriodNs = 20'000'000;

}  // namespace

static auto *g_moving = new std::unordered_map<const Storage *, std::vector<Moving>>;  // under the GIL

static bool overlaps(const Moving &moving, const ArrayObject *array) {
  if (!array->contiguous) return true;
  const uint64_t begin = address_of(array);
  return begin < moving.end && moving.begin < begin + static_cast<uint64_t>(nbytes_of(array));
}

// Another thread may change the list while this one waits: it works on a copy and looks entries up to end them.
static void end_moving(Storage *storage, const Moving &ended) {
  const auto entry = g_moving->find(storage);
  if (entry == g_moving->end()) return;
  std::erase_if(entry->second, [&](const Moving &moving) {
    return moving.engine == ended.engine && moving.transfer == ended.transfer;
  });
  if (!entry->second.empty()) return;
  g_moving->erase(entry);
  storage->moving = false;
}

bool await_transfers(const ArrayObject *array, uint64_t stream) {
  Storage *storage = array->storage;
  const auto entry = g_moving->find(storage);
  if (entry == g_moving->end() || forked()) return true;  // the driver refuses a forked process
  // Nothing but launches can be put into a captured stream, and nothing at all into one that is gone.
  const std::vector<uint64_t> alive = live_streams();
  const bool on_host = capture_of(stream) != nullptr || std::find(alive.begin(), alive.end(), stream) == alive.end();
  const std::vector<Moving> all = entry->second;
  if (!on_host && has_deferred()) {  // here, not while the engine is locked
    pk_status status;
    {
      NoGil released;
      status = settle(stream);
    }
    if (status != PK_OK) {
      raise_driver_error(status, "ordering a stream after a transfer");
      return false;
    }
  }
  for (const Moving &moving : all) {
    if (!overlaps(moving, array)) continue;
    int32_t order;
    for (;;) {
      {
        NoGil released;
        order =
            pk_transfer_order(moving.engine, moving.transfer, t_state.device, stream, on_host ? 1 : 0, kSignalPeriodNs);
      }
      if (order != PK_TRANSFER_NOT_YET) break;
      if (PyErr_CheckSignals() != 0) return false;
    }
    if (order != PK_TRANSFER_ORDERED) end_moving(storage, moving);
    if (order != PK_TRANSFER_ORDERED && order != PK_TRANSFER_ENDED) {
      pk_pool_raise();
      return false;
    }
  }
  return true;
}

void forget_transfers(const Storage *storage) { g_moving->erase(storage); }

static ArrayObject *array_of(const py::object &object, const char *what) {
  if (!is_array(object.ptr())) throw py::type_error(std::string(what) + " needs a GPUArray");
  return as_array(object.ptr());
}

// Pins the array for a transfer: (address, bytes, streams whose work so far comes first).
static py::tuple begin_transfer(const py::object &object, const py::object &stream_object) {
  if (!ensure_backend()) throw py::error_already_set();
  ArrayObject *array = array_of(object, "begin_transfer()");
  if (!array->contiguous) {
    raise_named("ShapeError", "the array of a transfer is not contiguous; pass .contiguous()");
    throw py::error_already_set();
  }
  const uint64_t own = array->storage->stream;
  const uint64_t stream = stream_or_current(stream_object.ptr()).handle;
  const std::vector<uint64_t> alive = live_streams();
  std::vector<uint64_t> streams{own};
  if (stream != own) streams.push_back(stream);
  py::list first;
  for (const uint64_t handle : streams) {
    if (std::find(alive.begin(), alive.end(), handle) == alive.end()) continue;
    if (!refuse_captured(handle, "an asynchronous transfer")) throw py::error_already_set();
    first.append(handle);
  }
  if (!pin(array, own, pk_now_ns())) throw py::error_already_set();
  return py::make_tuple(address_of(array), nbytes_of(array), first);
}

static void note_transfer(const py::object &object, uint64_t engine, uint64_t transfer) {
  const ArrayObject *array = array_of(object, "note_transfer()");
  const uint64_t begin = address_of(array);
  (*g_moving)[array->storage].push_back({engine, transfer, begin, begin + static_cast<uint64_t>(nbytes_of(array))});
  array->storage->moving = true;
}

void bind_transfers(py::module_ &m) {
  m.def("begin_transfer", begin_transfer, py::arg("array"), py::arg("stream") = py::none());
  m.def("note_transfer", note_transfer, py::arg("array"), py::arg("engine"), py::arg("transfer"));
}

}  // namespace pk
