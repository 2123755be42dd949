// session.cpp: entering and leaving sessions, and following the running code from one to another.
#include "bindings/session.h"

#include <memory>
#include <string>
#include <utility>

#include "bindings/errors.h"
#include "bindings/follow.h"
#include "bindings/stream.h"
#include "bindings/text.h"

namespace py = pybind11;

namespace pk {

namespace {

// What an execution context gives to code in it.
struct Session {
  std::string name;
  py::object stream;
  int32_t device;
  uint32_t tenant;
  uint64_t account, context;
  py::object keeper;  // of what context points to
  bool open = true;
};

// One entry into a session. Its stream and device are those that its code has made current on the thread that entered;
// other threads that are in it begin with the session's each time.
struct Frame {
  std::shared_ptr<Session> session;
  py::object stream;
  int32_t device;
  py::object before;  // the frame around it, or None
  unsigned long thread = PyThread_get_thread_ident();

  bool is_of_this_thread() const { return thread == PyThread_get_thread_ident(); }
};

// What the thread carries outside of sessions, while it is in one.
struct Outside {
  PyObject *stream = nullptr;  // owned by the thread's dict
  int32_t device = 0;
  uint32_t tenant = 0;
  uint64_t account = 0, context = 0;
};

}  // namespace

PyObject *g_session_variable = nullptr;
static thread_local PyObject *t_frame = nullptr;  // the one whose settings the thread has; owned by the thread's dict
static thread_local Outside t_outside;
static constexpr char kFrame[] = "pygpukit.session";
static constexpr char kOutside[] = "pygpukit.outside";

static Frame &frame_of(PyObject *object) { return *py::handle(object).cast<Frame *>(); }

static py::dict thread_dict() { return py::reinterpret_borrow<py::dict>(PyThreadState_GetDict()); }

// The thread ends, or has another frame.
static void leave_frame(PyObject *capsule) {
  PyObject *frame = static_cast<PyObject *>(PyCapsule_GetPointer(capsule, kFrame));
  if (t_frame == frame) {
    t_frame = nullptr;
    t_state.tenant = 0;
    t_state.account = t_state.context = 0;
  }
  Py_DECREF(frame);
}

static void take_over(PyObject *frame) {
  py::dict kept = thread_dict();
  t_frame = frame;  // before the other is let go of
  if (frame == nullptr) {
    kept.attr("pop")(kFrame, py::none());
  } else {
    const py::capsule owner(Py_NewRef(frame), kFrame, leave_frame);
    kept[kFrame] = owner;
  }
}

static void save() {
  if (t_frame != nullptr) {
    Frame &frame = frame_of(t_frame);
    if (!frame.is_of_this_thread()) return;
    frame.stream = used_stream();
    frame.device = t_state.device;
    return;
  }
  const py::object stream = used_stream();
  thread_dict()[kOutside] = stream;
  t_outside = {stream.ptr(), t_state.device, t_state.tenant, t_state.account, t_state.context};
}

static void carry(const py::object &stream, int32_t device, uint32_t tenant, uint64_t account, uint64_t context) {
  use_stream(stream);
  t_state.device = device;
  t_state.tenant = tenant;
  t_state.account = account;
  t_state.context = context;
}

// The frame that the running code is in, or None. Throws.
static py::object current_frame() {
  PyObject *value = nullptr;
  if (g_session_variable == nullptr) return py::none();
  if (PyContextVar_Get(g_session_variable, nullptr, &value) < 0) throw py::error_already_set();
  return value != nullptr ? py::reinterpret_steal<py::object>(value) : py::none();
}

static void follow_to(const py::object &next) {
  save();
  if (next.is_none()) {
    const Outside outside = t_outside;
    take_over(nullptr);
    carry(py::reinterpret_borrow<py::object>(outside.stream), outside.device, outside.tenant, outside.account,
          outside.context);
    thread_dict().attr("pop")(kOutside, py::none());
    return;
  }
  const Frame &frame = frame_of(next.ptr());
  take_over(next.ptr());
  const Session &session = *frame.session;
  const bool own = frame.is_of_this_thread();
  carry(own ? frame.stream : session.stream, own ? frame.device : session.device, session.tenant, session.account,
        session.context);
}

static bool is_open(PyObject *frame) {
  const Session &session = *frame_of(frame).session;
  if (session.open) return true;
  raise_named("ContextDestroyedError", "context '" + session.name + "' was destroyed; leave its session");
  return false;
}

bool follow_session_slow() {
  try {
    const py::object next = current_frame();
    PyObject *frame = next.is_none() ? nullptr : next.ptr();
    if (frame != t_frame) follow_to(next);
    return frame == nullptr || is_open(frame);
  } catch (py::error_already_set &error) {
    error.restore();
    return false;
  }
}

// The frame that code is in from now on, in this contextvars.Context; returns the one that it was in.
static py::object swap_session(const py::object &next) {
  if (!next.is_none() && !py::isinstance<Frame>(next)) throw py::type_error("swap_session() needs a frame or None");
  if (g_session_variable == nullptr) {
    if (next.is_none()) return next;
    g_session_variable = PyContextVar_New("pygpukit.session", nullptr);
    if (g_session_variable == nullptr) throw py::error_already_set();
  }
  py::object before = current_frame();
  PyObject *token = PyContextVar_Set(g_session_variable, next.ptr());
  if (token == nullptr) throw py::error_already_set();
  Py_DECREF(token);
  if ((next.is_none() ? nullptr : next.ptr()) != t_frame) follow_to(next);
  return before;
}

static void enter(const std::shared_ptr<Session> &session) {
  if (!ensure_backend()) throw py::error_already_set();
  if (!session->open) {
    raise_named("ContextDestroyedError", "context '" + session->name + "' was destroyed; create it again");
    throw py::error_already_set();
  }
  swap_session(py::cast(std::make_shared<Frame>(Frame{session, session->stream, session->device, current_frame()})));
}

static void leave(const std::shared_ptr<Session> &session) {
  const py::object frame = current_frame();
  if (frame.is_none() || frame_of(frame.ptr()).session != session) {
    raise_named("GPUError", "this code is not in a session of context '" + session->name + "', or in one inside it");
    throw py::error_already_set();
  }
  swap_session(frame_of(frame.ptr()).before);
}

// Whether the running code is in one, however deep.
static bool inside(const std::shared_ptr<Session> &session) {
  for (py::object frame = current_frame(); !frame.is_none(); frame = frame_of(frame.ptr()).before)
    if (session == nullptr || frame_of(frame.ptr()).session == session) return true;
  return false;
}

void bind_sessions(py::module_ &m) {
  py::class_<Frame, std::shared_ptr<Frame>>(m, "SessionFrame", "One entry into a session.");
  py::class_<Session, std::shared_ptr<Session>>(m, "Session", "What an execution context gives to code in it.")
      .def(py::init([](const Text &name, const py::object &stream, int32_t device, uint32_t tenant, uint64_t account,
                       uint64_t context, const py::object &keeper) {
             return std::make_shared<Session>(Session{name.utf8, stream, device, tenant, account, context, keeper});
           }),
           py::arg("name"), py::arg("stream"), py::arg("device"), py::arg("tenant"), py::arg("account"),
           py::arg("context"), py::arg("keeper"))
      .def_readonly("open", &Session::open)
      .def("close", [](Session &self) { self.open = false; })
      .def("enter", enter)
      .def("leave", leave)
      .def("inside", inside);
  m.def(
      "in_session", [] { return inside(nullptr); }, "Whether the running code is in any session.");
  m.def("swap_session", swap_session, py::arg("frame").none(true));
}

}  // namespace pk
