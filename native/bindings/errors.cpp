// errors.cpp: looks the exception class up in pygpukit.core.errors when something fails.
#include "bindings/errors.h"

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
  raise_instance(cls, PyObject_CallFunction(cls, "s", message.c_str()));
}

void raise_driver_error(pk_status status, const std::string &doing) {
  if (status == PK_ERROR_OUT_OF_MEMORY) {
    raise_out_of_memory(doing + ": " + g_driver->error_text(status));
    return;
  }
  if (status == PK_GATE_STOPPED) {
    raise_named("TaskCancelledError", doing + ": the task was cancelled; it launches nothing more");
    return;
  }
  PyObject *cls = error_class("DriverError");
  if (cls == nullptr) return;
  const std::string message = doing + ": " + g_driver->error_text(status);
  const char *name = g_driver->error_name(status);
  raise_instance(cls, PyObject_CallFunction(cls, "sis", message.c_str(), int{status}, name));
}

void raise_out_of_memory(const std::string &message) { raise_named("OutOfMemoryError", message); }

void raise_argument_error(const std::string &kernel, const std::string &parameter, const std::string &message) {
  PyObject *cls = error_class("KernelArgumentError");
  if (cls == nullptr) return;
  const std::string text = kernel + "(): " + (parameter.empty() ? "" : "parameter '" + parameter + "': ") + message;
  raise_instance(cls, PyObject_CallFunction(cls, "ss", text.c_str(), parameter.c_str()));
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
