// kernel.cpp: the hot path. A BoundKernel call checks and converts its arguments on the stack and goes straight to the
// launch function.
#include "bindings/kernel.h"

#include <structmember.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "bindings/checked.h"
#include "bindings/errors.h"
#include "bindings/function.h"
#include "bindings/gil.h"
#include "bindings/graph.h"
#include "bindings/kernel_plan.h"
#include "bindings/owner.h"
#include "bindings/recorder.h"
#include "bindings/resident.h"
#include "bindings/stream.h"
#include "bindings/textures.h"
#include "launch/kernel_command.h"
#include "launch/launch.h"
#include "launch/ticket.h"

namespace py = pybind11;

namespace pk {

struct KernelObject {
  PyObject_HEAD KernelPlan *plan;
  PyObject *function;  // keeps the module loaded
};

struct BoundObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  KernelObject *kernel;
  PyObject *stream;  // Stream or null for the thread's current stream
  uint64_t stream_handle;
  uint32_t stream_id;
  pk_launch launch;
};

static PyTypeObject Kernel_Type = {PyVarObject_HEAD_INIT(nullptr, 0)};
static PyTypeObject Bound_Type = {PyVarObject_HEAD_INIT(nullptr, 0)};

// ---- calling ----

// A launch of a graph: its arguments as values and as the device takes them.
class LaunchStep : public Step {
 public:
  LaunchStep(BoundObject *bound, PyObject *const *arguments)
      : bound_(py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject *>(bound))),
        plan_(*bound->kernel->plan),
        launch_(bound->launch),
        record_(launch_record(launch_, plan_.name_id, current_place())),
        buffer_(kMaxArgumentBytes),
        pointers_(plan_.params.size()) {
    for (size_t i = 0; i < plan_.params.size(); ++i)
      values_.push_back(py::reinterpret_borrow<py::object>(arguments[i]));
    launch_.params = pointers_.data();
  }
  ~LaunchStep() override {
    for (const auto &[object, owner] : objects_) hold(object, -1);
  }
  // Writes all arguments and keeps the arrays among them. False with KernelArgumentError set.
  bool write(uint64_t stream) {
    Pins pins;
    for (size_t i = 0; i < values_.size(); ++i) {
      const Param &param = plan_.params[i];
      pointers_[i] = buffer_.data() + param.offset;
      if (!write_argument(plan_.name, param, values_[i].ptr(), stream, &pins, buffer_.data() + param.offset))
        return false;
    }
    for (const py::object &value : values_)
      if (!keep_value(value, stream)) return false;
    return true;
  }
  bool is_launch() const override { return true; }
  pk_status issue(uint64_t stream) override {
    if (plan_.checked) {
      std::vector<PyObject *> values;
      for (const py::object &value : values_) values.push_back(value.ptr());
      describe_launch(plan_.params, values.data());
    }
    launch_.stream = stream;
    return g_driver->launch(&launch_);
  }
  void count(uint32_t stream_id) override { count_launch(record_, stream_id); }
  int set(PyObject *name, PyObject *value, uint64_t stream) override {
    for (size_t i = 0; i < values_.size(); ++i) {
      const Param &param = plan_.params[i];
      if (PyUnicode_Compare(param.key, name) != 0) continue;
      alignas(16) unsigned char slot[kMaxArgumentBytes];
      Pins pins;
      if (!write_argument(plan_.name, param, value, stream, &pins, slot)) return -1;
      if (!keep_value(py::reinterpret_borrow<py::object>(value), stream)) return -1;
      std::copy_n(slot, param.bytes, buffer_.data() + param.offset);
      const py::object before = std::exchange(values_[i], py::reinterpret_borrow<py::object>(value));
      if (is_array(before.ptr())) let_go(before.ptr());
      return 1;  // a texture stays part of the graph: what was launched may still use it
    }
    return 0;
  }

 private:
  static void hold(DeviceObject *object, int more) {
    object->uses.hold(more);
    if (object->memory) object->memory->uses.hold(more);
  }
  bool keep_value(const py::object &value, uint64_t stream) {
    if (is_array(value.ptr())) return keep(value.ptr(), stream);
    if (DeviceObject *object = device_object(value.ptr())) {
      hold(object, 1);
      objects_.emplace_back(object, value);
      return !is_array(object->view.ptr()) || keep(object->view.ptr(), stream);
    }
    return true;
  }

  py::object bound_;
  const KernelPlan &plan_;
  pk_launch launch_;
  pk_event record_;
  std::vector<unsigned char> buffer_;  // malloc aligns it as arguments need
  std::vector<void *> pointers_;
  std::vector<py::object> values_;
  std::vector<std::pair<DeviceObject *, py::object>> objects_;  // and what keeps them
};

static PyObject *capture_launch(BoundObject *bound, PyObject *const *arguments, uint64_t stream) {
  auto step = std::make_unique<LaunchStep>(bound, arguments);
  if (!step->write(stream)) return nullptr;
  add_step(stream, std::move(step));
  Py_RETURN_NONE;
}

static PyObject *bound_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  BoundObject *bound = reinterpret_cast<BoundObject *>(self);
  const KernelPlan &plan = *bound->kernel->plan;
  if (!ensure_backend()) return nullptr;
  PyObject *values[kMaxParams];
  void *pointers[kMaxParams];
  alignas(16) unsigned char buffer[kMaxArgumentBytes];
  const bool follows = bound->stream == nullptr;
  const uint64_t stream = follows ? t_state.stream : bound->stream_handle;
  Pins pins;
  const size_t nargs = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  PyObject *const *ordered = args;
  if (kwnames != nullptr || nargs != plan.params.size()) {
    if (!collect(plan, args, nargs, kwnames, values)) return nullptr;
    ordered = values;
  }
  if (capturing() && capture_of(stream) != nullptr) return capture_launch(bound, ordered, stream);
  if (!fill_slots(plan, ordered, stream, &pins, buffer, pointers)) return nullptr;
  pk_launch launch_now = bound->launch;
  launch_now.stream = stream;
  launch_now.params = pointers;
  if (__builtin_expect(plan.checked, 0)) {
    describe_launch(plan.params, ordered);
  } else {
    watch_zones(plan.params, ordered);
  }
  const uint32_t stream_id = follows ? t_state.stream_id : bound->stream_id;
  LaunchPlace place = current_place();
  place.at_once = plan.checked;  // the description belongs to this thread
  const pk_status status = launch(launch_now, plan.name_id, stream_id, place);
  forget_zones();
  if (status != PK_OK) {
    raise_launch_error(plan, launch_now, status);
    return nullptr;
  }
  if (t_recorder != nullptr) {
    if (!follows || plan.checked) t_recorder->spoil();  // bound to a stream; or described for one thread
    t_recorder->launched(self, ordered, plan.params.size());
  }
  Py_RETURN_NONE;
}

bool is_kernel(PyObject *object) { return Py_TYPE(object) == &Kernel_Type; }

bool is_checked_kernel(PyObject *kernel) { return reinterpret_cast<KernelObject *>(kernel)->plan->checked; }

bool launch_raw(PyObject *kernel, const uint32_t grid[3], const uint32_t block[3], void **params) {
  spoil_record();
  const KernelPlan &plan = *reinterpret_cast<KernelObject *>(kernel)->plan;
  pk_launch l = {};
  l.function = plan.function;
  l.stream = t_state.stream;
  l.params = params;
  for (int axis = 0; axis < 3; ++axis) l.grid[axis] = grid[axis], l.block[axis] = block[axis], l.cluster[axis] = 1;
  const pk_status status = launch(l, plan.name_id, t_state.stream_id, current_place());
  if (status != PK_OK) raise_launch_error(plan, l, status);
  return status == PK_OK;
}

// ---- Kernel ----

static void kernel_dealloc(PyObject *self) {
  KernelObject *kernel = reinterpret_cast<KernelObject *>(self);
  if (kernel->plan != nullptr) {
    for (Param &param : kernel->plan->params) Py_XDECREF(param.key);
    if (kernel->plan->checked) checked_kernel_gone();
    kernel_gone(kernel->plan->name_id, kernel->plan->function);
    delete kernel->plan;
  }
  Py_XDECREF(kernel->function);
  Py_TYPE(self)->tp_free(self);
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"function", "name", "params", nullptr};
  PyObject *function, *params;
  const char *name;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OsO:Kernel", const_cast<char **>(names), &function, &name, &params)) {
    return nullptr;
  }
  uint64_t handle, max_threads;
  if (!function_handle(function, &handle, &max_threads)) return nullptr;
  KernelObject *kernel = reinterpret_cast<KernelObject *>(type->tp_alloc(type, 0));
  if (kernel == nullptr) return nullptr;
  kernel->function = Py_NewRef(function);
  kernel->plan = new KernelPlan{name, pk_intern(name, std::string(name).size()), handle,
                                {},   static_cast<uint32_t>(max_threads),        is_checked(handle)};
  if (kernel->plan->checked) note_checked_kernel();
  note_kernel(kernel->plan->name_id, handle);
  if (!read_params(params, kernel->plan)) {
    Py_DECREF(kernel);
    return nullptr;
  }
  return reinterpret_cast<PyObject *>(kernel);
}

static PyObject *kernel_bind(PyObject *self, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"grid", "block", "shared_bytes", "stream", "flags", "cluster", nullptr};
  KernelObject *kernel = reinterpret_cast<KernelObject *>(self);
  pk_launch l = {};
  l.cluster[0] = l.cluster[1] = l.cluster[2] = 1;
  PyObject *stream = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "(O&O&O&)(O&O&O&)|O&OO&(O&O&O&):bind", const_cast<char **>(names),
                                   read_uint32, &l.grid[0], read_uint32, &l.grid[1], read_uint32, &l.grid[2],
                                   read_uint32, &l.block[0], read_uint32, &l.block[1], read_uint32, &l.block[2],
                                   read_uint32, &l.shared_bytes, &stream, read_uint32, &l.flags, read_uint32,
                                   &l.cluster[0], read_uint32, &l.cluster[1], read_uint32, &l.cluster[2])) {
    return nullptr;
  }
  if (!ensure_backend() || !check_extents(*kernel->plan, l)) return nullptr;
  l.function = kernel->plan->function;
  if (l.shared_bytes > 0) {
    const pk_status status = allow_dynamic_shared(kernel->function, l.shared_bytes);
    if (status != PK_OK) {
      raise_launch_error(*kernel->plan, l, status);
      return nullptr;
    }
  }
  StreamRef ref = {0, 0};
  if (stream != Py_None) {
    try {
      ref = stream_or_current(stream);
    } catch (const py::type_error &error) {
      raise_argument_error(kernel->plan->name, "stream", error.what());
      return nullptr;
    }
  }
  BoundObject *bound = reinterpret_cast<BoundObject *>(Bound_Type.tp_alloc(&Bound_Type, 0));
  if (bound == nullptr) return nullptr;
  bound->vectorcall = bound_call;
  bound->kernel = reinterpret_cast<KernelObject *>(Py_NewRef(self));
  bound->stream = stream != Py_None ? Py_NewRef(stream) : nullptr;
  bound->stream_handle = ref.handle;
  bound->stream_id = ref.id;
  bound->launch = l;
  return reinterpret_cast<PyObject *>(bound);
}

static PyObject *kernel_name(PyObject *self, void *) {
  return PyUnicode_FromString(reinterpret_cast<KernelObject *>(self)->plan->name.c_str());
}

static void bound_dealloc(PyObject *self) {
  BoundObject *bound = reinterpret_cast<BoundObject *>(self);
  Py_XDECREF(bound->kernel);
  Py_XDECREF(bound->stream);
  Py_TYPE(self)->tp_free(self);
}

// A launcher with arguments, to be launched many times from C++. `run` is given the launch and its kernel's name.
template <typename Run>
static PyObject *with_arguments(PyObject *args, const char *format, const char *doing, const Run &run) {
  PyObject *object, *tuple;
  uint32_t launches;
  if (!PyArg_ParseTuple(args, format, &Bound_Type, &object, &PyTuple_Type, &tuple, read_uint32, &launches))
    return nullptr;
  if (launches == 0) {
    PyErr_SetString(PyExc_ValueError, "launches must be at least 1");
    return nullptr;
  }
  BoundObject *bound = reinterpret_cast<BoundObject *>(object);
  const KernelPlan &plan = *bound->kernel->plan;
  if (!ensure_backend()) return nullptr;
  PyObject *values[kMaxParams];
  void *pointers[kMaxParams];
  alignas(16) unsigned char buffer[kMaxArgumentBytes];
  Pins pins;
  pk_launch l = bound->launch;
  l.stream = bound->stream != nullptr ? bound->stream_handle : t_state.stream;
  l.params = pointers;
  if (!refuse_captured(l.stream, doing)) return nullptr;
  spoil_record();
  PyObject *const *items = reinterpret_cast<PyTupleObject *>(tuple)->ob_item;
  if (!collect(plan, items, static_cast<size_t>(PyTuple_GET_SIZE(tuple)), nullptr, values)) return nullptr;
  if (!fill_slots(plan, values, l.stream, &pins, buffer, pointers)) return nullptr;
  const auto launched = [&](bool paced, const auto &each) {
    pk_status status = PK_OK;
    const auto all = [&] {
      for (uint32_t i = 0; i < launches && status == PK_OK; ++i) status = each();
    };
    if (paced) {
      NoGil released;  // a long row of them must not keep the interpreter from other tenants' threads
      all();
    } else {
      all();
    }
    if (status != PK_OK) raise_launch_error(plan, l, status);
    return status == PK_OK;
  };
  return run(*bound, l, launches, launched);
}

// The ruler for Python's share of a launch: the same arguments straight to the device, in a C++ loop.
PyObject *launch_loop_ns(PyObject *, PyObject *args) {
  return with_arguments(args, "O!O!O&:launch_loop_ns", "timing launches",
                        [](const BoundObject &, const pk_launch &l, uint32_t launches, const auto &launched) {
                          const auto begin = std::chrono::steady_clock::now();
                          const bool ok = launched(false, [&] { return g_driver->launch(&l); });
                          const auto end = std::chrono::steady_clock::now();
                          pk_count(PK_COUNT_LAUNCH, launches);
                          if (!ok) return static_cast<PyObject *>(nullptr);
                          const std::chrono::duration<double, std::nano> took = end - begin;
                          return PyFloat_FromDouble(took.count() / static_cast<double>(launches));
                        });
}

PyObject *launch_many(PyObject *, PyObject *args) {
  return with_arguments(args, "O!O!O&:launch_many", "launching many times",
                        [](const BoundObject &bound, const pk_launch &l, uint32_t, const auto &launched) {
                          LaunchPlace place = current_place();
                          place.at_once = bound.kernel->plan->checked;
                          const uint32_t stream_id = bound.stream != nullptr ? bound.stream_id : t_state.stream_id;
                          const uint32_t name = bound.kernel->plan->name_id;
                          const bool paced = t_state.context != 0 && !place.at_once && t_ticket == nullptr &&
                                             KernelCommand(l).can_keep();
                          if (!launched(paced, [&] { return launch(l, name, stream_id, place); })) {
                            return static_cast<PyObject *>(nullptr);
                          }
                          return Py_NewRef(Py_None);
                        });
}

static PyMethodDef kernel_methods[] = {
    {"bind", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(kernel_bind)), METH_VARARGS | METH_KEYWORDS,
     "bind(grid, block, shared_bytes=0, stream=None, flags=0, cluster=(1, 1, 1))\n--\n\nA launcher for this "
     "configuration."},
    {nullptr, nullptr, 0, nullptr}};
static PyGetSetDef kernel_attributes[] = {{"name", kernel_name, nullptr, "The kernel's name.", nullptr},
                                          {nullptr, nullptr, nullptr, nullptr, nullptr}};

bool init_kernel(PyObject *module) {
  Kernel_Type.tp_name = "pygpukit._core.native.Kernel";
  Kernel_Type.tp_basicsize = sizeof(KernelObject);
  Kernel_Type.tp_flags = Py_TPFLAGS_DEFAULT;
  Kernel_Type.tp_doc = "A device function with its parameter plan.";
  Kernel_Type.tp_new = kernel_new;
  Kernel_Type.tp_dealloc = kernel_dealloc;
  Kernel_Type.tp_methods = kernel_methods;
  Kernel_Type.tp_getset = kernel_attributes;
  Bound_Type.tp_name = "pygpukit._core.native.BoundKernel";
  Bound_Type.tp_basicsize = sizeof(BoundObject);
  Bound_Type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
  Bound_Type.tp_vectorcall_offset = offsetof(BoundObject, vectorcall);
  Bound_Type.tp_call = PyVectorcall_Call;
  Bound_Type.tp_doc = "A kernel with its launch configuration; call it with the kernel's arguments.";
  Bound_Type.tp_dealloc = bound_dealloc;
  return PyType_Ready(&Kernel_Type) == 0 && PyType_Ready(&Bound_Type) == 0 &&
         PyModule_AddObjectRef(module, "Kernel", reinterpret_cast<PyObject *>(&Kernel_Type)) == 0 &&
         PyModule_AddObjectRef(module, "BoundKernel", reinterpret_cast<PyObject *>(&Bound_Type)) == 0;
}

}  // namespace pk
