// program.h: the runtime of a whole program, for the process that runs it.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

void bind_program(pybind11::module_ &m);

}  // namespace pk
