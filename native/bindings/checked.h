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
void note_checked_kernel();
void checked_kernel_gone();
// True: the block is freed later.
bool quarantine(const Storage &storage);
// Frees what waits; false when nothing did.
bool release_quarantine();

// Bytes that an array of so many has behind it at least; 0 on other backends.
uint64_t guard_of(uint64_t bytes);
// Read when a backend is opened.
void read_guard();

// Tells the simulated device which memory behind the arrays belongs to none: a plain kernel that writes there is told
// of. forget_zones(): of a launch that was deferred.
void watch_zones(const std::vector<Param> &params, PyObject *const *values);
void forget_zones();

// Tells the device what its next launch from this thread may touch. values: an argument for each parameter.
void describe_launch(const std::vector<Param> &params, PyObject *const *values);

}  // namespace pk
