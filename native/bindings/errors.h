// errors.h: raising the package's own exceptions (pygpukit.core.errors) from C++.
#pragma once
#include <Python.h>

#include <string>

#include "bindings/follow.h"
#include "launch/runtime.h"

namespace pk {

// Each sets a Python exception; the callers then return null or throw py::error_already_set.
void raise_driver_error(pk_status status, const std::string &doing);
void raise_out_of_memory(const std::string &message);
void raise_argument_error(const std::string &kernel, const std::string &parameter, const std::string &message);
void raise_named(const char *error_class, const std::string &message);

// Opens the backend by the package's policy when none is open. False with an exception set on failure.
bool ensure_backend_slow();
inline bool ensure_backend() {
  if (__builtin_expect(g_driver == nullptr, 0) && !ensure_backend_slow()) return false;
  if (!follow_session()) return false;
  if (__builtin_expect(t_state.device_bound == t_state.device, 1)) return true;
  pk_status status = bind_device_slow();
  if (status == PK_OK) return true;
  raise_driver_error(status, "making the device current");
  return false;
}

}  // namespace pk
