// stream.cpp: streams, events, the thread's current stream, device-wide synchronize.
#include "bindings/stream.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "bindings/demand.h"
#include "bindings/errors.h"
#include "bindings/foreign.h"
#include "bindings/function.h"
#include "bindings/gil.h"
#include "bindings/graph.h"
#include "bindings/late.h"
#include "bindings/recorder.h"
#include "bindings/wait.h"
#include "launch/busy.h"
#include "launch/ordered.h"

namespace py = pybind11;

namespace pk {

static std::atomic<uint32_t> g_next_id{1};
static auto *g_streams = new std::vector<std::weak_ptr<Stream>>;  // those alive; under the GIL

static void need_free(uint64_t stream, const char *doing) {
  need_backend();
  if (!refuse_captured(stream, doing)) throw py::error_already_set();
}

// What is deferred for the stream goes to the device, while others have the GIL.
static void settle_first(uint64_t stream, const char *doing) {
  if (!has_deferred()) return;
  pk_status status;
  {
    NoGil released;
    status = settle(stream);
  }
  check(status, doing);
}

Stream::Stream(int32_t requested_priority, const Space &space)
    : handle(0), id(0), priority(requested_priority), device(t_state.device), owned(true) {
  need_backend();
  if (space.partition == 0 || space.device != t_state.device) {
    check(g_driver->stream_create(requested_priority, &handle), "creating a stream");
  } else {
    constexpr char kDoing[] = "creating a stream of a partition";
    check(g_driver->sm_stream_create(space.partition, requested_priority, &handle), kDoing);
    pk_gate_lane(handle, space.lane);
    Py_INCREF(keeper = space.owner);
  }
  id = g_next_id.fetch_add(1);
  pk_stream_created(handle, id);
}

Stream::Stream(uint64_t handle, uint32_t id)
    : handle(handle), id(id), priority(0), device(t_state.device), owned(false) {}

Stream::~Stream() {
  if ((!owned && keeper == nullptr) || handle == 0) return;
  forget_waited(handle);
  busy_forget(handle);
  if (bind_device() == PK_OK) {
    NoGil released;
    settle(handle);  // while it is known which gate has its work
    pk_stream_retired(handle);
    if (owned) g_driver->stream_destroy(handle);
  }
  Py_XDECREF(keeper);
}

static std::shared_ptr<Stream> remember(std::shared_ptr<Stream> stream) {
  std::erase_if(*g_streams, [](const auto &other) { return other.expired(); });
  g_streams->push_back(stream);
  return stream;
}

// Where the thread's new streams run. Its owner is kept by whoever set it.
static thread_local Space t_space;

const Space &space_here() { return t_space; }

static Space space_of(const py::object &object) {
  Space space;
  if (object.is_none()) return space;
  space.partition = object.attr("handle").cast<uint64_t>();
  space.device = object.attr("device").cast<int32_t>();
  space.lane = object.attr("lane").cast<uint32_t>();
  space.owner = object.ptr();
  return space;
}

static std::shared_ptr<Stream> make_stream(int32_t priority, bool whole) {
  return remember(std::make_shared<Stream>(priority, whole ? Space() : t_space));
}

// Another library's stream, which lives as long as its owner. One that is ours already is found, not made again: the
// pools know each handle once.
static std::shared_ptr<Stream> external_stream(uint64_t handle, const py::object &owner) {
  need_backend();
  for (const std::weak_ptr<Stream> &weak : *g_streams) {
    if (auto stream = weak.lock(); stream && stream->handle == handle) return stream;
  }
  auto stream = std::make_shared<Stream>(handle, g_next_id.fetch_add(1));
  stream->keeper = owner.inc_ref().ptr();
  busy_foreign(handle);
  pk_stream_created(handle, stream->id);
  return remember(std::move(stream));
}

std::vector<uint64_t> live_streams() {
  std::vector<uint64_t> handles{0};
  for (const std::weak_ptr<Stream> &weak : *g_streams) {
    if (const auto stream = weak.lock()) handles.push_back(stream->handle);
  }
  return handles;
}

void order_streams(uint64_t first, uint64_t then) {
  constexpr char kDoing[] = "ordering two streams";
  spoil_record();
  if (first == then) return;
  need_free(first, kDoing);
  need_free(then, kDoing);
  settle_first(first, kDoing);
  settle_first(then, kDoing);
  Event event(false);
  check(g_driver->event_record(event.handle, first), kDoing);
  check(g_driver->stream_wait_event(then, event.handle), kDoing);
}

static Stream &stream_of(PyObject *object) {
  if (py::isinstance<Stream>(object)) return *py::handle(object).cast<Stream *>();
  throw py::type_error(std::string("expected a Stream, got ") + Py_TYPE(object)->tp_name);
}

Event::Event(bool with_timing) : handle(0), timing(with_timing) {
  need_backend();
  check(g_driver->event_create(with_timing ? 1 : 0, &handle), "creating an event");
}

Event::~Event() {
  if (handle != 0 && bind_device() == PK_OK) g_driver->event_destroy(handle);
}

// The current stream's object, owned by a capsule in CPython's per-thread dict, which goes away with the thread.
static thread_local PyObject *t_stream_object = nullptr;
static constexpr char kCurrent[] = "pygpukit.current_stream";

static void leave_stream(PyObject *capsule) {
  PyObject *stream = static_cast<PyObject *>(PyCapsule_GetPointer(capsule, kCurrent));
  if (t_stream_object == stream) {
    t_stream_object = nullptr;
    t_state.stream = 0;
    t_state.stream_id = 0;
  }
  Py_DECREF(stream);
}

static py::object default_stream() {
  static PyObject *object = nullptr;  // leaked with the module
  if (object == nullptr) object = py::cast(std::make_shared<Stream>(0, 0)).release().ptr();
  return py::reinterpret_borrow<py::object>(object);
}

py::object used_stream() {
  return t_stream_object != nullptr ? py::reinterpret_borrow<py::object>(t_stream_object) : default_stream();
}

void use_stream(const py::object &object) {
  spoil_record();
  const py::object next = object.is_none() ? default_stream() : object;
  const Stream &stream = stream_of(next.ptr());
  const py::capsule owner(next.ptr(), kCurrent, leave_stream);
  next.inc_ref();                                                               // the capsule's
  py::reinterpret_borrow<py::dict>(PyThreadState_GetDict())[kCurrent] = owner;  // lets go of the previous one
  t_stream_object = next.ptr();
  t_state.stream = stream.handle;
  t_state.stream_id = stream.id;
}

static void follow() {
  if (!follow_session()) throw py::error_already_set();
}

static py::object current_stream() {
  follow();
  return used_stream();
}

static void set_current_stream(const py::object &object) {
  follow();
  use_stream(object);
}

StreamRef stream_or_current(PyObject *object) {
  if (object == nullptr || object == Py_None) return {t_state.stream, t_state.stream_id};
  const Stream &stream = stream_of(object);
  return {stream.handle, stream.id};
}

static bool query(pk_status status, const char *doing) {
  if (status == PK_ERROR_NOT_READY) return false;
  show_output();
  check(status, doing);
  return true;
}

// By stream id, for streams that are alive and the default one.
static py::dict waited() {
  py::dict times;
  times[py::int_(0)] = waited_ns(0);
  for (const std::weak_ptr<Stream> &weak : *g_streams) {
    if (const auto stream = weak.lock()) times[py::int_(stream->id)] = waited_ns(stream->handle);
  }
  return times;
}

namespace {

// Events at the present ends of streams that are not idle.
class Marks {
 public:
  ~Marks() {
    for (const uint64_t event : events_) g_driver->event_destroy(event);
  }

  void add(uint64_t stream) {
    pk_status status = g_driver->stream_query(stream);
    streams_.push_back(stream);
    if (status == PK_ERROR_NOT_READY) {
      uint64_t event = 0;
      NoGil released;
      status = g_driver->event_create(0, &event);
      if (status == PK_OK) {
        events_.push_back(event);
        status = g_driver->event_record(event, stream);
      }
    }
    if (failed_ == PK_OK) failed_ = status;
  }

  pk_status query() {
    if (failed_ != PK_OK) return failed_;
    for (; next_ < events_.size(); ++next_) {
      const pk_status status = g_driver->event_query(events_[next_]);
      if (status != PK_OK) return status;
    }
    for (const uint64_t stream : streams_) {  // which tell of faults
      const pk_status status = g_driver->stream_query(stream);
      if (status != PK_OK && status != PK_ERROR_NOT_READY) return status;
    }
    return PK_OK;
  }

 private:
  std::vector<uint64_t> streams_, events_;
  size_t next_ = 0;
  pk_status failed_ = PK_OK;
};

}  // namespace

static void synchronize() {
  need_backend();
  if (!refuse_capturing("waiting for the device")) throw py::error_already_set();
  std::vector<std::shared_ptr<Stream>> streams;  // none is destroyed while this waits
  for (const std::weak_ptr<Stream> &weak : *g_streams) {
    if (auto stream = weak.lock(); stream && stream->device == t_state.device) streams.push_back(std::move(stream));
  }
  // What others launch meanwhile is not waited for, or one that never stops would keep this waiting for ever.
  busy_mark(PK_ANY_STREAM);
  const uint64_t begin_ns = pk_now_ns();
  Marks marks;
  for (const auto &stream : streams) marks.add(stream->handle);
  marks.add(0);
  if (!wait_until([&marks] { return marks.query(); }, "waiting for the device")) throw py::error_already_set();
  note_waited(0, begin_ns);
  for (const auto &stream : streams) note_waited(stream->handle, begin_ns);
  let_go_of_passed();
  unload_dropped();
  collect_late(true);
}

static py::list busy_streams() {
  py::list busy;
  if (g_driver == nullptr || bind_device() != PK_OK) return busy;
  if (g_driver->stream_query(0) == PK_ERROR_NOT_READY) busy.append(0);
  for (const std::weak_ptr<Stream> &weak : *g_streams) {
    const auto stream = weak.lock();
    if (stream && g_driver->stream_query(stream->handle) == PK_ERROR_NOT_READY) busy.append(stream->id);
  }
  return busy;
}

// Who asks for the handle may use it behind our back: everything deferred for the stream goes to the device first.
static uint64_t handle_for_others(const Stream &stream) {
  settle_first(stream.handle, "handing out a stream");
  return stream.handle;
}

void bind_streams(py::module_ &m) {
  py::class_<Event> event(m, "Event", "A point in a stream's work.");
  py::class_<Stream, std::shared_ptr<Stream>>(m, "Stream", "An in-order queue of device work.")
      .def(py::init(&make_stream), py::arg("priority") = 0, py::arg("whole") = false)
      .def_property_readonly("handle", &handle_for_others)
      .def_readonly("id", &Stream::id)
      .def_readonly("priority", &Stream::priority)
      .def("query",
           [](Stream &self) {
             need_free(self.handle, "querying a stream");
             return query(g_driver->stream_query(self.handle), "querying a stream");
           })
      .def("synchronize",
           [](Stream &self) {
             need_free(self.handle, "waiting for a stream");
             if (!wait_stream(self.handle, "waiting for a stream")) throw py::error_already_set();
           })
      .def(
          "wait_event",
          [](Stream &self, Event &waited) {
            need_free(self.handle, "making a stream wait for an event");
            settle_first(self.handle, "making a stream wait for an event");
            check(g_driver->stream_wait_event(self.handle, waited.handle), "making a stream wait for an event");
          },
          py::arg("event"));
  event.def(py::init<bool>(), py::arg("timing") = true)
      .def_readonly("handle", &Event::handle)
      .def_readonly("timing", &Event::timing)
      .def(
          "record",
          [](Event &self, const py::object &stream) {
            const StreamRef ref = stream_or_current(stream.ptr());
            need_free(ref.handle, "recording an event");
            settle_first(ref.handle, "recording an event");
            check(g_driver->event_record(self.handle, ref.handle), "recording an event");
          },
          py::arg("stream") = py::none())
      .def("query",
           [](Event &self) {
             need_backend();
             return query(g_driver->event_query(self.handle), "querying an event");
           })
      .def("synchronize",
           [](Event &self) {
             need_backend();
             if (!wait_event(self.handle, "waiting for an event")) throw py::error_already_set();
           })
      .def(
          "elapsed_ms",
          [](Event &self, Event &end) {
            need_backend();
            double milliseconds = 0;
            check(g_driver->event_elapsed(self.handle, end.handle, &milliseconds),
                  "reading the time between two events");
            return milliseconds;
          },
          py::arg("end"));
  m.def("default_stream", default_stream);
  m.def("current_stream", current_stream);
  m.def("set_current_stream", set_current_stream, py::arg("stream").none(true));
  m.def(
      "set_space", [](const py::object &space) { t_space = space_of(space); }, py::arg("space").none(true),
      "Where streams that the thread makes from now on run; None = the whole device. The caller keeps the space.");
  m.def("waited", waited,
        "By stream id: when the last successful wait for it began, on the ring's clock; earlier work is done.");
  m.def("synchronize", synchronize, "Wait for every stream of the current device. Interruptible.");
  m.def("external_stream", external_stream, py::arg("handle"), py::arg("owner"));
  m.def("order_streams", order_streams, py::arg("first"), py::arg("then"));
  m.def("busy_streams", busy_streams, "Ids of the streams that have work.");
}

}  // namespace pk
