// foreign.h: memory of other libraries: let go of in stream order, and ordering between their streams and ours.
#pragma once
#include <Python.h>

#include <cstdint>

namespace pk {

// Drops the reference that keeps foreign memory alive, once the work queued so far on every stream of the device has
// passed: at once when nothing is queued, else at a later call of this or of let_go_of_passed(). With the GIL held.
void let_go(PyObject *keeper, int32_t device);
// Drops what was waiting and whose work has passed.
void let_go_of_passed();

}  // namespace pk
