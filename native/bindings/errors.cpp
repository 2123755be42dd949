// errors.cpp: looks the exception class up in pygpukit.core.errors when something fails.
#include "bindings/errors.h"

#include "bindings/gil.h"
#include "bindings/text.h"
#include "sim/sim.h"

namespace pk {

static PyObject *error_class(const char *name) {
  PyObject *module = PyImport_ImportModule("pygpukit.core.errors");
  if (module == nullptr) return nullptr;
  PyObject *cls = PyObject_GetAttrString(module, name);
  Py_DECREF(module);
  return cls;
}

static void raise_instance(PyObject *cls, PyObject *instance) {
  if (instance != nullptr) PyErr_SetObject(cls, instance);
  Py_XDECREF(instance);
  Py_DECREF(cls);
}

void raise_named(const char *name, const std::string &message) {
  PyObject *cls = error_class(name);
  if (cls == nullptr) return;
  raise_instance(cls, PyObject_CallFunction(cls, "N", text_of(message)));
}

// A fault that a checked kernel of the simulated device left: with what was found, field by field.
static bool raise_finding(pk_status status, const std::string &doing) {
  pk_sim_finding fault;
  if (driver_name() != "sim" || !pk_sim_get_finding(&fault)) return false;
  PyObject *module = PyImport_ImportModule("pygpukit.core.errors");
  if (module == nullptr) return true;
  PyObject *index = fault.has_index ? PyLong_FromLongLong(fault.index) : Py_NewRef(Py_None);
  PyObject *finding =
      PyObject_CallMethod(module, "Finding", "sNN(III)(III)iNN", fault.kind, text_of(fault.message),
                          text_of(fault.kernel), fault.block[0], fault.block[1], fault.block[2], fault.thread[0],
                          fault.thread[1], fault.thread[2], fault.line, text_of(fault.array), index);
  Py_DECREF(module);
  if (finding == nullptr) return true;
  const std::string message = doing + ": " + g_driver->error_text(status);
  PyObject *cls = error_class("KernelCheckError");
  if (cls != nullptr)
    raise_instance(cls, PyObject_CallFunction(cls, "Nis[O]", text_of(message), int{status},
                                              g_driver->error_name(status), finding));
  Py_DECREF(finding);
  NoGil released;
  pk_sim_clear_fault();  // told: the device works on
  return true;
}

void raise_driver_error(pk_status status, const std::string &doing) {
  if (status == PK_GATE_INTERRUPTED) return;  // the signal handler's exception is set
  if (status == PK_ERROR_OUT_OF_MEMORY) {
    raise_out_of_memory(doing + ": " + g_driver->error_text(status));
    return;
  }
  if (status == PK_GATE_STOPPED) {
    raise_named("TaskCancelledError", doing + ": the task was cancelled; it launches nothing more");
    return;
  }
  if (raise_finding(status, doing)) return;
  PyObject *make = error_class("driver_error");
  if (make == nullptr) return;
  const std::string message = doing + ": " + g_driver->error_text(status);
  PyObject *error = PyObject_CallFunction(make, "Nis", text_of(message), int{status}, g_driver->error_name(status));
  Py_DECREF(make);
  if (error == nullptr) return;
  raise_instance(Py_NewRef(reinterpret_cast<PyObject *>(Py_TYPE(error))), error);
}

void raise_out_of_memory(const std::string &message) { raise_named("OutOfMemoryError", message); }

void raise_argument_error(const std::string &kernel, const std::string &parameter, const std::string &message) {
  PyObject *cls = error_class("KernelArgumentError");
  if (cls == nullptr) return;
  const std::string text = kernel + "(): " + (parameter.empty() ? "" : "parameter '" + parameter + "': ") + message;
  raise_instance(cls, PyObject_CallFunction(cls, "NN", text_of(text), text_of(parameter)));
}

bool ensure_backend_slow() {
  PyObject *module = PyImport_ImportModule("pygpukit.core.backend");
  if (module == nullptr) return false;
  PyObject *result = PyObject_CallMethod(module, "ensure", nullptr);
  Py_DECREF(module);
  if (result == nullptr) return false;
  Py_DECREF(result);
  if (g_driver != nullptr) return true;
  raise_named("GPUError", "pygpukit.core.backend.ensure() returned without opening a backend");
  return false;
}

}  // namespace pk
