// peers.h: copies between devices, and what was moved over their links.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

void bind_peers(pybind11::module_ &m);

}  // namespace pk
