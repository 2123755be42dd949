// resident.h: how many blocks of a launch that is in the ring one multiprocessor holds. The ring has the kernel's name
// and the configuration; nothing is done for it when a kernel is launched.
#pragma once
#include <pybind11/pybind11.h>

#include <cstdint>

namespace pk {

// With the GIL. name: interned. Of kernels of one name the newest counts; where it is gone, none.
void note_kernel(uint32_t name, uint64_t function);
void kernel_gone(uint32_t name, uint64_t function);

void bind_residents(pybind11::module_ &m);

}  // namespace pk
