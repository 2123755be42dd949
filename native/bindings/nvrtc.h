// nvrtc.h: the compiler for Python.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

void bind_nvrtc(pybind11::module_ &m);

}  // namespace pk
