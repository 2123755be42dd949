// kernel.h: Kernel (function + parameter plan) and BoundKernel (a launcher called by vectorcall).
#pragma once
#include <Python.h>

#include "launch/runtime.h"

namespace pk {

bool init_kernel(PyObject *module);  // false with an exception set

bool is_kernel(PyObject *object);
bool is_checked_kernel(PyObject *kernel);
// Launches a Kernel on the current stream with its parameters as the device takes them: a pointer to each. The caller
// has pinned what they point to. False with an exception set.
bool launch_raw(PyObject *kernel, const uint32_t grid[3], const uint32_t block[3], void **params);

// native.launch_loop_ns(bound, args, launches)
PyObject *launch_loop_ns(PyObject *module, PyObject *args);
// native.launch_many(bound, args, launches)
PyObject *launch_many(PyObject *module, PyObject *args);

}  // namespace pk
