// prepared.h: operations whose calls are worked out once for a signature, and then only done.
#pragma once
#include <Python.h>

namespace pk {

bool init_prepared(PyObject *module);  // false with an exception set

}  // namespace pk
