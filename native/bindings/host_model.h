// host_model.h: layers of models on the simulated device, computed by the host's own instructions.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

void bind_host_model(pybind11::module_ &m);

}  // namespace pk
