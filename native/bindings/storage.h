// storage.h: what arrays view: a block of the pool, or memory that the pool does not own.
#pragma once
#include <Python.h>

#include <cstdint>

#include "launch/runtime.h"

namespace pk {

// One pool block (or foreign memory when block == 0), shared by the views on it. Counted under the GIL.
struct Storage {
  uint64_t address;
  uint64_t bytes;  // as requested
  uint64_t pool;
  uint64_t block;
  pk_block_state *state;  // null for foreign memory
  uint64_t stream;        // the stream that owns the block
  uint32_t stream_id;
  int32_t device;
  bool moving;  // transfers may be under way: transfers.h
  Py_ssize_t refs;
  PyObject *keeper;          // what keeps foreign memory alive
  Storage *previous, *next;  // all that exist: all_storages()
};

// The first of all storages of the process. Under the GIL.
Storage *all_storages();

// One without memory, referred to once.
Storage *new_storage();
// A block for `bytes`, from the fast path when a cached block fits, else without the GIL; null with an exception set.
Storage *allocate(uint64_t bytes);
// Gives one reference up; with the last the block goes back to the pool, or what keeps foreign memory is let go.
void drop_storage(Storage *storage);

}  // namespace pk
