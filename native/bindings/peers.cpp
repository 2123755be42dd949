// peers.cpp: who reaches whose memory, copies between devices in the order of both sides' streams, and bytes by link.
#include "bindings/peers.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "bindings/array.h"
#include "bindings/demand.h"
#include "bindings/gil.h"
#include "bindings/graph.h"
#include "bindings/recorder.h"
#include "bindings/stream.h"
#include "launch/busy.h"
#include "launch/launch.h"
#include "launch/submit.h"
#include "sim/sim.h"

namespace py = pybind11;

namespace pk {

namespace {

constexpr int kDevices = 64;
constexpr char kCopying[] = "copying to another device";

// What this process copied from a device to another one.
struct Moved {
  std::atomic<uint64_t> copies, direct_bytes, host_bytes;
};
auto *const g_moved = new Moved[kDevices * kDevices]();

// Whether a device reaches another's memory: asked, and enabled, before the first copy.
enum class Way : uint8_t { kUnknown, kDirect, kHost };
std::atomic<Way> g_ways[kDevices * kDevices];

// The calling thread works on another device meanwhile, for no account of its own.
class OnDevice {
 public:
  explicit OnDevice(int32_t device) : before_(t_state) {
    if (device != before_.device) t_state.account = 0;
    t_state.device = device;
  }
  ~OnDevice() { t_state = Restored(before_, t_state.device_bound); }
  OnDevice(const OnDevice &) = delete;
  OnDevice &operator=(const OnDevice &) = delete;
  void need() const { check(bind_device(), "making a device current"); }

 private:
  static ThreadState Restored(ThreadState before, int32_t bound) {
    before.device_bound = bound;
    return before;
  }
  const ThreadState before_;
};

pk_peer_info peer_facts(int32_t device, int32_t peer) {
  pk_peer_info info = {};
  check(g_driver->peer_info(device, peer, &info), "reading what devices can do with each other's memory");
  return info;
}

void enable(int32_t device, int32_t peer) {
  OnDevice on(device);
  on.need();
  pk_status status;
  {
    NoGil released;
    status = g_driver->peer_enable(peer);
  }
  check(status, "enabling access from device " + std::to_string(device) + " to device " + std::to_string(peer));
  g_ways[device * kDevices + peer] = Way::kDirect;
}

bool reaches(int32_t device, int32_t peer) {
  std::atomic<Way> &way = g_ways[device * kDevices + peer];
  if (way == Way::kUnknown) {
    if (peer_facts(device, peer).access) {
      enable(device, peer);
    } else {
      way = Way::kHost;
    }
  }
  return way == Way::kDirect;
}

// Where work of an array goes: the current stream where its device is current, else the stream it was made on.
StreamRef stream_of(const ArrayObject *array) {
  const Storage *storage = array->storage;
  if (storage->device == t_state.device) return {t_state.stream, t_state.stream_id};
  const std::vector<uint64_t> alive = live_streams();
  const bool lives = std::find(alive.begin(), alive.end(), storage->stream) != alive.end();
  return lives ? StreamRef{storage->stream, storage->stream_id} : StreamRef{0, 0};
}

// Work queued on `then` of a device from now on starts after what is queued on `first` of another one.
void order(int32_t first_device, uint64_t first, int32_t then_device, uint64_t then) {
  OnDevice on(first_device);
  on.need();
  uint64_t event = 0;
  check(g_driver->event_create(0, &event), kCopying);
  pk_status status;
  {
    NoGil released;
    status = g_driver->event_record(event, first);
  }
  if (status == PK_OK) {
    OnDevice other(then_device);
    status = bind_device();
    if (status == PK_OK) {
      NoGil released;
      status = g_driver->stream_wait_event(then, event);
    }
  }
  if (bind_device() == PK_OK) g_driver->event_destroy(event);
  check(status, kCopying);
}

ArrayObject *dense(const py::object &object, const char *what) {
  if (!is_array(object.ptr())) throw py::type_error(std::string(what) + " must be a GPUArray");
  ArrayObject *array = as_array(object.ptr());
  if (array->contiguous) return array;
  raise_named("ShapeError", std::string(what) + " is not contiguous; pass .contiguous()");
  throw py::error_already_set();
}

// The copy runs on the source's device and writes to the other one.
void copy_peer(const py::object &dst, const py::object &src) {
  need_backend();
  ArrayObject *to = dense(dst, "dst"), *from = dense(src, "src");
  const uint64_t bytes = static_cast<uint64_t>(nbytes_of(to));
  if (static_cast<uint64_t>(nbytes_of(from)) != bytes) throw py::value_error("src and dst differ in bytes");
  if (bytes == 0) return;
  const int32_t source = from->storage->device, target = to->storage->device;
  const StreamRef reads = stream_of(from), writes = stream_of(to);
  spoil_record();
  need(refuse_captured(reads.handle, kCopying) && refuse_captured(writes.handle, kCopying));
  reaches(source, target);
  if (const pk_status refused = enter(); refused != PK_OK) check(refused, kCopying);
  Pins pins;
  {
    OnDevice on(target);
    on.need();
    need(pins.add(to, writes.handle));
  }
  OnDevice on(source);
  on.need();
  need(pins.add(from, reads.handle));
  order(target, writes.handle, source, reads.handle);
  pk_status status;
  on.need();
  {
    NoGil released;
    status = settle(reads.handle);
  }
  if (status == PK_OK) {
    status = busy(reads.handle, 0, [&] {
      return g_driver->copy_peer(address_of(to), target, address_of(from), source, bytes, reads.handle);
    });
  }
  check(status, kCopying);
  record_copy(kPeer, bytes, reads.id, 0, static_cast<uint64_t>(target));
  pk_peer_copied(source, target, bytes);
  order(source, reads.handle, target, writes.handle);
}

py::dict peer_info(int32_t device, int32_t peer) {
  need_backend();
  const pk_peer_info info = peer_facts(device, peer);
  py::dict d;
  d["access"] = info.access != 0;
  d["enabled"] = info.enabled != 0;
  d["atomics"] = info.atomics;
  d["performance_rank"] = info.performance_rank;
  d["bytes_per_s"] = info.bytes_per_s;
  d["latency_s"] = info.latency_s;
  return d;
}

}  // namespace

}  // namespace pk

extern "C" void pk_peer_copied(int32_t from, int32_t to, uint64_t bytes) {
  using namespace pk;
  const int link = from * kDevices + to;
  Moved &moved = g_moved[link];
  moved.copies.fetch_add(1, std::memory_order_relaxed);
  (g_ways[link] == Way::kDirect ? moved.direct_bytes : moved.host_bytes).fetch_add(bytes, std::memory_order_relaxed);
}

namespace pk {

void bind_peers(py::module_ &m) {
  m.def("copy_peer", copy_peer, py::arg("dst"), py::arg("src"));
  m.def("peer_info", peer_info, py::arg("device"), py::arg("peer"));
  m.def(
      "peer_enable",
      [](int32_t device, int32_t peer) {
        need_backend();
        enable(device, peer);
      },
      py::arg("device"), py::arg("peer"));
  m.def(
      "peer_reaches",
      [](int32_t device, int32_t peer) {
        need_backend();
        return reaches(device, peer);
      },
      py::arg("device"), py::arg("peer"), "Enables access where there is any: whether copies go straight.");
  m.def(
      "peer_traffic",
      [](int32_t device, int32_t peer) {
        peer_facts(device, peer);  // there are such devices
        const Moved &moved = g_moved[device * kDevices + peer];
        return py::make_tuple(moved.copies.load(), moved.direct_bytes.load(), moved.host_bytes.load());
      },
      py::arg("device"), py::arg("peer"), "Copies so far, bytes without the host, and bytes by way of it.");
  m.def(
      "sim_fail_link",
      [](int32_t from, int32_t to, uint64_t copies) {
        need_backend();
        check(pk_sim_fail_link(from, to, copies), "failing a simulated link");
      },
      py::arg("from_"), py::arg("to"), py::arg("copies") = 0, "The copy after so many more over a link fails.");
}

}  // namespace pk
