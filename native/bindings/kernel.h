// kernel.h: Kernel (function + parameter plan) and BoundKernel (a launcher called by vectorcall).
#pragma once
#include <Python.h>

#include "launch/runtime.h"

namespace pk {

bool init_kernel(PyObject *module);  // false with an exception set

// native.launch_loop_ns(bound, args, launches)
PyObject *launch_loop_ns(PyObject *module, PyObject *args);

}  // namespace pk
