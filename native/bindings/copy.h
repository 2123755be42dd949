// copy.h: copies, fills and host launches for Python.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

// native.copy(dst, src) and native.fill(dst, pattern). False with an exception set.
bool copy_array(PyObject *dst, PyObject *src);
bool fill_array(PyObject *dst, PyObject *pattern);

void bind_copies(pybind11::module_ &m);

}  // namespace pk
