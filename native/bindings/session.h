// session.h: sessions of execution contexts, as Python enters and leaves them.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

void bind_sessions(pybind11::module_ &m);

}  // namespace pk
