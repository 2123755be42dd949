// owner.cpp: walks the frames to the notebook cell, only while a cell is set.
#include "bindings/owner.h"

#include <frameobject.h>

#include "launch/runtime.h"

namespace pk {

static uint32_t g_cell = 0;
static PyObject *g_filename = nullptr;  // filename of the running cell's code, null outside a cell

// Line in the innermost frame that belongs to the cell, 0 when none does (another thread, a callback).
static uint32_t cell_line(int max_depth) {
  PyFrameObject *frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  uint32_t line = 0;
  for (int depth = 0; frame != nullptr && depth < max_depth; ++depth) {
    PyCodeObject *code = PyFrame_GetCode(frame);
    const bool in_cell = code->co_filename == g_filename || PyUnicode_Compare(code->co_filename, g_filename) == 0;
    Py_DECREF(code);
    if (in_cell) {
      line = static_cast<uint32_t>(PyFrame_GetLineNumber(frame));
      break;
    }
    PyFrameObject *back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return line;
}

bool cell_is_running() { return g_filename != nullptr; }

pk_owner current_owner(int max_depth) {
  pk_owner owner = {t_state.tenant, 0, 0, 0, t_state.account};
  if (g_filename != nullptr) {
    owner.line = cell_line(max_depth);
    if (owner.line != 0) owner.cell = g_cell;
  }
  return owner;
}

void set_cell(uint32_t cell, PyObject *filename) {
  PyObject *next = PyUnicode_Check(filename) ? filename : nullptr;
  Py_XINCREF(next);
  PyObject *previous = g_filename;
  g_filename = next;
  g_cell = next != nullptr ? cell : 0;
  Py_XDECREF(previous);
}

}  // namespace pk
