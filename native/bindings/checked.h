// checked.h: launches of checked kernels on the simulated device: they are told of every array, and freed memory is
// kept from being reused for a while.
#pragma once
#include <Python.h>

#include <string>
#include <vector>

#include "bindings/arguments.h"
#include "bindings/array.h"

namespace pk {

// Whether a function was compiled in checked mode; false on other backends.
bool is_checked(uint64_t function);

// As long as a checked kernel exists, freed blocks wait.
void checked_kernel_made();
void checked_kernel_gone();
// True: the block is freed later.
bool quarantine(const Storage &storage);
// Frees what waits; false when nothing did.
bool release_quarantine();

// Tells the device what its next launch from this thread may touch. values: an argument for each parameter.
void describe_launch(const std::vector<Param> &params, PyObject *const *values);

}  // namespace pk
