// demand.h: calls that must succeed; a failure is thrown as the Python exception that says it.
#pragma once
#include <pybind11/pybind11.h>

#include <string>

#include "bindings/errors.h"

namespace pk {

inline void need(bool ok) {
  if (!ok) throw pybind11::error_already_set();
}

inline void need_backend() { need(ensure_backend()); }

// An exception that is set already says more than the driver's status.
inline void check(pk_status status, const std::string &doing) {
  if (status == PK_OK) return;
  if (!PyErr_Occurred()) raise_driver_error(status, doing);
  throw pybind11::error_already_set();
}

}  // namespace pk
