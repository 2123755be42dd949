// host_products.h: products of rows with a matrix on the host, for models on the simulated device.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

void bind_host_products(pybind11::module_ &m);

}  // namespace pk
