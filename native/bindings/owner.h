// owner.h: who is allocating: tenant of the thread, notebook cell and line of the running frame.
#pragma once
#include <Python.h>

#include "launch/launch.h"
#include "pygpukit/core.h"

namespace pk {

bool cell_is_running();
pk_owner current_owner(int max_depth = 64);
// Where the running cell launches: cell and line, 0 outside a cell and deep in other code, where looking costs too
// much.
inline LaunchPlace current_place() {
  if (!cell_is_running()) return {};
  const pk_owner owner = current_owner(16);
  return {owner.cell, owner.line};
}
void set_cell(uint32_t cell, PyObject *filename);  // filename: str or None

}  // namespace pk
