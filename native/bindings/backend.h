// backend.h: choosing and describing the backend, foreign segments, thread settings.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

void bind_backend(pybind11::module_ &m);

}  // namespace pk
