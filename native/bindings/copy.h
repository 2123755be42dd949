// copy.h: copies, fills and host launches for Python.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

void bind_copies(pybind11::module_ &m);

}  // namespace pk
