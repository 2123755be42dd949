// transfers.h: arrays that an asynchronous transfer reads or writes, and what uses of them wait for.
#pragma once
#include <pybind11/pybind11.h>

#include "bindings/array.h"

namespace pk {

// Work that is queued on the stream from now on comes after the transfers of the array's bytes. Waits, without the GIL
// and interruptibly, until these are issued. False with an exception set, also when one has failed and nobody was told.
bool await_transfers(const ArrayObject *array, uint64_t stream);

// The storage is about to go.
void forget_transfers(const Storage *storage);

void bind_transfers(pybind11::module_ &m);

}  // namespace pk
