// owner.h: who is allocating: tenant of the thread, notebook cell and line of the running frame.
#pragma once
#include <Python.h>

#include "pygpukit/core.h"

namespace pk {

pk_owner current_owner();
void set_cell(uint32_t cell, PyObject *filename);  // filename: str or None

}  // namespace pk
