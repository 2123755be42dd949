// stream.cpp: streams, events, the thread's current stream, device-wide synchronize.
#include "bindings/stream.h"

#include <atomic>
#include <vector>

#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/wait.h"

namespace py = pybind11;

namespace pk {

static std::atomic<uint32_t> g_next_id{1};
static std::vector<uint64_t> *g_streams = new std::vector<uint64_t>;  // live handles; under the GIL

static void check(pk_status status, const char *doing) {
  if (status == PK_OK) return;
  raise_driver_error(status, doing);
  throw py::error_already_set();
}

static void need_backend() {
  if (!ensure_backend()) throw py::error_already_set();
}

Stream::Stream(int32_t wanted_priority) : handle(0), id(0), priority(wanted_priority), owned(true) {
  need_backend();
  check(g_driver->stream_create(wanted_priority, &handle), "creating a stream");
  id = g_next_id.fetch_add(1);
  g_streams->push_back(handle);
  pk_stream_created(handle, id);
}

Stream::~Stream() {
  if (!owned || handle == 0) return;
  std::erase(*g_streams, handle);
  if (bind_device() != PK_OK) return;
  NoGil released;
  pk_stream_retired(handle);
  g_driver->stream_destroy(handle);
}

Event::Event(bool with_timing) : handle(0), timing(with_timing) {
  need_backend();
  check(g_driver->event_create(with_timing ? 1 : 0, &handle), "creating an event");
}

Event::~Event() {
  if (handle != 0 && bind_device() == PK_OK) g_driver->event_destroy(handle);
}

// What keeps the current stream's object alive and gives it back to Python, per thread.
static thread_local PyObject *t_stream_object = nullptr;

static py::object default_stream() {
  static PyObject *object = nullptr;  // leaked with the module
  if (object == nullptr) object = py::cast(new Stream(0, 0), py::return_value_policy::take_ownership).release().ptr();
  return py::reinterpret_borrow<py::object>(object);
}

static py::object current_stream() {
  return t_stream_object != nullptr ? py::reinterpret_borrow<py::object>(t_stream_object) : default_stream();
}

static void set_current_stream(const py::object &object) {
  const Stream *stream = object.is_none() ? nullptr : object.cast<Stream *>();
  t_state.stream = stream != nullptr ? stream->handle : 0;
  t_state.stream_id = stream != nullptr ? stream->id : 0;
  PyObject *previous = t_stream_object;
  t_stream_object = stream != nullptr ? py::object(object).release().ptr() : nullptr;
  Py_XDECREF(previous);
}

StreamRef stream_or_current(PyObject *object) {
  if (object == nullptr || object == Py_None) return {t_state.stream, t_state.stream_id};
  const Stream *stream = py::handle(object).cast<Stream *>();
  return {stream->handle, stream->id};
}

static bool query(pk_status status, const char *doing) {
  if (status != PK_ERROR_NOT_READY) check(status, doing);
  return status == PK_OK;
}

static void synchronize() {
  need_backend();
  std::vector<uint64_t> waiting = *g_streams;
  waiting.push_back(0);
  const auto idle = [&waiting]() -> pk_status {
    while (!waiting.empty()) {
      const pk_status status = g_driver->stream_query(waiting.back());
      if (status != PK_OK) return status;
      waiting.pop_back();
    }
    return PK_OK;
  };
  if (!wait_until(idle, "waiting for the device")) throw py::error_already_set();
}

void bind_streams(py::module_ &m) {
  py::class_<Event> event(m, "Event", "A point in a stream's work.");
  py::class_<Stream>(m, "Stream", "An in-order queue of device work.")
      .def(py::init<int32_t>(), py::arg("priority") = 0)
      .def_readonly("handle", &Stream::handle)
      .def_readonly("id", &Stream::id)
      .def_readonly("priority", &Stream::priority)
      .def("query",
           [](Stream &self) {
             need_backend();
             return query(g_driver->stream_query(self.handle), "querying a stream");
           })
      .def("synchronize",
           [](Stream &self) {
             need_backend();
             if (!wait_stream(self.handle, "waiting for a stream")) throw py::error_already_set();
           })
      .def(
          "wait_event",
          [](Stream &self, Event &waited) {
            need_backend();
            check(g_driver->stream_wait_event(self.handle, waited.handle), "making a stream wait for an event");
          },
          py::arg("event"));
  event.def(py::init<bool>(), py::arg("timing") = true)
      .def_readonly("handle", &Event::handle)
      .def_readonly("timing", &Event::timing)
      .def(
          "record",
          [](Event &self, const py::object &stream) {
            need_backend();
            check(g_driver->event_record(self.handle, stream_or_current(stream.ptr()).handle), "recording an event");
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
  m.def("synchronize", synchronize, "Wait for every stream of the current device. Interruptible.");
}

}  // namespace pk
