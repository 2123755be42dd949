// cell_time.h: device time of notebook cells, for Python.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

void bind_cell_times(pybind11::module_ &m);

}  // namespace pk
