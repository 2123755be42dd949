// dlpack.h: DLPack 1.1 capsules, out of arrays and into addresses. Policy (devices, copies, streams): core/dlpack.py.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

void bind_dlpack(pybind11::module_ &m);

}  // namespace pk
