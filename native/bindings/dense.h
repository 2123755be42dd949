// dense.h: DenseCall: element-wise work on plain operands, straight from the call to the launch function.
#pragma once
#include <Python.h>

namespace pk {

bool init_dense(PyObject *module);  // false with an exception set

}  // namespace pk
